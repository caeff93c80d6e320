"""Overlapping patches of a plane, band by band, and their weighted mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Patches that are worked on at once: a few megabytes.
BAND_PATCHES = 16384


class Canvas:
    """Running sums of weighted patches: memory for two planes, however many patches there are.

    Parameters
    ----------
    plane : array of shape (height, width)
        What patches are cut from.
    side : int
        Of a patch.
    step : int
        Pixels from one patch to the next; the last ones end at the edge.
    """

    def __init__(self, plane: np.ndarray, side: int, step: int) -> None:
        self._windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
        self.side = side
        self._top, self._left = (_corners(n, step) for n in self._windows.shape[:2])
        self._total = np.zeros(plane.shape, dtype=np.float32)
        self._weight = np.zeros(plane.shape, dtype=np.float32)

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return -(-len(self._top) // self._band)

    @property
    def _band(self) -> int:
        return max(1, BAND_PATCHES // len(self._left))

    def bands(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (top corners, patches as rows) until the plane is covered."""
        for start in range(0, len(self._top), self._band):
            top = self._top[start : start + self._band]
            patches = self._windows[np.ix_(top, self._left)]
            yield top, patches.reshape(len(top) * len(self._left), -1)

    def some(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Return patches at random corners, or all of them where there are no more than n."""
        height, width = self._windows.shape[:2]
        if height * width <= n:
            return self._windows.reshape(height * width, -1)
        corners = rng.choice(height * width, n, replace=False)
        chosen = self._windows[corners // width, corners % width]
        return np.asarray(chosen.reshape(n, -1))

    def add(self, top: np.ndarray, patches: np.ndarray, weights: np.ndarray) -> None:
        """Add the patches of one band."""
        # One pixel of all patches at a time: no place is hit twice by one addition.
        grid = (patches * weights[:, None]).reshape(len(top), len(self._left), self.side, -1)
        shares = weights.reshape(len(top), len(self._left))
        for i in range(self.side):
            for j in range(self.side):
                place = np.ix_(top + i, self._left + j)
                self._total[place] += grid[:, :, i, j]
                self._weight[place] += shares

    def mean(self) -> np.ndarray:
        """Return the weighted mean of all patches that cover a pixel; NaN where none does."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self._total / self._weight)


def _corners(n: int, step: int) -> np.ndarray:
    corners = np.arange(0, n, step)
    return corners if corners[-1] == n - 1 else np.append(corners, n - 1)
