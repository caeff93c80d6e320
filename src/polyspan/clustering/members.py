"""Which graphs take part in the consensus: those of every fit, and those that a user adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from polyspan.clustering.elastic_members import elastic_net_graphs
from polyspan.clustering.graphs import (
    RUNGS,
    SPARSE_RUNGS,
    Coordinates,
    Named,
    few_directions,
    proximity_graphs,
    subspace_graphs,
)
from polyspan.clustering.spectra import unit_rows

#: Neighbours of a sample in the graphs that a user adds, so that these are sparse.
N_NEIGHBOURS = 20
#: Dimension and number of the partitions of "ensemble".
ENSEMBLE_DIM, ENSEMBLE_RUNS = 4, 50


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
    coordinates: Coordinates, n_clusters: int, seed: int, *, dense: bool, extra: Sequence[str]
) -> Iterator[Named]:
    """Yield all graphs of a fit."""
    return chain(
        subspace_graphs(coordinates, member_ranks(coordinates, n_clusters), dense),
        proximity_graphs(coordinates, n_clusters),
        *(EXTRA[name](coordinates, n_clusters, seed) for name in extra),
    )


def _unit_samples(coordinates: Coordinates) -> np.ndarray:
    return np.ascontiguousarray(unit_rows(coordinates.U * coordinates.S), dtype=np.float64)


def _elastic_net(coordinates: Coordinates, n_clusters: int, seed: int) -> Iterator[Named]:
    return elastic_net_graphs(coordinates)


def _least_squares(coordinates: Coordinates, n_clusters: int, seed: int) -> Iterator[Named]:
    from polyspan.baselines.least_squares import least_squares_graph

    graph = least_squares_graph(_unit_samples(coordinates), q=N_NEIGHBOURS)
    yield Named("least squares", "least squares", coordinates.rank, graph)


def _ensemble(coordinates: Coordinates, n_clusters: int, seed: int) -> Iterator[Named]:
    from polyspan.baselines.ensemble import co_association_graph

    dim = min(ENSEMBLE_DIM, max(1, coordinates.rank - 1))
    graph = co_association_graph(
        _unit_samples(coordinates), n_clusters, dim, n_runs=ENSEMBLE_RUNS, seed=seed
    )
    yield Named(f"ensemble of {ENSEMBLE_RUNS} partitions", "ensemble", coordinates.rank, graph)


def _shape_interaction(coordinates: Coordinates, n_clusters: int, seed: int) -> Iterator[Named]:
    from polyspan.baselines.shape_interaction import shape_interaction_graph

    for rank in member_ranks(coordinates, n_clusters):
        graph = shape_interaction_graph(coordinates.U, rank, q=N_NEIGHBOURS)
        yield Named(f"shape interaction, rank {rank}", "subspace", rank, graph)


#: Graphs of the compared methods, by the names that `extra_members` takes. The methods are imported
#: when they are asked for: `import polyspan` does not wait for them.
EXTRA = {
    "elastic_net": _elastic_net,
    "least_squares": _least_squares,
    "ensemble": _ensemble,
    "shape_interaction": _shape_interaction,
}
