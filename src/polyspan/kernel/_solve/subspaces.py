"""Subspaces of a feature space, D_l = φ̃(Y_l)E_l, stored as members and coefficients.

Algorithm 4 (GKIOP) finds subspaces to start from.

Everything is written in terms of the centred kernel matrix G̃ (Sec. IV-A): residuals are
κ̃(y, y) - ‖E_lᵀψ̃_l(y)‖², distances s - ‖E_lᵀG̃_lp E_p‖².

Bases start from kernel PCA. In the update of Algorithm 5, with G̃_ll = RRᵀ and b = R⁻ᵀu, the
generalised problem A_l b = ζ G̃_ll b becomes the ordinary one of (λ/2) RᵀR + Σ_p B_pB_pᵀ with
B_p = R⁻¹G̃_lpE_p: one factor of G̃_ll is enough for all inner iterations, and the eigensolver
starts from the last s eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.base.arrays import (
    Array,
    identity,
    is_numpy,
    moved_to,
    namespace,
    to_numpy,
    top_eigenvectors,
)
from polyspan.engine.krylov import leading_subspace
from polyspan.geometry.matrices import cholesky_or_none, leading_eigen, submatrix
from polyspan.linear._solve.shape import ObjectiveWeights

# Eigenvalues of G̃_ll below this fraction of the largest are rounding errors.
RANK_TOL = 1e-10
# From this many members per wanted eigenvector on, an iterative eigensolver, which needs only
# products, is faster than a dense one.
PRODUCTS_FROM = 6


@dataclass(frozen=True)
class KernelSubspaces:
    """Subspaces of a feature space; the lists have one entry per subspace."""

    members: list[Array]
    """c_l: indices of the samples that span subspace l."""
    coefs: list[Array]
    """E_l, (len(c_l), dimension), with E_lᵀG̃_llE_l = I."""

    @property
    def dimensions(self) -> np.ndarray:
        """Dimension of every subspace; below `subspace_dim` where the members span less."""
        return np.array([E.shape[1] for E in self.coefs])

    def projections(self, K: Array) -> list[Array]:
        """Return E_lᵀψ̃_l of every row of centred kernel values K (n, n_samples)."""
        xp = namespace(K)
        pairs = zip(self.members, self.coefs, strict=True)
        return [xp.take(K, c, axis=1) @ E for c, E in pairs]

    def energies(self, K: Array) -> Array:
        """Return ‖E_lᵀψ̃_l‖² for every row of centred kernel values, (n, n_subspaces)."""
        return energies(self.projections(K))

    def distances(self, G: Array) -> Array:
        """Return the matrix of d_u between the subspaces."""
        return moved_to(np.sqrt(self._squared_distances(G)), G)

    def times(self, factors: Array) -> KernelSubspaces:
        """Return subspaces whose coefficients over every sample are multiplied by its factor."""
        take = namespace(factors).take
        pairs = zip(self.members, self.coefs, strict=True)
        coefs = [take(factors, c, axis=0)[:, None] * E for c, E in pairs]
        return KernelSubspaces(self.members, coefs)

    def _squared_distances(self, G: Array) -> np.ndarray:
        n = len(self.members)
        squares = np.zeros((n, n))
        for a in range(n):
            for b in range(a):
                between = submatrix(G, self.members[a], self.members[b])
                value = squared_distance(self.coefs[a], between, self.coefs[b])
                squares[a, b] = squares[b, a] = value
        return squares

    def closeness(self, G: Array) -> float:
        """Return Σ_{l≠p} d_u², the first term of F3."""
        return float(self._squared_distances(G).sum())


def energies(projections: list[Array]) -> Array:
    """Return the squared norms of the projections on every subspace, (n, n_subspaces)."""
    xp = namespace(projections[0])
    return xp.stack([xp.vecdot(p, p) for p in projections], axis=1)


def squared_distance(coefs: Array, between: Array, others: Array) -> float:
    """Return d_u² of two subspaces, given their coefficients E and the block G̃_lp between them.

    Where dimensions differ, because a subspace has few members, d_u² takes the larger dimension:
    max(s_l, s_p) - ‖D_lᵀD_p‖².
    """
    overlap = coefs.mT @ between @ others
    larger = max(coefs.shape[1], others.shape[1])
    return max(float(larger - namespace(between).sum(overlap * overlap)), 0.0)


def gkiop(
    G: Array, n_subspaces: int, s: int, seeds: np.ndarray, *, floor: float = 0.0
) -> KernelSubspaces:
    """Run Algorithm 4: gather around each seed the s samples with the largest inner products.

    Parameters
    ----------
    G : array of shape (n_samples, n_samples)
        Centred kernel matrix.
    seeds : array of n_subspaces distinct samples
        The arbitrary elements of step 2. A seed that an earlier subspace has already taken is
        replaced by the first free sample.
    """
    # The choice of the next sample is made on the CPU, from one row of G̃ at a time.
    free = np.ones(G.shape[0], dtype=bool)
    members, coefs = [], []
    for p in range(n_subspaces):
        seed = int(seeds[p]) if free[seeds[p]] else int(np.flatnonzero(free)[0])
        chosen = [seed]
        free[seed] = False
        sums = to_numpy(G[seed, :]).copy()
        while len(chosen) < s and free.any():
            best = int(np.argmax(np.where(free, sums, -np.inf)))
            chosen.append(best)
            free[best] = False
            sums += to_numpy(G[best, :])
        c = moved_to(chosen, G)
        factor = Factor.of(submatrix(G, c, c), floor)
        members.append(c)
        coefs.append(factor.coefficients(leading_directions(factor, s)))
    return KernelSubspaces(members, coefs)


@dataclass(frozen=True)
class Factor:
    """G̃_ll = RRᵀ for one cluster, R triangular, or thin where G̃_ll is singular."""

    R: Array
    """(n, rank)."""
    inverse: Array | None
    """R⁺, (rank, n), where R is thin or no NumPy array; None: R is a triangular array."""
    gram: Array
    """RᵀR, (rank, rank)."""

    @classmethod
    def of(cls, G: Array, floor: float = 0.0, *, thin: bool = False) -> Factor:
        """Factor a positive semidefinite matrix by Cholesky; where it is singular, by eigenvectors.

        Eigenvalues up to `floor` are rounding errors of centring. With `thin` it is taken for
        singular.
        """
        R = None if thin else cholesky_or_none(G)
        if R is None or G.shape[0] == 0:
            return cls._thin(G, floor)
        xp = namespace(G)
        pivots = xp.linalg.diagonal(R)
        smallest = max(RANK_TOL * float(xp.max(pivots)) ** 2, floor)
        if float(xp.min(pivots)) ** 2 <= smallest:
            return cls._thin(G, floor)
        # In other namespaces an inverse is faster than repeated calls of a triangular solver.
        inverse = None if is_numpy(R) else xp.linalg.inv(R)
        return cls(R, inverse, R.mT @ R)

    @classmethod
    def _thin(cls, G: Array, floor: float) -> Factor:
        if G.shape[0] == 0:
            return cls(G, G, G)
        values, vectors = leading_eigen(G, RANK_TOL, floor)
        roots, unit = namespace(G).sqrt(values), identity(values.shape[0], G)
        return cls(vectors * roots, (vectors / roots).mT, values * unit)

    @property
    def rank(self) -> int:
        """Dimension of the span of the members."""
        return int(self.R.shape[1])

    def whiten(self, C: Array) -> Array:
        """Return R⁻¹C."""
        if self.inverse is not None:
            return self.inverse @ C
        return np.asarray(scipy.linalg.solve_triangular(self.R, C, lower=True, check_finite=False))

    def coefficients(self, U: Array) -> Array:
        """Return E = R⁻ᵀU."""
        if self.inverse is not None:
            return self.inverse.mT @ U
        return np.asarray(
            scipy.linalg.solve_triangular(self.R, U, lower=True, trans="T", check_finite=False)
        )


def leading_directions(factor: Factor, s: int) -> Array:
    """Return U of E_l = U_lΣ_l^(-1/2), the kernel principal components of a cluster.

    In the coordinates u = Rᵀb they are the leading eigenvectors of RᵀR.
    """
    return _top(factor.gram, min(s, factor.rank))


def updated_directions(
    factor: Factor, others: list[Array], weights: ObjectiveWeights, old: Array
) -> Array:
    """Return the leading eigenvectors of fit·RᵀR + closeness·Σ B_pB_pᵀ.

    Parameters
    ----------
    others : list of arrays of shape (rank, dimension)
        B_p = R⁻¹G̃_lpE_p of the other subspaces.
    old : array of shape (rank, s)
        Eigenvectors of the last update, from which the iterative eigensolver starts.
    """
    n, s = old.shape
    if s == 0:
        return old
    if not others or weights.closeness == 0.0:
        return _top(factor.gram, s)
    B = namespace(old).concat(others, axis=1)

    def apply(block: Array) -> Array:
        own = weights.fit * (factor.gram @ block)
        return own + weights.closeness * (B @ (B.mT @ block))

    if n >= PRODUCTS_FROM * s:
        found = leading_subspace(apply, old, max_cycles=2, start_tol=0.3)
        if found.converged:
            return found.vectors
    return _top(weights.fit * factor.gram + weights.closeness * (B @ B.mT), s)


def _top(matrix: Array, s: int) -> Array:
    if s == 0:
        return matrix[:, :0]
    return top_eigenvectors(matrix, s)[1]
