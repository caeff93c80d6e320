"""Masks of missing pixels: one for all channels, or one for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.images.planes import as_fractions, check_image
from polyspan.inputs import require_numpy


def check_mask(mask: Any, image: Any, channel_axis: int | None) -> np.ndarray:
    """Return which pixels are missing: (1, height, width), or (n_channels, height, width)."""
    require_numpy("inpaint_image", image=image, mask=mask)
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
    if missing.ndim == 2:
        missing = missing[None]
    else:
        assert channel_axis is not None
        missing = np.moveaxis(missing, channel_axis, 0)
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


def keep_observed(
    result: np.ndarray, given: np.ndarray, missing: np.ndarray, channel_axis: int | None
) -> None:
    """Copy the observed pixels of the given picture into the result, to the last digit."""
    if channel_axis is None:
        result, given, channel_axis = result[None], given[None], 0
    axes = [np.moveaxis(pixels, channel_axis, 0) for pixels in (result, given)]
    holes = np.broadcast_to(missing, axes[0].shape)
    # One channel at a time, to save memory.
    for channel, before, hole in zip(*axes, holes, strict=True):
        channel[~hole] = as_fractions(before[~hole], result.dtype)
