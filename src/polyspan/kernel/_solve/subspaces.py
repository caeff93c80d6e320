"""Subspaces of a feature space, D_l = φ̃(Y_l)E_l, stored as members and coefficients.

Algorithm 4 (GKIOP) finds subspaces to start from.

Everything is written in terms of the centred kernel matrix G̃ (Sec. IV-A): residuals are
κ̃(y, y) - ‖E_lᵀψ̃_l(y)‖², distances s - ‖E_lᵀG̃_lp E_p‖².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.geometry import submatrix
from polyspan.kernel._solve.factor import Factor, leading_directions


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
