"""The loops of `groups.py`, compiled by numba: one band of reference patches after another."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

#: Least ridge, as a part of the trace, and in any case.
ROUNDING, LEAST_RIDGE = np.float32(10 * np.finfo(np.float32).eps), np.float32(1e-30)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def nearest_patches(
    z: Any, top: int, left: int, side: int, radius: int, distances: Any, places: Any
) -> int:  # pragma: no cover - compiled
    """Write squared distances and places of all patches near one; return how many there are."""
    height, width = z.shape
    n = 0
    for i in range(max(0, top - radius), min(height - side, top + radius) + 1):
        for j in range(max(0, left - radius), min(width - side, left + radius) + 1):
            total = np.float32(0.0)
            for a in range(side):
                for b in range(side):
                    difference = z[top + a, left + b] - z[i + a, j + b]
                    total += difference * difference
            # The patch itself is always one of its group, so that every pixel is covered.
            distances[n] = total if i != top or j != left else np.float32(-1.0)
            places[n] = i * width + j
            n += 1
    return n


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _smallest(distances: Any, places: Any, n: int, k: int) -> None:  # pragma: no cover - compiled
    """Bring the k smallest distances to the front, in any order (Hoare's selection)."""
    low, high = 0, n - 1
    while low < high:
        pivot = distances[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while distances[i] < pivot:
                i += 1
            while distances[j] > pivot:
                j -= 1
            if i <= j:
                distances[i], distances[j] = distances[j], distances[i]
                places[i], places[j] = places[j], places[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _factorise(G: Any, k: int) -> None:  # pragma: no cover - compiled
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor."""
    for i in range(k):
        for j in range(i + 1):
            total = G[i, j]
            for q in range(j):
                total -= G[i, q] * G[j, q]
            if i == j:
                G[i, i] = np.sqrt(total)
            else:
                G[i, j] = total / G[j, j]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _gather(plane: Any, places: Any, side: int, out: Any) -> None:  # pragma: no cover - compiled
    """Copy patches at given places to the rows of an array."""
    width = plane.shape[1]
    for q in range(out.shape[0]):
        i, j = places[q] // width, places[q] % width
        for t in range(side * side):
            out[q, t] = plane[i + t // side, j + t % side]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _centre(B: Any, Y: Any, mean: Any) -> None:  # pragma: no cover - compiled
    """Write the mean of the rows of B, and subtract it from both."""
    k, area = B.shape
    mean[:] = 0.0
    for q in range(k):
        for t in range(area):
            mean[t] += B[q, t] / k
    for q in range(k):
        for t in range(area):
            B[q, t] -= mean[t]
            Y[q, t] -= mean[t]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _whiten(B: Any, Y: Any, mean: Any, ridge: float) -> None:  # pragma: no cover - compiled
    """Subtract the mean of B from both, and replace B by L⁻¹B, LLᵀ = BBᵀ + ridge·I."""
    k, area = B.shape
    _centre(B, Y, mean)
    G = B @ B.T
    trace = np.float32(0.0)
    for q in range(k):
        trace += G[q, q]
    # Rounding errors must not make the matrix indefinite where there is hardly any noise.
    floor = max(ROUNDING * trace, LEAST_RIDGE)
    for q in range(k):
        G[q, q] += max(ridge, floor)
    _factorise(G, k)
    for q in range(k):
        for r in range(q):
            for t in range(area):
                B[q, t] -= G[q, r] * B[r, t]
        for t in range(area):
            B[q, t] /= G[q, q]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _scatter(
    X: Any, T: Any, mean: Any, places: Any, side: int, floor: float, offset: int,
    total: Any, weight: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Add a group to the sums, each pixel weighted by how few directions hold it."""
    k, area = X.shape
    width = total.shape[1]
    for t in range(area):
        leverage = np.float32(floor)
        for q in range(k):
            leverage += T[q, t] * T[q, t]
        w = np.float32(1.0) / leverage
        for q in range(k):
            i = places[q] // width + t // side - offset
            j = places[q] % width + t % side
            total[i, j] += w * (X[q, t] + mean[t])
            weight[i, j] += w


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def group_band(
    planes: Any, estimates: Any, tops: Any, lefts: Any, side: int, k: int, ridge: float,
    radius: int, floor: float, offset: int, whitening: Any, totals: Any, weights: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Denoise the groups of some rows of reference patches; add them to sums of a band.

    Groups are found on the first plane of the estimates. Row i of the picture is row i - `offset`
    of the sums. With a `Whitening` patches are multiplied by `forth`, results and directions by
    `back`, and directions by `spread` too. numba compiles the case without one on its own.
    """
    area = side * side
    most = (2 * radius + 1) ** 2
    distances, places = np.empty(most, np.float32), np.empty(most, np.int64)
    B, Y = np.empty((k, area), np.float32), np.empty((k, area), np.float32)
    mean = np.empty(area, np.float32)
    for top in tops:
        for left in lefts:
            n = nearest_patches(estimates[0], top, left, side, radius, distances, places)
            _smallest(distances, places, n, k)
            for c in range(planes.shape[0]):
                _gather(estimates[c], places, side, B)
                _gather(planes[c], places, side, Y)
                if whitening is None:
                    _whiten(B, Y, mean, ridge)
                    X = (Y @ B.T) @ B
                    _scatter(X, B, mean, places, side, floor, offset, totals[c], weights[c])
                else:
                    forth, back, spread = whitening
                    T, Z = B @ forth[c], Y @ forth[c]
                    _whiten(T, Z, mean, ridge)
                    _scatter(((Z @ T.T) @ T) @ back[c], spread[c] * (T @ back[c]), mean @ back[c],
                             places, side, floor, offset, totals[c], weights[c])  # fmt: skip
