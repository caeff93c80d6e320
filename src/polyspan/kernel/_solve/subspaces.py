"""Subspaces of a feature space, D_l = φ̃(Y_l)E_l, known by members and coefficients alone.

Everything is written in terms of the centred kernel matrix G̃ (Sec. IV-A): residuals are
κ̃(y, y) - ‖E_lᵀψ̃_l(y)‖², distances s - ‖E_lᵀG̃_lp E_p‖².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, transpose
from polyspan.geometry import submatrix


@dataclass(frozen=True)
class KernelSubspaces:
    """One list entry per subspace."""

    members: list[Array]
    """c_l: indices of the samples that span subspace l."""
    coefs: list[Array]
    """E_l, (len(c_l), dimension), with E_lᵀG̃_llE_l = I."""

    @property
    def dimensions(self) -> np.ndarray:
        """Dimension of every subspace; fewer than asked for where members are few or alike."""
        return np.array([E.shape[1] for E in self.coefs])

    def projections(self, K: Array) -> list[Array]:
        """Return E_lᵀψ̃_l of every row of centred kernel values K (n, n_samples)."""
        xp = namespace(K)
        pairs = zip(self.members, self.coefs, strict=True)
        return [xp.take(K, c, axis=1) @ E for c, E in pairs]

    def energies(self, K: Array) -> Array:
        """Return ‖E_lᵀψ̃_l‖² for every row of centred kernel values, (n, n_subspaces)."""
        xp = namespace(K)
        return xp.stack([xp.vecdot(p, p) for p in self.projections(K)], axis=1)

    def overlap(self, G: Array, a: int, b: int) -> Array:
        """Return D_aᵀD_b = E_aᵀG̃_abE_b."""
        between = submatrix(G, self.members[a], self.members[b])
        return transpose(self.coefs[a]) @ between @ self.coefs[b]

    def distances(self, G: Array) -> Array:
        """Return the matrix of d_u between the subspaces.

        For subspaces of different dimensions, as few members can leave them, d_u² is measured from
        the larger one: max(s_l, s_p) - ‖D_lᵀD_p‖².
        """
        return moved_to(np.sqrt(self._squared_distances(G)), G)

    def _squared_distances(self, G: Array) -> np.ndarray:
        n = len(self.members)
        squares = np.zeros((n, n))
        for a in range(n):
            for b in range(a):
                larger = max(self.coefs[a].shape[1], self.coefs[b].shape[1])
                overlap = self.overlap(G, a, b)
                value = larger - float(namespace(G).sum(overlap * overlap))
                squares[a, b] = squares[b, a] = max(value, 0.0)
        return squares

    def closeness(self, G: Array) -> float:
        """Return Σ_{l≠p} d_u², the first term of F3."""
        return float(self._squared_distances(G).sum())
