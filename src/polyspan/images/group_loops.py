"""The loops of `groups.py`, compiled by numba: groups of similar blocks of a volume.

A plane is a volume of one slice, and its patches are blocks of one slice.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

#: Least ridge, as a part of the trace, and in any case.
ROUNDING, LEAST_RIDGE = np.float32(10 * np.finfo(np.float32).eps), np.float32(1e-30)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def nearest_blocks(
    z: Any, place: Any, thick: int, side: int, reach: int, radius: int, distances: Any, places: Any
) -> int:  # pragma: no cover - compiled
    """Write squared distances and places of all blocks near one; return how many there are."""
    depth, height, width = z.shape
    front, top, left = place
    n = 0
    for s in range(max(0, front - reach), min(depth - thick, front + reach) + 1):
        for i in range(max(0, top - radius), min(height - side, top + radius) + 1):
            for j in range(max(0, left - radius), min(width - side, left + radius) + 1):
                total = np.float32(0.0)
                for c in range(thick):
                    for a in range(side):
                        for b in range(side):
                            difference = z[front + c, top + a, left + b] - z[s + c, i + a, j + b]
                            total += difference * difference
                # The block itself is always one of its group, so that every voxel is covered.
                own = s == front and i == top and j == left
                distances[n] = np.float32(-1.0) if own else total
                places[n] = (s * height + i) * width + j
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
def _gather(
    volume: Any, places: Any, thick: int, side: int, out: Any
) -> None:  # pragma: no cover - compiled
    """Copy blocks at given places to the rows of an array."""
    _, height, width = volume.shape
    for q in range(out.shape[0]):
        s, i, j = places[q] // width // height, places[q] // width % height, places[q] % width
        t = 0
        for c in range(thick):
            for a in range(side):
                for b in range(side):
                    out[q, t] = volume[s + c, i + a, j + b]
                    t += 1


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
    X: Any, T: Any, mean: Any, places: Any, shape: Any, corner: Any, floor: float,
    weight: Any, sums: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Add a group to the sums, each voxel weighted by how few directions hold it."""
    k, area = X.shape
    height, width, thick, side = shape
    for t in range(area):
        weight[t] = np.float32(floor)
    for q in range(k):
        for t in range(area):
            weight[t] += T[q, t] * T[q, t]
    for t in range(area):
        weight[t] = np.float32(1.0) / weight[t]
    for q in range(k):
        s = places[q] // width // height - corner[0]
        i, j = places[q] // width % height - corner[1], places[q] % width
        t = 0
        for c in range(thick):
            for a in range(side):
                for b in range(side):
                    sums[0, s + c, i + a, j + b] += weight[t] * (X[q, t] + mean[t])
                    sums[1, s + c, i + a, j + b] += weight[t]
                    t += 1


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def group_blocks(
    volumes: Any, estimates: Any, fronts: Any, tops: Any, lefts: Any, thick: int, side: int, k: int,
    ridge: float, reach: int, radius: int, floor: float, corner: Any, whitening: Any, sums: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Denoise the groups of some reference blocks; add them to the sums of a part of the volume.

    Groups are found on the first volume of the estimates. Voxel (s, i, j) of the volume is voxel
    (s - corner[0], i - corner[1], j) of the sums. With a `Whitening` blocks are multiplied by
    `forth`, results and directions by `back`, and directions by `spread` too. numba compiles the
    case without one on its own.
    """
    height, width = volumes.shape[2:]
    area = thick * side * side
    most = (2 * reach + 1) * (2 * radius + 1) ** 2
    distances, places = np.empty(most, np.float32), np.empty(most, np.int64)
    B, Y = np.empty((k, area), np.float32), np.empty((k, area), np.float32)
    mean, weight = np.empty(area, np.float32), np.empty(area, np.float32)
    shape = (height, width, thick, side)
    for front in fronts:
        for top in tops:
            for left in lefts:
                place = (front, top, left)
                n = nearest_blocks(
                    estimates[0], place, thick, side, reach, radius, distances, places
                )
                _smallest(distances, places, n, k)
                for c in range(volumes.shape[0]):
                    _gather(estimates[c], places, thick, side, B)
                    _gather(volumes[c], places, thick, side, Y)
                    if whitening is None:
                        _whiten(B, Y, mean, ridge)
                        X = (Y @ B.T) @ B
                        _scatter(X, B, mean, places, shape, corner, floor, weight, sums[:, c])
                        continue
                    forth, back, spread = whitening
                    T, Z = B @ forth[c], Y @ forth[c]
                    _whiten(T, Z, mean, ridge)
                    X, D = ((Z @ T.T) @ T) @ back[c], spread[c] * (T @ back[c])
                    _scatter(X, D, mean @ back[c], places, shape, corner, floor, weight, sums[:, c])
