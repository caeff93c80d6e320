"""Bases in a feature space: their start from an eigendecomposition, and the update of Algorithm 5.

With G̃_ll = RRᵀ and b = R⁻ᵀu the generalised problem A_l b = ζ G̃_ll b becomes the ordinary one of
(λ/2) RᵀR + Σ_p B_pB_pᵀ with B_p = R⁻¹G̃_lpE_p: one factor of G̃_ll serves all inner iterations,
and only the leading s eigenvectors are sought, from where the last ones were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.arrays import top_eigenvectors
from polyspan.solvers.krylov import leading_subspace

# Below this share of the largest, an eigenvalue of G̃_ll is a direction that rounding made.
RANK_TOL = 1e-10
# From so many members per wanted direction products beat a dense eigensolver.
PRODUCTS_FROM = 6


@dataclass(frozen=True)
class Factor:
    """G̃_ll = RRᵀ for one cluster, R triangular, or thin where G̃_ll is singular."""

    R: np.ndarray
    """(n, rank)."""
    inverse: np.ndarray | None
    """R⁺, (rank, n), where R is thin; None where it is triangular."""
    gram: np.ndarray
    """RᵀR, (rank, rank)."""

    @classmethod
    def of(cls, G: np.ndarray, floor: float = 0.0) -> Factor:
        """Factor a positive semidefinite matrix: by Cholesky, or, where that is unsafe, by rank.

        Eigenvalues up to `floor` are what rounding left when the matrix was centred.
        """
        try:
            R = scipy.linalg.cholesky(G, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return cls._thin(G, floor)
        pivots = np.diag(R)
        smallest = max(RANK_TOL * pivots.max(initial=0.0) ** 2, floor)
        if len(pivots) == 0 or pivots.min() ** 2 <= smallest:
            return cls._thin(G, floor)
        return cls(R, None, R.T @ R)

    @classmethod
    def _thin(cls, G: np.ndarray, floor: float) -> Factor:
        values, vectors = scipy.linalg.eigh(G, check_finite=False)
        kept = values > max(RANK_TOL * float(values.max(initial=0.0)), floor, 0.0)
        values, vectors = values[kept], vectors[:, kept]
        roots = np.sqrt(values)
        return cls(vectors * roots, (vectors / roots).T, np.diag(values))

    @property
    def rank(self) -> int:
        """Number of directions that the members span."""
        return int(self.R.shape[1])

    def whiten(self, C: np.ndarray) -> np.ndarray:
        """Return R⁻¹C."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ C)
        return np.asarray(scipy.linalg.solve_triangular(self.R, C, lower=True, check_finite=False))

    def coefficients(self, U: np.ndarray) -> np.ndarray:
        """Return E = R⁻ᵀU."""
        if self.inverse is not None:
            return np.asarray(self.inverse.T @ U)
        return np.asarray(
            scipy.linalg.solve_triangular(self.R, U, lower=True, trans="T", check_finite=False)
        )


def leading_directions(factor: Factor, s: int) -> np.ndarray:
    """Return U of E_l = U_lΣ_l^(-1/2), the kernel principal components of a cluster.

    In the coordinates u = Rᵀb they are the leading eigenvectors of RᵀR.
    """
    return _top(factor.gram, min(s, factor.rank))


def updated_directions(
    factor: Factor, pulls: list[np.ndarray], pull: float, data: float, old: np.ndarray
) -> np.ndarray:
    """Return the leading eigenvectors of data·RᵀR + pull·Σ B_pB_pᵀ.

    Parameters
    ----------
    pulls : list of arrays of shape (rank, dimension)
        B_p = R⁻¹G̃_lpE_p of the other subspaces.
    old : array of shape (rank, s)
        Where to start from.
    """
    n, s = old.shape
    if s == 0:
        return old
    if not pulls or pull == 0.0:
        return _top(factor.gram, s)
    B = np.concatenate(pulls, axis=1)

    def apply(block: np.ndarray) -> np.ndarray:
        return np.asarray(data * (factor.gram @ block) + pull * (B @ (B.T @ block)))

    if n >= PRODUCTS_FROM * s:
        found = leading_subspace(apply, old, max_cycles=2, near=0.3)
        if found.converged:
            return np.asarray(found.vectors)
    return _top(data * factor.gram + pull * (B @ B.T), s)


def _top(matrix: np.ndarray, s: int) -> np.ndarray:
    if s == 0:
        return np.empty((len(matrix), 0))
    return np.asarray(top_eigenvectors(matrix, s)[1])
