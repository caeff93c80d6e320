"""Elastic nets as further members: they win where angles and neighbours tell little.

The gap of an elastic net's spectrum is small even where its clusters are right. So its members are
not weighted by their gap. Each member is judged by the graphs of the other kinds: how much of the
weight of every cluster stays inside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from scipy.stats import rankdata

from polyspan.base.arrays import one_hot
from polyspan.clustering.consensus import Member, cluster_graphs, consensus, rand_index
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.graphs import ELASTIC_NET, elastic_net_graphs

#: Elastic nets take part up to this many clusters and samples. With more clusters they lose more
#: than they win; with more samples they take longer than all other graphs.
MOST_CLUSTERS = 5
MOST_SAMPLES = 5000
#: Samples of rank at most this many times the number of clusters need no elastic net.
LOW_RANK = 4
#: Angles suffice where their gap is at least the first number, or at least the second and its odds
#: are so many times those of the neighbours' gap.
LARGE_GAP, ANGLES_GAP, ANGLES_ODDS = 0.75, 0.55, 2.3
#: Nets that agree with each other even where nothing else is right: their consensus is taken where
#: the first of them has a smaller gap than this, and they agree with the best member by a smaller
#: Rand index than that.
TRUSTED_NETS, NET_GAP, NET_AGREES = (1, 3, 4), 0.2, 0.5


def elastic_nets_fit(n_samples: int, n_clusters: int) -> bool:
    """Return whether the data are small enough for elastic nets."""
    return n_clusters <= MOST_CLUSTERS and n_samples <= MOST_SAMPLES


def angles_suffice(members: Sequence[Member], coordinates: Coordinates, n_clusters: int) -> bool:
    """Return whether the subspace graphs separate so clearly that nothing else need be asked."""
    if coordinates.rank_at(0.999) <= LOW_RANK * n_clusters:
        return True
    angles = max((m.gap for m in members if m.kind == "subspace"), default=0.0)
    near = next((m.gap for m in members if m.kind == "neighbours"), 0.0)
    if angles >= LARGE_GAP:
        return True
    return angles >= ANGLES_GAP and _odds(angles) >= ANGLES_ODDS * _odds(near)


def _odds(gap: float) -> float:
    return gap / (1.0 - gap) if gap < 1.0 else np.inf


def association(graph: scipy.sparse.csr_array, labels: np.ndarray, n_clusters: int) -> float:
    """Return the smallest fraction of a cluster's weight that stays inside; 0 if one is empty."""
    H = one_hot(labels, n_clusters, np.float64)
    inside = np.einsum("ij,ij->j", H, graph @ H)
    whole = H.T @ np.asarray(graph.sum(axis=1)).ravel()
    return float(np.min(np.where(whole > 0, inside / np.where(whole > 0, whole, 1.0), 0.0)))


def best_associated(members: Sequence[Member], n_clusters: int) -> Member:
    """Return the member that the sparse graphs of other kinds rank highest.

    Ranks are averaged by their logarithms: to be first for some graphs counts more than to be in
    the middle for all.
    """
    judges = [member for member in members if member.graph is not None]
    ranks = np.array(
        [
            rankdata([-association(judge.graph, m.labels, n_clusters) for m in members])
            for judge in judges
        ]
    )
    other = np.array([[_family(j) != _family(m) for m in members] for j in judges])
    means = (np.log(ranks) * other).sum(axis=0) / np.maximum(other.sum(axis=0), 1)
    means[~other.any(axis=0)] = np.inf  # nobody to ask
    return members[int(np.argmin(means))]


def _family(member: Member) -> str:
    return "neighbours" if member.kind == "overlap" else member.kind


def elastic_choice(
    members: Sequence[Member],
    current: np.ndarray,
    coordinates: Coordinates,
    n_clusters: int,
    seed: int,
) -> tuple[list[Member], np.ndarray, str | None]:
    """Return elastic nets that were no members yet, the labels that win, and their source.

    `current` are the labels so far; the source is None where they win.
    """
    nets = [member for member in members if member.kind == ELASTIC_NET]
    new = [] if nets else cluster_graphs(elastic_net_graphs(coordinates), n_clusters, seed)
    nets = nets or new
    stays = Member("consensus", "consensus", 0, np.empty(0), 0.0, current)
    best = best_associated([*members, *new, stays], n_clusters)
    trusted = [nets[i] for i in TRUSTED_NETS]
    if trusted[0].gap < NET_GAP:
        joint = consensus(trusted, n_clusters, seed, [1.0] * len(trusted))
        if rand_index(joint, best.labels) < NET_AGREES:
            return new, joint, "the consensus of the elastic nets"
    return new, best.labels, None if best is stays else f"the graph {best.name!r}"
