"""Inpainting: subspaces learned from the picture fill the missing pixels of its patches."""

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
    check_picture_size,
    check_settings,
    no_convergence_warnings,
    patch_side,
)
from polyspan.inputs import require_numpy
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import gaussians_of, posterior_means
from polyspan.progress import progress_bar

PRESETS = {
    "fast": Preset(8, 2, 10, 20, 5000, 50.0, anneal_steps=8, max_iter=8, max_iter_holes=4),
    "best": Preset(8, 1, 20, 20, 15000, 50.0, anneal_steps=15, max_iter=10, max_iter_holes=6),
}
# Side of a tile, in pixels, and margin around it that is solved with the tile and then discarded.
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

    First the missing pixels are filled by smooth interpolation. A mixture of low-rank Gaussians
    (`SubspaceMixture`) is learned from 8×8 patches of this picture, and then improved by EM on the
    observed pixels of the patches. Every missing pixel is replaced by its expectation given the
    observed pixels of a patch, averaged over all patches that cover it.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        16×16 pixels or more. Integers are divided by the largest value of their type, as in
        scikit-image; floats are not changed. Masked pixels are not used.
    mask : array-like of shape (height, width)
        True (or not 0) where a pixel is missing, in all channels.
    preset : {"fast", "best"}, default="best"
        "best" has 20 subspaces and patches at every pixel, "fast" 10 and at every second pixel.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.
    model : SubspaceMixture, default=None
        A mixture fitted to patches of one plane, as `extract_patches` returns them. None: learned
        from the picture.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of patches to learn from, and of the starts.
    progress : bool, default=False
        Whether to show a progress bar; needs the package rich.

    Returns
    -------
    filled : ndarray of the same shape
        float32 where the picture is float16 or float32, else float64. Observed pixels are not
        changed.

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
    check_settings("inpaint_image", PRESETS, preset, channel_axis, model, random_state, progress)
    settings = PRESETS[preset]
    missing = _check_mask(mask, image, channel_axis)
    side = settings.side if model is None else patch_side(model)
    picture = Planes.of(image, channel_axis, missing)
    check_picture_size(missing.shape, side, learned=model is None)
    rng = check_random_state(random_state)
    n_bands = Canvas(picture.planes[0], side, settings.step).n_bands
    if missing.any():
        with progress_bar(progress, len(picture.planes) * (n_bands + 1), "inpaint") as tick:
            for plane in picture.planes:
                incomplete = np.where(missing, np.float32(np.nan), plane)
                canvas = Canvas(incomplete, side, settings.step)
                guess = interpolate(plane, missing)
                found = _fill(canvas, guess, settings, model, rng, tick)
                plane[missing] = np.where(np.isnan(found), guess, found)[missing]
    result = picture.to_image(picture.planes)
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
        # Patches at the same places of the interpolated and of the incomplete picture.
        smooth, incomplete = (
            source.sample(settings.n_train, np.random.RandomState(seed))
            for source in (Canvas(guess, canvas.side, 1), canvas)
        )
        model = settings.model(len(incomplete), "shared", rng)
        with no_convergence_warnings():
            model.fit(smooth)
            usable = incomplete[~np.isnan(incomplete).all(axis=1)]
            # The number of patches must be at least the number of pixels of a patch.
            if len(usable) >= canvas.side**2:
                model.set_params(warm_start=True, max_iter=settings.max_iter_holes).fit(usable)
    tick()
    gaussians = gaussians_of(model)
    for top, patches in canvas.bands():
        # Complete patches get the weight 0.
        rows = np.flatnonzero(np.isnan(patches).any(axis=1))
        weights = np.zeros(len(patches), dtype=np.float32)
        if len(rows):
            patches, incomplete = patches.copy(), patches[rows]
            expected, _ = posterior_means(incomplete, model.mean_, gaussians)
            patches[rows] = np.where(np.isnan(incomplete), expected, incomplete)
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
    """Copy the observed pixels of the given picture into the result, to the last digit."""
    if channel_axis is None:
        result, given, channel_axis = result[None], given[None], 0
    # One channel at a time, to save memory.
    axes = (np.moveaxis(pixels, channel_axis, 0) for pixels in (result, given))
    for channel, before in zip(*axes, strict=True):
        channel[~missing] = as_fractions(before[~missing], result.dtype)


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
