"""Many small symmetric systems at once: made, and solved by elimination."""

from __future__ import annotations

import numpy as np


def _pairwise_products(bases: np.ndarray) -> np.ndarray:
    """Return the products of all pairs of columns of every basis, (k, s(s+1)/2, n_features)."""
    rows, columns = np.triu_indices(bases.shape[2])
    turned = np.swapaxes(bases, 1, 2)
    return np.asarray(np.take(turned, rows, axis=1) * np.take(turned, columns, axis=1))


def _solve_packed(triangles: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve systems whose upper triangles (k, s(s+1)/2, n) are given row by row; both overwritten.

    The right-hand sides and the solutions are (k, s, n). An unknown whose pivot is rounding is
    undetermined, and becomes 0. The pivots stay on the diagonals.
    """
    s = right.shape[1]
    starts = [i * s - i * (i - 1) // 2 for i in range(s)]
    rows = [triangles[:, starts[i] : starts[i] + s - i, :] for i in range(s)]
    rounding = np.finfo(triangles.dtype).eps

    def pivot(i: int) -> np.ndarray:
        diagonal = triangles[:, starts[i], :]
        return np.where(diagonal > rounding, diagonal, np.full_like(diagonal, np.inf))

    for i in range(s):
        factors = rows[i][:, 1:, :] / pivot(i)[:, None, :]
        for j in range(i + 1, s):
            rows[j][...] -= factors[:, j - i - 1 : j - i, :] * rows[i][:, j - i :, :]
        right[:, i + 1 :, :] -= factors * right[:, i : i + 1, :]
    for i in reversed(range(s)):
        known = np.sum(rows[i][:, 1:, :] * right[:, i + 1 :, :], axis=1)
        right[:, i, :] = (right[:, i, :] - known) / pivot(i)
    return right
