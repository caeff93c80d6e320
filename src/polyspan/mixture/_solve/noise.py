"""Constraints of the covariances: shrinkage to the pooled one, low rank, the noise rule.

Where subspaces have dimensions of their own, also which component gets which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyspan.base.arrays import (
    Array,
    float64_sum,
    identity,
    moved_to,
    namespace,
    to_numpy,
)
from polyspan.mixture._solve.gaussians import Gaussians


@dataclass(frozen=True)
class Shrinkage:
    r"""Shrinkage towards the pooled covariance P = B diag(p) Bᵀ + q I, weighted as κ samples.

    The penalty κ Σ_l KL(N(0, P) ‖ N(0, C_l)) is subtracted from the log-likelihood, with

    .. math:: \mathrm{KL} = \tfrac12 \left[\mathrm{tr}(C_l^{-1} P) - m + \log|C_l| - \log|P|\right]

    so that the best C_l is that of the samples of component l and κ more, drawn from N(μ_l, P).
    """

    pooled: Gaussians
    """N(0, P), as a mixture with one component."""
    weight: float
    """κ."""

    def times(self, a: Array) -> Array:
        """Return P a, for `a` of shape (n_features, k)."""
        basis = self.pooled.bases[0, ...]
        inside = self.pooled.variances[0, :][:, None] * (basis.mT @ a)
        return basis @ inside + self.pooled.noise[0] * a

    def diagonal(self) -> Array:
        """Return the diagonal of P."""
        xp = namespace(self.pooled.bases)
        basis = self.pooled.bases[0, ...]
        return xp.sum(basis * basis * self.pooled.variances[0, :], axis=1) + self.pooled.noise[0]

    def dense(self) -> Array:
        """Return P as an m×m matrix, for small m."""
        basis = self.pooled.bases[0, ...]
        eye = identity(basis.shape[0], basis)
        return (basis * self.pooled.variances[0, :]) @ basis.mT + self.pooled.noise[0] * eye

    def penalty(self, gaussians: Gaussians) -> float:
        """Return κ Σ_l KL(N(0, P) ‖ N(0, C_l)), which is never negative."""
        if not self.weight:
            return 0.0
        xp = namespace(gaussians.bases)
        m = gaussians.bases.shape[1]
        trace = xp.sum(self.diagonal())
        divergences = []
        pooled_log_determinant = self.pooled.log_determinants()[0]
        log_determinants = gaussians.log_determinants()
        for p in range(gaussians.bases.shape[0]):
            basis, v = gaussians.bases[p, ...], gaussians.variances[p, :]
            noise = gaussians.noise[p]
            along = xp.sum(basis * self.times(basis), axis=0)
            product = (trace - xp.sum(along * v / (v + noise))) / noise
            divergences.append(0.5 * (product - m + log_determinants[p] - pooled_log_determinant))
        return self.weight * float(float64_sum(xp.stack(divergences)))


@dataclass(frozen=True)
class NoiseRule:
    """How the noise variances σ_l² are chosen."""

    kind: str
    """"subspace": one for each subspace; "shared": one for all; "fixed": a known one."""
    floor: float
    """Smallest variance that is allowed."""
    value: float = 0.0
    """The known variance, with "fixed"."""

    def estimate(self, sums: Array, counts: Array) -> Array:
        """Return σ_l² from sums of squared residuals and numbers of entries, (n_subspaces,).

        The likelihood has one maximum, at sums/counts. Where this is below the floor, the floor is
        the best allowed value.
        """
        xp = namespace(sums)
        if self.kind == "fixed":
            return xp.full_like(sums, max(self.value, self.floor))
        if self.kind == "shared":
            sums = xp.zeros_like(sums) + xp.sum(sums)
            counts = xp.zeros_like(sums) + xp.sum(counts)
        found = sums / xp.where(counts > 0, counts, xp.ones_like(counts))
        return xp.where(found > self.floor, found, xp.full_like(found, self.floor))


def fit_low_rank(
    covariances: Array, counts: Array, dim: int | tuple[int, ...], rule: NoiseRule
) -> tuple[Array, Array, Array]:
    """Return bases, variances and noise that maximise Σ_l -n_l/2 [log|C_l| + tr(C_l⁻¹ M_l)].

    Parameters
    ----------
    covariances : array of shape (n_subspaces, n_features, n_features)
        Sample covariances M_l.
    counts : array of shape (n_subspaces,)
        Numbers of samples n_l.
    dim : int or tuple of int
        Dimension of the subspaces, or of every one: those with fewer are padded with zeros.
    """
    xp = namespace(covariances)
    m = covariances.shape[1]
    values, vectors = xp.linalg.eigh(covariances)
    if isinstance(dim, tuple):
        return _fit_unequal(values, vectors, counts, dim, rule)
    # `eigh` sorts eigenvalues in ascending order.
    top = xp.flip(values[:, m - dim :], axis=1)
    bases = xp.flip(vectors[:, :, m - dim :], axis=2)
    rest = values[:, : m - dim]
    rest = xp.where(rest > 0, rest, xp.zeros_like(rest))
    if rule.kind == "shared":
        noise = _shared_noise(rest, top, counts, counts * rest.shape[1], rule)
    else:
        sums = xp.sum(rest, axis=1)
        noise = rule.estimate(sums, xp.full_like(sums, float(m - dim)))
    variances = top - noise[:, None]
    return bases, xp.where(variances > 0, variances, xp.zeros_like(variances)), noise


def _fit_unequal(
    values: Array, vectors: Array, counts: Array, dims: tuple[int, ...], rule: NoiseRule
) -> tuple[Array, Array, Array]:
    """Return what `fit_low_rank` does, for ascending eigenvalues and a dimension of each."""
    xp = namespace(values)
    m, most = values.shape[1], max(dims)
    within = within_dims(dims, m, values)  # of the eigenvalues in descending order
    values, vectors = xp.flip(values, axis=1), xp.flip(vectors, axis=2)[:, :, :most]
    rest = xp.where((values > 0) & (within == 0), values, xp.zeros_like(values))
    n_rest = moved_to([float(m - dim) for dim in dims], values, values.dtype)
    if rule.kind == "shared":
        # Padding counts as a kept eigenvalue that is never below the noise.
        top = xp.where(within > 0, values, xp.full_like(values, float("inf")))[:, :most]
        noise = _shared_noise(rest, top, counts, counts * n_rest, rule)
    else:
        noise = rule.estimate(xp.sum(rest, axis=1), n_rest)
    variances = (values - noise[:, None])[:, :most]
    variances = xp.where(variances > 0, variances, xp.zeros_like(variances))
    within = within[:, :most]
    return vectors * within[:, None, :], variances * within, noise


def within_dims(dims: tuple[int, ...], width: int, like: Array) -> Array:
    """Return 1 for the columns within each dimension and 0 beyond: (n_subspaces, width)."""
    columns = np.arange(width)[None, :] < np.asarray(dims)[:, None]
    return moved_to(columns.astype(np.float64), like, like.dtype)


def _shared_noise(rest: Array, top: Array, counts: Array, weight: Array, rule: NoiseRule) -> Array:
    """Return the shared noise variance σ² that maximises the likelihood of all components.

    It is the root of Σ n (σ² - λ) over all discarded eigenvalues λ and those kept eigenvalues that
    are below σ². `weight` is n_l times the number of discarded eigenvalues. This function of σ² is
    piecewise linear, convex and rising, so Newton's method from above reaches the root after at
    most one step for every kept eigenvalue.
    """
    xp = namespace(rest)
    total = xp.sum(counts[:, None] * rest)
    noise = rule.estimate(xp.sum(counts[:, None] * rest, axis=1), weight)
    for _ in range(top.shape[0] * top.shape[1]):
        below = xp.astype(top < noise[:, None], top.dtype) * counts[:, None]
        kept = xp.where(below > 0, top, xp.zeros_like(top))
        found = (total + xp.sum(below * kept)) / (xp.sum(weight) + xp.sum(below))
        found = max(float(found), rule.floor)
        if found >= float(noise[0]):
            break
        noise = xp.full_like(noise, found)
    return noise


def match_dims(gaussians: Gaussians, dims: tuple[int, ...]) -> np.ndarray:
    """Return which component gets each of the dimensions, so that the likelihood falls least.

    A component with n samples whose covariance has the eigenvalues λ_j loses, at dimension d, all
    but the mean of those beyond d: its log-likelihood is -n/2 [Σ_{j≤d} log λ_j + (m-d) log σ²]
    with σ² that mean. Dimensions are assigned to components with the largest sum.

    Parameters
    ----------
    gaussians : Gaussians
        Of the largest dimension, which gives their leading eigenvalues and the mean of the others.
    """
    weights = np.exp(to_numpy(gaussians.log_weights).astype(np.float64))
    variances, noise = _spectra(gaussians)
    m = gaussians.bases.shape[1]
    leading = np.cumsum(np.log(variances + noise[:, None]), axis=1)
    leading = np.concatenate([np.zeros((len(noise), 1)), leading], axis=1)
    columns = [
        leading[:, dim] + (m - dim) * np.log(_noise_beyond(variances, noise, dim, m))
        for dim in dims
    ]
    components, slots = linear_sum_assignment(weights[:, None] * np.stack(columns, axis=1))
    return np.asarray(components[np.argsort(slots)])


def likely_dims(
    gaussians: Gaussians, rule: NoiseRule, n_samples: float, too_few: Callable[[float, int], bool]
) -> tuple[int, ...]:
    """Return the dimension of every component with the lowest Bayesian information criterion.

    With n samples whose covariance has the eigenvalues λ_j, dimension d has the log-likelihood
    -n/2 [Σ_{j≤d} log λ_j + (m-d) log σ² + Σ_{j>d} λ_j/σ²], up to a constant, and md - d(d-1)/2
    parameters. σ² is the mean of the λ_j beyond d, or what the rule gives.
    """
    weights = np.exp(to_numpy(gaussians.log_weights).astype(np.float64))
    variances, noise = _spectra(gaussians)
    m, widest = gaussians.bases.shape[1:]
    found = []
    for weight, v, own in zip(weights, variances, noise, strict=True):
        known = own if rule.kind == "subspace" else float(weights @ noise)
        scores = []
        for dim in range(widest + 1):
            beyond = float(_noise_beyond(v[None], own, dim, m)[0])
            level = max(beyond if rule.kind == "subspace" else known, rule.floor)
            leading = np.maximum(v[:dim] + own, level)
            value = np.log(leading).sum() + (m - dim) * (np.log(level) + beyond / level)
            value += (np.maximum(v[:dim] + own, 1e-300) / leading).sum()
            free = m * dim - dim * (dim - 1) // 2
            few = dim > 0 and too_few(weight * n_samples, dim)
            scores.append(np.inf if few else weight * n_samples * value + free * np.log(n_samples))
        found.append(int(np.argmin(scores)))
    return tuple(found)


def truncate(
    gaussians: Gaussians, dims: tuple[int, ...], rule: NoiseRule, order: np.ndarray
) -> Gaussians:
    """Return components in the given order, reduced to these dimensions.

    The variance that is left out is noise: for complete data this is the most likely covariance of
    that dimension.
    """
    xp = namespace(gaussians.bases)
    rows = moved_to(order, gaussians.bases, xp.int64)
    names = ("log_weights", "means", "bases", "variances", "noise")
    found = replace(
        gaussians, **{name: xp.take(getattr(gaussians, name), rows, axis=0) for name in names}
    )
    m, width = gaussians.bases.shape[1:]
    variances, noise = _spectra(found)
    beyond = np.array(
        [
            _noise_beyond(v[None], e[None], dim, m)[0]
            for v, e, dim in zip(variances, noise, dims, strict=True)
        ]
    )
    counts = np.exp(to_numpy(found.log_weights)) * (m - np.asarray(dims))
    within = within_dims(dims, width, found.bases)
    return replace(
        found,
        bases=found.bases * within[:, None, :],
        variances=found.variances * within,
        noise=moved_to(rule.estimate(beyond * counts, counts), found.bases, found.noise.dtype),
    )


def _spectra(gaussians: Gaussians) -> tuple[np.ndarray, np.ndarray]:
    return (
        to_numpy(gaussians.variances).astype(np.float64),
        to_numpy(gaussians.noise).astype(np.float64),
    )


def _noise_beyond(variances: np.ndarray, noise: np.ndarray, dim: int, m: int) -> np.ndarray:
    """Return the mean of the eigenvalues beyond a dimension, for every component."""
    return np.asarray(noise + variances[:, dim:].sum(axis=1) / (m - dim))
