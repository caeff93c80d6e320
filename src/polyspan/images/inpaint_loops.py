"""The loops of `inpaint_groups.py`, compiled by numba: one band of reference patches at a time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from polyspan.images.group_loops import _factorise, _smallest, nearest_blocks


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _holes(missing: Any, first: int, top: int, left: int, side: int, holes: Any) -> bool:
    """Write which pixels of a patch are missing; return whether any is."""  # pragma: no cover
    area = side * side
    found = False
    for t in range(holes.shape[0]):
        c = (first + t // area) % missing.shape[0]
        holes[t] = missing[c, top + t % area // side, left + t % side]
        found |= holes[t]
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _centred(
    planes: Any, first: int, places: Any, side: int, B: Any, mean: Any
) -> None:  # pragma: no cover - compiled
    """Copy the patches of a group from one plane or several; subtract their mean."""
    k, size = B.shape
    area, width = side * side, planes.shape[2]
    mean[:] = 0.0
    for q in range(k):
        i, j = places[q] // width, places[q] % width
        for t in range(size):
            B[q, t] = planes[first + t // area, i + t % area // side, j + t % side]
            mean[t] += B[q, t] / k
    for q in range(k):
        for t in range(size):
            B[q, t] -= mean[t]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _expected(B: Any, seen: Any, x: Any, holes: Any, ridge: Any, variance: Any) -> Any:
    """Return what a group expects of a patch, and write how much it varies (÷ noise, less 1).

    A patch is xᵀ = wᵀB plus noise, w ~ N(0, I/k). `seen` becomes B without the missing pixels, and
    LLᵀ = seen seenᵀ + ridge·I. Then E w = L⁻ᵀL⁻¹ seen x, and pixel b varies by ‖L⁻¹b‖².
    """  # pragma: no cover - compiled
    k, size = B.shape
    for q in range(k):
        for t in range(size):
            seen[q, t] = np.float32(0.0) if holes[t] else B[q, t]
    G = seen @ seen.T
    right = seen @ x
    trace = np.float32(0.0)
    for q in range(k):
        trace += G[q, q]
    for q in range(k):
        # More than rounding can take away.
        G[q, q] += max(ridge, np.float32(1e-6) * trace)
    _factorise(G, k)
    # L⁻¹ is applied to the right side and to the patches at once, row by row.
    variance[:] = 0.0
    for q in range(k):
        for r in range(q):
            right[q] -= G[q, r] * right[r]
            for t in range(size):
                B[q, t] -= G[q, r] * B[r, t]
        right[q] /= G[q, q]
        for t in range(size):
            B[q, t] /= G[q, q]
            variance[t] += B[q, t] * B[q, t]
    return right @ B


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def fill_band(
    planes: Any, missing: Any, guide: Any, tops: Any, lefts: Any, side: int, k: int, joint: int,
    radius: int, noise: float, floor: float, offset: int, totals: Any, weights: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Add to the sums of a band what groups expect of the missing pixels of reference patches.

    Groups are found on the guide. `joint` planes are filled together. Row i of the picture is row
    i - `offset` of the sums.
    """
    area = side * side
    size = joint * area
    most = (2 * radius + 1) ** 2
    distances, places = np.empty(most, np.float32), np.empty(most, np.int64)
    B, seen = np.empty((k, size), np.float32), np.empty((k, size), np.float32)
    mean, x = np.empty(size, np.float32), np.empty(size, np.float32)
    variance, holes = np.empty(size, np.float32), np.empty(size, np.bool_)
    for top in tops:
        for left in lefts:
            matched = False
            for first in range(0, planes.shape[0], joint):
                if not _holes(missing, first, top, left, side, holes):
                    continue
                if not matched:
                    n = nearest_blocks(guide, (0, top, left), 1, side, 0, radius, distances, places)
                    _smallest(distances, places, n, k)
                    matched = True
                _centred(planes, first, places, side, B, mean)
                for t in range(size):
                    i, j = top + t % area // side, left + t % side
                    x[t] = planes[first + t // area, i, j] - mean[t]
                found = _expected(B, seen, x, holes, np.float32(k * noise), variance)
                for t in range(size):
                    if holes[t]:
                        c, i, j = first + t // area, top + t % area // side, left + t % side
                        w = np.float32(1.0) / np.float32(noise * (1 + variance[t]) + floor)
                        totals[c, i - offset, j] += w * (found[t] + mean[t])
                        weights[c, i - offset, j] += w
