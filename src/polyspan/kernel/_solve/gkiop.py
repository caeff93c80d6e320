"""Algorithm 4 (GKIOP): subspaces to start from, spanned by samples that are gathered greedily."""

from __future__ import annotations

import numpy as np

from polyspan.arrays import Array, moved_to, to_numpy
from polyspan.geometry import submatrix
from polyspan.kernel._solve.factor import Factor, leading_directions
from polyspan.kernel._solve.subspaces import KernelSubspaces


def gkiop(
    G: Array, n_subspaces: int, s: int, seeds: np.ndarray, *, floor: float = 0.0
) -> KernelSubspaces:
    """Algorithm 4: around each seed gather the s samples of the largest inner products.

    Parameters
    ----------
    G : array of shape (n_samples, n_samples)
        Centred kernel matrix.
    seeds : array of n_subspaces distinct samples
        The arbitrary elements of step 2. Where one has been gathered already by an earlier
        subspace, the first sample that is left takes its place.
    """
    # Which sample comes next depends on the data: that is decided on the CPU, row by row of G̃.
    left = np.ones(G.shape[0], dtype=bool)
    members, coefs = [], []
    for p in range(n_subspaces):
        seed = int(seeds[p]) if left[seeds[p]] else int(np.flatnonzero(left)[0])
        chosen = [seed]
        left[seed] = False
        sums = to_numpy(G[seed, :]).copy()
        while len(chosen) < s and left.any():
            best = int(np.argmax(np.where(left, sums, -np.inf)))
            chosen.append(best)
            left[best] = False
            sums += to_numpy(G[best, :])
        c = moved_to(chosen, G)
        factor = Factor.of(submatrix(G, c, c), floor)
        members.append(c)
        coefs.append(factor.coefficients(leading_directions(factor, s)))
    return KernelSubspaces(members, coefs)
