"""How a table is best filled: sizes, and trust in the prediction, by entries that were hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.models.imputer_trial import Candidate, Trial, average
from polyspan.models.mixture import SubspaceMixture
from polyspan.models.mixture_posterior import entry_variances

# Share of the observed entries that is hidden to choose by.
HIDDEN = 0.1
# Samples per subspace below which there is only one.
PER_SUBSPACE = 80
MOST_SUBSPACES = 20
# Bound on n_samples * dim**3 of a single subspace: what one step costs.
MOST_WORK = 2e7
DOUBLE_UP_TO = 50_000
# Several subspaces whose first fit is so much worse than the best so far are not fitted again: the
# average of some fits gains less.
HOPELESS = 1.15
# Rows whose hidden entries say how much variances are stretched, and how many entries without any
# stretch are added to them.
STRETCH_ROWS, STRETCH_TRUST = 200, 20.0
# Columns with a higher kurtosis than this (3 for a Gaussian) are scaled down.
MOST_KURTOSIS = 100.0


@dataclass(frozen=True)
class Scaling:
    """Mean, spread and range of the observed entries of every column."""

    mean: np.ndarray
    spread: np.ndarray
    """Standard deviation; of constant columns the power of two below their entries, or ½ for 0."""
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
        X = np.asarray(X, dtype=np.float64)
        least, most = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        # Powers of entries like 1e200 or 1e-200 are no numbers; of their ratios they are.
        unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(least), np.abs(most)))[1] - 1)
        X = X / unit
        mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        # Of a constant column rounding may leave a spread.
        spread = np.where((spread > 0) & (least < most), spread, 1.0)
        kurtosis = np.nanmean(((X - mean) / spread) ** 4, axis=0)
        scale = spread * np.sqrt(np.maximum(1.0, kurtosis / MOST_KURTOSIS))
        return cls(mean * unit, spread * unit, scale * unit, least, most)

    def inward(self, X: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return standardised features."""
        inner = np.asarray((X - self.mean) / self.scale, dtype=dtype)
        # How far off a new entry is of a column that was constant, nobody can say.
        inner[:, self.least == self.most] *= 0
        return inner


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
    stretch: float = 1.0
    """What variances are multiplied by, for hidden entries to be as far off as they say."""

    def impute(self, X: np.ndarray) -> np.ndarray:
        """Fill the NaN of a table, within the range that its column had."""
        scaling = self.scaling
        expected = average(self.models, scaling.inward(X)) * self.slopes
        filled = np.clip(expected * scaling.scale + scaling.mean, scaling.least, scaling.most)
        return np.asarray(np.where(np.isnan(X), filled.astype(X.dtype), X))

    def spread(self, X: np.ndarray) -> np.ndarray:
        """Return the standard deviation of what is missing, and 0 elsewhere."""
        variance = self.stretch * self.variances(self.scaling.inward(X))
        varies = self.scaling.least < self.scaling.most
        spread = np.sqrt(variance) * self.scaling.scale
        return np.asarray(np.where(np.isnan(X) & varies, spread, 0.0))

    def variances(self, inner: np.ndarray) -> np.ndarray:
        """Return the variance of every missing standardised entry, before it is stretched."""
        total = np.zeros(inner.shape)
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
        return np.asarray(self.slopes**2 * variance + (1.0 - self.slopes) ** 2 * whole)

    def stretched(self, inner: np.ndarray, hidden: np.ndarray) -> float:
        """Return squared errors over variances of hidden standardised entries."""
        rows = np.unique(np.linspace(0, len(inner) - 1, STRETCH_ROWS).astype(int))
        inner, hidden = inner[rows], hidden[rows]
        seen = np.where(hidden, np.nan, inner)
        off = average(self.models, seen) * self.slopes - inner
        variances = self.variances(seen)[hidden]
        few = STRETCH_TRUST * float(variances.mean()) if len(variances) else 1.0
        return float((np.sum(off[hidden] ** 2) + few) / (variances.sum() + few))


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
            dims = {min(int(subspace_dim), most)}
        elif number > 1:
            dims = {n_features // 5}
        elif n_samples * most**3 <= MOST_WORK:
            # The whole covariance, which nearly dependent columns need, or a third of it.
            dims = {n_features // 3, most}
            if n_samples <= n_features:
                dims |= {n_samples // 4}  # more directions than samples are never all seen
        elif many > 1:
            dims = {n_features // 5}  # what several are drawn to: it costs nothing more
        else:
            dims = {n_features // 8}
        if subspace_dim == "auto":
            dims = {min(max(1, dim), 30) for dim in dims}
        found += [(number, dim) for dim in sorted(dims) if 0 <= dim <= most]
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
    n_usable = int(usable.sum())
    sizes = [(min(number, n_usable), dim) for number, dim in sizes if n_usable >= 4]
    if not sizes:
        return none
    inner = inner[usable]
    # From a seed of its own: whoever made the holes may have drawn the very same numbers.
    draws = np.random.RandomState(rng.randint(2**31 - 1)).uniform(size=inner.shape)
    hidden = ~np.isnan(inner) & (draws < HIDDEN)
    hidden[:, (~np.isnan(inner) & ~hidden).sum(axis=0) < 2] = False
    if not hidden.any():
        return none
    trial = Trial(inner, hidden, scaling.scale / scaling.spread, rng)
    best: Candidate | None = None
    for number, dim in sizes:
        if number > 1:
            enough = HOPELESS * best.error if best else np.inf
            found = trial.several(number, dim, n_fits, enough)
        elif X.size >= DOUBLE_UP_TO and any(other > 1 and dim == its for other, its in sizes):
            found = trial.pooled_only(dim)
        else:
            found = trial.single(dim)
        if best is None or found.error < best.error:
            best = found
    assert best is not None
    tried = Fill(scaling, best.models, best.slopes, best.sizes, best.error)
    stretch = tried.stretched(inner, hidden)
    return replace(tried, models=best.complete(inner), stretch=stretch)
