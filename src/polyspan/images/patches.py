"""Cut planes into overlapping patches, and put changed patches together again.

`averaged` runs on arrays of any namespace: a patch is taken, and added back, by one slice per pixel
of a patch. `block_sums` is for NumPy alone, for slices too, and its patches are rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, is_numpy, moved_to, namespace, row_slices, zeros
from polyspan.images.groups import corners, weighted_sums

#: Patches that are treated at once on a processor, and on other devices.
PATCHES_AT_ONCE, PATCHES_ON_DEVICE = 4096, 1 << 20
#: Most patches in a band of `block_sums`, which are processed at once: a few megabytes.
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
        first, last = 0, self.reach[0]
        if rows is not None:
            first, last = rows.start * self.step, (rows.stop - 1) * self.step + self.side
        for axis, wanted in enumerate((np.arange(first, last), np.arange(self.reach[1]))):
            end = plane.shape[axis] - 1
            mirrored = moved_to(end - np.abs(end - wanted), plane)
            plane = namespace(plane).take(plane, mirrored, axis=axis)
        return plane

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
        inside, xp = np.arange(self.side), namespace(like)
        column, row = (
            np.bincount(np.add.outer(np.arange(n) * self.step, inside).ravel()) for n in self.shape
        )
        return moved_to(column[:, None], like, xp.float32), moved_to(row, like, xp.float32)

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

    def band(first: int) -> tuple[Any, tuple[Array, Array]]:
        rows = slice(first, min(first + size, n_rows))
        here = slice(0, rows.stop - rows.start)
        # Mirrored pixels are added to some rows at a time, to save memory.
        changed, weight = change([grid.patches(grid.padded(one, rows), here) for one in channels])
        total, weights = grid.sums(rows, plane), grid.sums(rows, plane)
        grid.add(total, changed * weight, rows)
        grid.add(weights, weight, rows)
        start = rows.start * step
        return np.s_[start : start + total.shape[0], :], (total, weights)

    bands = [(first,) for first in range(0, n_rows, size)]
    total, weights = weighted_sums(band, bands, grid.reach, plane, n_jobs)
    total /= weights
    for count in grid.coverage(plane):
        weights /= count
    return total[:height, :width], weights[:height, :width]


def sample_patches(
    plane: Array, block: tuple[int, ...], n: int, rng: np.random.RandomState
) -> Array:
    """Return n patches at random places as rows, or all patches where there are at most n.

    Patches of a volume are blocks.
    """
    xp = namespace(plane)
    size = tuple(plane.shape)
    places = tuple(whole - part + 1 for whole, part in zip(size, block, strict=True))
    chosen = np.arange(np.prod(places))
    if len(chosen) > n:
        chosen = rng.choice(len(chosen), n, replace=False)
    corners = np.ravel_multi_index(np.unravel_index(chosen, places), size)
    inside = np.ravel_multi_index(tuple(np.indices(block).reshape(len(block), -1)), size)
    pixels = moved_to((corners[:, None] + inside).ravel(), plane, xp.int64)
    return xp.reshape(xp.take(xp.reshape(plane, (-1,)), pixels), (len(chosen), -1))


def block_sums(
    plane: np.ndarray,
    side: int,
    step: int,
    change: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Change the blocks of a plane, or of some slices; return sums of them, and of their weights.

    Memory for two planes is needed, for any number of blocks.

    Parameters
    ----------
    plane : array of shape (height, width) or (n_slices, height, width)
        What blocks of all slices are cut from.
    side : int
        Side of a block, in pixels.
    step : int
        Pixels from one block to the next; the last blocks end at the edge of the plane.
    change : callable
        Takes blocks, as rows; returns new ones, and the weight of each.
    """
    slices = plane.reshape(-1, *plane.shape[-2:])
    block = (len(slices), side, side)
    windows = np.lib.stride_tricks.sliding_window_view(slices, block)[0]
    tops, lefts = (corners(n - 1, step) for n in windows.shape[:2])
    total, weight = np.zeros((2, *slices.shape), dtype=np.float32)
    for band in row_slices(len(tops), max(1, BAND_PATCHES // len(lefts))):
        some = windows[np.ix_(tops[band], lefts)]
        changed, weights = change(some.reshape(-1, slices[:, :side, :side].size))
        changed, weights = changed.reshape(some.shape), weights.reshape(some.shape[:2])
        # One pixel of all blocks at a time, so that no addition has the same place twice.
        for c, i, j in np.ndindex(block):
            place = np.ix_(tops[band] + i, lefts + j)
            total[c][place] += weights * changed[:, :, c, i, j]
            weight[c][place] += weights
    return total.reshape(plane.shape), weight.reshape(plane.shape)
