"""Graphs that join every sample to those with the largest products, block by block of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from polyspan.arrays import chunk_rows, row_slices


def largest_of_rows(
    rows_of: Callable[[slice], np.ndarray], n: int, q: int | None
) -> scipy.sparse.csr_array:
    """Return W + Wᵀ, where W has the q largest entries of every row of a matrix.

    The matrix is never held as a whole, unless q asks for all of it.

    Parameters
    ----------
    rows_of : callable
        Returns some rows, dense and not negative, of shape (n_rows, n); it may be overwritten.
    q : int or None
        None: all entries. The diagonal is left out.
    """
    if n == 1:
        return scipy.sparse.csr_array((1, 1))
    q = n - 1 if q is None else min(q, n - 1)
    rows, columns, weights = [], [], []
    for which in row_slices(n, chunk_rows(n, 8)):
        block = rows_of(which)
        # scikit-learn's spectral clustering needs indices of 32 bits.
        here = np.arange(which.start, which.stop, dtype=np.int32)
        block[here - which.start, here] = -1.0
        largest = np.argpartition(-block, q - 1, axis=1)[:, :q]
        rows.append(np.repeat(here, q))
        columns.append(largest.ravel().astype(np.int32))
        weights.append(np.take_along_axis(block, largest, axis=1).ravel().astype(np.float64))
    entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
    graph = scipy.sparse.csr_array(entries, shape=(n, n))
    graph.eliminate_zeros()
    return (graph + graph.T).tocsr()
