r"""EM steps on data with missing entries, or with many features.

The hidden variables are the factors z of x = μ_l + W_l z + noise. Given them, every feature is a
separate least-squares problem on the samples in which it is observed: one (s+1)×(s+1) system. The
step is parameter-expanded (Liu, Rubin and Wu, 1998): the factors may have any covariance, which is
then moved into W_l. The likelihood rises as in plain EM, and converges in far fewer steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyspan.base.arrays import Array, identity, moved_to, namespace, zeros
from polyspan.data.missing import Group, Patterns
from polyspan.data.rows import Addable, sum_parts
from polyspan.mixture._solve.complete import (
    MIN_COUNT,
    ONCE,
    RowWeights,
    negligible_responsibility,
    updated,
)
from polyspan.mixture._solve.gaussians import (
    Gaussians,
    posterior_covariances,
    posterior_factors,
)
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage, within_dims


@dataclass(frozen=True)
class FactorSums(Addable):
    """Weighted sums over samples, for every component, with z̄ = (z, 1) of length k = s+1."""

    counts: Array
    """Σ w, shape (n_subspaces,)."""
    factors: Array
    """Σ w E[z̄ z̄ᵀ] over all samples, shape (n_subspaces, k, k)."""
    systems: Array
    """The same for every feature j, over the samples in which it is observed, shape (n_subspaces,
    n_features, k, k)."""
    right: Array
    """Σ w x_j E[z̄] over the same samples, shape (n_subspaces, n_features, k)."""
    squares: Array
    """Σ w x_j² over the same samples, shape (n_subspaces, n_features)."""
    outside: float = 0.0
    """The weight that outliers take."""


@dataclass(frozen=True)
class MaskedSamples:
    """Samples with missing entries, with the E and M steps of EM."""

    patterns: Patterns
    affine: bool
    rule: NoiseRule
    dims: tuple[int, ...] | None = None
    """Dimensions of the subspaces, where they differ; `bases` are padded with zeros."""
    row_weights: RowWeights = ONCE

    @property
    def values(self) -> Array:
        """The samples, 0 where missing."""
        return self.patterns.values

    @property
    def n_entries(self) -> float:
        """Weighted number of observed entries."""
        return self.row_weights.entries(self.patterns.observed)

    def expect(self, gaussians: Gaussians, beta: float = 1.0) -> tuple[float, FactorSums]:
        """Return the log-likelihood of the observed entries and the sums that an update needs."""
        n_subspaces, _, s = gaussians.bases.shape
        value, total = 0.0, None
        for group in self.patterns.groups(n_subspaces, s):
            joint, _, z = posterior_factors(group, gaussians)
            responsibilities, weights, logs, outside = self.row_weights.assign(
                joint, gaussians, group.rows, beta
            )
            value += logs
            part = gather_factors(group, gaussians, responsibilities, z, weights)
            part = replace(part, outside=outside)
            total = part if total is None else total + part
        assert total is not None
        return value, total

    def gather(self, gaussians: Gaussians, responsibilities: Array) -> FactorSums:
        """Return the sums for given responsibilities."""
        n_subspaces, _, s = gaussians.bases.shape

        def part(group: Group) -> FactorSums:
            _, _, z = posterior_factors(group, gaussians)
            own = namespace(responsibilities).take(responsibilities, group.rows, axis=0)
            return gather_factors(group, gaussians, own, z, self.row_weights.of(group.rows))

        groups = self.patterns.groups(n_subspaces, s)
        total: FactorSums = sum_parts(part(group) for group in groups)
        return total

    def maximise(self, gaussians: Gaussians, sums: FactorSums, shrinkage: Shrinkage) -> Gaussians:
        """Return Gaussians with a higher penalised likelihood (one parameter-expanded step)."""
        xp = namespace(sums.right)
        components = range(gaussians.bases.shape[0])
        steps = [self.step(gaussians, sums, shrinkage, p) for p in components]
        means, factors, residuals, entries = (
            xp.stack([step[k] for step in steps]) for k in range(4)
        )
        noise = self.rule.estimate(residuals, entries)
        bases, variances = from_factors(factors, self.dims)
        found = {"means": means, "bases": bases, "variances": variances, "noise": noise}
        return updated(self, gaussians, sums, shrinkage, found)

    def step(
        self, gaussians: Gaussians, sums: FactorSums, shrinkage: Shrinkage, p: int
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Update a component: the least-squares problem of every feature.

        Returns
        -------
        mean : array of shape (n_features,)
        factors : array of shape (n_features, s)
        residual, entries : arrays of shape ()
            Sum of squared residuals, and number of entries.
        fitted : array of shape (n_features, s + 1), or s for linear subspaces
            The coefficients of z̄, before their covariance is moved into the factors.
        """
        xp = namespace(sums.right)
        s = gaussians.bases.shape[2]
        systems, right = sums.systems[p, ...], sums.right[p, ...]
        squares, entries = xp.sum(sums.squares[p, :]), xp.sum(systems[:, s, s])
        spread, count = sums.factors[p, ...], sums.counts[p]
        drawn, along = _pseudo_samples(gaussians, shrinkage, p)
        if shrinkage.weight:
            systems, right = systems + drawn, right + along
            squares = squares + shrinkage.weight * xp.sum(shrinkage.diagonal())
            entries = entries + shrinkage.weight * right.shape[0]
        if not self.affine:
            systems, right = systems[:, :s, :s], right[:, :s]
        # A feature without observed entries in this component gets zeros instead of 0/0. With
        # shrinkage its factors are determined, and only its mean gets zero.
        unobserved = xp.astype(sums.systems[p, :, s, s] <= MIN_COUNT, right.dtype)[:, None, None]
        undetermined = np.ones(systems.shape[2])
        undetermined[:s] = not shrinkage.weight
        systems = systems + unobserved * moved_to(np.diag(undetermined), right, right.dtype)
        # Few observed entries and hardly any noise make a system singular: the smallest lift of
        # its diagonal that rounding does not take away again.
        lift = moved_to(np.eye(systems.shape[2]), right, right.dtype)
        systems = systems * (1.0 + 8.0 * float(xp.finfo(right.dtype).eps) * lift)
        fitted = xp.linalg.solve(systems, right[..., None])[..., 0]  # one small system per feature
        residual = squares - xp.sum(fitted * right)
        W = fitted[:, :s]
        mean = fitted[:, s] if self.affine else xp.zeros_like(sums.right[p, :, 0])
        covariance, total = spread[:s, :s], count + shrinkage.weight
        if self.affine:
            centre = spread[:s, s] / xp.where(count > MIN_COUNT, count, xp.ones_like(count))
            covariance = covariance - count * centre[:, None] * centre[None, :]
            mean = mean + W @ centre
        divisor = xp.where(total > MIN_COUNT, total, xp.ones_like(total))
        covariance = (covariance + drawn[:s, :s]) / divisor
        if s:
            W = W @ _matrix_root(covariance)
        return mean, W, residual, entries, fitted


def gather_factors(
    group: Group,
    gaussians: Gaussians,
    responsibilities: Array,
    z: Array,
    weights: Array | None = None,
) -> FactorSums:
    """Return the weighted sums of one group; `weights` (n,) say how often every row counts."""
    xp = namespace(responsibilities)
    parts = []
    for p in range(gaussians.bases.shape[0]):
        least = negligible_responsibility(responsibilities)
        members = xp.nonzero(responsibilities[:, p] > least)[0]
        own = group.take(members)
        shares = xp.take(responsibilities[:, p], members)
        if weights is not None:
            shares = shares * xp.take(weights, members)
        factors = xp.take(z[p, ...], members, axis=0)
        covariances = posterior_covariances(own, gaussians, p)
        parts.append(component_sums(own, shares, factors, covariances))
    return stack_sums(parts)


def component_sums(
    own: Group, weights: Array, factors: Array, covariances: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the fields of `FactorSums` for one component, summed over its members."""
    xp = namespace(weights)
    m, s = own.values.shape[1], factors.shape[1]
    k = s + 1
    extended = xp.concat([factors, xp.ones_like(weights)[:, None]], axis=1)
    weighted = extended * weights[:, None]
    if own.shared:
        spread = weighted.mT @ extended
        spread[:s, :s] += xp.sum(weights) * covariances[:, :, 0]
        systems = own.observed.mT[..., None] * spread
    else:
        each = weighted.mT[:, None, :] * extended.mT[None, :, :]
        each[:s, :s, :] += covariances * weights
        spread = xp.sum(each, axis=2)
        systems = xp.reshape(each, (k * k, each.shape[2])) @ own.observed
        systems = xp.reshape(systems.mT, (m, k, k))
    right = own.values.mT @ weighted
    squares = (own.values * own.values).mT @ weights
    return xp.sum(weights), spread, systems, right, squares


def stack_sums(parts: list[tuple[Array, Array, Array, Array, Array]]) -> FactorSums:
    """Return the sums of all components together."""
    xp = namespace(parts[0][0])
    return FactorSums(*(xp.stack([part[i] for part in parts]) for i in range(5)))


def _pseudo_samples(gaussians: Gaussians, shrinkage: Shrinkage, p: int) -> tuple[Array, Array]:
    """Return κ E[z zᵀ] and κ E[e zᵀ] for e drawn from N(0, P), each padded with zeros to s+1."""
    _, m, s = gaussians.bases.shape
    spread, along = zeros((s + 1, s + 1), gaussians.bases), zeros((m, s + 1), gaussians.bases)
    if shrinkage.weight:
        W, noise = gaussians.factors[p, ...], gaussians.noise[p]
        inverse = noise / (gaussians.variances[p, :] + noise)  # A is diagonal for complete samples
        gain = W * (inverse / noise)  # (m, s): z = gainᵀ e
        along[:, :s] = shrinkage.times(gain)
        spread[:s, :s] = gain.mT @ along[:, :s] + inverse[:, None] * identity(s, spread)
    return shrinkage.weight * spread, shrinkage.weight * along


def from_factors(factors: Array, dims: tuple[int, ...] | None = None) -> tuple[Array, Array]:
    """Return orthonormal bases and variances of W_l W_lᵀ, for `factors` W_l (n_subspaces, m, s).

    Subspaces of the given dimensions have zeros beyond them.
    """
    xp = namespace(factors)
    if not factors.shape[2]:
        return factors, factors[:, 0, :]
    u, singular, _ = xp.linalg.svd(factors, full_matrices=False)
    if dims is None:
        return u, singular * singular
    within = within_dims(dims, factors.shape[2], factors)
    return u * within[:, None, :], singular * singular * within


def _matrix_root(a: Array) -> Array:
    """Return R with R Rᵀ = a, for a matrix that is positive semidefinite up to rounding."""
    xp = namespace(a)
    values, vectors = xp.linalg.eigh(a)
    return vectors * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))
