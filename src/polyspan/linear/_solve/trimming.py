"""Trimming: the samples with the largest residuals take no part in an update.

The weights w of the samples are one more unknown of the objective, with 0 ≤ w ≤ c (c the given
weight) and Σ w = (1 - trim) Σ c. Choosing them is one more step that never raises it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from polyspan.base.arrays import (
    Array,
    machine_epsilon,
    namespace,
    row_slices,
    rows_at_once,
)
from polyspan.data.missing import observed_mean

# Steps to a mean without outliers; which samples are nearest to it mostly settles in a few.
CENTRAL_STEPS = 10
# Samples whose residuals are rounded by more than this part of the squared norms of the others are
# trimmed from the start.
FAR_ROUNDING = 0.01


def trimmed_fits(
    block: Any, bases: Array, points: Array | None, trim: float, temperature: float = 0.0
) -> tuple[Iterable[Any], Array | None]:
    """Return the fits of all chunks and, with `trim`, the weights of samples, (n_starts, n).

    Which samples take no part is known only when all of them were fitted. Where they are one chunk
    its fit is used again; otherwise all chunks are fitted twice.
    """
    fits = block.fits(bases, points)
    if not trim:
        return fits, None
    xp, n = namespace(bases), block.squared_norms().shape[0]
    first = next(fits)
    values = [soft_minimum(first, temperature)]
    single = first.which.stop >= n
    values += [soft_minimum(fit, temperature) for fit in fits]
    kept = kept_weights(xp.concat(values, axis=1), block.sample_weights, trim)
    return ([first] if single else block.fits(bases, points)), kept


def far_samples(X: Array, weights: Array | None, trim: float, *, center: bool) -> Array:
    """Tell which samples are so far from the others that they can only be trimmed.

    The squared residual of a sample is a difference of squares, known up to its squared norm times
    the rounding of one number. Samples are far if this is more than `FAR_ROUNDING` times the
    largest squared norm among the nearest, the fraction 1 - `trim`. In double precision they are
    some million times as far away as these, in single precision some hundred times. Together they
    weigh no more than the fraction `trim`.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        NaN where entries are missing.
    weights : array of shape (n_samples,) or None
    trim : float
    center : bool
        Whether distances are from the mean of the nearest, and not from 0.

    Returns
    -------
    far : array of shape (n_samples,), boolean
    """
    xp = namespace(X)
    if center:
        kept, distances = nearest_to_mean(X, weights, trim)
    else:
        own = xp.ones_like(X[:, 0]) if weights is None else weights
        distances = _distances(X, xp.isnan(X), xp.zeros_like(X[0, :]))
        kept = kept_weights(distances[None, :], own[None, :], trim)[0, :]
    limit = xp.max(xp.where(kept > 0, distances, xp.zeros_like(distances)))
    ratio = math.sqrt(FAR_ROUNDING / machine_epsilon(X))
    # Where nearly all samples are one point, the others are not far but all that there is.
    return (distances / ratio > limit) & (limit > 0)


def nearest_to_mean(X: Array, weights: Array | None, trim: float) -> tuple[Array, Array]:
    """Return weights of the samples nearest to their own mean, and all distances from that mean.

    From the mean of all samples on, the mean of those nearest to the last mean is taken: its mean
    squared distance to them never rises. So outliers that are far away do not move it.
    """
    xp, missing = namespace(X), namespace(X).isnan(X)
    own = xp.ones_like(X[:, 0]) if weights is None else weights
    kept = own
    for _ in range(CENTRAL_STEPS):
        distances = _distances(X, missing, observed_mean(X, missing, kept))
        before, kept = kept, kept_weights(distances[None, :], own[None, :], trim)[0, :]
        if bool(xp.all(before == kept)):
            break
    return kept, distances


def _distances(X: Array, missing: Array, mean: Array) -> Array:
    """Return half the root mean square of the observed differences of every sample from a mean.

    Half, and relative to the largest difference, so that nothing overflows.
    """
    xp, parts = namespace(X), []
    for which in row_slices(X.shape[0], rows_at_once(X)):
        gaps = xp.where(missing[which, :], 0.0, 0.5 * X[which, :] - 0.5 * mean)
        largest = xp.max(xp.abs(gaps), axis=1)
        ratios = gaps / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None]
        observed = xp.sum(xp.astype(~missing[which, :], X.dtype), axis=1)
        parts.append(largest * xp.sqrt(xp.sum(ratios * ratios, axis=1) / observed))
    return xp.concat(parts, axis=0)


def soft_minimum(fit: Any, temperature: float) -> Array:
    """Return -τ log Σ_l exp(-r_l/τ) of every sample, (n_starts, n); the least r_l for τ=0."""
    xp = namespace(fit.gains)
    best = xp.max(fit.gains, axis=1)
    if temperature:
        powers = xp.exp((fit.gains - best[:, None, :]) / temperature)
        best = best + temperature * xp.log(xp.sum(powers, axis=1))
    return fit.norms() - best


def kept_weights(values: Array, weights: Array | None, trim: float) -> Array:
    """Return weights with which Σ w v is least, given 0 ≤ w ≤ c and Σ w = (1 - trim) Σ c.

    The samples with the largest values get 0, all others their own weight c; one may get a part.
    So the minimum never rises when each value falls, and a weight of 2 is the sample twice.

    Parameters
    ----------
    values : array of shape (n_starts, n)
    weights : array of shape (1, n) or None
        c; None: 1 for each.

    Returns
    -------
    kept : array of shape (n_starts, n)
    """
    xp = namespace(values)
    own = xp.ones_like(values)
    if weights is not None:
        own = own * weights
    order = xp.argsort(values, axis=1)
    own = xp.astype(xp.take_along_axis(own, order, axis=1), xp.float64)
    below = xp.cumulative_sum(own, axis=1) - own
    total = xp.sum(own, axis=1, keepdims=True)
    part = (1.0 - trim) * total - below
    # The rounding of these sums: no sample takes part, or loses a part, by rounding alone.
    rounding = 4.0 * values.shape[1] * float(xp.finfo(xp.float64).eps) * total
    part = xp.where(part < rounding, xp.zeros_like(part), part)
    part = xp.where(part > own - rounding, own, part)
    kept = xp.astype(part, values.dtype)
    return xp.take_along_axis(kept, xp.argsort(order, axis=1), axis=1)
