"""The loop of `correlated.py`, compiled by numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from polyspan.images.group_loops import _gather, _scatter, _smallest, _whiten, nearest_patches


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def correlated_band(
    planes: Any, estimates: Any, tops: Any, lefts: Any, side: int, k: int, ridge: float,
    radius: int, floor: float, offset: int, forth: Any, back: Any, spread: Any,
    totals: Any, weights: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Do what `group_band` does with patches multiplied by `forth`, the results by `back`.

    Leverages are those of the pixels themselves: directions are multiplied by `back` too, and by
    `spread`, one over the standard deviation of the noise.
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
                T, Z = B @ forth[c], Y @ forth[c]
                _whiten(T, Z, mean, ridge)
                X = ((Z @ T.T) @ T) @ back[c]
                centre = mean @ back[c]
                _scatter(X, spread[c] * (T @ back[c]), centre, places, side, floor, offset,
                         totals[c], weights[c])  # fmt: skip
