"""What decides on covariances besides samples: shrinkage, low rank, and the rule of the noise."""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, float64_sum, identity, namespace, transpose
from polyspan.mixture._solve.gaussians import Gaussians


@dataclass(frozen=True)
class Shrinkage:
    r"""Shrinkage towards the pooled covariance P = B diag(p) Bᵀ + q I, which counts κ samples.

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


@dataclass(frozen=True)
class NoiseRule:
    """How the noise σ_l² is chosen."""

    kind: str
    """"subspace": one for each; "shared": one for all; "fixed"."""
    floor: float
    """The least that it may be."""
    value: float = 0.0
    """Of a fixed one."""

    def bounded(self, sums: Array, counts: Array) -> Array:
        """Return the noise from sums of squared residuals and numbers of entries, (n_subspaces,).

        The likelihood rises towards sums/counts and falls beyond it, so where that is below the
        floor the floor is the best.
        """
        xp = namespace(sums)
        if self.kind == "fixed":
            return xp.full_like(sums, max(self.value, self.floor))
        if self.kind == "shared":
            sums = xp.zeros_like(sums) + xp.sum(sums)
            counts = xp.zeros_like(sums) + xp.sum(counts)
        found = sums / xp.where(counts > 0, counts, xp.ones_like(counts))
        return xp.where(found > self.floor, found, xp.full_like(found, self.floor))


def low_rank(
    covariances: Array, counts: Array, dim: int, rule: NoiseRule
) -> tuple[Array, Array, Array]:
    """Return bases, variances and noise that maximise Σ_l -n_l/2 [log|C_l| + tr(C_l⁻¹ M_l)].

    Parameters
    ----------
    covariances : array of shape (n_subspaces, n_features, n_features)
        M_l.
    counts : array of shape (n_subspaces,)
        n_l.
    """
    xp = namespace(covariances)
    m = covariances.shape[1]
    values, vectors = xp.linalg.eigh(covariances)
    # LAPACK sorts them ascending.
    top = xp.flip(values[:, m - dim :], axis=1)
    bases = xp.flip(vectors[:, :, m - dim :], axis=2)
    rest = values[:, : m - dim]
    rest = xp.where(rest > 0, rest, xp.zeros_like(rest))
    if rule.kind == "shared":
        noise = _shared_noise(rest, top, counts, rule)
    else:
        sums = xp.sum(rest, axis=1)
        noise = rule.bounded(sums, xp.full_like(sums, float(m - dim)))
    variances = top - noise[:, None]
    return bases, xp.where(variances > 0, variances, xp.zeros_like(variances)), noise


def _shared_noise(rest: Array, top: Array, counts: Array, rule: NoiseRule) -> Array:
    """Return the one noise that is best for all.

    It is the root of Σ n (σ² - λ) over the discarded eigenvalues and over the kept ones below σ²,
    which have nothing above the noise: convex and rising in σ², so Newton's steps from above
    reach it in as many steps as there are kinks on the way.
    """
    xp = namespace(rest)
    weight, total = counts * rest.shape[1], xp.sum(counts[:, None] * rest)
    noise = rule.bounded(xp.sum(counts[:, None] * rest, axis=1), weight)
    for _ in range(top.shape[0] * top.shape[1]):
        below = xp.astype(top < noise[:, None], top.dtype) * counts[:, None]
        found = (total + xp.sum(below * top)) / (xp.sum(weight) + xp.sum(below))
        found = max(float(found), rule.floor)
        if found >= float(noise[0]):
            break
        noise = xp.full_like(noise, found)
    return noise
