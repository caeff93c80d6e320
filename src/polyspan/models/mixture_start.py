"""Where EM starts: the pooled Gaussian, and components around seeds that are far apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from polyspan._sklearn import plain_settings
from polyspan.arrays import (
    Array,
    float64_sum,
    is_host,
    is_numpy,
    keep_freed_memory,
    moved_to,
    namespace,
    one_hot,
    sum_of_squares,
    to_numpy,
    transpose,
    unsorted,
    zeros,
)
from polyspan.models.checks import check_columns_observed
from polyspan.solvers.masked_preparation import observed_mean
from polyspan.solvers.mixture import Gaussians, Pull
from polyspan.solvers.mixture_complete import CompleteSamples, gather_moments
from polyspan.solvers.mixture_em import Samples, Watch, learn_mixture, temper_mixture
from polyspan.solvers.mixture_masked import MaskedSamples, gather_factors
from polyspan.solvers.mixture_noise import NoiseRule, low_rank
from polyspan.solvers.mixture_patterns import Patterns, posterior_factors
from polyspan.solvers.problem import Monitor

# Up to this many features an m×m covariance and its eigenvectors cost less than products.
DENSE_FEATURES = 512
# Masks that stand for at least this many rows share their systems.
SHARED_FROM = 8
POOLED_ITERATIONS = 30
# Noise below this share of the mean variance is noise of the arithmetic.
LEAST_NOISE = 1e-6
# Samples per subspace that the annealed start looks at; EM then goes through all of them.
START_SAMPLES = 1000


def centred(X: Array, *, center: bool) -> tuple[Array, Array | None, Array]:
    """Return centred values with zeros in the holes, the mask (None: complete), the mean."""
    keep_freed_memory()
    xp = namespace(X)
    missing = xp.isnan(X)
    check_columns_observed(missing)
    mean = observed_mean(X, missing) if center else zeros((X.shape[1],), X)
    if not bool(xp.any(missing)):
        return X - mean, None, mean
    return xp.where(missing, 0.0, X - mean), ~missing, mean


def find_patterns(values: Array, observed: Array) -> Patterns:
    """Group the rows by their masks.

    Equal masks are looked for on the CPU. On an accelerator a system per row costs less than
    that: only the rows without holes are told from the others there.
    """
    xp = namespace(values)
    as_numbers = xp.astype(observed, values.dtype)
    if not is_host(values):
        complete = xp.all(observed, axis=1)
        together = (xp.nonzero(complete)[0],)
        return Patterns(values, as_numbers, together, xp.nonzero(~complete)[0])
    packed = np.packbits(to_numpy(observed), axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    firsts = np.cumsum(counts) - counts
    large = np.flatnonzero(counts >= SHARED_FROM)
    together = tuple(
        moved_to(order[firsts[k] : firsts[k] + counts[k]], values, xp.int64) for k in large
    )
    single = moved_to(np.flatnonzero(counts[inverse] < SHARED_FROM), values, xp.int64)
    return Patterns(values, as_numbers, together, single)


def as_samples(values: Array, observed: Array | None, *, affine: bool, rule: NoiseRule) -> Samples:
    """Return the samples in the form that suits their size and their holes."""
    if observed is None and values.shape[1] <= DENSE_FEATURES:
        return CompleteSamples(values, affine, rule)
    if observed is None:
        xp = namespace(values)
        observed = xp.ones_like(values, dtype=xp.bool)
    return MaskedSamples(find_patterns(values, observed), affine, rule)


def pool(
    samples: Samples, dim: int, rule: NoiseRule, rng: np.random.RandomState
) -> tuple[Gaussians, Gaussians]:
    """Return the pooled Gaussian that others are pulled to, and the one of dimension `dim`.

    From complete data the first has the whole covariance; with holes, or with many features, it is
    the low-rank Gaussian that EM finds.
    """
    own = replace(rule, kind="subspace") if rule.kind == "shared" else rule
    if isinstance(samples, CompleteSamples):
        X = samples.X
        n, m = X.shape
        mean = namespace(X).astype(float64_sum(X, axis=0) / n, X.dtype) * float(samples.affine)
        covariance = (transpose(X) @ X / n - mean[:, None] * mean[None, :])[None, ...]
        weight = zeros((1,), X)
        whole = low_rank(covariance, weight + 1, m - 1, replace(rule, kind="subspace"))
        return (
            Gaussians(weight, mean[None, :], *whole),
            Gaussians(weight, mean[None, :], *low_rank(covariance, weight + 1, dim, own)),
        )
    assert isinstance(samples, MaskedSamples)
    start = _factor_start(samples.patterns, dim, own, rng)
    single = replace(samples, rule=own)
    free = Pull(start, 0.0)
    found = learn_mixture(single, start, free, max_iter=POOLED_ITERATIONS, tol=1e-4).gaussians
    return found, found


def _factor_start(
    patterns: Patterns, dim: int, rule: NoiseRule, rng: np.random.RandomState
) -> Gaussians:
    """Return the principal components of the zero-filled data, their variances raised to match."""
    values, xp = patterns.values, namespace(patterns.values)
    n, m = values.shape
    share = float(float64_sum(patterns.observed)) / (n * m)
    power = sum_of_squares(values) / max(share * n * m, 1e-300)
    basis, variances = zeros((m, 0), values), zeros((0,), values)
    if dim:
        basis, variances = _principal(values, dim, rng)
        variances = variances / (n * share * share)
        short = dim - basis.shape[1]
        if short > 0:  # fewer rows than dimensions
            drawn = moved_to(rng.standard_normal((m, short)), values)
            both = xp.concat([xp.astype(basis, xp.float64), drawn], axis=1)
            basis = xp.astype(xp.linalg.qr(both)[0][:, :dim], values.dtype)
            variances = xp.concat([variances, zeros((short,), values)])
    noise = max((power * m - float(xp.sum(variances))) / m, 0.1 * power, rule.floor)
    if rule.kind == "fixed":
        noise = max(rule.value, rule.floor)
    # A direction without any variance would never get one: EM moves in the span of the factors.
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
    there = min(dim, *values.shape)
    with plain_settings(values):
        _, singular, rows = randomized_svd(
            values,
            there,
            n_oversamples=10 + dim - there,
            # Under array_api_dispatch there is no LU, and scikit-learn warns where it is not told.
            power_iteration_normalizer="auto" if is_numpy(values) else "QR",
            random_state=rng,
        )
    # A basis is read row by row: by way of one long row it is laid out so, in any namespace.
    xp, basis = namespace(rows), transpose(rows)
    return xp.reshape(xp.reshape(basis, (-1,)), basis.shape), singular * singular


def copies(one: Gaussians, n: int) -> Gaussians:
    """Return a mixture of n equal components."""
    xp = namespace(one.means)
    parts = (one.means, one.bases, one.variances, one.noise)
    return Gaussians(
        moved_to([float(-np.log(n))] * n, one.means, one.means.dtype),
        *(xp.concat([a] * n, axis=0) for a in parts),
    )


def seeded(
    samples: Samples, one: Gaussians, n: int, pull: Pull, rng: np.random.RandomState
) -> Gaussians:
    """Return components of the samples that are nearest to each of n seeds.

    Seeds are drawn far from each other: as points, or, for linear subspaces, as directions. NumPy
    draws them, so that a random state means the same ones wherever the samples lie.
    """
    assert isinstance(samples, CompleteSamples | MaskedSamples)
    X = samples.X if isinstance(samples, CompleteSamples) else samples.patterns.values
    xp = namespace(X)
    linear = not samples.affine
    if linear:
        norms = xp.linalg.vector_norm(X, axis=1, keepdims=True)
        X = X / xp.where(norms > 0, norms, xp.ones_like(norms))
    with plain_settings():
        _, chosen = kmeans_plusplus(to_numpy(X), n, random_state=rng)
    seeds = xp.take(X, moved_to(chosen, X, xp.int64), axis=0)
    likeness = X @ transpose(seeds)
    likeness = likeness * likeness if linear else likeness - 0.5 * xp.sum(seeds * seeds, axis=1)
    shares = one_hot(xp.argmax(likeness, axis=1), n, X.dtype)
    start = copies(one, n)
    dim = one.bases.shape[2]
    firm = Pull(pull.pooled, max(pull.weight, 2.0 * (dim + 1)))
    if isinstance(samples, CompleteSamples):
        return samples.maximise(start, gather_moments(samples.X, shares), firm)
    total = None
    for group in samples.patterns.groups(n, dim):
        _, _, z = posterior_factors(group, start)
        part = gather_factors(group, start, xp.take(shares, group.rows, axis=0), z)
        total = part if total is None else total + part
    assert total is not None
    return samples.maximise(start, total, firm)


def annealed_start(
    data: tuple[Array, Array | None],
    one: Gaussians,
    n: int,
    pull: Pull,
    rng: np.random.RandomState,
    *,
    affine: bool,
    rule: NoiseRule,
    steps: int,
    hottest: float,
) -> Gaussians:
    """Return n components that parted while the inverse temperature rose to 1.

    `data` are values and mask (None: complete). Some of the samples are looked at, their holes
    filled by the pooled Gaussian.
    """
    values, observed = data
    most = START_SAMPLES * n
    if values.shape[0] > most:
        xp = namespace(values)
        drawn = rng.choice(values.shape[0], most, replace=False)
        some = moved_to(drawn, values, xp.int64)
        values = xp.take(values, some, axis=0)
        observed = None if observed is None else xp.take(observed, some, axis=0)
    if observed is not None:
        values = filled_by(one, values, observed)
        pull = replace(pull, pooled=one)
    samples = as_samples(values, None, affine=affine, rule=rule)
    start = seeded(samples, one, n, pull, rng)
    betas = np.geomspace(hottest, 1.0, steps) if steps else ()
    return temper_mixture(samples, start, pull, [float(beta) for beta in betas])


def noise_rule(noise: Any, values: Array, observed: Array | None) -> NoiseRule:
    """Return the rule that the parameter `noise` asks for."""
    entries = values.shape[0] * values.shape[1]
    if observed is not None:
        entries = int(namespace(observed).count_nonzero(observed))
    power = sum_of_squares(values) / entries
    floor = LEAST_NOISE * power or 1.0
    if isinstance(noise, str):
        return NoiseRule(noise, floor)
    return NoiseRule("fixed", floor, float(noise) ** 2)


def as_watch(monitor: Monitor | None) -> Watch | None:
    """Return what EM calls after every iteration of its only start."""
    if monitor is None:
        return None
    return lambda iteration, value, gaussians: monitor(0, iteration, value, gaussians)


def filled_by(one: Gaussians, values: Array, observed: Array) -> Array:
    """Return the samples with their holes filled by what one Gaussian expects."""
    xp = namespace(values)
    rows, filled = [], []
    for group in find_patterns(values, observed).groups(1, one.bases.shape[2]):
        z = posterior_factors(group, one)[2][0, ...]
        expected = one.means[0, :] + z @ transpose(one.factors[0, ...])
        rows.append(group.rows)
        filled.append(xp.where(group.observed > 0, group.values, expected))
    return unsorted(rows, filled)
