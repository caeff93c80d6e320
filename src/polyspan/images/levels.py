"""How strong the noise is: one number, one per channel, or a map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.images.planes import as_pixels, axes_first

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

    def uneven(self, denoised: Array, given: Array | None = None) -> Array:
        """Return denoised channels in their own units; noiseless pixels are those given."""
        if self.relative is None:
            return denoised
        denoised = denoised * self.relative
        if self.noiseless is None or given is None:
            return denoised
        return namespace(denoised).where(self.noiseless, given, denoised)


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
    order = axes_first(n_axes, channel_axis, stack_axis)
    sizes = size if channel_axis is None else [n_channels, *size]
    whole = tuple(sizes[order.index(axis)] for axis in range(n_axes))
    inner = order if channel_axis is None else order[1:]
    one = tuple(whole[axis] for axis in sorted(inner))
    if not levels.ndim:
        found = levels.reshape([1] * channels.ndim)
    elif channel_axis is not None and levels.shape == (n_channels,):
        found = levels.reshape(n_channels, *[1] * len(size))
    elif levels.shape == one:
        found = levels.transpose(np.argsort(np.argsort(inner)))[None]
    elif levels.shape == whole:
        found = levels.transpose(order)
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
