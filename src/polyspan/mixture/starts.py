"""Samples in the form that EM takes, and its starts: the pooled Gaussian, annealed components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from polyspan._sklearn import plain_settings
from polyspan.arrays import (
    Array,
    float64_sum,
    is_numpy,
    keep_freed_memory,
    moved_to,
    namespace,
    one_hot,
    restore_order,
    sum_of_squares,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.checks import check_columns_observed
from polyspan.data.missing import Patterns, find_patterns, observed_mean
from polyspan.mixture._solve.complete import CompleteSamples, gather_moments
from polyspan.mixture._solve.em import Samples, anneal, run_em
from polyspan.mixture._solve.gaussians import Gaussians, posterior_factors
from polyspan.mixture._solve.masked import MaskedSamples, gather_factors
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage, fit_low_rank

# Up to this many features, EM with m×m covariances and their eigenvectors is the faster form.
DENSE_FEATURES = 512
# Most iterations of EM for the pooled Gaussian.
POOLED_ITERATIONS = 30
# Noise variances are kept above this fraction of the mean variance: below it they are rounding.
LEAST_NOISE = 1e-6
# Samples per subspace that the annealed start is learned from; EM then takes all of them.
START_SAMPLES = 1000


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

    @classmethod
    def of(
        cls, X: Array, noise: Any, *, affine: bool, center: bool = True, masked: bool = False
    ) -> Problem:
        """Prepare data with NaN where missing; `masked` treats complete data as incomplete."""
        keep_freed_memory()
        xp = namespace(X)
        missing = xp.isnan(X)
        check_columns_observed(missing)
        mean = observed_mean(X, missing) if center else zeros((X.shape[1],), X)
        if masked or bool(xp.any(missing)):
            values, observed = xp.where(missing, 0.0, X - mean), ~missing
        else:
            values, observed = X - mean, None
        rule = noise_rule(noise, values, observed)
        samples = as_samples(values, observed, affine=affine, rule=rule)
        return cls(values, observed, mean, affine, rule, samples)


def noise_rule(noise: Any, values: Array, observed: Array | None) -> NoiseRule:
    """Return the rule for the parameter `noise` of `SubspaceMixture`."""
    entries = values.shape[0] * values.shape[1]
    if observed is not None:
        entries = int(namespace(observed).count_nonzero(observed))
    power = sum_of_squares(values) / entries
    floor = LEAST_NOISE * power or 1.0
    if isinstance(noise, str):
        return NoiseRule(noise, floor)
    return NoiseRule("fixed", floor, float(noise) ** 2)


def as_samples(values: Array, observed: Array | None, *, affine: bool, rule: NoiseRule) -> Samples:
    """Return the samples in the form that suits their size and their mask (None: complete)."""
    if observed is None and values.shape[1] <= DENSE_FEATURES:
        return CompleteSamples(values, affine, rule)
    if observed is None:
        xp = namespace(values)
        observed = xp.ones_like(values, dtype=xp.bool)
    return MaskedSamples(find_patterns(values, observed), affine, rule)


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
        X = samples.X
        n, m = X.shape
        mean = namespace(X).astype(float64_sum(X, axis=0) / n, X.dtype) * float(samples.affine)
        covariance = (transpose(X) @ X / n - mean[:, None] * mean[None, :])[None, ...]
        weight = zeros((1,), X)
        whole = fit_low_rank(covariance, weight + 1, m - 1, replace(rule, kind="subspace"))
        return (
            Gaussians(weight, mean[None, :], *whole),
            Gaussians(
                weight, mean[None, :], *fit_low_rank(covariance, weight + 1, dim, single_rule)
            ),
        )
    start = _factor_start(samples.patterns, dim, single_rule, rng)
    samples = replace(samples, rule=single_rule)
    no_shrinkage = Shrinkage(start, 0.0)
    found = run_em(samples, start, no_shrinkage, max_iter=POOLED_ITERATIONS, tol=1e-4).gaussians
    return found, found


def _factor_start(
    patterns: Patterns, dim: int, rule: NoiseRule, rng: np.random.RandomState
) -> Gaussians:
    """Return the principal components of the zero-filled data, their variances corrected for it."""
    values, xp = patterns.values, namespace(patterns.values)
    n, m = values.shape
    fraction = float(float64_sum(patterns.observed)) / (n * m)
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
    return Gaussians(
        zeros((1,), values),
        zeros((1, m), values),
        basis[None, ...],
        variances[None, :],
        zeros((1,), values) + noise,
    )


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
    xp, basis = namespace(rows), transpose(rows)
    return xp.reshape(xp.reshape(basis, (-1,)), basis.shape), singular * singular


def equal_components(single: Gaussians, n: int) -> Gaussians:
    """Return a mixture of n equal components."""
    xp = namespace(single.means)
    arrays = (single.means, single.bases, single.variances, single.noise)
    return Gaussians(
        moved_to([float(-np.log(n))] * n, single.means, single.means.dtype),
        *(xp.concat([a] * n, axis=0) for a in arrays),
    )


def components_around_seeds(
    samples: Samples, single: Gaussians, n: int, shrinkage: Shrinkage, rng: np.random.RandomState
) -> Gaussians:
    """Return n components, each fitted to the samples that are nearest to one of n seeds.

    Seeds are samples far from each other: as points, or, for linear subspaces, as directions. NumPy
    draws them, so that a random state gives the same seeds on every device.
    """
    X = samples.X if isinstance(samples, CompleteSamples) else samples.patterns.values
    xp = namespace(X)
    linear = not samples.affine
    if linear:
        norms = xp.linalg.vector_norm(X, axis=1, keepdims=True)
        X = X / xp.where(norms > 0, norms, xp.ones_like(norms))
    with plain_settings():
        _, chosen = kmeans_plusplus(to_numpy(X), n, random_state=rng)
    seeds = xp.take(X, moved_to(chosen, X, xp.int64), axis=0)
    similarity = X @ transpose(seeds)
    if linear:
        similarity = similarity * similarity
    else:
        similarity = similarity - 0.5 * xp.sum(seeds * seeds, axis=1)
    responsibilities = one_hot(xp.argmax(similarity, axis=1), n, X.dtype)
    start = equal_components(single, n)
    dim = single.bases.shape[2]
    strong = Shrinkage(shrinkage.pooled, max(shrinkage.weight, 2.0 * (dim + 1)))
    if isinstance(samples, CompleteSamples):
        return samples.maximise(start, gather_moments(samples.X, responsibilities), strong)
    total = None
    for group in samples.patterns.groups(n, dim):
        _, _, z = posterior_factors(group, start)
        own = xp.take(responsibilities, group.rows, axis=0)
        part = gather_factors(group, start, own, z)
        total = part if total is None else total + part
    assert total is not None
    return samples.maximise(start, total, strong)


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

    They are learned from at most `START_SAMPLES` samples per component, whose missing entries are
    filled by the Gaussian `single`.
    """
    values, observed = problem.values, problem.observed
    most = START_SAMPLES * n
    if values.shape[0] > most:
        xp = namespace(values)
        drawn = rng.choice(values.shape[0], most, replace=False)
        rows = moved_to(drawn, values, xp.int64)
        values = xp.take(values, rows, axis=0)
        observed = None if observed is None else xp.take(observed, rows, axis=0)
    if observed is not None:
        values = fill_missing(single, values, observed)
        shrinkage = replace(shrinkage, pooled=single)
    samples = as_samples(values, None, affine=problem.affine, rule=problem.rule)
    start = components_around_seeds(samples, single, n, shrinkage, rng)
    betas = np.geomspace(hottest, 1.0, steps) if steps else ()
    return anneal(samples, start, shrinkage, [float(beta) for beta in betas])


def fill_missing(single: Gaussians, values: Array, observed: Array) -> Array:
    """Fill the missing entries of samples with their expectation under one Gaussian."""
    xp = namespace(values)
    rows, filled = [], []
    for group in find_patterns(values, observed).groups(1, single.bases.shape[2]):
        z = posterior_factors(group, single)[2][0, ...]
        expected = single.means[0, :] + z @ transpose(single.factors[0, ...])
        rows.append(group.rows)
        filled.append(xp.where(group.observed > 0, group.values, expected))
    return restore_order(rows, filled)
