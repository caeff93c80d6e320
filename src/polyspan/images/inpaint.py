"""Inpainting: subspaces that were learned from the picture fill the missing pixels of patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu
from sklearn.utils import check_random_state

from polyspan.images.planes import Canvas, Planes, as_fractions, check_image
from polyspan.images.presets import (
    Preset,
    check_settings,
    check_side,
    no_convergence_warnings,
    side_of,
)
from polyspan.inputs import require_numpy
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import gaussians_of, posterior_means
from polyspan.progress import progress_bar

PRESETS = {
    "fast": Preset(8, 2, 10, 20, 5000, 50.0, anneal_steps=8, max_iter=8, n_refill=4),
    "best": Preset(8, 1, 20, 20, 15000, 50.0, anneal_steps=15, max_iter=10, n_refill=6),
}
# Pixels of a tile and of the margin that it is solved with but not taken from.
TILE, MARGIN = 192, 16


def inpaint_image(
    image: Any,
    mask: Any,
    preset: str = "best",
    channel_axis: int | None = None,
    *,
    model: SubspaceMixture | None = None,
    random_state: Any = 0,
    progress: bool = False,
) -> np.ndarray:
    """Fill the missing pixels of a picture.

    A smooth interpolation comes first. From its 8×8 patches a mixture of low-rank Gaussians
    (`SubspaceMixture`) is learned, which then learns on from the patches with their holes, by EM;
    every hole becomes what the observed pixels of its patches let the mixture expect, averaged
    over all patches that cover it.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        16×16 pixels or more. Integers count as fractions of the largest of their type, as in
        scikit-image; floats are taken as they are. Pixels under the mask are not used.
    mask : array-like of shape (height, width)
        True (or not 0) where a pixel is missing.
    preset : {"fast", "best"}, default="best"
        "fast" has half the subspaces and looks at every second patch.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture.
    model : SubspaceMixture, default=None
        Learned from patches of one plane, as `extract_patches` returns them. None: learned from
        the picture.
    random_state : int, RandomState instance or None, default=0
        Draws the patches to learn from, and the starts.
    progress : bool, default=False
        Show a bar; needs rich.

    Returns
    -------
    filled : ndarray of the same shape
        float32 for float16 and float32, else float64; observed pixels as they were.

    Notes
    -----
    Memory beyond the picture: the result, and a few float32 copies.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.images import inpaint_image
    >>> image = np.sin(np.indices((40, 40)).sum(axis=0) / 3.0)
    >>> mask = np.random.default_rng(0).random(image.shape) < 0.3
    >>> filled = inpaint_image(np.where(mask, 0, image), mask)
    >>> bool(np.abs(filled - image).max() < 0.2)
    True
    """
    check_settings("inpaint_image", preset, channel_axis, model, random_state, progress)
    settings = PRESETS[preset]
    missing = _check_mask(mask, image, channel_axis)
    side = settings.side if model is None else side_of(model)
    picture = Planes.of(image, channel_axis, missing)
    check_side(missing.shape, side, learned=model is None)
    rng = check_random_state(random_state)
    n_bands = Canvas(picture.planes[0], side, settings.step).n_bands
    if missing.any():
        with progress_bar(progress, len(picture.planes) * (n_bands + 1), "inpaint") as tick:
            for plane in picture.planes:
                holed = np.where(missing, np.float32(np.nan), plane)
                canvas = Canvas(holed, side, settings.step)
                guess = interpolate(plane, missing)
                found = _fill(canvas, guess, settings, model, rng, tick)
                plane[missing] = np.where(np.isnan(found), guess, found)[missing]
    result = picture.put_back(picture.planes)
    _keep_observed(result, np.asarray(image), missing, channel_axis)
    return result


def _fill(
    canvas: Canvas,
    guess: np.ndarray,
    settings: Preset,
    model: SubspaceMixture | None,
    rng: np.random.RandomState,
    tick: Callable[[], None],
) -> np.ndarray:
    if model is None:
        seed = int(rng.randint(2**31 - 1))
        # The same corners of both.
        smooth, holed = (
            source.sample(settings.n_train, np.random.RandomState(seed))
            for source in (Canvas(guess, canvas.side, 1), canvas)
        )
        model = settings.model(len(holed), "shared", rng)
        with no_convergence_warnings():
            model.fit(smooth)
            seen = ~np.isnan(holed).all(axis=1)
            # Fewer patches than a patch has pixels are too few to learn from.
            if seen.sum() >= canvas.side**2:
                model.set_params(warm_start=True, max_iter=settings.n_refill).fit(holed[seen])
    tick()
    gaussians = gaussians_of(model)
    for top, patches in canvas.bands():
        # Complete patches are not needed.
        rows = np.flatnonzero(np.isnan(patches).any(axis=1))
        weights = np.zeros(len(patches), dtype=np.float32)
        if len(rows):
            patches, own = patches.copy(), patches[rows]
            expected, _ = posterior_means(own, model.mean_, gaussians)
            patches[rows] = np.where(np.isnan(own), expected, own)
            weights[rows] = 1.0
        canvas.add(top, patches, weights)
        tick()
    return canvas.mean()


def _check_mask(mask: Any, image: Any, channel_axis: int | None) -> np.ndarray:
    shape = check_image(image, channel_axis).shape
    if channel_axis is not None:
        shape = tuple(np.delete(shape, channel_axis).tolist())
    require_numpy("polyspan.images", mask=mask)
    missing = np.asarray(mask)
    if missing.dtype.kind not in "biuf" and missing.shape == shape:
        raise TypeError(f"the mask has values of the type {missing.dtype}: need True and False")
    if missing.shape != shape:
        raise ValueError(
            f"the mask has the shape {missing.shape}, but the image has {shape[0]} rows and "
            f"{shape[1]} columns: it needs one entry per pixel"
        )
    missing = missing.astype(bool)
    if missing.all():
        raise ValueError("every pixel of the image is masked: there is nothing to learn from")
    return missing


def _keep_observed(
    result: np.ndarray, given: np.ndarray, missing: np.ndarray, channel_axis: int | None
) -> None:
    """Put the observed pixels back as they were, to the last digit."""
    if channel_axis is None:
        result, given, channel_axis = result[None], given[None], 0
    # One channel at a time, for the sake of memory.
    axes = (np.moveaxis(pixels, channel_axis, 0) for pixels in (result, given))
    for channel, before in zip(*axes, strict=True):
        channel[~missing] = as_fractions(before[~missing], result.dtype)


def interpolate(plane: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Fill missing pixels so that the sum of squared second differences is smallest.

    Solved tile by tile, with a margin, so that time grows with the number of pixels. By hand, on
    SciPy's sparse solver: SciPy's own interpolators of scattered points are either piecewise
    (`griddata`) or dense (`RBFInterpolator`).
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
    """Minimise ‖Δu‖² over the missing pixels; what has no observed neighbours keeps its guess."""
    height, width = plane.shape
    laplacian = scipy.sparse.kronsum(_second_difference(width), _second_difference(height))
    energy = (laplacian.T @ laplacian).tocsr()
    unknown, known = np.flatnonzero(missing), np.flatnonzero(~missing)
    flat = plane.ravel().copy()
    if not len(known):
        return plane
    # A faint penalty on leaving the guess keeps the system definite where a tile has one observed
    # pixel.
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
