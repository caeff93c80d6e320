"""How noise grows with the signal: its variance in flat patches against their brightness."""

from __future__ import annotations

import numpy as np

from polyspan.images.noise import (
    LARGE,
    MOST_PATCHES,
    cosine_parts,
    saturated,
    step_for,
    trimmed_mean,
)

# Patches are sorted into at most so many classes of brightness, of at least so many patches.
N_CLASSES, LEAST_PATCHES, FEW_CLASSES = 12, 2500, 4
# The noise of a class is measured on this fraction of its patches, the flattest ones.
FLAT_FRACTION, LEAST_FLAT = 0.05, 150
# Texture makes variances too large, never too small: a line has this weight for points above it.
ABOVE = 0.4
# An intercept is believed if it makes the sum of deviations smaller by this factor.
CLEARLY_BETTER = 0.8
_ROUNDS = 60


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
        _, intercept = _line(rows[:, 1:], variances - slope * means, weights)
        rest = intercept[0]
        without, _ = _deviation(variances - slope * means, weights)
        with_it, _ = _deviation(variances - slope * means - rest, weights)
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
