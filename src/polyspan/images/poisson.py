"""Noise that grows with the signal: counts of photons, with the noise of reading them out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import norm, poisson

from polyspan.images.growth import fit_growth, noise_levels
from polyspan.images.mixtures import check_picture_size
from polyspan.images.planes import axes_first, check_image
from polyspan.images.units import check_counts

# Means of counts up to which the inverse is a table. Above them the difference between a mean and
# a quarter of its squared transform hardly changes.
TABLE_TO, TABLE_SIZE = 400.0, 600
# Values this many times the read noise below 0 are not due to it.
FAR_BELOW = 4.0
# Points and width, in standard deviations, of the quadrature over the noise of reading out.
_NODES, _WIDTH = 161, 6.0


@dataclass(frozen=True)
class Stabiliser:
    """A transform after which noise that grows with the signal has the standard deviation 1.

    The model of a pixel is y = gain·k + offset + e: k is a Poisson count with the mean
    (x − offset)/gain, e is normal with the standard deviation `read_noise`, and x is wanted. The
    transform is the generalised one of Anscombe, 2·√(y' + 3/8 + s²) with y' = (y − offset)/gain
    and s = read_noise/gain. Its algebraic inverse would be biased. `inverse` maps the mean of
    transformed pixels to the x for which that is their expectation (the exact unbiased inverse of
    Mäkitalo and Foi); expectations are sums over the Poisson distribution.

    Parameters
    ----------
    gain : float
        Value of one count, in the units of the picture.
    offset : float, default=0
        Value of a pixel without signal.
    read_noise : float, default=0
        Standard deviation of the noise that does not grow, in the units of the picture.
    """

    gain: float
    offset: float = 0.0
    read_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gain", "offset", "read_noise"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)}: need a finite number")
        if self.gain == 0:
            raise ValueError(
                "gain=0: need the value of one count, as 1.0 for a picture of counts; without "
                'counts the noise does not grow with the signal, use noise="gaussian"'
            )
        if self.gain < 0:
            raise ValueError(f"gain={self.gain}: need a finite number above 0")
        if self.read_noise < 0:
            raise ValueError(f"read_noise={self.read_noise}: need a finite number, at least 0")

    def forward(self, image: np.ndarray) -> np.ndarray:
        """Return the transformed picture, whose noise has the standard deviation 1."""
        dtype, values = _as_floats(image)
        counts = (values - self.offset) / self.gain
        return np.asarray(_transform(counts, self._read_counts).astype(dtype))

    def inverse(self, denoised: np.ndarray) -> np.ndarray:
        """Return the picture whose expected transform was given; nothing is below the offset."""
        dtype, found = _as_floats(denoised)
        at, difference, _ = _table(self._read_counts)
        counts = found**2 / 4 + np.interp(found, at, difference)
        counts = np.where(found <= at[0], 0.0, counts)
        return np.asarray((counts * self.gain + self.offset).astype(dtype))

    def inverse_slope(self, denoised: np.ndarray) -> np.ndarray:
        """Return the derivative of `inverse`: errors before it times this are errors after it."""
        dtype, found = _as_floats(denoised)
        at, _, slope = _table(self._read_counts)
        slopes = np.where(found > at[-1], found / 2, np.interp(found, at, slope))
        return np.asarray((slopes * self.gain).astype(dtype))

    @property
    def _read_counts(self) -> float:
        return self.read_noise / self.gain


def _as_floats(image: np.ndarray) -> tuple[np.dtype[Any], np.ndarray]:
    """Return the type of the result, and float64: small differences of large counts matter."""
    pixels = np.asarray(image)
    small = pixels.dtype in (np.float16, np.float32)
    return np.dtype(np.float32 if small else np.float64), pixels.astype(np.float64)


def _transform(counts: np.ndarray, read: float) -> np.ndarray:
    return np.asarray(2.0 * np.sqrt(np.maximum(counts + 0.375 + read**2, 0.0)))


@lru_cache(maxsize=32)
def _table(read: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return expected transforms of means from 0 on, means − transforms²/4, and the slopes."""
    means = np.linspace(0.0, math.sqrt(TABLE_TO), TABLE_SIZE) ** 2
    counts = np.arange(TABLE_TO + 10 * math.sqrt(TABLE_TO))
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES) if read > 0 else np.zeros(1)
    weights = norm.pdf(nodes) / norm.pdf(nodes).sum()
    transformed = _transform(counts[:, None] + read * nodes, read) @ weights
    at = poisson.pmf(counts, means[:, None]) @ transformed
    return at, means - at**2 / 4, np.gradient(means, at)


def estimate_stabiliser(
    image: Any,
    channel_axis: int | None = None,
    *,
    gain: float | None = None,
    offset: float | None = None,
    stack_axis: int | None = None,
) -> Stabiliser:
    """Estimate how the noise of a picture grows with its signal.

    The variance of the noise is measured in the flattest patches of each brightness. A line is
    fitted to it: its slope is the gain. Its intercept is read noise where it is positive, else it
    gives the offset; an intercept that hardly improves the fit is taken to be zero. All channels
    share one line.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        Values as they are; integers are not divided by anything.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.
    gain, offset : float, default=None
        What is known already.
    stack_axis : int or None, default=None
        Which axis holds the slices of a volume.
    """
    pixels = _check_counts(image, channel_axis, stack_axis, gain, offset).astype(np.float64)
    moved = pixels.transpose(axes_first(pixels.ndim, channel_axis, stack_axis))
    # Slices of a volume below each other.
    n = 1 if channel_axis is None else len(moved)
    channels = moved.reshape(n, -1, moved.shape[-1])
    # Within one picture float32 has enough digits once the unit is its largest value.
    unit = float(np.abs(pixels).max()) or 1.0
    levels = [noise_levels((channel / unit).astype(np.float32)) for channel in channels]
    means, variances = (np.concatenate(part) for part in zip(*levels, strict=True))
    known = None if gain is None else gain / unit
    slope, intercept = fit_growth(means - (offset or 0.0) / unit, variances, known)
    if slope <= 0:
        raise ValueError(
            "no noise that grows with the signal was found in the image: give gain=, or use "
            'noise="gaussian"'
        )
    read = math.sqrt(max(intercept, 0.0))
    # Values far below 0 are no read noise: something was subtracted from the counts.
    below = float(np.quantile(pixels, 0.001)) / unit < -FAR_BELOW * read
    if offset is not None or (intercept >= 0 and not below):
        return Stabiliser(slope * unit, offset or 0.0, read * unit)
    return Stabiliser(slope * unit, -intercept / slope * unit)


def _check_counts(
    image: Any,
    channel_axis: int | None,
    stack_axis: int | None,
    gain: float | None,
    offset: float | None,
    read_noise: float | None = None,
) -> np.ndarray:
    """Return the pixels; what is given has to make sense by itself."""
    Stabiliser(1.0 if gain is None else gain, offset or 0.0, read_noise or 0.0)
    pixels: np.ndarray = check_image(image, channel_axis, stack_axis)
    if not np.isfinite(pixels).all():
        raise ValueError("the image has values that are NaN or infinite: fill them first")
    return pixels


def denoise_poisson(
    image: Any,
    denoise: Callable[..., Any],
    gain: float | None = None,
    offset: float | None = None,
    *,
    read_noise: float | None = None,
    channel_axis: int | None = None,
    stack_axis: int | None = None,
    return_std: bool = False,
) -> Any:
    """Denoise a picture whose noise grows with its signal.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        Values as they are; integers are not divided by anything. Any values will do, zero counts
        and counts below the offset included.
    denoise : callable
        ``denoise(stabilised, sigma=1.0)`` returns the picture without its white noise; where
        `return_std` is True, that and the expected error of each pixel.
    gain, offset, read_noise : float, default=None
        As of `Stabiliser`. What is None is estimated, see `estimate_stabiliser`; but with a gain
        and a read noise the offset is zero.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.
    stack_axis : int or None, default=None
        Which axis holds the slices of a volume; None: a picture.
    return_std : bool, default=False
        Whether to return the expected error of each pixel too.

    Returns
    -------
    denoised : ndarray, or (denoised, std)
        In the units of the picture.
    """
    pixels = _check_counts(image, channel_axis, stack_axis, gain, offset, read_noise)
    check_counts(pixels, gain=gain, offset=offset, read_noise=read_noise)
    if pixels.max() == pixels.min():
        order = axes_first(pixels.ndim, channel_axis, stack_axis)
        check_picture_size(tuple(pixels.shape[axis] for axis in order[-2:]), 8, learned=True)
        dtype, constant = _as_floats(pixels)
        constant = constant.astype(dtype)
        return (constant, np.zeros_like(constant)) if return_std else constant
    if gain is not None and read_noise is not None:
        known = Stabiliser(gain, offset or 0.0, read_noise)
    else:
        known = estimate_stabiliser(
            pixels, channel_axis, gain=gain, offset=offset, stack_axis=stack_axis
        )
        if read_noise is not None:
            known = Stabiliser(known.gain, known.offset, read_noise)
    stabilised = known.forward(pixels)
    if not return_std:
        return known.inverse(denoise(stabilised, sigma=1.0))
    denoised, std = denoise(stabilised, sigma=1.0)
    return known.inverse(denoised), known.inverse_slope(denoised) * std
