"""Convert pictures to float32 planes with independent noise, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    as_array,
    is_numpy,
    namespace,
    row_slices,
    to_numpy,
    unfilled,
    zeros,
)

# Largest values that a picture may have as it is: of others the squares would leave float32, or
# their differences vanish in it.
LEAST, MOST = 1e-3, 1e6
# A picture whose middle is so many ranges away from 0 is moved there.
FAR = 16
# Rows of a picture that are mixed at once.
ROWS_AT_ONCE = 64


def as_channels(
    image: Any,
    channel_axis: int | None,
    holes: Array | None = None,
    stack_axis: int | None = None,
) -> tuple[Array, Any, float]:
    """Check a picture; return float32 channels, the type of the result, and a scale.

    The channels, (n_channels, height, width) or (n_channels, depth, height, width), are the values
    of the picture divided by the scale.
    """
    pixels = check_image(image, channel_axis, stack_axis)
    xp = namespace(pixels)
    dtype = result_type(pixels)
    pixels = channels_first(pixels, channel_axis, stack_axis)
    if holes is not None:
        pixels = xp.where(holes, zeros((), pixels), pixels)
    check_finite(pixels, "" if holes is None else " outside the mask")
    scaled, scale = _as_float(pixels)
    return scaled, dtype, scale


def brightness_of(image: Any, channel_axis: int | None, holes: Array | None = None) -> np.ndarray:
    """Return the brightness of a picture in its own units: what a mixture of patches knows."""
    channels, _, scale = as_channels(image, channel_axis, holes)
    plane = mixed(brightness_basis(channels.shape[0])[:1], to_numpy(channels))[0]
    return np.asarray(plane if scale == 1 else plane.astype(np.float64) * scale)


def channels_first(pixels: Array, channel_axis: int | None, stack_axis: int | None = None) -> Array:
    """Return (n_channels, height, width), or (n_channels, depth, height, width)."""
    order = axes_first(pixels.ndim, channel_axis, stack_axis)
    pixels = namespace(pixels).permute_dims(pixels, order)
    return pixels[None, ...] if channel_axis is None else pixels


def check_finite(pixels: Array, where: str = "") -> None:
    """Raise an error where a picture has values that are no numbers."""
    xp = namespace(pixels)
    if not xp.isdtype(pixels.dtype, "real floating"):
        return
    # NaN is passed on by both: no array of the size of the picture is made.
    if math.isfinite(float(xp.max(pixels))) and math.isfinite(float(xp.min(pixels))):
        return
    bad = math.prod(pixels.shape) - int(xp.count_nonzero(xp.isfinite(pixels)))
    raise ValueError(
        f"{bad} of {math.prod(pixels.shape)} values of the image{where} are NaN or infinite: fill "
        "them first, or mark them in the mask of inpaint_image"
    )


def without_offset(image: Any, holes: Array | None = None) -> tuple[Array, float]:
    """Return a picture and the number that was taken from it.

    float32 does not hold what differs in values that are large and nearly equal, nor do the squares
    of those values. Where the middle of a picture is far outside its range, it is taken away;
    integers become fractions of the largest value of their type then. Holes are not looked at.
    """
    pixels = as_pixels(image)
    xp = namespace(pixels)
    whole = xp.isdtype(pixels.dtype, "integral")
    if not (whole or xp.isdtype(pixels.dtype, "real floating")) or not math.prod(pixels.shape):
        return pixels, 0.0
    seen = pixels if holes is None else pixels[~holes]
    kind = int if whole else float
    low, high = kind(xp.min(seen)), kind(xp.max(seen))
    middle = low // 2 + high // 2 if whole else low / 2 + high / 2
    if not math.isfinite(middle) or abs(middle) <= FAR * (high - low) or low == high:
        return pixels, 0.0
    if whole:
        # The least value, in integers: exact, and in the range of unsigned ones.
        most = xp.iinfo(pixels.dtype).max
        if holes is not None:
            pixels = xp.where(holes, low, pixels)
        return xp.astype(pixels - low, xp.float64) / float(most), low / most
    # A number of the type of the picture: the difference of two that are close is exact.
    middle = float(xp.asarray(middle, dtype=pixels.dtype))
    return pixels - middle, middle


def axes_first(n: int, *axes: int | None) -> tuple[int, ...]:
    """Return the order of n axes in which the given ones come first."""
    first = [axis % n for axis in axes if axis is not None]
    return (*first, *(axis for axis in range(n) if axis not in first))


def mixed(basis: Array, channels: Array) -> Array:
    """Return each row of a basis times all channels."""
    xp = namespace(channels)
    flat = xp.reshape(channels, (channels.shape[0], -1))
    return xp.reshape(basis @ flat, (basis.shape[0], *channels.shape[1:]))


def mixed_in_place(basis: Array, channels: Array) -> Array:
    """Replace channels by as many mixtures of them, where that is possible, to save memory."""
    if not is_numpy(channels):
        return mixed(basis, channels)
    for rows in row_slices(channels.shape[-2], ROWS_AT_ONCE):
        channels[..., rows, :] = mixed(basis, channels[..., rows, :])
    return channels


def as_image(
    channels: Array,
    channel_axis: int | None,
    dtype: Any,
    scale: float,
    stack_axis: int | None = None,
) -> Array:
    """Return channels as a picture: the only large new array."""
    first = channels[0, ...] if channel_axis is None else channels
    order = axes_first(first.ndim, channel_axis, stack_axis)
    moved = namespace(first).permute_dims(first, tuple(np.argsort(order).tolist()))
    out = unfilled(tuple(moved.shape), moved, dtype)
    out[...] = moved
    out *= scale
    return out


def check_image(image: Any, channel_axis: int | None, stack_axis: int | None = None) -> Array:
    """Return a picture as an array of the right number of dimensions."""
    if np.ma.is_masked(image):
        raise ValueError(
            "the image is a masked array, and the mask would be lost: fill what is masked by "
            "inpaint_image(image.data, np.ma.getmaskarray(image))"
        )
    pixels = as_pixels(image)
    if not namespace(pixels).isdtype(pixels.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"the image has values of the type {pixels.dtype}: need real numbers")
    shape = tuple(pixels.shape)
    axes = {"channel_axis": channel_axis, "stack_axis": stack_axis}
    wanted = 2 + sum(axis is not None for axis in axes.values())
    if pixels.ndim != wanted:
        advice = (
            "say which axis holds the channels, as in channel_axis=-1"
            if wanted == 2 and pixels.ndim == 3
            else "need (height, width), and one dimension more for channel_axis and stack_axis each"
        )
        raise ValueError(f"the image has the shape {shape}: {advice}")
    if not math.prod(shape):
        raise ValueError(f"the image is empty: its shape is {shape}")
    for name, axis in axes.items():
        if axis is not None and not -wanted <= axis < wanted:
            raise ValueError(f"{name}={axis} is no axis of shape {shape}")
    if len({axis % wanted for axis in axes.values() if axis is not None}) < wanted - 2:
        raise ValueError(f"channel_axis={channel_axis} and stack_axis={stack_axis} are the same")
    return pixels


def as_pixels(image: Any) -> Array:
    """Return a picture as an array: in the byte order of this machine, without gradients."""
    pixels = as_array(image)
    if is_numpy(pixels):
        return pixels if pixels.dtype.isnative else pixels.astype(pixels.dtype.newbyteorder("="))
    # Tensors that record what is done with them cannot be changed in place, nor become arrays.
    return pixels.detach() if getattr(pixels, "requires_grad", False) else pixels


def result_type(pixels: Array) -> Any:
    """Return float32 for short floats, else float64."""
    xp = namespace(pixels)
    short = (getattr(xp, "float16", None), xp.float32)
    return xp.float32 if pixels.dtype in short else xp.float64


def as_fractions(pixels: Array, dtype: Any) -> Array:
    """Return floats; divide integers by the largest value of their type, as scikit-image does."""
    xp = namespace(pixels)
    found = _copied(pixels, dtype)
    if xp.isdtype(pixels.dtype, "integral"):
        found /= float(xp.iinfo(pixels.dtype).max)
    return found


def _copied(pixels: Array, dtype: Any) -> Array:
    """Return a copy; that of a NumPy array has its axes in order in memory, too."""
    if is_numpy(pixels):
        return np.array(pixels, dtype=dtype, order="C")
    return namespace(pixels).astype(pixels, dtype)


def _as_float(pixels: Array) -> tuple[Array, float]:
    """Return float32 values, and the number that very large or small values were divided by."""
    xp = namespace(pixels)
    if not xp.isdtype(pixels.dtype, "real floating"):
        pixels = as_fractions(pixels, xp.float32)
    most = float(max(xp.max(pixels), -xp.min(pixels)))
    if most == 0 or LEAST <= most <= MOST:
        return _copied(pixels, xp.float32), 1.0
    # A power of two: division by it is exact.
    scale = math.ldexp(0.5, math.frexp(most)[1])
    return xp.astype(pixels / scale, xp.float32), scale


def brightness_basis(n: int) -> np.ndarray:
    """Return the orthonormal cosine basis: brightness first, then differences of channels."""
    k, j = np.ogrid[:n, :n]
    basis = np.cos(np.pi * k * (2 * j + 1) / (2 * n)) * np.sqrt(2.0 / n)
    basis[0] = 1.0 / np.sqrt(n)
    return np.asarray(basis, dtype=np.float32)


def with_coarse_scale(pilot: Array, coarse: Array) -> Array:
    """Return a pilot whose coarse scale is that of an estimate of half the size."""
    return pilot + enlarge(coarse - halve(pilot), pilot.shape[1:])


def halve(planes: Array) -> Array:
    """Return means of 2×2 pixels; an odd last row or column is repeated."""
    xp = namespace(planes)
    for axis in (1, 2):
        planes = xp.moveaxis(planes, axis, 0)
        if planes.shape[0] % 2:
            planes = xp.concat([planes, planes[-1:, ...]], axis=0)
        planes = xp.moveaxis((planes[::2, ...] + planes[1::2, ...]) / 2, 0, axis)
    return planes


def enlarge(planes: Array, shape: tuple[int, int]) -> Array:
    """Return planes of twice the size, bilinear between the centres of their pixels."""
    xp = namespace(planes)
    for axis, n in zip((1, 2), shape, strict=True):
        planes = xp.moveaxis(planes, axis, 0)
        before = xp.concat([planes[:1, ...], planes[:-1, ...]], axis=0)
        after = xp.concat([planes[1:, ...], planes[-1:, ...]], axis=0)
        both = xp.stack([0.75 * planes + 0.25 * before, 0.75 * planes + 0.25 * after], axis=1)
        both = xp.reshape(both, (2 * planes.shape[0], *planes.shape[1:]))
        planes = xp.moveaxis(both[:n, ...], 0, axis)
    return planes
