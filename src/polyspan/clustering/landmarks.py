"""Graphs that join every sample to landmarks, some of the samples: thin, where pairs are many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import (
    Array,
    device,
    moved_to,
    namespace,
    row_slices,
    rows_at_once,
    to_numpy,
    top_eigenvectors,
    unfilled,
    zeros,
)

#: Landmarks of a graph: this many, or so many for each cluster if that is more, and never more
#: than half of the samples.
N_LANDMARKS = 1500
LANDMARKS_PER_CLUSTER = 50


@dataclass(frozen=True)
class ToLandmarks:
    """Affinities of all samples to the landmarks.

    Samples and landmarks are the two sides of a bipartite graph. If all samples were landmarks, its
    leading eigenvalues and vectors would be those of the graph of all pairs.
    """

    weights: Array
    """(n_samples, n_landmarks), in single precision."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes, twice, as other graphs have it."""
        n = int(self.weights.shape[0])
        return n, n

    def leading(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the leading eigenvalues, descending, and their vectors on the samples.

        They are singular values and left singular vectors of D^-½WE^-½, D and E the sums of rows
        and columns, found from the small Gram matrix.
        """
        xp = namespace(self.weights)
        n, p = (int(size) for size in self.weights.shape)
        row_roots = _inverse_roots(xp.sum(self.weights, axis=1, dtype=xp.float64))
        column_roots = _inverse_roots(xp.sum(self.weights, axis=0, dtype=xp.float64))
        gram = zeros((p, p), self.weights, xp.float64)
        blocks = row_slices(n, rows_at_once(self.weights))
        for which in blocks:
            block = xp.astype(self.weights[which, :], xp.float64) * row_roots[which, None]
            gram += block.mT @ block
        gram = gram * column_roots[:, None] * column_roots
        squares, right = top_eigenvectors(gram, min(k, p))
        values = xp.sqrt(xp.clip(squares, 0.0, None))
        right = right * column_roots[:, None] / xp.where(values > 0, values, 1.0)
        left = unfilled((n, right.shape[1]), self.weights, xp.float64)
        for which in blocks:
            product = xp.astype(self.weights[which, :], xp.float64) @ right
            left[which, :] = product * row_roots[which, None]
        return to_numpy(values), to_numpy(left)


def _inverse_roots(sums: Array) -> Array:
    xp = namespace(sums)
    positive = sums > 0
    return xp.where(positive, 1.0 / xp.sqrt(xp.where(positive, sums, 1.0)), 0.0)


def angles_to_landmarks(Q: Array, n_clusters: int, seed: int) -> ToLandmarks:
    """Join every unit row to landmarks by |cos|⁶; a landmark is not joined to itself."""
    xp = namespace(Q)
    n = int(Q.shape[0])
    p = min((n + 1) // 2, max(N_LANDMARKS, LANDMARKS_PER_CLUSTER * n_clusters))
    chosen = np.sort(np.random.RandomState(seed).choice(n, p, replace=False))
    where = moved_to(chosen, Q)
    landmarks = xp.take(Q, where, axis=0).mT
    weights = unfilled((n, p), Q, xp.float32)
    for which in row_slices(n, rows_at_once(Q, p)):
        squares = (Q[which, :] @ landmarks) ** 2
        rows = xp.arange(which.start, which.stop, dtype=where.dtype, device=device(Q))
        squares = xp.where(rows[:, None] == where[None, :], 0.0, squares)
        weights[which, :] = xp.astype(squares * squares * squares, xp.float32)
    return ToLandmarks(weights)
