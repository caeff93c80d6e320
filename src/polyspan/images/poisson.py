"""Noise that grows with the signal: counts of photons, with the noise of reading them out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import norm, poisson

from polyspan.images.mixtures import check_picture_size
from polyspan.images.noise import (
    LARGE,
    MOST_PATCHES,
    cosine_parts,
    saturated,
    step_for,
    trimmed_mean,
)
from polyspan.images.planes import axes_first, check_image, result_type
from polyspan.images.units import check_counts

# Means of counts up to which the inverse is a table. Above them the difference between a mean and
# a quarter of its squared transform hardly changes.
TABLE_TO, TABLE_SIZE = 400.0, 600
# Values this many times the read noise below 0 are not due to it.
FAR_BELOW = 4.0
# Points and width, in standard deviations, of the quadrature over the noise of reading out.
_NODES, _WIDTH = 161, 6.0
# Patches are sorted into at most so many classes of brightness, of at least so many patches.
N_CLASSES, LEAST_PATCHES, FEW_CLASSES = 12, 2500, 4
# The noise of a class is measured on this fraction of its patches, the flattest ones.
FLAT_FRACTION, LEAST_FLAT = 0.05, 150
# Texture makes variances too large, never too small: a line has this weight for points above it.
ABOVE = 0.4
# An intercept is believed if it makes the sum of deviations smaller by this factor.
CLEARLY_BETTER = 0.8
_ROUNDS = 60


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
        counts = (image.astype(np.float64) - self.offset) / self.gain
        return _transform(counts, self._read_counts).astype(result_type(image))

    def inverse(self, denoised: np.ndarray) -> np.ndarray:
        """Return the picture whose expected transform was given; nothing is below the offset."""
        found = denoised.astype(np.float64)
        at, difference, _ = _table(self._read_counts)
        counts = found**2 / 4 + np.interp(found, at, difference)
        counts = np.where(found <= at[0], 0.0, counts)
        return np.asarray(counts * self.gain + self.offset, dtype=denoised.dtype)

    def inverse_slope(self, denoised: np.ndarray) -> np.ndarray:
        """Return the derivative of `inverse`: errors before it times this are errors after it."""
        found = denoised.astype(np.float64)
        at, _, slope = _table(self._read_counts)
        slopes = np.where(found > at[-1], found / 2, np.interp(found, at, slope))
        return np.asarray(slopes * self.gain, dtype=denoised.dtype)

    @property
    def _read_counts(self) -> float:
        return self.read_noise / self.gain


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


def noise_levels(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of classes of patches, equally many in each, and variances of their noise."""
    step = step_for(plane.shape, LARGE[0], MOST_PATCHES)
    bright, rough, fine = cosine_parts(plane, saturated(plane, dark=False), step)
    order = np.argsort(bright)
    # A line with an intercept needs a few classes, which a small picture hardly fills.
    n = int(np.clip(len(order) // LEAST_PATCHES, FEW_CLASSES, N_CLASSES))
    n = max(1, min(n, len(order) // LEAST_FLAT))
    means, variances = [], []
    for members in np.array_split(order, n):
        k = min(len(members), max(LEAST_FLAT, int(FLAT_FRACTION * len(members))))
        flat = members[np.argsort(rough[members])[:k]]
        means.append(float(bright[flat].mean()))
        # Variances of the cosines: with so few patches, eigenvalues would spread too much.
        variances.append(trimmed_mean((fine[flat].astype(np.float64) ** 2).mean(axis=0)))
    # What is below is rounding.
    least = (8 * float(np.finfo(np.float32).eps) * float(np.abs(plane).max())) ** 2
    return np.array(means), np.where(np.array(variances) > least, variances, 0.0)


def fit_growth(
    means: np.ndarray, variances: np.ndarray, slope: float | None = None
) -> tuple[float, float]:
    """Return slope and intercept of the variance as a function of the mean.

    The sum of relative deviations is smallest, where those above the line count less. The slope
    may be known. Neither the slope nor, at the largest mean, the variance is negative.
    """
    scale = float(variances.mean())
    if scale == 0:
        # Counts so few that the flattest patches hold none.
        return slope or 0.0, 0.0
    weights = 1.0 / np.maximum(variances, 0.05 * scale)
    rows = np.stack([means, np.ones_like(means)], axis=1)
    if slope is not None:
        with_it, (rest,) = _line(rows[:, 1:], variances - slope * means, weights)
        without, _ = _deviation(variances - slope * means, weights)
        return slope, float(rest) if with_it < CLEARLY_BETTER * without else 0.0
    cost_through, through = _line(rows[:, :1], variances, weights)
    cost, free = _line(rows, variances, weights)
    if len(means) >= FEW_CLASSES and cost < CLEARLY_BETTER * cost_through and free[0] > 0:
        return float(free[0]), float(free[1])
    return float(max(through[0], 0.0)), 0.0


def _deviation(residuals: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the sum of deviations, and what each counts."""
    sided = weights * np.where(residuals > 0, ABOVE, 1 - ABOVE)
    return float((sided * np.abs(residuals)).sum()), sided


def _line(rows: np.ndarray, values: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the least sum of deviations and its coefficients, by reweighted least squares."""
    coefs = np.linalg.lstsq(rows, values, rcond=None)[0]
    for _ in range(_ROUNDS):
        residuals = values - rows @ coefs
        _, sided = _deviation(residuals, weights)
        # Deviations are as good as none below a hundredth of the value.
        root = np.sqrt(sided / np.maximum(np.abs(residuals), 0.01 / weights))
        coefs = np.linalg.lstsq(rows * root[:, None], values * root, rcond=None)[0]
    return _deviation(values - rows @ coefs, weights)[0], coefs


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

    Parameters are those of `denoise_poisson`; `gain` and `offset` are what is known already.
    """
    pixels = np.asarray(image, dtype=np.float64)
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

    Parameters are those of `denoise_image`: any values will do, zero counts and counts below the
    offset included. ``denoise(stabilised, sigma=1.0)`` returns the picture without its white noise;
    where `return_std` is True, that and the expected error of each pixel.

    Returns
    -------
    denoised : ndarray, or (denoised, std)
        In the units of the picture.
    """
    # What is given has to make sense by itself.
    Stabiliser(1.0 if gain is None else gain, offset or 0.0, read_noise or 0.0)
    pixels: np.ndarray = check_image(image, channel_axis, stack_axis)
    if not np.isfinite(pixels).all():
        raise ValueError("the image has values that are NaN or infinite: fill them first")
    check_counts(pixels, gain=gain, offset=offset, read_noise=read_noise)
    if pixels.max() == pixels.min():
        order = axes_first(pixels.ndim, channel_axis, stack_axis)
        check_picture_size(tuple(pixels.shape[axis] for axis in order[-2:]), 8, learned=True)
        constant = pixels.astype(result_type(pixels))
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
