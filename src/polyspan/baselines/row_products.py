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
    blocks = []
    for which in row_slices(n, chunk_rows(n, 8)):
        block = rows_of(which)
        here = np.arange(which.start, which.stop)
        block[here - which.start, here] = 0.0
        if q is not None and q < n - 1:
            smallest = np.argpartition(-block, q - 1, axis=1)[:, q:]
            np.put_along_axis(block, smallest, 0.0, axis=1)
        blocks.append(scipy.sparse.csr_array(block))
    graph = scipy.sparse.vstack(blocks, format="csr")
    return (graph + graph.T).tocsr()
