"""Subspaces of a feature space, D_l = φ̃(Y_l)E_l, known by members and coefficients alone.

Everything is written in terms of the centred kernel matrix G̃ (Sec. IV-A): residuals are
κ̃(y, y) - ‖E_lᵀψ̃_l(y)‖², distances s - ‖E_lᵀG̃_lp E_p‖².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class KernelSubspaces:
    """One list entry per subspace."""

    members: list[np.ndarray]
    """c_l: indices of the samples that span subspace l."""
    coefs: list[np.ndarray]
    """E_l, (len(c_l), dimension), with E_lᵀG̃_llE_l = I."""

    @property
    def dimensions(self) -> np.ndarray:
        """Dimension of every subspace; fewer than asked for where members are few or alike."""
        return np.array([E.shape[1] for E in self.coefs])

    def projections(self, K: np.ndarray) -> list[np.ndarray]:
        """Return E_lᵀψ̃_l of every row of centred kernel values K (n, n_samples)."""
        return [K[:, c] @ E for c, E in zip(self.members, self.coefs, strict=True)]

    def energies(self, K: np.ndarray) -> np.ndarray:
        """Return ‖E_lᵀψ̃_l‖² for every row of centred kernel values, (n, n_subspaces)."""
        parts = [np.einsum("nk,nk->n", p, p) for p in self.projections(K)]
        return np.stack(parts, axis=1)

    def overlap(self, G: np.ndarray, a: int, b: int) -> np.ndarray:
        """Return D_aᵀD_b = E_aᵀG̃_abE_b."""
        between = G[np.ix_(self.members[a], self.members[b])]
        return np.asarray(self.coefs[a].T @ between @ self.coefs[b])

    def distances(self, G: np.ndarray) -> np.ndarray:
        """Return the matrix of d_u between the subspaces.

        For subspaces of different dimensions, as few members can leave them, d_u² is measured from
        the larger one: max(s_l, s_p) - ‖D_lᵀD_p‖².
        """
        return np.asarray(np.sqrt(self._squared_distances(G)))

    def _squared_distances(self, G: np.ndarray) -> np.ndarray:
        n = len(self.members)
        squares = np.zeros((n, n))
        for a in range(n):
            for b in range(a):
                larger = max(self.coefs[a].shape[1], self.coefs[b].shape[1])
                value = larger - float(np.sum(self.overlap(G, a, b) ** 2))
                squares[a, b] = squares[b, a] = max(value, 0.0)
        return squares

    def closeness(self, G: np.ndarray) -> float:
        """Return Σ_{l≠p} d_u², the first term of F3."""
        return float(self._squared_distances(G).sum())


def members_of(labels: np.ndarray, n_subspaces: int) -> list[np.ndarray]:
    """Return the indices of the samples of every label."""
    return [np.flatnonzero(labels == p) for p in range(n_subspaces)]
