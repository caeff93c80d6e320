r"""Low-rank Gaussians: densities and posteriors of samples, complete or with missing entries.

A component l has the covariance :math:`C_l = D_l \mathrm{diag}(v_l) D_l^T + \sigma_l^2 I` with D_l
orthonormal (m×s). Its inverse and determinant follow from v_l and σ_l² (Woodbury identity and
determinant lemma); no m×m matrix is inverted. A clean sample is :math:`\mu_l + W_l z` with
:math:`W_l = D_l \mathrm{diag}(\sqrt{v_l})` and standard normal factors z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from polyspan.base.arrays import (
    Array,
    chunk_rows,
    identity,
    is_host,
    item_bytes,
    limit_threads,
    machine_epsilon,
    namespace,
    pass_work,
    restore_order,
    row_slices,
    unfilled,
    zeros,
)
from polyspan.data.missing import Group, find_patterns
from polyspan.engine.small_systems import invert_together, pairwise_products, solve_packed

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussians:
    """A mixture of low-rank Gaussians."""

    log_weights: Array
    """Shape (n_subspaces,): logarithms of the weights π_l."""
    means: Array
    """Shape (n_subspaces, n_features)."""
    bases: Array
    """Orthonormal, shape (n_subspaces, n_features, subspace_dim)."""
    variances: Array
    """Shape (n_subspaces, subspace_dim): v_l, the variance along the basis, without the noise."""
    noise: Array
    """Shape (n_subspaces,): σ_l²."""

    @property
    def factors(self) -> Array:
        """W_l = D_l diag(√v_l), so that C_l = W_l W_lᵀ + σ_l² I."""
        return self.bases * namespace(self.bases).sqrt(self.variances)[:, None, :]

    def log_determinants(self) -> Array:
        """Return log|C_l|."""
        xp = namespace(self.bases)
        _, m, s = self.bases.shape
        along = xp.sum(xp.log(self.variances + self.noise[:, None]), axis=1)
        return along + (m - s) * xp.log(self.noise)

    def with_noise(self, extra: float) -> Gaussians:
        """Return the distribution of samples with white noise of variance `extra` added."""
        return replace(self, noise=self.noise + extra)

    def degrees_of_freedom(self, extra: float | None) -> Array:
        """Return the trace of the map from a sample to its posterior mean, for every component.

        `extra` is the variance of added noise, which is removed; None: σ_l² is removed.
        """
        xp = namespace(self.noise)
        noise = self.noise[:, None]
        if extra is None:
            return xp.sum(self.variances / (self.variances + noise), axis=1)
        _, m, s = self.bases.shape
        along = (self.variances + noise) / (self.variances + noise + extra)
        return xp.sum(along, axis=1) + (m - s) * self.noise / (self.noise + extra)


@dataclass(frozen=True)
class ExtendedGaussians(Gaussians):
    """Gaussians, with what EM learns besides them: a share of outliers, levels of the noise."""

    outlier_share: float = 0.0
    """Probability of the uniform component."""
    noise_factors: Array | None = None
    """Shape (n_groups,): a row of group g has the noise variances f_g σ_l²; None: one group."""

    @classmethod
    def of(
        cls, gaussians: Gaussians, outlier_share: float = 0.0, noise_factors: Array | None = None
    ) -> ExtendedGaussians:
        """Extend Gaussians."""
        arrays = (gaussians.log_weights, gaussians.means, gaussians.bases, gaussians.variances)
        return cls(*arrays, gaussians.noise, outlier_share, noise_factors)


def log_densities(X: Array, gaussians: Gaussians) -> tuple[Array, Array, Array]:
    """Return log π_l N(x; μ_l, C_l), squared Mahalanobis distances, and coordinates D_lᵀ(x - μ_l).

    Parameters
    ----------
    X : array of shape (n, n_features)

    Returns
    -------
    joint, squares : arrays of shape (n, n_subspaces)
    coordinates : array of shape (n, n_subspaces, subspace_dim)
    """
    xp = namespace(X)
    n_subspaces, m, s = gaussians.bases.shape
    means, noise = gaussians.means, gaussians.noise
    flat = xp.reshape(xp.permute_dims(gaussians.bases, (1, 0, 2)), (m, n_subspaces * s))
    coordinates = xp.reshape(X @ flat, (X.shape[0], n_subspaces, s))
    coordinates = coordinates - (gaussians.bases.mT @ means[..., None])[None, :, :, 0]
    norms = xp.sum(X * X, axis=1)[:, None] - 2.0 * (X @ means.mT)
    norms = norms + xp.sum(means * means, axis=1)
    squared = coordinates * coordinates
    # This is a difference of sums, which rounding can make slightly negative.
    outside = norms - xp.sum(squared, axis=2)
    outside = xp.where(outside > 0, outside, xp.zeros_like(outside))
    inside = xp.sum(squared / (gaussians.variances + noise[:, None]), axis=2)
    squares = outside / noise + inside
    constant = gaussians.log_weights - 0.5 * (gaussians.log_determinants() + m * LOG_2PI)
    return constant - 0.5 * squares, squares, coordinates


def soft_assign(joint: Array, inverse_temperature: float = 1.0) -> tuple[Array, Array]:
    """Return responsibilities ∝ exp(β·joint), and log(Σ_l exp(β·joint))/β of every row.

    β is the inverse temperature. For β=1 the second result is the log-density of every sample.
    """
    xp = namespace(joint)
    scaled = inverse_temperature * joint
    top = xp.max(scaled, axis=1, keepdims=True)
    powers = xp.exp(scaled - top)
    total = xp.sum(powers, axis=1, keepdims=True)
    return powers / total, (top + xp.log(total))[:, 0] / inverse_temperature


def posterior_factors(group: Group, gaussians: Gaussians) -> tuple[Array, Array, Array]:
    r"""Return joint log-densities, squared Mahalanobis distances and expected factors z.

    With x = μ_l + W_l z + noise on the observed entries o, only A = I + W_oᵀW_o/σ² is factorised:
    z = A⁻¹W_oᵀ(x - μ)_o/σ², the squared distance is (‖(x - μ)_o‖² - (x - μ)_oᵀW_o z)/σ²
    and log|C_oo| = log|A| + |o| log σ².

    Returns
    -------
    joint, squares : arrays of shape (n, n_subspaces)
    factors : array of shape (n_subspaces, n, s)
    """
    xp = namespace(group.values)
    W, means, noise = gaussians.factors, gaussians.means, gaussians.noise
    values, observed = group.values, group.observed
    right = W.mT @ values.mT[None, ...]  # (L, s, n)
    right = right - (W * means[..., None]).mT @ observed.mT[None, ...]
    right = right / noise[:, None, None]
    if group.shared:
        masked = W * xp.reshape(observed, (1, -1, 1))
        systems = _identity_plus(masked.mT @ masked, noise)
        logs = xp.linalg.slogdet(systems)[1][:, None]
        z = xp.linalg.solve(systems, right)
    else:
        z, logs = _eliminate(W, observed, right, noise)
    norms = xp.sum(values * values, axis=1)[None, :] - 2.0 * (means @ values.mT)
    norms = norms + (means * means) @ observed.mT
    squares = norms / noise[:, None] - xp.sum(right * z, axis=1)
    squares = xp.where(squares > 0, squares, xp.zeros_like(squares))
    n_observed = xp.sum(observed, axis=1)[None, :]
    constant = logs + n_observed * (xp.log(noise)[:, None] + LOG_2PI)
    joint = gaussians.log_weights[:, None] - 0.5 * (squares + constant)
    return joint.mT, squares.mT, z.mT


def posterior_covariances(group: Group, gaussians: Gaussians, p: int) -> Array:
    """Return A⁻¹ for component p: (s, s, n), or (s, s, 1) where all rows have one mask."""
    xp = namespace(group.values)
    W, noise = gaussians.factors[p, ...], gaussians.noise[p]
    if group.shared:
        masked = W * group.observed.mT
        systems = _identity_plus((masked.mT @ masked)[None, ...], noise[None])
        return xp.permute_dims(xp.linalg.inv(systems), (1, 2, 0))
    return invert_together(observed_systems(W, noise, group.observed))[0]


def observed_systems(W: Array, noise: Array, observed: Array) -> Array:
    """Return A = I + W_oᵀW_o/σ² of one component for rows with different masks: (s, s, n)."""
    xp = namespace(W)
    m, s = W.shape
    scaled = W.mT / xp.sqrt(noise)
    outer = xp.reshape(scaled[:, None, :] * scaled[None, :, :], (s * s, m))
    systems = xp.reshape(outer @ observed.mT, (s, s, observed.shape[0]))
    for i in range(s):
        systems[i, i, :] += 1.0
    return systems


def _identity_plus(grams: Array, noise: Array) -> Array:
    """Return I + gram/σ²."""
    return identity(grams.shape[-1], grams) + grams / noise[:, None, None]


def _eliminate(W: Array, observed: Array, right: Array, noise: Array) -> tuple[Array, Array]:
    """Solve A z = right for all rows and components together; return z and log|A|."""
    xp = namespace(W)
    n_subspaces, m, s = W.shape
    n = observed.shape[0]
    if not s:
        return right, zeros((n_subspaces, n), W)
    pairs = pairwise_products(W / xp.sqrt(noise)[:, None, None])
    t = pairs.shape[1]
    grams = xp.reshape(xp.reshape(pairs, (n_subspaces * t, m)) @ observed.mT, (n_subspaces, t, n))
    diagonal = [i * s - i * (i - 1) // 2 for i in range(s)]
    for k in diagonal:
        grams[:, k, :] += 1.0
    z = solve_packed(grams, xp.asarray(right, copy=True))
    # `solve_packed` leaves the pivots on the diagonal; their product is the determinant. All are at
    # least 1; one that rounding made 0 or less belongs to an unknown that it left out.
    pivots = (grams[:, k, :] for k in diagonal)
    logs = sum(xp.log(xp.where(p > machine_epsilon(p), p, xp.ones_like(p))) for p in pivots)
    return z, logs


class Posterior(NamedTuple):
    """Densities and expected factors of some rows of a chunk, for every component."""

    joint: Array
    """log π_l N(x; l) of the observed entries, (n, L)."""
    squares: Array
    """Squared Mahalanobis distances, (n, L)."""
    factors: Array
    """Expected coordinates E[D_lᵀ(x - μ_l)] of the clean samples x, (L, n, s)."""
    values: Array
    """The rows minus the mean, 0 where missing: (n, n_features)."""
    group: Group | None
    """Which rows of the chunk; None: all of them, and no entry is missing."""


def per_row(
    X: Array, mean: Array, gaussians: Gaussians, compute: Callable[[Posterior], tuple[Array, ...]]
) -> tuple[Array, ...]:
    """Compute arrays from the posteriors of all rows, chunk by chunk, in the order of the rows.

    Parameters
    ----------
    X : array of shape (n, n_features)
        NaN where missing.
    mean : array of shape (n_features,)
        The means of the Gaussians are relative to this mean.
    compute : callable
        Takes a `Posterior`, and returns arrays with one entry for each of its rows.
    """
    xp = namespace(X)
    n_subspaces, m, s = gaussians.bases.shape
    size = chunk_rows(m, item_bytes(gaussians.bases), n_subspaces * (s + 2), host=is_host(X))
    out: list[Array] = []
    with limit_threads(pass_work(X.shape[0], m, n_subspaces * s)):
        for which in row_slices(X.shape[0], size):
            chunk = xp.astype(X[which, :] - mean, gaussians.bases.dtype, copy=False)
            results = [(post.group, compute(post)) for post in _chunk_posteriors(chunk, gaussians)]
            for k, found in enumerate(zip(*(arrays for _, arrays in results), strict=True)):
                if len(out) == k:
                    out.append(unfilled((X.shape[0], *found[0].shape[1:]), found[0]))
                rows = [group.rows for group, _ in results if group is not None]
                out[k][which, ...] = restore_order(rows, list(found)) if rows else found[0]
    return tuple(out)


def _chunk_posteriors(chunk: Array, gaussians: Gaussians) -> Iterator[Posterior]:
    """Yield one posterior for a complete chunk, else one for each group of rows."""
    xp = namespace(chunk)
    observed = ~xp.isnan(chunk)
    if bool(xp.all(observed)):
        joint, squares, coordinates = log_densities(chunk, gaussians)
        gain = gaussians.variances / (gaussians.variances + gaussians.noise[:, None])
        factors = xp.permute_dims(coordinates * gain, (1, 0, 2))
        yield Posterior(joint, squares, factors, chunk, None)
        return
    n_subspaces, _, s = gaussians.bases.shape
    roots = xp.sqrt(gaussians.variances)[:, None, :]
    patterns = find_patterns(xp.where(observed, chunk, 0.0), observed)
    for group in patterns.groups(n_subspaces, s):
        joint, squares, z = posterior_factors(group, gaussians)
        yield Posterior(joint, squares, z * roots, group.values, group)
