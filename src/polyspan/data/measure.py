"""A first pass over rows that are not all in memory: how many, how large, what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.arrays import Array, chunk_rows, machine_epsilon, power_of_two_scale
from polyspan.data.rows import sum_parts

#: Maps raw rows to features, such as Nyström coordinates of a kernel; runs where the rows are.
RowMap = Callable[[Array], Array]

#: Error message for sparse chunks, which NumPy would turn into an array of objects.
DENSE_ONLY = (
    "the chunks of X are sparse matrices, which are not supported: make them dense, with "
    "X.map_blocks(lambda block: block.toarray())"
)


@dataclass(frozen=True)
class Extent:
    """What the first pass finds out about the rows; extents of blocks add up."""

    n_rows: int
    n_learned: int
    """Number of rows with enough observed entries to learn from."""
    n_missing: int
    n_infinite: int
    largest: float
    """The largest absolute value."""
    observed: Array
    """Number of observed entries of every feature, over the rows to learn from."""
    sums: Array
    """Sums of these entries, in double precision, times `scale`."""
    scale: float
    """A power of two that keeps the sums finite."""

    def __add__(self, other: Extent) -> Extent:
        # Scales are powers of two: bringing both sums to the smaller one loses no digit.
        scale = min(self.scale, other.scale)
        return Extent(
            self.n_rows + other.n_rows,
            self.n_learned + other.n_learned,
            self.n_missing + other.n_missing,
            self.n_infinite + other.n_infinite,
            max(self.largest, other.largest),
            self.observed + other.observed,
            self.sums * (scale / self.scale) + other.sums * (scale / other.scale),
            scale,
        )


def measure_block(
    block: Array, dtype: Any, too_few: int, row_map: RowMap | None
) -> tuple[Extent | None, None]:
    """Measure a block, one chunk of rows after the other. A task.

    Rows with at most `too_few` observed entries are not learned from.
    """
    if scipy.sparse.issparse(block):
        raise ValueError(DENSE_ONLY)
    X = np.asarray(block, dtype=dtype)
    if not len(X):
        return None, None
    if row_map is not None:
        X = row_map(X)
    size = chunk_rows(X.shape[1], X.itemsize)
    parts = [_measure(X[k : k + size], too_few) for k in range(0, len(X), size)]
    return sum_parts(parts), None


def _measure(X: np.ndarray, too_few: int) -> Extent:
    total = X.sum(dtype=np.float64)
    n_infinite, missing = 0, None
    if not math.isfinite(total):
        n_infinite = int(np.isinf(X).sum())
        missing = np.isnan(X)
    n, m = X.shape
    if missing is None or not missing.any():
        largest = float(max(-X.min(), X.max()))
        n_missing, learned = 0, np.ones(n, dtype=bool)
        values, observed = X, np.full(m, n)
    else:
        n_missing = int(missing.sum())
        learned = m - missing.sum(axis=1) > too_few
        values = np.where(missing, 0, X)
        largest = float(np.abs(values).max())
        values, observed = values[learned], (~missing[learned]).sum(axis=0)
    scale = 1.0 if n_infinite else power_of_two_scale(largest, machine_epsilon(X))
    with np.errstate(invalid="ignore"):
        scaled = values if scale == 1.0 else values * scale
        sums = scaled.sum(axis=0, dtype=np.float64)
    return Extent(n, int(learned.sum()), n_missing, n_infinite, largest, observed, sums, scale)
