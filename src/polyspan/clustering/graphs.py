"""Graphs of the samples: by the angles of thin singular vectors, and by nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from polyspan.arrays import Array, device, is_numpy, namespace, row_slices
from polyspan.clustering.coordinates import Coordinates as Coordinates
from polyspan.clustering.coordinates import unit_rows
from polyspan.clustering.neighbours import nearest_distances, nearest_rows
from polyspan.clustering.spectra import Graph

#: Ranks of the subspace graphs, in multiples of the number of clusters.
RUNGS = (2, 3, 4, 6, 9)
#: Directions that hold this fraction of the energy count, where there are few of them.
FEW_ENERGY = 0.99
#: Ranks of which there is a sparse graph beside the dense one.
SPARSE_RUNGS = (6, 9)
#: Neighbours of a sample in sparse graphs, and the power of |cos| that weights them. Without dense
#: graphs there are both: few neighbours tell digits apart, more of them many faces.
FEW_ANGLES, MORE_ANGLES = (5, 2), (15, 4)
N_OVERLAP = 10  # neighbours whose overlap is compared


@dataclass(frozen=True)
class Named:
    """A graph of the samples, with what it is called and how it was made."""

    name: str
    kind: str
    """"subspace", "neighbours" or "overlap"."""
    rank: int
    graph: Graph


def few_directions(coordinates: Coordinates, n_clusters: int) -> int | None:
    """Return the rank of samples that lie along few directions for so many clusters, or None."""
    rank = coordinates.rank_at(FEW_ENERGY)
    return rank if 0 < rank <= RUNGS[0] * n_clusters else None


def subspace_graphs(
    coordinates: Coordinates, ranks: dict[int, bool], dense: bool
) -> Iterator[Named]:
    """Yield graphs by the angles between rows of the leading singular vectors.

    Rows of one subspace are orthogonal to those of all independent ones.

    Parameters
    ----------
    ranks : dict
        Ranks, and whether a sparse graph is wanted beside the dense one.
    dense : bool
        Whether dense graphs, N×N, are wanted; otherwise there are two sparse ones of each rank.
    """
    for r, sparse in ranks.items():
        Q = unit_rows(coordinates.source[:, :r])
        if dense:
            yield Named(f"angles, rank {r}", "subspace", r, all_angles(Q))
        sizes = [FEW_ANGLES] * (sparse or not dense) + [MORE_ANGLES] * (not dense)
        for (k, _), graph in zip(sizes, nearest_angles(Q, sizes, coordinates.seed), strict=True):
            yield Named(f"{k} nearest angles, rank {r}", "subspace", r, graph)


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
        graph = _edges(cosines[:, :k].astype(np.float64) ** power, neighbours[:, :k])
        yield (graph + graph.T).tocsr()


def proximity_graphs(coordinates: Coordinates, n_clusters: int) -> Iterator[Named]:
    """Yield graphs of nearest neighbours in two scalings of the coordinates."""
    n = len(coordinates.U)
    most = max(3, n // (2 * n_clusters))
    for energy, power, k in ((0.999, 1.0, 10), (0.99, 0.5, 5)):
        r = coordinates.rank_at(energy)
        Z = unit_rows(coordinates.scaled(r, power))
        k = min(k, most, n - 1)
        wide = min(N_OVERLAP, n - 1)
        distances, neighbours = nearest_distances(Z, max(k, wide), coordinates.seed)
        scaled = "" if power == 1.0 else ", whitened by half"
        graph = _local_scaling(distances[:, :k], neighbours[:, :k])
        yield Named(f"{k} neighbours{scaled}", "neighbours", r, graph)
        yield Named(
            f"overlap of {wide} neighbours{scaled}", "overlap", r,
            _overlap(graph, neighbours[:, :wide]),
        )  # fmt: skip


def _edges(weights: np.ndarray, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    n, k = neighbours.shape
    rows = np.repeat(np.arange(n), k)
    return scipy.sparse.csr_array((weights.ravel(), (rows, neighbours.ravel())), shape=(n, n))


def _local_scaling(distances: np.ndarray, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return edges of the weight exp(-d²/(σ_iσ_j)), σ the distance to the last neighbour."""
    sigma = distances[:, -1]
    smallest = sigma.min(where=sigma > 0, initial=np.inf)
    sigma = np.where(sigma > 0, sigma, smallest if np.isfinite(smallest) else 1.0)
    weights = np.exp(-(distances**2) / (sigma[:, None] * sigma[neighbours]))
    graph = _edges(weights, neighbours)
    return ((graph + graph.T) / 2).tocsr()


def _overlap(edges: scipy.sparse.csr_array, neighbours: np.ndarray) -> scipy.sparse.csr_array:
    """Return the same edges, weighted by the Jaccard index of both neighbourhoods."""
    n, k = neighbours.shape
    members = np.concatenate([np.arange(n)[:, None], neighbours], axis=1)
    sets = _edges(np.ones(members.shape), members)
    pairs = edges.tocoo()
    common = np.zeros(pairs.nnz)
    for which in row_slices(pairs.nnz, 1 << 18):
        first, second = sets[pairs.row[which]], sets[pairs.col[which]]
        common[which] = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    weights = common / (2 * (k + 1) - common)
    return scipy.sparse.csr_array((weights, (pairs.row, pairs.col)), shape=(n, n))
