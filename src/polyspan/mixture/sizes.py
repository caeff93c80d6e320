"""How many subspaces, and of which dimensions: the mixture with the lowest BIC.

Mixtures of many sizes are fitted, small ones first. Each starts from several labels: those of the
fit with the next smaller dimension, those of the fit with one subspace less, of which one is cut in
two, and new ones. At the end every subspace gets the dimension that suits its own rows best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, moved_to, namespace, one_hot, to_numpy
from polyspan.mixture._solve.em import Samples, Solution, run_em
from polyspan.mixture._solve.gaussians import Gaussians, log_densities
from polyspan.mixture._solve.noise import Shrinkage, likely_dims, truncate
from polyspan.mixture.auto_starts import candidate_labels, has_few_rows
from polyspan.mixture.dimensions import Sizes, few_rows
from polyspan.mixture.problem import DENSE_FEATURES, Problem, free_parameters
from polyspan.mixture.starts import (
    fit_pooled,
    from_responsibilities,
    sampled,
    with_outliers,
    without_empty,
)

# Sizes are compared on so many rows, and on fewer where these have more entries; never on less
# than so many rows.
MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 5000, 200_000, 1000
# Dimensions that are compared first, besides n_features - 1; then the neighbours of the best.
LADDER = (0, 1, 2, 3, 5, 8, 12, 16, 20, 25, 32, 40, 50, 64)
# After so many numbers of subspaces without a lower BIC no larger one is tried.
PATIENCE = 2
# Hard unions of each kind whose labels every size is started from.
N_UNIONS = 2
# Iterations of EM after which starts are compared, and those of the best one.
COMPARED, COMPARED_TOL, MOST_ITERATIONS, TOL = 10, 1e-3, 60, 1e-5


@dataclass(frozen=True)
class Candidate:
    """A mixture of some size, fitted."""

    dims: tuple[int, ...]
    gaussians: Gaussians
    responsibilities: Array
    log_likelihood: float
    n_parameters: int
    bic: float
    """Infinite where a subspace has too few rows for its dimension."""


def choose_sizes(
    model: Any, X: Array, sizes: Sizes, rng: np.random.RandomState, *, weights: Array | None,
    groups: np.ndarray | None, labels: Array | None,
) -> tuple[tuple[int, ...], Gaussians, dict[str, np.ndarray]]:  # fmt: skip
    """Fit mixtures of all sizes; return dimensions and start of the best, and a table of all.

    Parameters
    ----------
    model : SubspaceMixture
        Gives all other parameters.
    X : array of shape (n_samples, n_features)
        NaN where missing.
    groups : array of int of shape (n_samples,) or None
        Number of the noise group of every sample. With groups sizes are compared on all rows.
    labels : array of int of shape (n_samples,) or None
        Labels of the user, from which every fit then starts.
    """
    xp, (n, m) = namespace(X), X.shape
    most = max(LEAST_ROWS, min(MOST_ROWS, MOST_ENTRIES // m))
    if n > most and groups is None:
        rows = moved_to(np.sort(rng.choice(n, most, replace=False)), X, xp.int64)
        X = xp.take(X, rows, axis=0)
        weights, labels = (None if a is None else xp.take(a, rows) for a in (weights, labels))
    problem = Problem.of_model(model, X, weights=weights, groups=groups)
    search = _Search(model, problem, rng, None if labels is None else to_numpy(labels))
    best = search.best(sizes)
    fits = search.fits
    columns = ("log_likelihood", "n_parameters", "bic")
    table = {name: np.array([getattr(one, name) for one in fits.values()]) for name in columns}
    table["n_subspaces"] = np.array([len(dims) for dims in fits])
    table["subspace_dims"] = np.array([_words(dims) for dims in fits])
    found = best.gaussians
    means = found.means + problem.mean if model.affine else found.means
    return best.dims, replace(found, means=means), table


def _words(dims: tuple[int, ...]) -> str:
    return ", ".join(map(str, dims if len(set(dims)) > 1 else dims[:1]))


class _Search:
    """Fits of many sizes to the same rows."""

    def __init__(
        self, model: Any, problem: Problem, rng: np.random.RandomState, labels: np.ndarray | None
    ) -> None:
        self.model, self.problem, self.rng, self.given = model, problem, rng, labels
        self.n_rows, self.m = problem.values.shape
        self.total = problem.row_weights.total(self.n_rows)
        self.fits: dict[tuple[int, ...], Candidate] = {}
        self.grounds: dict[int, tuple[Gaussians, Samples]] = {}

    def best(self, sizes: Sizes) -> Candidate:
        """Return the fit with the lowest BIC."""
        if sizes.dim is not None:
            return self._of_dim(sizes, sizes.dim)
        widest = self.m - 1 if self.m <= DENSE_FEATURES else LADDER[-1]
        dims = [dim for dim in LADDER if dim < widest] + [widest]
        tried: list[Candidate] = []
        for dim in dims:
            tried.append(self._of_dim(sizes, dim))
            # With missing entries large dimensions cost much: they are not tried without need.
            recent = tried[-PATIENCE:]
            if self.problem.observed is not None and min(tried, key=_by_bic) not in recent:
                break
        best = self._between(dims[: len(tried)], min(tried, key=_by_bic))
        return min(best, self._own_dims(best), key=_by_bic)

    def _of_dim(self, sizes: Sizes, dim: int) -> Candidate:
        """Return the best number of subspaces of one dimension."""
        best, without = self.fit(sizes.least, dim), 0
        for n in range(sizes.least + 1, sizes.most + 1):
            if without == PATIENCE or few_rows(self.total / n, dim):
                break
            found = self.fit(n, dim)
            without = 0 if found.bic < best.bic else without + 1
            best = min(best, found, key=_by_bic)
        return best

    def _between(self, dims: Sequence[int], best: Candidate) -> Candidate:
        """Try dimensions between those of the ladder, around the best."""
        known = set(dims)
        while True:
            dim = best.dims[0]
            below = max((other for other in known if other < dim), default=dim)
            above = min((other for other in known if other > dim), default=dim)
            new = {(below + dim) // 2, (dim + above + 1) // 2} - known
            if not new:
                return best
            known |= new
            tried = [self.fit(len(best.dims), other) for other in sorted(new)]
            best = min(best, *tried, key=_by_bic)

    def _own_dims(self, common: Candidate) -> Candidate:
        """Give every subspace of the best fit the dimension that suits its rows, and fit again."""
        n, dim = len(common.dims), common.dims[0]
        widest = self.m - 1 if self.m <= DENSE_FEATURES else min(2 * dim + 2, LADDER[-1])
        single, filled = self._ground(widest)
        responsibilities = common.responsibilities
        wide = from_responsibilities(filled, single, responsibilities, Shrinkage(single, 0.0))
        dims = likely_dims(wide, self.problem.rule, self.total, few_rows)
        if n == 1 or len(set(dims)) == 1:
            return self.fit(n, dims[0])
        if dims not in self.fits:
            start = truncate(wide, dims, self.problem.rule, np.arange(n))
            self._keep(dims, [start], filled)
        return self.fits[dims]

    def fit(self, n: int, dim: int) -> Candidate:
        """Return the fit of n subspaces of one dimension."""
        dims = (dim,) * n
        if dims not in self.fits:
            single, filled = self._ground(dim)
            starts = self._starts(n, dim, single, filled) if n > 1 else [single]
            self._keep(dims, starts, filled)
        return self.fits[dims]

    def _starts(self, n: int, dim: int, single: Gaussians, filled: Samples) -> list[Gaussians]:
        """Return components of several labels of the rows."""
        like = filled.values
        X = to_numpy(like).astype(np.float64, copy=False)
        if self.given is not None:
            labels = [self.given]
        else:
            weights = filled.row_weights.weights
            labels = candidate_labels(
                X, n, dim, self.problem.affine, weights, self.rng, n_unions=N_UNIONS, close=False
            )
            lower = max((key for key in self.fits if len(key) == n and key[0] < dim), default=None)
            labels += [] if lower is None else [_labels(self.fits[lower])]
            fewer = self.fits.get((dim,) * (n - 1))
            labels += [] if fewer is None else [without_empty(X, _labels(fewer), n)]
        whole, none = namespace(like).int64, Shrinkage(single, 0.0)
        members = (one_hot(moved_to(one, like, whole), n, like.dtype) for one in labels)
        return [from_responsibilities(filled, single, one, none) for one in members]

    def _ground(self, dim: int) -> tuple[Gaussians, Samples]:
        """Return one Gaussian of all rows, and the rows with missing entries filled by it."""
        if dim not in self.grounds:
            _, single = fit_pooled(self.problem, dim, self.rng)
            if self.model.outliers is not False:
                single = with_outliers(single, self.model.outliers)
            none = Shrinkage(single, 0.0)
            filled, _ = sampled(self.problem, single, none, self.n_rows, self.rng)
            self.grounds[dim] = single, filled
        return self.grounds[dim]

    def _keep(self, dims: tuple[int, ...], starts: list[Gaussians], filled: Samples) -> None:
        """Run the best of the starts to its end, without shrinkage, and keep it."""
        samples = self.problem.with_dims(None if len(set(dims)) == 1 else dims).samples
        none = Shrinkage(starts[0], 0.0)

        def run(start: Gaussians, max_iter: int, tol: float) -> Solution:
            return run_em(samples, start, none, max_iter=max_iter, tol=tol)

        tried = [run(start, COMPARED, COMPARED_TOL) for start in starts]
        best = run(max(tried, key=lambda one: one.value).gaussians, MOST_ITERATIONS, TOL)
        found, value = best.gaussians, best.value
        joint = log_densities(filled.values, found)[0]
        responsibilities = filled.row_weights.assign(joint, found, slice(None))[0]
        groups = self.problem.groups
        n_groups = 1 if groups is None else int(groups.max()) + 1
        free = free_parameters(self.model, dims, self.m, n_groups)
        few = len(dims) > 1 and has_few_rows(found, samples)
        bic = np.inf if few else free * np.log(self.total) - 2.0 * value
        self.fits[dims] = Candidate(dims, found, responsibilities, value, free, bic)


def _labels(one: Candidate) -> np.ndarray:
    return to_numpy(namespace(one.responsibilities).argmax(one.responsibilities, axis=1))


def _by_bic(one: Candidate) -> float:
    return one.bic
