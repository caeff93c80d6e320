"""Which graphs tell how many clusters there are, and which take part in the consensus.

Graphs are made of the angles between thin singular vectors, and of nearest neighbours. Users may
add those of the compared methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from polyspan.base.arrays import unit_rows
from polyspan.clustering.coordinates import Coordinates
from polyspan.graphs.edges import (
    all_angles,
    local_scaling,
    nearest_angles,
    nearest_distances,
    overlap,
    shape_interaction_graph,
    symmetric_affinity,
)
from polyspan.graphs.spectra import Graph, leading_spectrum

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
#: Ranks of the subspace graphs that are looked at.
RANKS = (4, 6, 9, 13, 18, 27, 40, 60, 90, 130)
#: A subspace graph of rank r can tell up to r divided by this many clusters, unless r are all the
#: directions there are.
RANK_PER_CLUSTER = 1.5
#: Samples along at most twice as many directions have a graph of just these.
FEW_CLUSTERS = 5
#: Neighbours of a sample in the graphs that a user adds, so that these are sparse.
N_NEIGHBOURS = 20
#: Dimension, number and steps of the partitions of "ensemble".
ENSEMBLE_DIM, ENSEMBLE_RUNS, ENSEMBLE_STEPS = 4, 50, 10
#: Elastic nets: weights of the fit, and whether codes are nonnegative, on samples of norm 1 and on
#: samples that are whitened by half.
UNIT_NETS = ((5.0, False), (50.0, False), (50.0, True))
WHITENED_NETS = ((10.0, False), (50.0, True))
L1_RATIO = 0.9
ELASTIC_NET = "elastic net"


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
        graph = local_scaling(distances[:, :k], neighbours[:, :k])
        yield Named(f"{k} neighbours{scaled}", "neighbours", r, graph)
        alike = overlap(graph, neighbours[:, :wide])
        yield Named(f"overlap of {wide} neighbours{scaled}", "overlap", r, alike)


def candidate_graphs(coordinates: Coordinates, most: int, dense: bool) -> Iterable[Named]:
    """Yield graphs for all numbers of clusters.

    Along few directions, as on lines, x and -x are far apart: neighbours would count halves.
    """
    n = len(coordinates.U)
    ranks = {r: False for r in RANKS if r <= n / 2 and r < coordinates.rank}
    few = few_directions(coordinates, FEW_CLUSTERS)
    if few is not None:
        for named in subspace_graphs(coordinates, {few: True}, dense):
            yield replace(named, kind="all directions")
    yield from subspace_graphs(coordinates, ranks, dense)
    if few is None:
        yield from proximity_graphs(coordinates, most)


def evidence(graphs: Iterable[Named], most: int, seed: int) -> np.ndarray:
    """Return Σ g² over all graphs for 2, 3, …, `most` clusters."""
    total = np.zeros(most - 1)
    for named in graphs:
        spectrum = leading_spectrum(named.graph, most + 1, seed)
        for number in range(2, min(most, len(spectrum.values) - 1) + 1):
            if named.kind != "subspace" or named.rank > RANK_PER_CLUSTER * number:
                total[number - 2] += spectrum.gap(number) ** 2
    return total


def member_ranks(coordinates: Coordinates, n_clusters: int) -> dict[int, bool]:
    """Return the ranks of the subspace graphs, and whether each has a sparse graph too.

    Samples along few directions, as of lines, have a graph of just these.
    """
    most = min(len(coordinates.U) / 2, coordinates.rank - 1)
    ranks = {c * n_clusters: c in SPARSE_RUNGS for c in RUNGS if c * n_clusters <= most}
    few = few_directions(coordinates, n_clusters)
    return ranks if few is None else {few: True} | ranks


def most_members(coordinates: Coordinates, n_clusters: int) -> int:
    """Return how many graphs take part at most, without those that a user adds."""
    return 2 * len(member_ranks(coordinates, n_clusters)) + 4


def member_graphs(
    coordinates: Coordinates, n_clusters: int, *, dense: bool, extra: Sequence[str]
) -> Iterator[Named]:
    """Yield all graphs of a fit."""
    return chain(
        subspace_graphs(coordinates, member_ranks(coordinates, n_clusters), dense),
        proximity_graphs(coordinates, n_clusters),
        *(EXTRA[name](coordinates, n_clusters) for name in extra),
    )


def elastic_net_graphs(coordinates: Coordinates) -> Iterator[Named]:
    """Yield the graphs of five elastic nets."""
    # Imported here: it loads all baselines, and compiles.
    from polyspan.baselines.elastic_net import elastic_net_codes

    for energy, power, nets in ((0.9999, 1.0, UNIT_NETS), (0.99, 0.5, WHITENED_NETS)):
        r = coordinates.rank_at(energy)
        Z = unit_rows(coordinates.U[:, :r] * coordinates.S[:r] ** power)
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        for gamma, nonnegative in nets:
            codes, _ = elastic_net_codes(Z, gamma, L1_RATIO, nonnegative=nonnegative)
            parts = [f"elastic net, γ={gamma:g}"]
            parts += ["nonnegative"] * nonnegative + ["whitened by half"] * (power != 1.0)
            yield Named(", ".join(parts), ELASTIC_NET, r, symmetric_affinity(codes))


def _unit_samples(coordinates: Coordinates) -> np.ndarray:
    return np.ascontiguousarray(unit_rows(coordinates.U * coordinates.S), dtype=np.float64)


def _least_squares(coordinates: Coordinates, n_clusters: int) -> Iterator[Named]:
    from polyspan.baselines.least_squares import least_squares_graph

    graph = least_squares_graph(_unit_samples(coordinates), q=N_NEIGHBOURS)
    yield Named("least squares", "least squares", coordinates.rank, graph)


def _ensemble(coordinates: Coordinates, n_clusters: int) -> Iterator[Named]:
    from polyspan.baselines.subspaces import co_association, default_neighbours, ensemble_labels

    samples, seed = _unit_samples(coordinates), coordinates.seed
    dim = min(ENSEMBLE_DIM, max(1, coordinates.rank - 1))
    labels = ensemble_labels(
        samples, n_clusters, dim, ENSEMBLE_RUNS, n_iter=ENSEMBLE_STEPS, seed=seed
    )
    graph = co_association(labels, default_neighbours(len(samples), n_clusters))
    yield Named(f"ensemble of {ENSEMBLE_RUNS} partitions", "ensemble", coordinates.rank, graph)


def _shape_interaction(coordinates: Coordinates, n_clusters: int) -> Iterator[Named]:

    for rank in member_ranks(coordinates, n_clusters):
        graph = shape_interaction_graph(coordinates.U, rank, q=N_NEIGHBOURS)
        yield Named(f"shape interaction, rank {rank}", "subspace", rank, graph)


#: Graphs of the compared methods, by the names that `extra_members` takes. The methods are imported
#: when they are asked for: `import polyspan` does not wait for them.
EXTRA = {
    "elastic_net": lambda coordinates, *_: elastic_net_graphs(coordinates),
    "least_squares": _least_squares,
    "ensemble": _ensemble,
    "shape_interaction": _shape_interaction,
}
