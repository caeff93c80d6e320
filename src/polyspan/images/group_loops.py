"""The loops of `groups.py` and `inpaint_groups.py`, compiled by numba: groups of similar blocks.

A plane is a volume of one slice, and its patches are blocks of one slice.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

#: Least ridge, as a part of the trace, and in any case.
ROUNDING, LEAST_RIDGE = np.float32(10 * np.finfo(np.float32).eps), np.float32(1e-30)

compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@compiled
def nearest_blocks(
    z: Any, place: Any, thick: int, side: int, reach: int, radius: int, distances: Any, places: Any
) -> None:  # pragma: no cover - compiled
    """Write squared distances and places of the blocks nearest to one, the nearest first."""
    depth, height, width = z.shape
    front, top, left = place
    distances[:] = np.inf
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
                if s == front and i == top and j == left:
                    total = np.float32(-1.0)
                q = len(distances) - 1
                if total < distances[q]:
                    while q > 0 and distances[q - 1] > total:
                        distances[q], places[q] = distances[q - 1], places[q - 1]
                        q -= 1
                    distances[q], places[q] = total, (s * height + i) * width + j


@compiled
def gather(
    volume: Any, places: Any, thick: int, side: int, out: Any
) -> None:  # pragma: no cover - compiled
    """Copy blocks at given places to the rows of an array."""
    _, height, width = volume.shape
    for q in range(len(out)):
        s, i, j = places[q] // width // height, places[q] // width % height, places[q] % width
        t = 0
        for c in range(thick):
            for a in range(side):
                for b in range(side):
                    out[q, t] = volume[s + c, i + a, j + b]
                    t += 1


@compiled
def centre(B: Any, Y: Any) -> Any:  # pragma: no cover - compiled
    """Subtract the mean of the rows of B from both, and return it."""
    # numba takes much longer to compile sums along an axis.
    mean = np.full(len(B), np.float32(1.0 / len(B))) @ B
    for A in (B, Y):
        for q in range(len(A)):
            for t in range(len(mean)):
                A[q, t] -= mean[t]
    return mean


@compiled
def whiten(B: Any, seen: Any, ridge: float) -> None:  # pragma: no cover - compiled
    """Replace B by L⁻¹B, where LLᵀ = seen seenᵀ + ridge·I."""
    G = seen @ seen.T
    k = len(G)
    # Rounding errors must not make the matrix indefinite where there is hardly any noise.
    floor = max(ROUNDING * np.trace(G), LEAST_RIDGE)
    for q in range(k):
        G[q, q] += max(ridge, floor)
    L = np.linalg.cholesky(G)
    for q in range(k):
        for r in range(q):
            for t in range(B.shape[1]):
                B[q, t] -= L[q, r] * B[r, t]
        for t in range(B.shape[1]):
            B[q, t] /= L[q, q]


@compiled
def _scatter(
    X: Any, T: Any, mean: Any, places: Any, shape: Any, corner: Any, floor: float, sums: Any
) -> None:  # pragma: no cover - compiled
    """Add a group to the sums, each voxel weighted by how few directions hold it."""
    height, width, thick, side = shape
    weight = np.float32(1.0) / (np.ones(len(T), np.float32) @ (T * T) + np.float32(floor))
    for q in range(len(X)):
        s = places[q] // width // height - corner[0]
        i, j = places[q] // width % height - corner[1], places[q] % width
        t = 0
        for c in range(thick):
            for a in range(side):
                for b in range(side):
                    sums[0, s + c, i + a, j + b] += weight[t] * (X[q, t] + mean[t])
                    sums[1, s + c, i + a, j + b] += weight[t]
                    t += 1


@compiled
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
    distances, places = np.empty(k, np.float32), np.empty(k, np.int64)
    B, Y = np.empty((k, area), np.float32), np.empty((k, area), np.float32)
    shape = (height, width, thick, side)
    for front in fronts:
        for top in tops:
            for left in lefts:
                place = (front, top, left)
                nearest_blocks(estimates[0], place, thick, side, reach, radius, distances, places)
                for c in range(volumes.shape[0]):
                    gather(estimates[c], places, thick, side, B)
                    gather(volumes[c], places, thick, side, Y)
                    if whitening is not None:
                        forth, back, spread = whitening
                        B, Y = B @ forth[c], Y @ forth[c]
                    mean = centre(B, Y)
                    whiten(B, B, ridge)
                    X, D = (Y @ B.T) @ B, B
                    if whitening is not None:
                        X, D, mean = X @ back[c], spread[c] * (B @ back[c]), mean @ back[c]
                    _scatter(X, D, mean, places, shape, corner, floor, sums[:, c])


@compiled
def fill_band(
    planes: Any, missing: Any, guide: Any, tops: Any, lefts: Any, side: int, k: int, joint: int,
    radius: int, noise: float, floor: float, offset: int, sums: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Add to the sums of a band what groups expect of the missing pixels of reference patches.

    Groups are found on the guide. `joint` planes, as many as there are masks, are filled together.
    Row i of the picture is row i - `offset` of the sums.

    A patch of a group is xᵀ = wᵀB plus noise, w ~ N(0, I/k). With S, which is B without the missing
    pixels, and LLᵀ = SSᵀ + k·noise·I it is (L⁻¹B)ᵀ L⁻¹S x that is expected, and pixel b varies by
    the noise times 1 + ‖L⁻¹b‖².
    """
    width = planes.shape[2]
    area = side * side
    size = joint * area
    distances, places = np.empty(k, np.float32), np.empty(k, np.int64)
    B, x = np.empty((k, size), np.float32), np.empty((1, size), np.float32)
    holes = np.empty((1, size), np.bool_)
    for top in tops:
        for left in lefts:
            own = np.full(1, top * width + left)
            gather(missing, own, joint, side, holes)
            if not holes.any():
                continue
            nearest_blocks(guide, (0, top, left), 1, side, 0, radius, distances, places)
            seen = np.where(holes, np.float32(0.0), np.float32(1.0))
            for first in range(0, planes.shape[0], joint):
                together = planes[first : first + joint]
                gather(together, places, joint, side, B)
                gather(together, own, joint, side, x)
                mean = centre(B, x)
                whiten(B, seen * B, k * noise)
                found = ((seen * x) @ B.T) @ B
                for t in range(size):
                    if holes[0, t]:
                        c, i, j = first + t // area, top + t % area // side, left + t % side
                        varies = noise * (1 + (B[:, t] ** 2).sum())
                        w = np.float32(1.0) / np.float32(varies + floor)
                        sums[0, c, i - offset, j] += w * (found[0, t] + mean[t])
                        sums[1, c, i - offset, j] += w
