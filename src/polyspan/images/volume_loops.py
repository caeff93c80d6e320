"""The loops of `volumes.py`, compiled by numba: groups of similar blocks of a volume."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from polyspan.images.group_loops import _smallest, _whiten


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
def _gather_blocks(
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
def _scatter_blocks(
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
    ridge: float, reach: int, radius: int, floor: float, corner: Any, sums: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Denoise the groups of some reference blocks; add them to the sums of a part of the volume.

    Groups are found on the first volume of the estimates. Voxel (s, i, j) of the volume is voxel
    (s - corner[0], i - corner[1], j) of the sums.
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
                    _gather_blocks(estimates[c], places, thick, side, B)
                    _gather_blocks(volumes[c], places, thick, side, Y)
                    _whiten(B, Y, mean, ridge)
                    X = (Y @ B.T) @ B
                    _scatter_blocks(X, B, mean, places, shape, corner, floor, weight, sums[:, c])
