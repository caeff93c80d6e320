"""Graphs of the samples: by the angles of thin singular vectors, and by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

from polyspan._sklearn import plain_settings
from polyspan.arrays import chunk_rows, row_slices
from polyspan.clustering.spectra import Graph, unit_rows

#: Ranks of the subspace graphs, in multiples of the number of clusters.
RUNGS = (2, 3, 4, 6, 9)
#: Ranks of which there is a sparse graph too.
SPARSE_RUNGS = (6, 9)
POWER = 6  # of |cos| in a dense subspace graph
N_ANGLES = 5  # neighbours of a sample in a sparse one
N_OVERLAP = 10  # neighbours whose overlap is compared


@dataclass(frozen=True)
class Coordinates:
    """A thin singular value decomposition of the samples, not centred: X = U S Vᵀ."""

    U: np.ndarray
    S: np.ndarray
    V: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Coordinates:
        """Decompose the samples by the smaller of both Gram matrices."""
        n, m = X.shape
        if n <= m:
            values, U = np.linalg.eigh(X @ X.T)
            values, U = values[::-1], U[:, ::-1]
            S = np.sqrt(np.maximum(values, 0.0))
            keep = 1e-7 * S[0] < S
            U, S = U[:, keep], S[keep]
            return cls(U, S, X.T @ (U / S))
        values, V = np.linalg.eigh(X.T @ X)
        values, V = values[::-1], V[:, ::-1]
        S = np.sqrt(np.maximum(values, 0.0))
        keep = 1e-7 * S[0] < S
        V, S = V[:, keep], S[keep]
        return cls((X @ V) / S, S, V)

    @property
    def rank(self) -> int:
        """Number of singular values that are not rounding."""
        return len(self.S)

    def rank_at(self, energy: float) -> int:
        """Return how many singular values hold this fraction of the energy."""
        part = np.cumsum(self.S**2) / np.sum(self.S**2)
        return int(min(np.searchsorted(part, energy) + 1, self.rank))


@dataclass(frozen=True)
class Named:
    """A graph of the samples, with what it is called and how it was made."""

    name: str
    kind: str
    """"subspace", "neighbours" or "overlap"."""
    rank: int
    graph: Graph


def subspace_graphs(
    coordinates: Coordinates, ranks: dict[int, bool], dense: bool
) -> Iterator[Named]:
    """Yield graphs by the angles between rows of the leading singular vectors.

    Rows of one subspace are orthogonal to those of all independent ones.

    Parameters
    ----------
    ranks : dict
        Ranks, and whether a sparse graph is wanted too.
    dense : bool
        Whether dense graphs, N×N, are wanted.
    """
    for r, sparse in ranks.items():
        Q = unit_rows(coordinates.U[:, :r])
        if dense:
            W = np.abs(Q @ Q.T) ** POWER
            np.fill_diagonal(W, 0.0)
            yield Named(f"angles, rank {r}", "subspace", r, W)
        if sparse or not dense:
            yield Named(f"nearest angles, rank {r}", "subspace", r, nearest_angles(Q, N_ANGLES))


def nearest_angles(Q: np.ndarray, k: int) -> scipy.sparse.csr_array:
    """Join every unit row to the k others of largest |cos|, squared."""
    n = len(Q)
    k = min(k, n - 1)
    rows, columns, weights = [], [], []
    for which in row_slices(n, chunk_rows(n, 8)):
        products = np.abs(Q[which] @ Q.T)
        here = np.arange(which.start, which.stop)
        products[here - which.start, here] = -1.0
        nearest = np.argpartition(-products, k - 1, axis=1)[:, :k]
        rows.append(np.repeat(here, k))
        columns.append(nearest.ravel())
        weights.append(np.take_along_axis(products, nearest, axis=1).ravel() ** 2)
    graph = scipy.sparse.csr_array(
        (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n)
    )
    return (graph + graph.T).tocsr()


def proximity_graphs(coordinates: Coordinates, n_clusters: int) -> Iterator[Named]:
    """Yield graphs of nearest neighbours in two scalings of the coordinates."""
    n = len(coordinates.U)
    most = max(3, n // (2 * n_clusters))
    for energy, power, k in ((0.999, 1.0, 10), (0.99, 0.5, 5)):
        r = coordinates.rank_at(energy)
        Z = unit_rows(coordinates.U[:, :r] * coordinates.S[:r] ** power)
        k = min(k, most, n - 1)
        wide = min(N_OVERLAP, n - 1)
        with plain_settings():
            nearest = NearestNeighbors(n_neighbors=max(k, wide)).fit(Z)
            distances, neighbours = nearest.kneighbors()
        scaled = "" if power == 1.0 else ", whitened by half"
        graph = _local_scaling(distances[:, :k], neighbours[:, :k])
        yield Named(f"{k} neighbours{scaled}", "neighbours", r, graph)
        yield Named(
            f"overlap of {wide} neighbours{scaled}", "overlap", r,
            _overlap(graph, neighbours[:, :wide]),
        )  # fmt: skip


def _local_scaling(distances: np.ndarray, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return edges of the weight exp(-d²/(σ_iσ_j)), σ the distance to the last neighbour."""
    n, k = distances.shape
    sigma = distances[:, -1]
    smallest = sigma.min(where=sigma > 0, initial=np.inf)
    sigma = np.where(sigma > 0, sigma, smallest if np.isfinite(smallest) else 1.0)
    weights = np.exp(-(distances**2) / (sigma[:, None] * sigma[neighbours]))
    rows = np.repeat(np.arange(n), k)
    graph = scipy.sparse.csr_array((weights.ravel(), (rows, neighbours.ravel())), shape=(n, n))
    return ((graph + graph.T) / 2).tocsr()


def _overlap(edges: scipy.sparse.csr_array, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return the same edges, weighted by the Jaccard index of both neighbourhoods."""
    n, k = neighbours.shape
    rows = np.repeat(np.arange(n), k + 1)
    members = np.concatenate([np.arange(n)[:, None], neighbours], axis=1)
    sets = scipy.sparse.csr_array((np.ones(n * (k + 1)), (rows, members.ravel())), shape=(n, n))
    pairs = edges.tocoo()
    common = np.zeros(pairs.nnz)
    for which in row_slices(pairs.nnz, 1 << 18):
        first, second = sets[pairs.row[which]], sets[pairs.col[which]]
        common[which] = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    weights = common / (2 * (k + 1) - common)
    return scipy.sparse.csr_array((weights, (pairs.row, pairs.col)), shape=(n, n))
