"""Graphs of samples: edges to the nearest rows, by angles, and from codes.

Up to a few thousand rows all pairs are compared, beyond only those within the leaves of random
trees. Written by hand, since the libraries for it have no search by |cos|, and none runs on the
arrays of other namespaces. Every step is a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from polyspan.base.arrays import (
    Array,
    chunk_rows,
    device,
    is_host,
    is_numpy,
    item_bytes,
    moved_to,
    namespace,
    row_slices,
    to_numpy,
    unit_rows,
)
from polyspan.base.private_sklearn import plain_settings


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


def shape_interaction_graph(
    U: np.ndarray, rank: int, *, power: float = 4.0, q: int | None = None
) -> scipy.sparse.csr_array:
    """Return |cos|ᵖ of the angles between rows of the leading left singular vectors, p the power.

    Rows of independent subspaces are orthogonal.

    Parameters
    ----------
    U : array of shape (n_samples, at least rank)
        Left singular vectors of the samples, by descending singular values.
    q : int or None, default=None
        Entries kept of every row, the largest. None: all, n_samples² numbers.

    Returns
    -------
    graph : sparse array of shape (n_samples, n_samples)
        W + Wᵀ, without its diagonal.
    """
    Q = unit_rows(U[:, :rank])
    return largest_of_rows(lambda which: np.abs(Q[which] @ Q.T) ** power, len(Q), q)


def symmetric_affinity(codes: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return |C| + |C|ᵀ, after dividing every code (row of C) by its largest entry."""
    with plain_settings():
        absolute = normalize(abs(codes), norm="max")
    return (absolute + absolute.T).tocsr()


#: Up to this many rows all pairs are compared.
EXACT_ROWS = 5000
#: Trees, and the most rows of a leaf, within which all pairs are compared.
N_TREES = 8
LEAF_ROWS = 1000
# Rows from which the two centres of a split are found, and how often they are moved.
SPLIT_ROWS = 500
SPLIT_STEPS = 3
NONE = -2.0  # less than any cosine


def nearest_rows(
    Q: Array, k: int, seed: int, *, lines: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest cosines of every row with k others, descending, and which those are.

    Parameters
    ----------
    Q : array of shape (n, r)
        Rows of norm 1, or 0.
    lines : bool
        Whether a row and its negative are the same: then |cos| counts.
    """
    n = int(Q.shape[0])
    k = min(k, n - 1)
    if n <= EXACT_ROWS:
        return among_all(Q, Q, k, lines=lines, others=True)
    xp = namespace(Q)
    return _by_trees(xp.astype(Q, xp.float32), k, seed, lines)


def nearest_distances(Z: Array, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of every row of norm 1, or 0, to its k nearest, ascending, and those."""
    xp = namespace(Z)
    zero = xp.max(xp.abs(Z), axis=1) == 0
    searched = Z
    if bool(xp.any(zero)):  # rows of zeros are next to each other: a direction of their own
        searched = xp.concat([Z, xp.astype(zero, Z.dtype)[:, None]], axis=1)
    _, neighbours = nearest_rows(searched, k, seed)
    distances = np.empty(neighbours.shape)
    width = int(Z.shape[1]) * neighbours.shape[1]
    for which in row_slices(len(neighbours), chunk_rows(width, item_bytes(Z), host=is_host(Z))):
        # The difference itself, not 2 - 2 cos: between nearly equal rows that would be rounding.
        theirs = _rows(Z, neighbours[which])
        distances[which] = to_numpy(xp.linalg.vector_norm(theirs - Z[which, None, :], axis=2))
    order = np.argsort(distances, axis=1, kind="stable")
    return (
        np.take_along_axis(distances, order, axis=1),
        np.take_along_axis(neighbours, order, axis=1),
    )


def among_all(
    queries: Array, Q: Array, k: int, *, lines: bool = False, others: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Compare queries with all rows, block by block; `others`: not a row with itself."""
    n = int(queries.shape[0])
    parts = []
    for which in row_slices(n, chunk_rows(int(Q.shape[0]), item_bytes(Q), host=is_host(Q))):
        cosines = _cosines(queries[which, :], Q, lines)
        parts.append(_largest(cosines, k, which.start if others else None))
    values, columns = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(columns)


def _cosines(a: Array, b: Array, lines: bool) -> Array:
    """Return the cosines of all pairs, for lines without their sign."""
    cosines = a @ b.mT
    return namespace(a).abs(cosines) if lines else cosines


def _largest(cosines: Array, k: int, own: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest numbers of each row, descending, and their columns.

    The column `own` + i of row i is left out. Ties go to the first column.
    """
    xp = namespace(cosines)
    height, width = cosines.shape
    rows = xp.arange(height, device=device(cosines))
    every = xp.arange(width, device=device(cosines))
    found = []
    taken = None if own is None else rows + own
    # The standard lacks a partial sort, and NumPy's takes 100 ns for each pair: ten searches for
    # the largest take 8.
    for _ in range(k):
        if taken is not None:
            cosines = _without(cosines, rows, taken, every)
        taken = xp.argmax(cosines, axis=1)
        largest = xp.max(cosines, axis=1)
        found.append((to_numpy(largest), to_numpy(taken)))
    values, columns = zip(*found, strict=True)
    return np.stack(values, axis=1), np.stack(columns, axis=1)


def _without(cosines: Array, rows: Array, taken: Array, every: Array) -> Array:
    """Put what is less than any cosine into one column of each row; NumPy's array is changed."""
    if is_numpy(cosines):
        cosines[rows, taken] = NONE
        return cosines
    return namespace(cosines).where(every[None, :] == taken[:, None], NONE, cosines)


def _by_trees(Q: Array, k: int, seed: int, lines: bool) -> tuple[np.ndarray, np.ndarray]:
    """Compare the rows of each leaf of a few random trees."""
    n = int(Q.shape[0])
    cosines = np.full((n, k), NONE, dtype=np.float32)
    columns = np.full((n, k), -1, dtype=np.int64)
    rng = np.random.RandomState(seed)
    for _ in range(N_TREES):
        for leaf in _leaves(Q, np.arange(n), max(LEAF_ROWS, 2 * k + 2), rng, lines):
            rows = _rows(Q, leaf)
            best, which = _largest(_cosines(rows, rows, lines), k, 0)
            cosines[leaf], columns[leaf] = _merged(
                cosines[leaf], columns[leaf], best, leaf[which], k
            )
    return cosines, columns


def _leaves(Q: Array, rows: np.ndarray, most: int, rng: Any, lines: bool) -> list[np.ndarray]:
    """Halve the rows again and again, between the nearer of two centres: all leaves are alike."""
    if len(rows) <= most:
        return [rows]
    centres = _two_centres(Q, rows, rng, lines)
    score = np.empty(len(rows), dtype=np.float32)
    for which in row_slices(len(rows), chunk_rows(int(Q.shape[1]), 4, host=is_host(Q))):
        near = to_numpy(_cosines(_rows(Q, rows[which]), centres, lines))
        score[which] = near[:, 0] - near[:, 1]
    order = np.argpartition(score, len(rows) // 2)
    halves = (np.sort(order[: len(rows) // 2]), np.sort(order[len(rows) // 2 :]))
    return [leaf for half in halves for leaf in _leaves(Q, rows[half], most, rng, lines)]


def _two_centres(Q: Array, rows: np.ndarray, rng: Any, lines: bool) -> Array:
    """Return two centres of some of the rows, by a few steps of k-means."""
    some = to_numpy(_rows(Q, rng.choice(rows, min(len(rows), SPLIT_ROWS), replace=False)))
    centres = some[:2]
    for _ in range(SPLIT_STEPS):
        cosines = some @ centres.T
        nearest = np.argmax(np.abs(cosines) if lines else cosines, axis=1)
        signs = np.sign(cosines) if lines else np.ones_like(cosines)
        sums = (np.eye(2, dtype=some.dtype)[nearest] * signs).T @ some
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(norms > 0, sums / np.where(norms > 0, norms, 1.0), centres)
    return moved_to(centres, Q, Q.dtype)


def _rows(Q: Array, which: np.ndarray) -> Array:
    """Return rows by their indices, an array of any shape."""
    xp = namespace(Q)
    return xp.reshape(xp.take(Q, moved_to(which.ravel(), Q), axis=0), (*which.shape, -1))


def _merged(
    cosines: np.ndarray, columns: np.ndarray, more: np.ndarray, others: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best of two lists for each row, each column once."""
    cosines = np.concatenate([cosines, more], axis=1)
    columns = np.concatenate([columns, others], axis=1)
    order = np.argsort(columns, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    cosines = np.take_along_axis(cosines, order, axis=1)
    cosines[:, 1:][columns[:, 1:] == columns[:, :-1]] = NONE
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(cosines, best, axis=1), np.take_along_axis(columns, best, axis=1)
