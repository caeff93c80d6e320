"""How strong the noise is: one number, one per channel, or a map."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.images import correlated
from polyspan.images.groups import LEVELS
from polyspan.images.noise import SMOOTHED, channels_noise, common_noise, sampled
from polyspan.images.planes import as_pixels, axes_first, channels_first
from polyspan.images.split import MOST_COLOURS

#: Pixels with less noise than this part of the mean are treated as if they had so much.
LEAST_PART = 0.02
#: A picture is divided by a smooth map of its noise, so that its details stay what they are: the
#: standard deviation of the blur, in pixels.
SMOOTH = 4.0
#: A map is rough where levels differ from the smooth map by more than this part on average.
ROUGH = 0.1
#: In a second step pixels with more noise than this part of that around them are pulled towards
#: the result of the first.
TRUSTED = 0.7
#: Estimates of the noise of colours that differ by more than this factor are taken as they are.
UNEQUAL = 1.3
#: Less noise than this, in levels of 255, is often the rounding of a picture that has none. The
#: stages are learned for 7 levels and more: with one level their squared error is up to a tenth
#: above that of the noise, with a third of a level it is several times that. At 2 levels a mixture
#: of its own is as good.
LEAST_LEVEL = 2.0


@dataclass(frozen=True)
class NoiseLevel:
    """Noise of the channels of a picture, in the units of the channels."""

    sigma: float
    """The level, or the root mean square of all levels but 0."""
    relative: Array | None = None
    """Levels in units of `sigma`, to multiply channels with; None: one level for all."""
    noiseless: Array | None = None
    """Where there is no noise at all, of the shape of `relative`."""
    exact: Array | None = None
    """Levels of single pixels, where they differ much from the smooth map `relative`."""

    @classmethod
    def of(
        cls,
        sigma: Any,
        channels: Array,
        channel_axis: int | None,
        scale: float,
        stack_axis: int | None = None,
    ) -> NoiseLevel:
        """Check what the user gave: a number, one per channel, or a map."""
        if isinstance(sigma, Real):
            if not (0 <= float(sigma) < math.inf):
                raise ValueError(f"sigma={sigma!r}: need a finite number, 0 or more")
            return cls(float(sigma) / scale)
        levels = _as_levels(sigma, channels, channel_axis, stack_axis) / scale
        still = levels == 0
        if (levels == levels.flat[0]).all():
            return cls(float(levels.flat[0]))
        mean = float(np.sqrt((levels[~still] ** 2).mean()))
        # Pixels without noise are put back: until then they are treated as if they had the usual
        # one. Divided by less they would stand out, and patches around them be misjudged.
        own = np.where(still, mean, np.maximum(levels, LEAST_PART * mean))
        return cls._of_map(own, channels, moved_to(still, channels) if still.any() else None)

    @classmethod
    def _of_map(cls, levels: np.ndarray, like: Array, noiseless: Array | None) -> NoiseLevel:
        """Return the noise for levels above 0: of channels, or of all pixels."""
        xp = namespace(like)
        mean = float(np.sqrt((levels**2).mean()))
        sizes = [SMOOTH if n > 1 else 0.0 for n in levels.shape[-2:]]
        blur = [0.0] * (levels.ndim - 2) + sizes
        smooth = np.sqrt(gaussian_filter((levels / mean) ** 2, blur))
        rough = np.abs(levels / mean / smooth - 1).mean() > ROUGH
        exact = moved_to(levels, like, xp.float32) if rough else None
        return cls(mean, moved_to(smooth, like, xp.float32), noiseless, exact)

    def pulled(self, channels: Array, denoised: Array, variance: Array) -> tuple[Array, NoiseLevel]:
        """Pull noisy pixels towards a first result; return that, and the noise that is left.

        A pixel with more noise than those around it tells less than they do. The variance is that
        of the result, in the units of the channels.
        """
        assert self.exact is not None
        assert self.relative is not None
        xp = namespace(channels)
        around = TRUSTED * self.sigma * self.relative
        weight = xp.minimum((around / self.exact) ** 2, xp.ones_like(self.exact))
        left = xp.sqrt((weight * self.exact) ** 2 + (1 - weight) ** 2 * variance)
        level = self._of_map(to_numpy(left).astype(np.float64), channels, self.noiseless)
        return denoised + weight * (channels - denoised), level

    def even(self, channels: Array) -> Array:
        """Return channels whose noise is equally strong everywhere."""
        return channels if self.relative is None else channels / self.relative

    def uneven(self, denoised: Array) -> Array:
        """Return denoised channels in their own units."""
        return denoised if self.relative is None else denoised * self.relative


def estimated_level(channels: Array, scale: float, *, warn: bool) -> NoiseLevel:
    """Estimate the noise of channels; with `warn`, say where it does not look white."""
    n, *_, width = channels.shape
    # Slices of a volume side by side.
    flat = namespace(channels).reshape(channels, (n, -1, width))
    small, step = sampled(flat)
    small = to_numpy(small)
    each = channels_noise(small, step)
    warned = warn and _is_correlated(flat, each)
    if warned:
        warnings.warn(correlated.WARNING, stacklevel=5)
    if n > MOST_COLOURS:
        return NoiseLevel.of(scale * each, channels, 0, scale)
    level, halved, smoothed = common_noise(small, step, flat, each)
    if not halved and each.max() > UNEQUAL * each.min():
        return NoiseLevel.of(scale * each, channels, 0, scale)
    if smoothed and not halved and warn and not warned:
        warnings.warn(SMOOTHED, stacklevel=5)
    # One level for all is more exact: texture is weak in differences of colours.
    return NoiseLevel(level)


def _is_correlated(channels: Array, sigmas: np.ndarray) -> bool:
    """Tell whether the noise of a channel is correlated from pixel to pixel."""
    xp = namespace(channels)
    for c, sigma in enumerate(sigmas):
        plane = channels[c, ...]
        seen = sigma > LEAST_LEVEL / LEVELS * float(xp.max(plane) - xp.min(plane))
        if (seen and correlated.is_correlated(plane)) or correlated.is_soft(plane):
            return True
    return False


def _as_levels(
    sigma: Any, channels: Array, channel_axis: int | None, stack_axis: int | None
) -> np.ndarray:
    """Return levels that can be broadcast to the channels."""
    if np.ma.is_masked(sigma):
        raise ValueError("sigma is a masked array: give a noise for every pixel, as by filled()")
    levels = to_numpy(as_pixels(sigma))
    n_channels, *size = channels.shape
    if levels.dtype.kind not in "fiu":
        raise TypeError(f"sigma has values of the type {levels.dtype}: need numbers")
    n_axes = len(size) + (channel_axis is not None)
    # The shape of the picture, and that of one channel.
    order = axes_first(n_axes, channel_axis, stack_axis)
    sizes = size if channel_axis is None else [n_channels, *size]
    whole = tuple(sizes[order.index(axis)] for axis in range(n_axes))
    one = whole if channel_axis is None else tuple(np.delete(whole, channel_axis).tolist())
    if not levels.ndim:
        found = levels.reshape([1] * channels.ndim)
    elif channel_axis is not None and levels.shape == (n_channels,):
        found = levels.reshape(n_channels, *[1] * len(size))
    elif levels.shape in (one, whole):
        if levels.ndim < n_axes:
            levels = np.expand_dims(levels, channel_axis or 0)
        found = channels_first(levels, channel_axis, stack_axis)
    else:
        per_channel = "" if channel_axis is None else f", {n_channels} numbers, one per channel,"
        shapes = f"{one}" if channel_axis is None else f"{one} or {whole}"
        raise ValueError(
            f"sigma has the shape {levels.shape}: need one number{per_channel} or a map of the "
            f"shape {shapes}"
        )
    found = found.astype(np.float64)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError("sigma has values that are negative, NaN or infinite: need 0 or more")
    return found
