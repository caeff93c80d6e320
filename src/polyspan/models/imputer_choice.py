"""How a table is best filled: sizes, and trust in the prediction, by entries that were hidden."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyspan.models.mixture import SubspaceMixture
from polyspan.models.mixture_posterior import entry_variances

# Share of the observed entries that is hidden to choose by.
HIDDEN = 0.1
# Samples per subspace below which there is only one.
PER_SUBSPACE = 80
MOST_SUBSPACES = 20
# A feature's own slope counts as much as the common one when this many entries were hidden in it;
# the common one as much as none at all when this many were hidden in all.
TRUST, COMMON_TRUST = 60.0, 5.0
CLOSENESS = 30.0
# Steps of EM from an annealed start, and of those that take in the hidden entries in the end.
ITERATIONS, LAST_ITERATIONS = 4, 2
# Bound on n_samples * dim**3 of a single subspace: what one step costs.
MOST_WORK = 2e7
DOUBLE_UP_TO = 50_000
# Columns with a higher kurtosis than this (3 for a Gaussian) are scaled down.
MOST_KURTOSIS = 100.0


@dataclass(frozen=True)
class Scaling:
    """Mean, spread and range of the observed entries of every column."""

    mean: np.ndarray
    spread: np.ndarray
    """Standard deviation; 1 for constant columns."""
    scale: np.ndarray
    """What features are divided by: more than their spread where that comes from a few entries far
    out, which would otherwise decide on the subspaces."""
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scaling:
        """Measure a table whose columns have each an observed entry."""
        if not X.shape[1]:
            none = np.zeros(0)
            return cls(none, none, none, none, none)
        spread = np.nanstd(X, axis=0)
        mean = np.nanmean(X, axis=0)
        # Of a constant column rounding may leave a spread.
        spread = np.where(spread > 1e-7 * np.abs(mean), spread, 1.0)
        spread = np.where(spread > 0, spread, 1.0)
        kurtosis = np.nanmean(((X - mean) / spread) ** 4, axis=0)
        scale = spread * np.sqrt(np.maximum(1.0, kurtosis / MOST_KURTOSIS))
        return cls(mean, spread, scale, np.nanmin(X, axis=0), np.nanmax(X, axis=0))

    def inward(self, X: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return standardised features."""
        return np.asarray((X - self.mean) / self.scale, dtype=dtype)


@dataclass(frozen=True)
class Fill:
    """A way to fill tables."""

    scaling: Scaling
    models: tuple[SubspaceMixture, ...]
    """None where the mean of the column is the best."""
    slopes: np.ndarray
    """How far to go from the mean of every column towards the prediction."""
    sizes: tuple[int, int]
    error: float

    def impute(self, X: np.ndarray) -> np.ndarray:
        """Fill the NaN of a table, within the range that its column had."""
        scaling = self.scaling
        expected = average(self.models, scaling.inward(X)) * self.slopes
        filled = np.clip(expected * scaling.scale + scaling.mean, scaling.least, scaling.most)
        return np.asarray(np.where(np.isnan(X), filled.astype(X.dtype), X))

    def spread(self, X: np.ndarray) -> np.ndarray:
        """Return the standard deviation of what is missing, and 0 elsewhere."""
        missing = np.isnan(X)
        total = np.zeros(X.shape)
        inner = self.scaling.inward(X)
        for model in self.models:
            for which, parts in model._parts(inner):
                for part in parts:
                    if part.group is not None:
                        own = total[which]
                        own[part.group.rows] += entry_variances(part, model._gaussians())
        if not self.models:
            total += 1.0
        # What the slope does not take over from the prediction stays uncertain.
        variance = total / max(1, len(self.models))
        whole = (self.scaling.spread / self.scaling.scale) ** 2
        variance = self.slopes**2 * variance + (1.0 - self.slopes) ** 2 * whole
        return np.asarray(np.where(missing, np.sqrt(variance) * self.scaling.scale, 0.0))


def average(models: tuple[SubspaceMixture, ...], X: np.ndarray) -> np.ndarray:
    """Return the mean of what several models expect in standardised features."""
    if not models:
        return np.zeros_like(X)
    return np.asarray(sum(model._expected(X, None) for model in models) / len(models))


def sizes_to_try(
    n_samples: int, n_features: int, n_subspaces: int | str, subspace_dim: int | str
) -> list[tuple[int, int]]:
    """Return the numbers and dimensions of subspaces that are compared."""
    many = min(MOST_SUBSPACES, n_samples // PER_SUBSPACE)
    numbers = sorted({1, many} - {0}) if n_subspaces == "auto" else [int(n_subspaces)]
    most = n_features - 1
    found = []
    for number in numbers:
        if subspace_dim != "auto":
            dims = {int(subspace_dim)}
        elif number > 1:
            dims = {n_features // 5}
        elif n_samples * most**3 <= MOST_WORK:
            # The whole covariance, which nearly dependent columns need, or a third of it.
            dims = {n_features // 3, most}
        else:
            dims = {n_features // 8}
        if subspace_dim == "auto":
            dims = {min(max(1, dim), 30) for dim in dims}
        found += [(number, dim) for dim in sorted(dims) if dim <= most]
    return found


def learn_fill(
    scaling: Scaling,
    X: np.ndarray,
    sizes: list[tuple[int, int]],
    n_fits: int,
    rng: np.random.RandomState,
) -> Fill:
    """Choose among the sizes by hidden entries, and learn the chosen from all entries."""
    # Small tables may have nearly dependent columns; large ones need not the last digits.
    inner = scaling.inward(X, np.float64 if X.size < DOUBLE_UP_TO else np.float32)
    usable = ~np.isnan(inner).all(axis=1)
    none = Fill(scaling, (), np.zeros(X.shape[1]), (1, 0), 1.0)
    if not sizes or int(usable.sum()) < 4:
        return none
    inner = inner[usable]
    # From a seed of its own: whoever made the holes may have drawn the very same numbers.
    draws = np.random.RandomState(rng.randint(2**31 - 1)).uniform(size=inner.shape)
    hidden = ~np.isnan(inner) & (draws < HIDDEN)
    hidden[:, (~np.isnan(inner) & ~hidden).sum(axis=0) < 2] = False
    seen = np.where(hidden, inner.dtype.type(np.nan), inner)
    if not hidden.any():
        return none
    best: tuple[float, Fill] | None = None
    for number, dim in sizes:
        if len(inner) < max(2, number):
            continue
        model = fitted(seen, number, dim, rng)
        unit = scaling.scale / scaling.spread
        slopes, error = trust(model._expected(seen, None) * unit, inner * unit, hidden)
        if best is None or error < best[0]:
            best = error, Fill(scaling, (model,), slopes, (number, dim), error)
    if best is None:
        return none
    fill = best[1]
    number, dim = fill.sizes
    first = fill.models[0].set_params(warm_start=True)
    if number > 1:
        first.set_params(max_iter=LAST_ITERATIONS)
    others = [fitted(inner, number, dim, rng) for _ in range(n_fits - 1 if number > 1 else 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first.fit(inner)
    return Fill(scaling, (first, *others), fill.slopes, fill.sizes, fill.error)


def fitted(X: np.ndarray, number: int, dim: int, rng: np.random.RandomState) -> SubspaceMixture:
    """Learn a mixture; a guess at a hole does not need the last digit of the likelihood."""
    model = SubspaceMixture(
        number,
        dim,
        closeness=CLOSENESS if number > 1 else 0.0,
        noise="shared",
        max_iter=ITERATIONS if number > 1 else 8 * ITERATIONS,
        anneal_steps=8,
        tol=1e-4 if number > 1 else 1e-5,
        random_state=rng,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return model


def trust(expected: np.ndarray, truth: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the slope of truth over prediction for every feature, and the error with it.

    Slopes are regressions through the mean, drawn to the common slope where few entries were
    hidden, and that to 0.
    """
    guess = np.where(hidden, expected, 0).astype(np.float64)
    right = np.where(hidden, truth, 0).astype(np.float64)
    products, squares = (guess * right).sum(axis=0), (guess * guess).sum(axis=0)
    unit = squares.sum() / hidden.sum()
    common = products.sum() / (squares.sum() + COMMON_TRUST * unit) if unit > 0 else 0.0
    own = (products + TRUST * unit * common) / (squares + TRUST * unit) if unit > 0 else 0 * squares
    slopes = np.clip(own, 0.0, 1.0)
    error = float(np.sqrt(((slopes * guess - right) ** 2).sum() / hidden.sum()))
    return slopes, error
