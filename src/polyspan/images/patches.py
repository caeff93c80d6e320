"""Cut planes into overlapping patches, and put changed patches together again.

`averaged` runs on arrays of any namespace: a patch is taken, and added back, by one slice per pixel
of a patch. `Canvas` is for NumPy alone, and its patches are rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from polyspan.base.arrays import Array, is_numpy, moved_to, namespace, zeros
from polyspan.images.groups import corners

#: Patches that are treated at once on a processor, and on other devices.
PATCHES_AT_ONCE, PATCHES_ON_DEVICE = 4096, 1 << 20
#: Most patches in a band of a canvas, which are processed at once: a few megabytes.
BAND_PATCHES = 16384

#: Changes patches, (side², n) per channel: returns new patches and their weights.
Change = Callable[[list[Array]], tuple[Array, Array]]


@dataclass(frozen=True)
class Grid:
    """Corners of patches at every `step`-th pixel of a plane of this size."""

    height: int
    width: int
    side: int
    step: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of patches; the last ones may lie outside the plane."""
        rows, columns = (-(-(n - self.side) // self.step) + 1 for n in (self.height, self.width))
        return rows, columns

    @property
    def reach(self) -> tuple[int, int]:
        """Numbers of rows and columns of pixels that patches cover, outside the plane too."""
        rows, columns = ((count - 1) * self.step + self.side for count in self.shape)
        return rows, columns

    def padded(self, plane: Array, rows: slice | None = None) -> Array:
        """Return the pixels of some rows of patches, or of all.

        Beyond the last row and column of the plane its pixels are mirrored.
        """
        xp = namespace(plane)
        first, last = 0, self.reach[0]
        if rows is not None:
            first, last = rows.start * self.step, (rows.stop - 1) * self.step + self.side
        part = plane[first : min(last, self.height), :]
        if last > self.height:
            more = last - self.height
            part = xp.concat([part, xp.flip(plane[-more - 1 : -1, :], axis=0)], axis=0)
        more = self.reach[1] - self.width
        if more:
            part = xp.concat([part, xp.flip(part[:, -more - 1 : -1], axis=1)], axis=1)
        return part

    def patches(self, padded: Array, rows: slice) -> Array:
        """Return the patches of some rows of the grid, shape (side², n)."""
        xp = namespace(padded)
        taken = [padded[self._pixels(i, j, rows)] for i, j in self._offsets()]
        return xp.reshape(xp.stack(taken), (self.side**2, -1))

    def add(self, total: Array, patches: Array, rows: slice) -> None:
        """Add the patches of some rows of the grid; row 0 of `total` is the first row of these."""
        here = slice(0, rows.stop - rows.start)
        xp = namespace(patches)
        pixels = xp.reshape(patches, (patches.shape[0], here.stop, self.shape[1]))
        for t, (i, j) in enumerate(self._offsets()):
            # One row of weights serves all pixels of a patch.
            total[self._pixels(i, j, here)] += pixels[min(t, patches.shape[0] - 1), ...]

    def coverage(self, like: Array) -> tuple[Array, Array]:
        """Return a column and a row whose product is the number of patches over each pixel."""
        counts = []
        for n, reach in zip(self.shape, self.reach, strict=True):
            ones = np.zeros(reach, dtype=np.float32)
            for corner in range(0, n * self.step, self.step):
                ones[corner : corner + self.side] += 1.0
            counts.append(moved_to(ones, like))
        return counts[0][:, None], counts[1]

    def sums(self, rows: slice, like: Array) -> Array:
        """Return zeros for all pixels of some rows of patches."""
        height = (rows.stop - rows.start - 1) * self.step + self.side
        return zeros((height, self.reach[1]), like)

    def _offsets(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.side) for j in range(self.side)]

    def _pixels(self, i: int, j: int, rows: slice) -> tuple[slice, slice]:
        """Return where pixel (i, j) of the patches lies."""
        last = rows.stop - 1
        return (
            slice(rows.start * self.step + i, last * self.step + i + 1, self.step),
            slice(j, (self.shape[1] - 1) * self.step + j + 1, self.step),
        )


def averaged(
    channels: list[Array], change: Change, side: int, step: int, n_jobs: int = 1
) -> tuple[Array, Array]:
    """Change the patches of all channels; return their weighted mean, and the mean weight.

    Bands of rows are summed in their order: the result does not depend on the number of threads.
    """
    plane = channels[0]
    height, width = plane.shape
    grid = Grid(height, width, side, step)
    n_rows, n_columns = grid.shape
    size = max(1, (PATCHES_AT_ONCE if is_numpy(plane) else PATCHES_ON_DEVICE) // n_columns)

    def band(first: int) -> tuple[slice, Array, Array]:
        rows = slice(first, min(first + size, n_rows))
        here = slice(0, rows.stop - rows.start)
        # Mirrored pixels are added to some rows at a time, to save memory.
        changed, weight = change([grid.patches(grid.padded(one, rows), here) for one in channels])
        total, weights = grid.sums(rows, plane), grid.sums(rows, plane)
        grid.add(total, changed * weight, rows)
        grid.add(weights, weight, rows)
        return rows, total, weights

    total, weights = zeros(grid.reach, plane), zeros(grid.reach, plane)
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    found: Any = run(delayed(band)(first) for first in range(0, n_rows, size))
    for rows, values, certainty in found:
        here = slice(rows.start * step, rows.start * step + values.shape[0])
        total[here, :] += values
        weights[here, :] += certainty
    total /= weights
    for count in grid.coverage(plane):
        weights /= count
    return total[:height, :width], weights[:height, :width]


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
