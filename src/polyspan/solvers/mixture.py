r"""Low-rank Gaussians: densities, and the pull of every covariance towards a pooled one.

A component l has the covariance :math:`C_l = D_l \mathrm{diag}(v_l) D_l^T + \sigma_l^2 I` with D_l
orthonormal (m×s). Its inverse and determinant come from s numbers (Woodbury and the determinant
lemma); no m×m matrix is ever inverted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyspan.arrays import Array, float64_sum, identity, namespace, transpose

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussians:
    """A mixture of low-rank Gaussians."""

    log_weights: Array
    """Shape (n_subspaces,): logarithms of the shares π_l."""
    means: Array
    """Shape (n_subspaces, n_features)."""
    bases: Array
    """Orthonormal, shape (n_subspaces, n_features, subspace_dim)."""
    variances: Array
    """Shape (n_subspaces, subspace_dim): v_l, what is added to the noise along the basis."""
    noise: Array
    """Shape (n_subspaces,): σ_l²."""

    @property
    def factors(self) -> Array:
        """D_l diag(√v_l), so that C_l is its square plus the noise."""
        return self.bases * namespace(self.bases).sqrt(self.variances)[:, None, :]

    def log_determinants(self) -> Array:
        """Return log|C_l|."""
        xp = namespace(self.bases)
        _, m, s = self.bases.shape
        along = xp.sum(xp.log(self.variances + self.noise[:, None]), axis=1)
        return along + (m - s) * xp.log(self.noise)

    def with_noise(self, extra: float) -> Gaussians:
        """Return the distribution of samples with white noise of variance `extra` added."""
        return Gaussians(
            self.log_weights, self.means, self.bases, self.variances, self.noise + extra
        )


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
    coordinates = coordinates - (transpose(gaussians.bases) @ means[..., None])[None, :, :, 0]
    norms = xp.sum(X * X, axis=1)[:, None] - 2.0 * (X @ transpose(means))
    norms = norms + xp.sum(means * means, axis=1)
    squared = coordinates * coordinates
    # A difference of sums: rounding may leave it below 0, by far less than the noise.
    outside = norms - xp.sum(squared, axis=2)
    outside = xp.where(outside > 0, outside, xp.zeros_like(outside))
    inside = xp.sum(squared / (gaussians.variances + noise[:, None]), axis=2)
    squares = outside / noise + inside
    constant = gaussians.log_weights - 0.5 * (gaussians.log_determinants() + m * LOG_2PI)
    return constant - 0.5 * squares, squares, coordinates


def share_out(joint: Array, inverse_temperature: float = 1.0) -> tuple[Array, Array]:
    """Return posterior shares ∝ exp(β·joint), and the log of each row's sum, over β.

    For β=1 the second is the log-density of every sample.
    """
    xp = namespace(joint)
    scaled = inverse_temperature * joint
    top = xp.max(scaled, axis=1, keepdims=True)
    powers = xp.exp(scaled - top)
    total = xp.sum(powers, axis=1, keepdims=True)
    return powers / total, (top + xp.log(total))[:, 0] / inverse_temperature


@dataclass(frozen=True)
class Pull:
    r"""The pooled covariance P = B diag(p) Bᵀ + q I, and κ, how many samples it counts for.

    What it subtracts from the log-likelihood is κ Σ_l KL(N(0, P) ‖ N(0, C_l)), with

    .. math:: \mathrm{KL} = \tfrac12 \left[\mathrm{tr}(C_l^{-1} P) - m + \log|C_l| - \log|P|\right]

    so that the best C_l is the one of its own samples and of κ more drawn from N(μ_l, P).
    """

    pooled: Gaussians
    """With one component."""
    weight: float

    def times(self, a: Array) -> Array:
        """Return P a, for `a` of shape (n_features, k)."""
        basis = self.pooled.bases[0, ...]
        inside = self.pooled.variances[0, :][:, None] * (transpose(basis) @ a)
        return basis @ inside + self.pooled.noise[0] * a

    def diagonal(self) -> Array:
        """Return the diagonal of P."""
        xp = namespace(self.pooled.bases)
        basis = self.pooled.bases[0, ...]
        return xp.sum(basis * basis * self.pooled.variances[0, :], axis=1) + self.pooled.noise[0]

    def dense(self) -> Array:
        """Return P itself, where m×m matrices are small."""
        basis = self.pooled.bases[0, ...]
        eye = identity(basis.shape[0], basis)
        return (basis * self.pooled.variances[0, :]) @ transpose(basis) + self.pooled.noise[0] * eye

    def penalty(self, gaussians: Gaussians) -> float:
        """Return κ Σ_l KL(N(0, P) ‖ N(0, C_l)), which is never negative."""
        if not self.weight:
            return 0.0
        xp = namespace(gaussians.bases)
        m = gaussians.bases.shape[1]
        trace = xp.sum(self.diagonal())
        divergences = []
        own = self.pooled.log_determinants()[0]
        every = gaussians.log_determinants()
        for p in range(gaussians.bases.shape[0]):
            basis, v = gaussians.bases[p, ...], gaussians.variances[p, :]
            noise = gaussians.noise[p]
            along = xp.sum(basis * self.times(basis), axis=0)
            product = (trace - xp.sum(along * v / (v + noise))) / noise
            divergences.append(0.5 * (product - m + every[p] - own))
        return self.weight * float(float64_sum(xp.stack(divergences)))
