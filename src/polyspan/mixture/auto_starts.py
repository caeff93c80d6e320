"""The default starts of mixtures: annealed, of hard unions, of k-means; the likelihood decides."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.arrays import moved_to, namespace, one_hot, one_openmp_thread, to_numpy
from polyspan.base.private_sklearn import plain_settings
from polyspan.linear import MiCUSaL
from polyspan.linear.auto_starts import MOST_ENTRIES, ROWS_PER_COLUMN, hard_labels
from polyspan.mixture._solve.em import Samples, Solution, run_em
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture._solve.noise import Shrinkage, match_dims, truncate
from polyspan.mixture.dimensions import few_rows
from polyspan.mixture.problem import Problem
from polyspan.mixture.starts import annealed, from_responsibilities, sampled, without_empty

# Hard unions of each kind whose labels EM is started from.
N_UNIONS = 4
# Iterations of EM after which starts are compared, and how many of them then go on.
COMPARED_AFTER, COMPARED_TOL, FINALISTS = 15, 1e-4, 2
# Starts whose log-likelihood differs by less for each entry have met: the first of them goes on.
TIE = 1e-6
# Starts of k-means.
KMEANS_STARTS = 5


def best_starts(
    problem: Problem, single: Gaussians, n: int, shrinkage: Shrinkage, rng: np.random.RandomState,
    *, steps: int, hottest: float, n_init: int = 1,
) -> list[Gaussians]:  # fmt: skip
    """Return the most likely starts of EM among annealed ones and those of labels.

    All are learned from a sample of the rows, whose missing entries the Gaussian `single` fills.
    """
    dim, dims = single.bases.shape[2], problem.samples.dims
    most = max(MOST_ENTRIES // problem.values.shape[1], ROWS_PER_COLUMN * n * (dim + 1))
    samples, shrinkage = sampled(problem, single, shrinkage, most, rng)
    starts = [
        annealed(samples, single, n, shrinkage, rng, dims=dims, steps=steps, hottest=hottest)
        for _ in range(n_init)
    ]
    like = samples.values
    X = to_numpy(like).astype(np.float64, copy=False)
    weights = samples.row_weights.weights
    for labels in candidate_labels(X, n, dim, problem.affine, weights, rng):
        members = one_hot(moved_to(labels, like, namespace(like).int64), n, like.dtype)
        start = from_responsibilities(samples, single, members, shrinkage)
        if dims is not None:
            start = truncate(start, dims, problem.rule, match_dims(start, dims))
        starts.append(start)
    samples = replace(samples, dims=dims)
    runs = [
        run_em(samples, start, shrinkage, max_iter=COMPARED_AFTER, tol=COMPARED_TOL)
        for start in starts
    ]
    runs = with_enough_rows(runs, samples)
    tie = TIE * samples.n_entries
    found: list[Gaussians] = []
    left = runs
    while left and len(found) < FINALISTS:
        highest = max(run.value for run in left)
        tied = (run.gaussians for run in left if run.value >= highest - tie)
        found.append(next(tied, left[0].gaussians))
        left = [run for run in left if run.value < highest - tie]
    return found


def with_enough_rows(runs: list[Solution], samples: Samples) -> list[Solution]:
    """Return the runs in which every subspace has enough rows for its dimension, or all.

    A subspace with as many rows as directions fits them without error: its likelihood says nothing.
    """
    return [run for run in runs if not has_few_rows(run.gaussians, samples)] or runs


def has_few_rows(found: Gaussians, samples: Samples) -> bool:
    """Tell whether a subspace has too few rows to be learned."""
    dims = samples.dims or (found.bases.shape[2],) * found.means.shape[0]
    shares = np.exp(to_numpy(found.log_weights).astype(np.float64))
    return any(map(few_rows, shares * samples.row_weights.total(samples.values.shape[0]), dims))


def candidate_labels(
    X: np.ndarray, n: int, dim: int, affine: bool, weights: Any, rng: np.random.RandomState, *,
    n_unions: int = N_UNIONS, close: bool = True,
) -> list[np.ndarray]:  # fmt: skip
    """Return labels of hard unions through the mean, of affine ones, and of k-means."""
    weights = None if weights is None else to_numpy(weights).astype(np.float64)
    found: list[np.ndarray] = []
    if dim and n * dim <= len(X):
        found += hard_labels(X, n, dim, n_unions, rng, weights=weights)
        if close:  # the labels of annealed subspaces
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                union = MiCUSaL(n, dim, center=False, random_state=rng)
                found.append(union.fit(X, sample_weight=weights).labels_)
    if affine and n * (dim + 1) <= len(X):
        found += hard_labels(X, n, dim, n_unions, rng, affine=True, weights=weights)
    if (affine or not found) and n <= len(X):
        kmeans = KMeans(n, n_init=KMEANS_STARTS, random_state=rng)
        # With several threads k-means sums in the order in which they end. Fewer distinct rows
        # than clusters are no reason to warn here.
        with plain_settings(), one_openmp_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(kmeans.fit(X, sample_weight=weights).labels_)
    return [without_empty(X, labels, n) for labels in found]
