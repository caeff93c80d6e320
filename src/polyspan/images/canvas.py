"""Cut a plane into overlapping patches, and put changed patches together again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polyspan.images.groups import corners

# Most patches in a band, the patches that are processed at once: a few megabytes.
BAND_PATCHES = 16384


class Canvas:
    """Cut a plane into patches, and average changed patches to a new plane.

    It keeps running sums of the weighted patches: memory for two planes, for any number of patches.

    Parameters
    ----------
    plane : array of shape (height, width)
        The plane from which patches are cut.
    side : int
        Side of a patch, in pixels.
    step : int
        Pixels from one patch to the next; the last patches end at the edge of the plane.
    """

    def __init__(self, plane: np.ndarray, side: int, step: int) -> None:
        self._windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
        self.side = side
        self._top, self._left = (corners(n - 1, step) for n in self._windows.shape[:2])
        self._total = np.zeros(plane.shape, dtype=np.float32)
        self._weight = np.zeros(plane.shape, dtype=np.float32)

    @property
    def n_bands(self) -> int:
        """Number of bands, each of which holds some rows of patches."""
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

    def sample(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Return n patches at random places, or all patches where there are at most n."""
        height, width = self._windows.shape[:2]
        if height * width <= n:
            return self._windows.reshape(height * width, -1)
        corners = rng.choice(height * width, n, replace=False)
        chosen = self._windows[corners // width, corners % width]
        return np.asarray(chosen.reshape(n, -1))

    def add(self, top: np.ndarray, patches: np.ndarray, weights: np.ndarray) -> None:
        """Add the weighted patches of one band to the sums."""
        # One pixel of all patches at a time, so that no addition has the same place twice.
        grid = (patches * weights[:, None]).reshape(len(top), len(self._left), self.side, -1)
        weight = weights.reshape(len(top), len(self._left))
        for i in range(self.side):
            for j in range(self.side):
                place = np.ix_(top + i, self._left + j)
                self._total[place] += grid[:, :, i, j]
                self._weight[place] += weight

    def mean(self) -> np.ndarray:
        """Return the weighted mean of all patches that cover a pixel; NaN where none does."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self._total / self._weight)
