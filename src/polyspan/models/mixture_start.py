"""Where EM starts: the pooled Gaussian, and components around seeds that are far apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

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


def find_patterns(values: np.ndarray, observed: np.ndarray) -> Patterns:
    """Group the rows by their masks."""
    packed = np.packbits(observed, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    firsts = np.cumsum(counts) - counts
    large = np.flatnonzero(counts >= SHARED_FROM)
    together = tuple(order[firsts[k] : firsts[k] + counts[k]] for k in large)
    single = np.flatnonzero(counts[inverse] < SHARED_FROM)
    return Patterns(values, observed.astype(values.dtype), together, single)


def as_samples(
    values: np.ndarray, observed: np.ndarray | None, *, affine: bool, rule: NoiseRule
) -> Samples:
    """Return the samples in the form that suits their size and their holes."""
    if observed is None and values.shape[1] <= DENSE_FEATURES:
        return CompleteSamples(values, affine, rule)
    if observed is None:
        observed = np.ones(values.shape, dtype=bool)
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
        mean = X.mean(axis=0, dtype=np.float64).astype(X.dtype) * samples.affine
        covariance = (X.T @ X / n - np.outer(mean, mean))[None]
        weight = np.zeros(1, dtype=X.dtype)
        counts = np.ones(1, dtype=X.dtype)
        whole = low_rank(covariance, counts, m - 1, replace(rule, kind="subspace"))
        return (
            Gaussians(weight, mean[None], *whole),
            Gaussians(weight, mean[None], *low_rank(covariance, counts, dim, own)),
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
    values, dtype = patterns.values, patterns.values.dtype
    n, m = values.shape
    share = float(patterns.observed.mean(dtype=np.float64))
    power = np.einsum("nm,nm->", values, values, dtype=np.float64) / max(share * n * m, 1e-300)
    basis = np.zeros((m, 0), dtype=dtype)
    variances = np.zeros(0, dtype=dtype)
    if dim:
        _, singular, rows = randomized_svd(values, dim, random_state=rng)
        basis, variances = rows.T, (singular**2 / (n * share * share)).astype(dtype)
        short = dim - basis.shape[1]
        if short > 0:  # fewer rows than dimensions
            extra, _ = np.linalg.qr(np.hstack([basis, rng.standard_normal((m, short))]))
            basis = extra[:, :dim].astype(dtype)
            variances = np.append(variances, np.zeros(short, dtype=dtype))
    noise = max((power * m - float(variances.sum())) / m, 0.1 * power, rule.floor)
    if rule.kind == "fixed":
        noise = max(rule.value, rule.floor)
    # A direction without any variance would never get one: EM moves in the span of the factors.
    variances = np.maximum(variances, 1e-3 * noise)
    return Gaussians(
        np.zeros(1, dtype=dtype),
        np.zeros((1, m), dtype=dtype),
        np.ascontiguousarray(basis)[None].astype(dtype),
        variances[None].astype(dtype),
        np.full(1, noise, dtype=dtype),
    )


def copies(one: Gaussians, n: int) -> Gaussians:
    """Return a mixture of n equal components."""
    return Gaussians(
        np.full(n, -np.log(n), dtype=one.means.dtype),
        *(np.repeat(a, n, axis=0) for a in (one.means, one.bases, one.variances, one.noise)),
    )


def seeded(
    samples: Samples, one: Gaussians, n: int, pull: Pull, rng: np.random.RandomState
) -> Gaussians:
    """Return components of the samples that are nearest to each of n seeds.

    Seeds are drawn far from each other: as points, or, for linear subspaces, as directions.
    """
    assert isinstance(samples, CompleteSamples | MaskedSamples)
    X = samples.X if isinstance(samples, CompleteSamples) else samples.patterns.values
    linear = not samples.affine
    if linear:
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1)
    seeds, _ = kmeans_plusplus(X, n, random_state=rng)
    likeness = X @ seeds.T
    likeness = likeness**2 if linear else likeness - 0.5 * (seeds**2).sum(axis=1)
    shares = np.zeros((len(X), n), dtype=X.dtype)
    shares[np.arange(len(X)), likeness.argmax(axis=1)] = 1.0
    start = copies(one, n)
    dim = one.bases.shape[2]
    firm = Pull(pull.pooled, max(pull.weight, 2.0 * (dim + 1)))
    if isinstance(samples, CompleteSamples):
        return samples.maximise(start, gather_moments(samples.X, shares), firm)
    total = None
    for group in samples.patterns.groups(n, dim):
        _, _, z = posterior_factors(group, start)
        part = gather_factors(group, start, shares[group.rows], z)
        total = part if total is None else total + part
    assert total is not None
    return samples.maximise(start, total, firm)


def annealed_start(
    data: tuple[np.ndarray, np.ndarray | None],
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
    if len(values) > most:
        some = rng.choice(len(values), most, replace=False)
        values = values[some]
        observed = None if observed is None else observed[some]
    if observed is not None:
        values = filled_by(one, values, observed)
        pull = replace(pull, pooled=one)
    samples = as_samples(values, None, affine=affine, rule=rule)
    start = seeded(samples, one, n, pull, rng)
    betas = np.geomspace(hottest, 1.0, steps) if steps else ()
    return temper_mixture(samples, start, pull, [float(beta) for beta in betas])


def noise_rule(noise: Any, values: np.ndarray, observed: np.ndarray | None) -> NoiseRule:
    """Return the rule that the parameter `noise` asks for."""
    entries = values.size if observed is None else int(observed.sum())
    power = float(np.einsum("nm,nm->", values, values, dtype=np.float64)) / entries
    floor = LEAST_NOISE * power or 1.0
    if isinstance(noise, str):
        return NoiseRule(noise, floor)
    return NoiseRule("fixed", floor, float(noise) ** 2)


def as_watch(monitor: Monitor | None) -> Watch | None:
    """Return what EM calls after every iteration of its only start."""
    if monitor is None:
        return None
    return lambda iteration, value, gaussians: monitor(0, iteration, value, gaussians)


def filled_by(one: Gaussians, values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return the samples with their holes filled by what one Gaussian expects."""
    out = values.copy()
    for group in find_patterns(values, observed).groups(1, one.bases.shape[2]):
        z = posterior_factors(group, one)[2][0]
        expected = one.means[0] + z @ one.factors[0].T
        out[group.rows] = np.where(observed[group.rows], values[group.rows], expected)
    return out
