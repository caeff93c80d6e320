"""Starts of EM: the pooled Gaussian, annealed components, components of given labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from polyspan.base.arrays import (
    Array,
    float64_sum,
    is_numpy,
    moved_to,
    namespace,
    one_hot,
    restore_order,
    sum_of_squares,
    to_numpy,
    unit_rows,
    zeros,
)
from polyspan.base.private_sklearn import plain_settings
from polyspan.data.missing import find_patterns
from polyspan.mixture._solve.complete import CompleteSamples
from polyspan.mixture._solve.em import Samples, anneal, run_em
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians, posterior_factors
from polyspan.mixture._solve.grouped import GroupedSamples
from polyspan.mixture._solve.noise import (
    NoiseRule,
    Shrinkage,
    fit_low_rank,
    match_dims,
    truncate,
)
from polyspan.mixture.problem import Problem, as_samples, uniform_density

# Most iterations of EM for the pooled Gaussian.
POOLED_ITERATIONS = 30
# Samples per subspace that the annealed start is learned from; EM then takes all of them.
START_SAMPLES = 1000
# Most iterations of EM before components get their own dimensions.
SETTLING_ITERATIONS = 50
# Steps from given labels where one does not give the best factors of every label.
FACTOR_STEPS = 10
# Share of outliers that EM starts from, where it is learned.
FIRST_SHARE = 0.05


def fit_pooled(
    problem: Problem, dim: int, rng: np.random.RandomState
) -> tuple[Gaussians, Gaussians]:
    """Fit one Gaussian to all samples: of full dimension, for shrinkage, and of dimension `dim`.

    With missing entries, or with many features, both are the Gaussian of dimension `dim` that EM
    finds.
    """
    samples, rule = problem.samples, problem.rule
    single_rule = replace(rule, kind="subspace") if rule.kind == "shared" else rule
    if isinstance(samples, CompleteSamples):
        X, weights = samples.X, problem.row_weights.weights
        n, m = X.shape[0] if weights is None else float(float64_sum(weights)), X.shape[1]
        weighted = X if weights is None else X * weights[:, None]
        mean = namespace(X).astype(float64_sum(weighted, axis=0) / n, X.dtype)
        mean = mean * float(samples.affine)
        covariance = (weighted.mT @ X / n - mean[:, None] * mean[None, :])[None, ...]
        weight = zeros((1,), X)
        whole = fit_low_rank(covariance, weight + 1, m - 1, replace(rule, kind="subspace"))
        single = fit_low_rank(covariance, weight + 1, dim, single_rule)
        mean = mean[None, :]
        return Gaussians(weight, mean, *whole), Gaussians(weight, mean, *single)
    start = _factor_start(problem, dim, single_rule, rng)
    # Outliers count here: the pooled Gaussian is that of all samples.
    counted = replace(problem.row_weights, uniform=None)
    samples = replace(samples, rule=single_rule, dims=None, row_weights=counted)
    if isinstance(samples, GroupedSamples):
        assert problem.groups is not None
        factors = zeros((int(problem.groups.max()) + 1,), start.means) + 1.0
        start = ExtendedGaussians.of(start, noise_factors=factors)
    no_shrinkage = Shrinkage(start, 0.0)
    found = run_em(samples, start, no_shrinkage, max_iter=POOLED_ITERATIONS, tol=1e-4).gaussians
    return found, found


def _factor_start(
    problem: Problem, dim: int, rule: NoiseRule, rng: np.random.RandomState
) -> Gaussians:
    """Return the principal components of the zero-filled data, their variances corrected for it."""
    values, weights = problem.values, problem.row_weights.weights
    xp = namespace(values)
    n, m = float(values.shape[0]), values.shape[1]
    observed = xp.ones_like(values) if problem.observed is None else problem.observed
    seen = problem.row_weights.entries(xp.astype(observed, values.dtype))
    if weights is not None:
        values, n = values * xp.sqrt(weights)[:, None], float(float64_sum(weights))
    fraction = seen / (n * m)
    power = sum_of_squares(values) / max(fraction * n * m, 1e-300)
    basis, variances = zeros((m, 0), values), zeros((0,), values)
    if dim:
        basis, variances = _principal(values, dim, rng)
        variances = variances / (n * fraction * fraction)
        short = dim - basis.shape[1]
        if short > 0:  # fewer rows than dimensions
            drawn = moved_to(rng.standard_normal((m, short)), values)
            both = xp.concat([xp.astype(basis, xp.float64), drawn], axis=1)
            basis = xp.astype(xp.linalg.qr(both)[0][:, :dim], values.dtype)
            variances = xp.concat([variances, zeros((short,), values)])
    noise = max((power * m - float(xp.sum(variances))) / m, 0.1 * power, rule.floor)
    if rule.kind == "fixed":
        noise = max(rule.value, rule.floor)
    # EM keeps the span of the factors: a direction of variance 0 would never get a positive one.
    variances = xp.clip(variances, 1e-3 * noise, None)
    weight, mean = zeros((1,), values), zeros((1, m), values)
    return Gaussians(weight, mean, basis[None, ...], variances[None, :], weight + noise)


def _principal(values: Array, dim: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return at most `dim` principal directions and the sums of squares along them."""
    available = min(dim, *values.shape)
    with plain_settings(values):
        _, singular, rows = randomized_svd(
            values,
            available,
            n_oversamples=10 + dim - available,
            # Without this setting scikit-learn warns that other namespaces have no LU.
            power_iteration_normalizer="auto" if is_numpy(values) else "QR",
            random_state=rng,
        )
    # Reshaping to one row and back makes the basis contiguous by rows, in any namespace.
    xp, basis = namespace(rows), rows.mT
    return xp.reshape(xp.reshape(basis, (-1,)), basis.shape), singular * singular


def with_outliers(gaussians: Gaussians, outliers: Any) -> Gaussians:
    """Return Gaussians beside a uniform component; True: its share is learned."""
    factors = gaussians.noise_factors if isinstance(gaussians, ExtendedGaussians) else None
    share = FIRST_SHARE if outliers is True else float(outliers)
    return ExtendedGaussians.of(gaussians, share, factors)


def equal_components(single: Gaussians, n: int) -> Gaussians:
    """Return a mixture of n equal components."""
    xp = namespace(single.means)
    names = ("means", "bases", "variances", "noise")
    return replace(
        single,
        log_weights=moved_to([float(-np.log(n))] * n, single.means, single.means.dtype),
        **{name: xp.concat([getattr(single, name)] * n, axis=0) for name in names},
    )


def components_around_seeds(
    samples: Samples, single: Gaussians, n: int, shrinkage: Shrinkage, rng: np.random.RandomState
) -> Gaussians:
    """Return n components, each fitted to the samples that are nearest to one of n seeds.

    Seeds are samples far from each other: as points, or, for linear subspaces, as directions. NumPy
    draws them, so that a random state gives the same seeds on every device.
    """
    X, xp = samples.values, namespace(samples.values)
    linear = not samples.affine
    if linear:
        X = unit_rows(X)
    weights = samples.row_weights.weights
    weights = None if weights is None else to_numpy(weights)
    with plain_settings():
        _, chosen = kmeans_plusplus(to_numpy(X), n, random_state=rng, sample_weight=weights)
    seeds = xp.take(X, moved_to(chosen, X, xp.int64), axis=0)
    similarity = X @ seeds.mT
    if linear:
        similarity = similarity * similarity
    else:
        similarity = similarity - 0.5 * xp.sum(seeds * seeds, axis=1)
    responsibilities = one_hot(xp.argmax(similarity, axis=1), n, X.dtype)
    start: Any = equal_components(single, n)
    dim = single.bases.shape[2]
    strong = Shrinkage(shrinkage.pooled, max(shrinkage.weight, 2.0 * (dim + 1)))
    sums: Any = samples.gather(start, responsibilities)
    return samples.maximise(start, sums, strong)


def sampled(
    problem: Problem, single: Gaussians, shrinkage: Shrinkage, most: int,
    rng: np.random.RandomState,
) -> tuple[Samples, Shrinkage]:  # fmt: skip
    """Return at most so many samples to find starts on, without dimensions of their own.

    Their missing entries are filled by the Gaussian `single`, which is then what covariances are
    pulled to. Where samples are drawn, a weight is the chance to be drawn.
    """
    values, observed, rows = problem.values, problem.observed, None
    weights = problem.row_weights.weights
    if values.shape[0] > most:
        xp = namespace(values)
        chances = None if weights is None else to_numpy(weights).astype(np.float64)
        drawn = rng.choice(
            values.shape[0], most, replace=chances is not None,
            p=None if chances is None else chances / chances.sum(),
        )  # fmt: skip
        rows = moved_to(drawn, values, xp.int64)
        values = xp.take(values, rows, axis=0)
        observed = None if observed is None else xp.take(observed, rows, axis=0)
    if observed is not None:
        values = fill_missing(single, values, observed)
        shrinkage = replace(shrinkage, pooled=single)
    return _complete_samples(problem, values, rows), shrinkage


def annealed_start(
    problem: Problem,
    single: Gaussians,
    n: int,
    shrinkage: Shrinkage,
    rng: np.random.RandomState,
    *,
    steps: int,
    hottest: float,
) -> Gaussians:
    """Return n components that EM separates while the inverse temperature rises to 1.

    They are learned from at most `START_SAMPLES` samples per component.
    """
    samples, shrinkage = sampled(problem, single, shrinkage, START_SAMPLES * n, rng)
    dims = problem.samples.dims
    return annealed(samples, single, n, shrinkage, rng, dims=dims, steps=steps, hottest=hottest)


def annealed(
    samples: Samples, single: Gaussians, n: int, shrinkage: Shrinkage, rng: np.random.RandomState,
    *, dims: tuple[int, ...] | None, steps: int, hottest: float,
) -> Gaussians:  # fmt: skip
    """Return the same for samples and a shrinkage from `sampled`."""
    start = components_around_seeds(samples, single, n, shrinkage, rng)
    betas = [float(beta) for beta in np.geomspace(hottest, 1.0, steps)] if steps else []
    found = anneal(samples, start, shrinkage, betas)
    if dims is None:
        return found
    # All have the largest dimension until they are apart: with their own from the first step, a
    # component of high dimension takes the samples of several subspaces.
    found = run_em(samples, found, shrinkage, max_iter=SETTLING_ITERATIONS, tol=1e-5).gaussians
    return truncate(found, dims, samples.rule, match_dims(found, dims))


def _complete_samples(problem: Problem, values: Array, rows: Array | None) -> Samples:
    """Return samples whose missing entries are filled: all, or rows that were drawn by weight."""
    own, groups = problem.row_weights, problem.groups
    if rows is not None:
        own = replace(own.take(rows), weights=None)
        groups = None if groups is None else groups[to_numpy(rows)]
    if problem.log_ranges is not None:
        own = replace(own, uniform=uniform_density(problem.log_ranges, values, None))
    return as_samples(
        values, None, affine=problem.affine, rule=problem.rule, row_weights=own, groups=groups
    )


def start_from_labels(
    problem: Problem, single: Gaussians, labels: Array, n: int, shrinkage: Shrinkage
) -> Gaussians:
    """Return the components of given labels: those that the samples of each label have.

    Missing entries are filled by the Gaussian `single` first.
    """
    values = problem.values
    if problem.observed is not None:
        values = fill_missing(single, values, problem.observed)
    samples = replace(_complete_samples(problem, values, None), dims=problem.samples.dims)
    whole = without_empty(to_numpy(values), to_numpy(labels), n)
    labels = moved_to(whole, values, namespace(values).int64)
    return from_responsibilities(samples, single, one_hot(labels, n, values.dtype), shrinkage)


def from_responsibilities(
    samples: Samples, single: Gaussians, responsibilities: Array, shrinkage: Shrinkage
) -> Gaussians:
    """Return the components that samples with these responsibilities have."""
    found: Any = equal_components(single, responsibilities.shape[1])
    for _ in range(1 if isinstance(samples, CompleteSamples) else FACTOR_STEPS):
        sums: Any = samples.gather(found, responsibilities)
        found = samples.maximise(found, sums, shrinkage)
    if isinstance(single, ExtendedGaussians):  # no sample was an outlier here
        found = replace(found, outlier_share=single.outlier_share)
    return cast(Gaussians, found)


def without_empty(X: np.ndarray, labels: np.ndarray, n: int) -> np.ndarray:
    """Return labels in which no cluster is empty: those with the largest scatter are cut in two."""
    labels = np.array(labels, dtype=np.int64)
    for empty in np.setdiff1d(np.arange(n), labels):
        scatter = [
            ((own - own.mean(axis=0)) ** 2).sum() if len(own) > 1 else -1.0
            for own in (X[labels == p] for p in range(n))
        ]
        rows = np.flatnonzero(labels == int(np.argmax(scatter)))
        centred = X[rows] - X[rows].mean(axis=0)
        along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
        far = np.argsort(along, kind="stable")[len(rows) // 2 :]
        labels[rows[far]] = empty
    return labels


def fill_missing(single: Gaussians, values: Array, observed: Array) -> Array:
    """Fill the missing entries of samples with their expectation under one Gaussian."""
    xp = namespace(values)
    rows, filled = [], []
    for group in find_patterns(values, observed).groups(1, single.bases.shape[2]):
        z = posterior_factors(group, single)[2][0, ...]
        expected = single.means[0, :] + z @ single.factors[0, ...].mT
        rows.append(group.rows)
        filled.append(xp.where(group.observed > 0, group.values, expected))
    return restore_order(rows, filled)
