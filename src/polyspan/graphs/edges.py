"""Sparse and dense graphs from the nearest rows, from angles, and from codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from polyspan.base.arrays import Array, chunk_rows, device, is_numpy, namespace, row_slices
from polyspan.base.private_sklearn import plain_settings
from polyspan.graphs.nearest import nearest_rows


def edges(weights: np.ndarray, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return the directed graph from every node to its neighbours, both of shape (n, k)."""
    n, k = neighbours.shape
    rows = np.repeat(np.arange(n), k)
    return scipy.sparse.csr_array((weights.ravel(), (rows, neighbours.ravel())), shape=(n, n))


def local_scaling(distances: np.ndarray, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return edges of the weight exp(-d²/(σ_iσ_j)), σ the distance to the last neighbour.

    So sparse and dense regions are treated alike (Zelnik-Manor and Perona).
    """
    sigma = distances[:, -1]
    # Samples whose neighbours are all duplicates have σ = 0: they get the smallest positive σ.
    smallest = sigma.min(where=sigma > 0, initial=np.inf)
    sigma = np.where(sigma > 0, sigma, smallest if np.isfinite(smallest) else 1.0)
    weights = np.exp(-(distances**2) / (sigma[:, None] * sigma[neighbours]))
    graph = edges(weights, neighbours)
    return ((graph + graph.T) / 2).tocsr()


def neighbour_graph(distances: np.ndarray, n_neighbors: int) -> scipy.sparse.csr_array:
    """Return the graph of nearest neighbours, locally scaled, of a matrix of all distances."""
    n = min(n_neighbors, len(distances) - 1)
    with plain_settings():
        nearest = NearestNeighbors(n_neighbors=n, metric="precomputed").fit(distances)
        return local_scaling(*nearest.kneighbors())


def overlap(graph: scipy.sparse.csr_array, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return the same edges, weighted by the Jaccard index of both neighbourhoods."""
    n, k = neighbours.shape
    members = np.concatenate([np.arange(n)[:, None], neighbours], axis=1)
    sets = edges(np.ones(members.shape), members)
    pairs = graph.tocoo()
    common = np.zeros(pairs.nnz)
    for which in row_slices(pairs.nnz, 1 << 18):
        first, second = sets[pairs.row[which]], sets[pairs.col[which]]
        common[which] = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    weights = common / (2 * (k + 1) - common)
    return scipy.sparse.csr_array((weights, (pairs.row, pairs.col)), shape=(n, n))


def all_angles(Q: Array) -> Array:
    """Join every unit row to all others by |cos|⁶, where the rows are."""
    squares = Q @ Q.mT
    squares *= squares
    if is_numpy(squares):
        np.fill_diagonal(squares, 0.0)
    else:
        xp = namespace(squares)
        every = xp.arange(squares.shape[0], device=device(squares))
        squares = xp.where(every[:, None] == every[None, :], 0.0, squares)
    return squares * squares * squares


def nearest_angles(
    Q: Array, sizes: Sequence[tuple[int, int]], seed: int
) -> Iterator[scipy.sparse.csr_array]:
    """Join every unit row to the k others of largest |cos|, by a power of it, for all (k, power).

    All graphs come from one search.
    """
    if not sizes:
        return
    cosines, neighbours = nearest_rows(Q, max(k for k, _ in sizes), seed, lines=True)
    for k, power in sizes:
        graph = edges(cosines[:, :k].astype(np.float64) ** power, neighbours[:, :k])
        yield (graph + graph.T).tocsr()


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


def symmetric_affinity(codes: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return |C| + |C|ᵀ, after dividing every code (row of C) by its largest entry."""
    absolute = abs(codes).tocsr()
    largest = absolute.max(axis=1).toarray().ravel()
    scale = np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0)
    absolute = scipy.sparse.dia_array((scale[None, :], [0]), shape=absolute.shape) @ absolute
    return (absolute + absolute.T).tocsr()
