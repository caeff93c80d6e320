"""Bases in a feature space: the start by kernel PCA, and the update of Algorithm 5.

With G̃_ll = RRᵀ and b = R⁻ᵀu the generalised problem A_l b = ζ G̃_ll b becomes the ordinary one of
(λ/2) RᵀR + Σ_p B_pB_pᵀ with B_p = R⁻¹G̃_lpE_p: one factor of G̃_ll is enough for all inner
iterations, and the eigensolver starts from the last s eigenvectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.arrays import Array, identity, is_numpy, namespace, top_eigenvectors
from polyspan.geometry import cholesky_or_none, leading_eigen
from polyspan.union._solve.krylov import leading_subspace
from polyspan.union._solve.shape import ObjectiveWeights

# Eigenvalues of G̃_ll below this fraction of the largest are rounding errors.
RANK_TOL = 1e-10
# From this many members per wanted eigenvector on, an iterative eigensolver, which needs only
# products, is faster than a dense one.
PRODUCTS_FROM = 6


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
