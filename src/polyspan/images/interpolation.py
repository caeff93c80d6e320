"""A first guess of missing pixels: smooth interpolation, with the detail of other channels."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.ndimage import gaussian_filter
from scipy.sparse.linalg import splu

# Side of a tile, in pixels, and margin around it that is solved with the tile and then discarded.
TILE, MARGIN = 192, 16
#: Detail is what differs from a mean around a pixel, of this width.
WIDTH = 1.5


def interpolate(plane: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Fill missing pixels so that the sum of squared second differences is smallest.

    Each tile is solved with a margin, so that time grows with the number of pixels. This is written
    by hand, with SciPy's sparse solver, because SciPy's interpolators of scattered points are
    piecewise (`griddata`) or need a dense matrix (`RBFInterpolator`).
    """
    out = np.where(missing, plane[~missing].mean(), plane).astype(np.float64)
    height, width = plane.shape
    for top in range(0, height, TILE):
        for left in range(0, width, TILE):
            inner = np.s_[top : top + TILE, left : left + TILE]
            if not missing[inner].any():
                continue
            rows = slice(max(0, top - MARGIN), top + TILE + MARGIN)
            columns = slice(max(0, left - MARGIN), left + TILE + MARGIN)
            found = _solve(out[rows, columns], missing[rows, columns])
            part = found[top - rows.start :, left - columns.start :][:TILE, :TILE]
            out[inner] = np.where(missing[inner], part, out[inner])
    return out.astype(plane.dtype)


def _solve(plane: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Minimise ‖Δu‖² over the missing pixels; `plane` holds a first guess of them."""
    height, width = plane.shape
    laplacian = scipy.sparse.kronsum(_second_difference(width), _second_difference(height))
    energy = (laplacian.T @ laplacian).tocsr()
    unknown, known = np.flatnonzero(missing), np.flatnonzero(~missing)
    flat = plane.ravel().copy()
    if not len(known):
        return plane
    # A small penalty on the distance to the guess keeps the system definite where a tile has only
    # one observed pixel.
    system = energy[unknown][:, unknown] + 1e-9 * scipy.sparse.identity(len(unknown))
    right = -(energy[unknown][:, known] @ flat[known]) + 1e-9 * flat[unknown]
    options = {"SymmetricMode": True}
    factor = splu(
        system.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
    )
    flat[unknown] = factor.solve(right)
    return flat.reshape(height, width)


def _second_difference(n: int) -> scipy.sparse.spmatrix:
    first = scipy.sparse.diags([-np.ones(n - 1), np.ones(n - 1)], [0, 1], shape=(n - 1, n))
    return -(first.T @ first)


def guess_from_other_channels(channels: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Fill each channel smoothly, with the detail of the other channels in its holes.

    Edges and texture are mostly the same in all channels, but for a factor that is found by least
    squares. What is left without this detail is interpolated.
    """
    details = np.stack([_detail(one, holes) for one, holes in zip(channels, missing, strict=True)])
    total, count = details.sum(axis=0), (~missing).sum(axis=0)
    out = channels.copy()
    for filled, detail, holes in zip(out, details, missing, strict=True):
        if holes.any():
            # The mean of the details of the other channels that are observed; 0 if none is.
            others = (total - detail) / np.maximum(count - ~holes, 1)
            squares = float((others[~holes] ** 2).sum())
            factor = float((others * detail)[~holes].sum()) / squares if squares > 0 else 0.0
            rest = interpolate(filled - np.float32(factor) * others, holes)
            filled[holes] = (rest + np.float32(factor) * others)[holes]
    return out


def _detail(channel: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return observed pixels less a mean of those around them; 0 in the holes."""
    seen = (~missing).astype(np.float32)
    around = gaussian_filter(channel * seen, WIDTH) / np.maximum(
        gaussian_filter(seen, WIDTH), np.float32(1e-6)
    )
    return np.asarray((channel - around) * seen)
