"""Inpainting: subspaces learned from the picture fill the missing pixels of its patches."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.inputs import require_numpy
from polyspan.base.private_sklearn import StrOptions, check_parameters
from polyspan.base.progress import Share, progress_bar
from polyspan.images.inpaint_fill import MIXTURE, PATCH, PRESETS, fill_planes, learned_mixture
from polyspan.images.interpolation import interpolate
from polyspan.images.mixtures import (
    PatchModel,
    check_picture_size,
    n_threads,
    patch_side,
)
from polyspan.images.planes import (
    as_channels,
    as_fractions,
    as_image,
    as_pixels,
    brightness_basis,
    brightness_of,
    channels_first,
    check_image,
    mixed_in_place,
    without_offset,
)
from polyspan.images.units import check_alpha, check_integers
from polyspan.mixture import SubspaceMixture


def inpaint_image(
    image: Any,
    mask: Any = None,
    preset: str = "balanced",
    channel_axis: int | None = None,
    *,
    model: SubspaceMixture | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Fill the missing pixels of a picture.

    First the missing pixels are filled by smooth interpolation. A mixture of low-rank Gaussians
    (`SubspaceMixture`) is learned from 8×8 patches of this picture, and then improved by EM on the
    observed pixels of the patches. Every missing pixel is replaced by its expectation given the
    observed pixels of a patch, averaged over all patches that cover it. Then groups of similar
    patches do the same in several rounds, each group with a Gaussian of its own. The result is a
    weighted mean of this and of the smooth interpolation. The weight is the one that fills best
    some observed pixels, which are hidden for that.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        The picture, of 16×16 pixels or more. Integers are divided by the largest value of their
        type, as in scikit-image, and refused where all of them would be black then, as levels of 8
        bits in int64; floats are not changed. Masked pixels are not used.
    mask : array-like of shape (height, width), or of the shape of the image, default=None
        True (or not 0) where a pixel is missing, in all channels or in one. Where channels have
        different masks, they are filled together: what one channel has tells about the others.
        No mixture is used then. None: NaN mark the missing pixels.
    preset : {"fast", "balanced", "best"}, default="balanced"
        "fast" has three rounds, and begins them with the smooth interpolation, without a mixture;
        "balanced" has six, and "best" larger groups and more of them.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.
    model : SubspaceMixture, default=None
        A mixture fitted to patches of one plane, as `extract_patches` returns them. None: learned
        from the picture.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of patches to learn from, of the starts, and of the hidden pixels.
    n_jobs : int or None, default=None
        Threads for the groups; None: one, or what joblib's context says; -1: one per processor. The
        result does not depend on it.
    progress : bool, default=False
        Whether to show a progress bar; needs the package rich.

    Returns
    -------
    ndarray of the same shape
        The filled picture; float32 where the picture is float16 or float32, else float64. Observed
        pixels are not changed.

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
    check_parameters(
        "inpaint_image",
        preset=(preset, [StrOptions(set(PRESETS))]),
        channel_axis=(channel_axis, [Integral, None]),
        model=(model, [SubspaceMixture, None]),
        random_state=(random_state, ["random_state"]),
        n_jobs=(n_jobs, [Integral, None]),
        progress=(progress, ["boolean"]),
    )
    require_numpy("inpaint_image", image=image, mask=mask)
    if mask is None:
        mask = nan_mask(image, channel_axis)
    if n_jobs is not None:  # None: what joblib's context says
        n_jobs = n_threads(n_jobs)
    missing = check_mask(mask, image, channel_axis)
    # Axes of the mask in the order of the picture's, to leave holes out.
    holes = missing if channel_axis is None else np.moveaxis(missing, 0, channel_axis)
    pixels = as_pixels(image)
    holes = np.broadcast_to(holes[0] if channel_axis is None else holes, pixels.shape)
    check_integers(pixels, holes)
    check_alpha(pixels, channel_axis, holes)
    moved, offset = (pixels, 0.0) if model is not None else without_offset(pixels, holes)
    channels, dtype, scale = as_channels(moved, channel_axis, missing)
    side = PATCH if model is None else patch_side(model)
    check_picture_size(missing.shape[1:], side, learned=model is None)
    rng = check_random_state(random_state)
    # Where channels have masks of their own, their brightness is not known: they are not mixed.
    alone = channel_axis is None or len(missing) > 1
    basis = None if alone else brightness_basis(len(channels))
    planes = channels if basis is None else mixed_in_place(basis, channels)
    if missing.any():
        given = None if model is None else PatchModel.of(model, scale)
        with progress_bar(progress, 1, "inpaint") as advance:
            share = Share(lambda part: advance(advance=part))
            planes = fill_planes(planes, missing, PRESETS[preset], given, rng, n_jobs, share)
    if basis is not None:
        planes = mixed_in_place(basis.T, planes)
    result = np.asarray(as_image(planes, channel_axis, dtype, scale)) + offset
    # Observed pixels are those given, to the last digit.
    np.copyto(result, as_fractions(pixels, result.dtype), where=~holes)
    return result


def learn_mixture(
    image: Any,
    mask: Any,
    preset: str = "balanced",
    channel_axis: int | None = None,
    random_state: Any = 0,
) -> SubspaceMixture:
    """Learn a mixture from the brightness of a picture with holes; `inpaint_image` takes it.

    The mask is one for all channels. The mixture is one of patches in the units of the picture.
    """
    if not PRESETS[preset].mixture:
        raise ValueError(f'preset="{preset}" learns no mixture: use "balanced" or "best"')
    missing = check_mask(mask, image, channel_axis)
    if len(missing) > 1:
        raise ValueError("no mixture is learned where channels have masks of their own")
    check_picture_size(missing.shape[1:], MIXTURE.side, learned=True)
    plane = brightness_of(image, channel_axis, missing)
    smooth, incomplete = interpolate(plane, missing[0]), np.where(missing[0], np.nan, plane)
    incomplete = incomplete.astype(plane.dtype, copy=False)
    return learned_mixture(smooth, incomplete, check_random_state(random_state))


def nan_mask(image: Any, channel_axis: int | None) -> np.ndarray:
    """Return where a picture is NaN."""
    pixels = check_image(image, channel_axis)
    found = np.isnan(pixels) if pixels.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if not found.any():
        raise ValueError(
            "no pixel of the image is NaN, and no mask is given: set missing pixels to NaN, or say "
            "where they are by a mask, which is True there"
        )
    return np.asarray(found)


def check_mask(mask: Any, image: Any, channel_axis: int | None) -> np.ndarray:
    """Return which pixels are missing: (1, height, width), or (n_channels, height, width)."""
    if np.ma.is_masked(mask):
        raise ValueError(
            "the mask is a masked array: say of every pixel whether it is missing, as by "
            "mask.filled(True)"
        )
    whole = check_image(image, channel_axis).shape
    shape = whole if channel_axis is None else tuple(np.delete(whole, channel_axis).tolist())
    missing = np.asarray(mask)
    if missing.shape not in (shape, whole):
        raise ValueError(
            f"the mask has the shape {missing.shape}, but the image has {shape[0]} rows and "
            f"{shape[1]} columns: it needs one entry per pixel, or the shape of the image"
        )
    if missing.dtype.kind not in "biuf":
        raise TypeError(f"the mask has values of the type {missing.dtype}: need True and False")
    missing = missing.astype(bool)
    missing = channels_first(missing, channel_axis if missing.shape == whole else None)
    if (missing == missing[:1]).all():
        missing = missing[:1]
    full = [number for number, one in enumerate(missing) if one.all()]
    if len(full) == len(missing):
        raise ValueError("every pixel of the image is masked: there is nothing to learn from")
    if full:
        raise ValueError(
            f"every pixel of channel {full[0]} is masked: there is nothing to learn from; leave "
            "this channel out"
        )
    return np.ascontiguousarray(missing)
