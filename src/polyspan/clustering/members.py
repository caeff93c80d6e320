"""Which graphs take part in the consensus: those of every fit, and those that a user adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from polyspan.clustering.elastic_members import elastic_net_graphs
from polyspan.clustering.graphs import (
    RUNGS,
    SPARSE_RUNGS,
    Coordinates,
    Named,
    proximity_graphs,
    subspace_graphs,
)

#: Graphs of the compared methods, by the names that `extra_members` takes. Each is a function of
#: the coordinates, the number of clusters and a seed.
EXTRA: dict[str, Callable[[Coordinates, int, int], Iterator[Named]]] = {
    "elastic_net": lambda coordinates, n_clusters, seed: elastic_net_graphs(coordinates),
}


def member_ranks(coordinates: Coordinates, n_clusters: int) -> dict[int, bool]:
    """Return the ranks of the subspace graphs, and whether each has a sparse graph too."""
    most = min(len(coordinates.U) / 2, coordinates.rank - 1)
    return {c * n_clusters: c in SPARSE_RUNGS for c in RUNGS if c * n_clusters <= most}


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
