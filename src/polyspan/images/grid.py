"""Patches at the points of a grid, as columns, and the weighted mean of changed ones.

Everything here runs on arrays of any namespace: a patch is taken, and added back, by one slice per
pixel of a patch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, zeros


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
