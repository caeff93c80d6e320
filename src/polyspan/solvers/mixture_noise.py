"""From eigenvalues to low-rank Gaussians: the maximum-likelihood noise under each rule."""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, namespace


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


def from_factors(factors: Array) -> tuple[Array, Array]:
    """Return orthonormal bases and variances of W_l W_lᵀ, for `factors` W_l (n_subspaces, m, s)."""
    xp = namespace(factors)
    if not factors.shape[2]:
        return factors, factors[:, 0, :]
    u, singular, _ = xp.linalg.svd(factors, full_matrices=False)
    return u, singular * singular


def symmetric_root(a: Array) -> Array:
    """Return R with R Rᵀ = a for a matrix that is semidefinite but for rounding."""
    xp = namespace(a)
    values, vectors = xp.linalg.eigh(a)
    return vectors * xp.sqrt(xp.where(values > 0, values, xp.zeros_like(values)))


def solve_rows(systems: Array, right: Array) -> Array:
    """Solve one small system per row: (m, k, k) and (m, k) to (m, k)."""
    xp = namespace(systems)
    return xp.linalg.solve(systems, right[..., None])[..., 0]
