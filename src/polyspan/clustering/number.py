"""How many clusters there are: the number after which most spectra have their gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from polyspan.clustering.graphs import (
    Coordinates,
    Named,
    few_directions,
    proximity_graphs,
    subspace_graphs,
)
from polyspan.clustering.spectra import leading_spectrum

#: Ranks of the subspace graphs that are looked at.
RANKS = (4, 6, 9, 13, 18, 27, 40, 60, 90, 130)
#: A subspace graph of rank r can tell up to r divided by this many clusters, unless r are all the
#: directions there are.
RANK_PER_CLUSTER = 1.5
#: Samples along at most twice as many directions have a graph of just these.
FEW_CLUSTERS = 5


def evidence(graphs: Iterable[Named], most: int, seed: int) -> np.ndarray:
    """Return Σ g² over all graphs for 2, 3, …, `most` clusters."""
    total = np.zeros(most - 1)
    for named in graphs:
        spectrum = leading_spectrum(named.graph, most + 1, seed)
        for number in range(2, min(most, len(spectrum.values) - 1) + 1):
            if named.kind != "subspace" or named.rank > RANK_PER_CLUSTER * number:
                total[number - 2] += spectrum.gap(number) ** 2
    return total


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
