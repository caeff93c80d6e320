"""Samples in the form that EM takes: centred, with their weights, outliers and groups of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    float64_sum,
    keep_freed_memory,
    namespace,
    to_numpy,
    zeros,
)
from polyspan.base.checks import check_columns_observed
from polyspan.data.missing import find_patterns, observed_mean
from polyspan.mixture._solve.complete import ONCE, CompleteSamples, RowWeights
from polyspan.mixture._solve.em import Samples
from polyspan.mixture._solve.grouped import GroupedSamples
from polyspan.mixture._solve.masked import MaskedSamples
from polyspan.mixture._solve.noise import NoiseRule

# Up to this many features, EM with m×m covariances and their eigenvectors is the faster form.
DENSE_FEATURES = 512
# Noise variances are kept above this fraction of the mean variance: below it they are rounding.
LEAST_NOISE = 1e-6
# Gaps between values below this fraction of their range are rounding; of the others this quantile
# is the step in which a column was written down.
ROUNDING_GAP, STEP_QUANTILE = 1e-9, 0.05
# The step is found from about so many rows.
RESOLUTION_ROWS = 20_000


@dataclass(frozen=True)
class Problem:
    """Centred samples, in the form that EM takes."""

    values: Array
    """The samples minus the mean, 0 where missing."""
    observed: Array | None
    """The mask; None: complete."""
    mean: Array
    affine: bool
    rule: NoiseRule
    samples: Samples
    row_weights: RowWeights = ONCE
    log_ranges: Array | None = None
    """Logarithms of the ranges of the features, (n_features,), where outliers are looked for."""
    groups: np.ndarray | None = None
    """Number of the noise group of every sample; None: all have the same noise."""

    @classmethod
    def of(
        cls,
        X: Array,
        noise: Any,
        *,
        affine: bool,
        center: bool = True,
        masked: bool = False,
        weights: Array | None = None,
        outliers: bool | float = False,
        groups: np.ndarray | None = None,
        rounded: bool = False,
    ) -> Problem:
        """Prepare data with NaN where missing; `masked` treats complete data as incomplete.

        Parameters
        ----------
        weights : array of shape (n_samples,) or None
            How often every sample counts; not 0.
        outliers : bool or float
            Whether there is a uniform component. True: its share is learned.
        groups : array of int of shape (n_samples,) or None
            Number of the noise group of every sample.
        rounded : bool
            Whether the noise is no smaller than the steps in which columns were written down.
        """
        keep_freed_memory()
        xp = namespace(X)
        missing = xp.isnan(X)
        check_columns_observed(missing)
        mean = observed_mean(X, missing, weights) if center else zeros((X.shape[1],), X)
        if masked or bool(xp.any(missing)):
            values, observed = xp.where(missing, 0.0, X - mean), ~missing
        else:
            values, observed = X - mean, None
        row_weights, log_ranges = RowWeights(weights), None
        rule = noise_rule(noise, values, observed, row_weights)
        if rounded and rule.kind != "fixed":
            floor = max(rule.floor, rounding_variance(values, observed))
            rule = replace(rule, floor=floor)
        if outliers is not False:
            log_ranges = xp.log(feature_ranges(values, observed))
            uniform = uniform_density(log_ranges, values, observed)
            row_weights = RowWeights(weights, uniform, learned=outliers is True)
        samples = as_samples(
            values, observed, affine=affine, rule=rule, row_weights=row_weights, groups=groups
        )
        return cls(values, observed, mean, affine, rule, samples, row_weights, log_ranges, groups)

    @classmethod
    def of_model(
        cls, model: Any, X: Array, *, weights: Array | None, groups: np.ndarray | None
    ) -> Problem:
        """Prepare data with the options of a `SubspaceMixture`."""
        return cls.of(
            X, model.noise, affine=model.affine, center=model.affine or model.center,
            weights=weights, outliers=model.outliers, groups=groups, rounded=model._noise_floor,
        )  # fmt: skip

    def with_dims(self, dims: tuple[int, ...] | None) -> Problem:
        """Return the problem of subspaces with these dimensions; None: all are equal."""
        return replace(self, samples=replace(self.samples, dims=dims))


def noise_rule(
    noise: Any, values: Array, observed: Array | None, row_weights: RowWeights
) -> NoiseRule:
    """Return the rule for the parameter `noise` of `SubspaceMixture`."""
    xp, weights, (n, m) = namespace(values), row_weights.weights, values.shape
    squares = values * values if weights is None else values * values * weights[:, None]
    entries = row_weights.total(n) * m
    if observed is not None:
        entries = row_weights.entries(xp.astype(observed, values.dtype))
    power = float(float64_sum(squares)) / entries
    floor = LEAST_NOISE * power or 1.0
    if isinstance(noise, str):
        return NoiseRule(noise, floor)
    return NoiseRule("fixed", floor, float(noise) ** 2)


def rounding_variance(values: Array, observed: Array | None) -> float:
    """Return the mean variance δ²/12 of rounding to the steps δ in which columns were written down.

    δ is the 5 % quantile of the gaps between distinct observed values, and 0 where no two rows
    agree; gaps below 1e-9 of the range are rounding of the computer. A column of two values has a
    wide gap: of its own variance no more than a third, that of 0 and 1 equally often, is rounding.
    """
    most = slice(None, None, 1 + values.shape[0] // RESOLUTION_ROWS)
    X = to_numpy(values[most, :]).astype(np.float64, copy=False)
    if observed is not None:
        X = np.where(to_numpy(observed[most, :]), X, np.nan)
    found = []
    for column in X.T:
        column = np.sort(column[~np.isnan(column)])
        gaps = np.diff(column)
        wide = gaps[gaps > ROUNDING_GAP * (column[-1] - column[0])] if len(gaps) else gaps
        repeats = 0 < len(wide) < len(gaps)
        step = np.quantile(wide, STEP_QUANTILE) if repeats else 0.0
        found.append(min(step * step / 12.0, column.var() / 3.0) if repeats else 0.0)
    return float(np.mean(found))


def free_parameters(model: Any, dims: Sequence[int], n_features: int, n_groups: int = 1) -> int:
    """Return how many parameters a mixture with these dimensions has.

    A subspace has a weight, a mean, s orthonormal directions and their variances; then the noise.
    """
    n, m = len(dims), n_features
    means = n * m if model.affine else m * model.center
    spans = sum(m * s - s * (s - 1) // 2 for s in dims)
    noise = {"subspace": n, "shared": 1}.get(model.noise, 0) + n_groups - 1
    return int(n - 1 + means + spans + noise + (model.outliers is True))


def as_samples(
    values: Array,
    observed: Array | None,
    *,
    affine: bool,
    rule: NoiseRule,
    row_weights: RowWeights | None = None,
    groups: np.ndarray | None = None,
) -> Samples:
    """Return the samples in the form that suits their size and their mask (None: complete)."""
    row_weights = row_weights or ONCE
    if observed is None and groups is None and values.shape[1] <= DENSE_FEATURES:
        return CompleteSamples(values, affine, rule, None, row_weights)
    if observed is None:
        xp = namespace(values)
        observed = xp.ones_like(values, dtype=xp.bool)
    if groups is not None:
        return GroupedSamples.of(
            values, observed, groups, affine=affine, rule=rule, row_weights=row_weights
        )
    return MaskedSamples(find_patterns(values, observed), affine, rule, None, row_weights)


def feature_ranges(values: Array, observed: Array | None) -> Array:
    """Return the range of the observed entries of every feature; no range is 0.

    A constant feature gets the mean of the others, so that it says nothing about outliers.
    """
    xp = namespace(values)
    least = most = values
    if observed is not None:
        far = xp.full_like(values, float("inf"))
        least, most = xp.where(observed, values, far), xp.where(observed, values, -far)
    found = xp.max(most, axis=0) - xp.min(least, axis=0)
    varies = found > 0
    typical = float(xp.sum(found)) / max(1, int(xp.count_nonzero(varies))) or 1.0
    return xp.where(varies, found, xp.full_like(found, typical))


def uniform_density(log_ranges: Array, values: Array, observed: Array | None) -> Array:
    """Return the logarithm of the uniform density in the box of the observed entries: (n,)."""
    xp = namespace(values)
    if observed is None:
        return xp.zeros_like(values[:, 0]) - xp.sum(log_ranges)
    return -(xp.astype(observed, values.dtype) @ log_ranges)
