"""Rows that are read from a file, a slice at a time; and how a source of rows is recognised."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import Array
from polyspan.data.rows import PerRow, Source, Task, called, part_for_block, sum_parts
from polyspan.data.working import DENSE_ONLY

# Bytes of a slice: enough to read a disk at full speed, little compared with any memory.
SLICE_BYTES = 32 << 20


class SlicedRows(Source):
    """Rows that are read from a file, a slice at a time: Zarr, HDF5, `numpy.memmap`."""

    lazy = False

    def __init__(self, X: Any) -> None:
        self.X = self.header = X
        self._size = _slice_rows(X)

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, PerRow | None]:
        """Return the sum of task(slice of rows, *arguments); with `keep` also results per row."""
        total, parts = None, []
        for k, rows in enumerate(self._slices()):
            addend, own = task(rows, *(part_for_block(argument, k) for argument in arguments))
            total = sum_parts([total, addend])
            if keep:
                parts.append(own)
        return total, PerRow(tuple(parts)) if keep else None

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Gather a few rows; the indices are in ascending order."""
        parts, start = [], 0
        for rows in self._slices():
            own = indices[(indices >= start) & (indices < start + len(rows))]
            parts.append(rows[own - start])
            start += len(rows)
        return np.concatenate(parts)

    def row_counts(self) -> list[int]:
        """Return the number of rows of every slice."""
        n = int(self.X.shape[0])
        return [min(self._size, n - start) for start in range(0, n, self._size)]

    def cut(self, values: np.ndarray) -> PerRow:
        """Return values, one for each row, as results per row."""
        return PerRow(tuple(np.split(values, np.cumsum(self.row_counts())[:-1])))

    def collect(self, results: PerRow) -> np.ndarray:
        """Return results per row as one array."""
        return np.concatenate(results.parts)

    def map(self, model: Any, method: str) -> Array:
        """Apply a method of a fitted model, slice by slice, and return its results."""
        parts = [called(model, method, rows) for rows in self._slices()]
        return np.concatenate(parts) if parts else called(model, method, np.asarray(self.X[:0]))

    def gather(self, results: PerRow) -> Array:
        """Return results per row as one array."""
        return np.concatenate([part for part in results.parts if part is not None])

    def _slices(self) -> Iterator[np.ndarray]:
        for start in range(0, int(self.X.shape[0]), self._size):
            yield np.asarray(self.X[start : start + self._size])


def _slice_rows(X: Any) -> int:
    row_bytes = max(1, 8 * int(X.shape[1]))
    rows = max(1, SLICE_BYTES // row_bytes)
    chunks = getattr(X, "chunks", None)
    if not chunks or not isinstance(chunks[0], int):
        return rows
    # A slice holds whole chunks of the file, so that no chunk is read twice.
    return int(chunks[0]) * max(1, rows // int(chunks[0]))


def row_source(X: Any) -> Source | None:
    """Return X as a source of rows if it is a dask array or frame or a chunked file, else None.

    dask is not imported unless the caller has imported it.
    """
    if isinstance(X, np.ndarray):
        return None
    header = None
    if hasattr(X, "to_dask_array"):  # a dask frame; it need not know its row counts
        header, X = X._meta, X.to_dask_array()  # _meta: an empty frame with the same columns
    dask_array = sys.modules.get("dask.array")
    is_dask = dask_array is not None and isinstance(X, dask_array.Array)
    chunked = all(hasattr(X, name) for name in ("shape", "dtype", "chunks", "__getitem__"))
    if not (is_dask or chunked):
        return None
    _check_layout(X, is_dask=is_dask)
    if not is_dask:
        return SlicedRows(X)
    from polyspan.data.dask import DaskRows

    return DaskRows(X, header)


def mapped_rows(X: Any) -> Source | None:
    """Return a large memory-mapped file as slices of rows; None for anything else."""
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub"
    return SlicedRows(X) if mapped and X.nbytes > SLICE_BYTES else None


def _check_layout(X: Any, *, is_dask: bool) -> None:
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got an array of {len(X.shape)} dimensions instead: shape {X.shape}"
        )
    if is_dask and scipy.sparse.issparse(X._meta):
        raise ValueError(DENSE_ONLY)
    if is_dask and isinstance(X._meta, np.ma.MaskedArray):
        raise ValueError(
            "X is a dask array of masked arrays, whose masks would be lost: mark what is missing "
            "by NaN, as dask.array.ma.filled(X, np.nan) does for floats"
        )
    if np.dtype(X.dtype).kind not in "fiub":
        raise ValueError(f"X has the type {X.dtype}: convert it to float32 or float64 first")
    if is_dask and np.isnan(X.shape[1]):
        raise ValueError("the number of features of X is unknown: call X.compute_chunk_sizes()")
    if is_dask and X.numblocks[1] > 1:
        raise ValueError(
            f"X is cut along its features into chunks of {X.chunks[1]}: every chunk must hold "
            "whole rows; use X.rechunk({1: -1})"
        )
