"""A consensus of members: labels of several graphs, each weighted by how clearly it separates.

Elastic nets are further members: they win where angles and neighbours tell little. The gap of their
spectra is small even where their clusters are right. So they are not weighted by it: each member is
judged by the graphs of the other kinds, how much of the weight of every cluster stays inside.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment
from scipy.stats import entropy, rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from polyspan.base.arrays import one_hot
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.graphs import ELASTIC_NET, Named, elastic_net_graphs
from polyspan.graphs.spectra import KMEANS_STARTS, cluster_rows, leading_spectrum, shares_inside

#: Where the largest gap is below this no graph separates clearly.
CLEAR_GAP = 0.3
#: A graph contradicts a partition where the adjusted Rand index of its own clusters is below this.
CONTRADICTS = 0.3
# Below this fraction of the largest entropy of cluster sizes a member splits off a few samples.
LEAST_ENTROPY = 0.5
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


@dataclass(frozen=True)
class Member(Named):
    """Labels of one graph, which is kept where it is sparse."""

    values: np.ndarray
    """Leading eigenvalues, one more than clusters."""
    gap: float
    """Relative gap after the last cluster, 0 where clusters are very unequal."""
    labels: np.ndarray

    @property
    def weight(self) -> float:
        """Weight in the consensus."""
        return self.gap**2


def cluster_graphs(
    graphs: Iterable[Named],
    n_clusters: int,
    seed: int,
    monitor: Callable[[Member], bool] | None = None,
) -> list[Member]:
    """Cluster every graph, one after the other: no two dense graphs are held at once.

    `monitor` is called with every member; if it returns True, the members so far are all.
    """
    members: list[Member] = []
    for named in graphs:
        spectrum = leading_spectrum(named.graph, n_clusters + 1, seed)
        labels = quiet_labels(spectrum.vectors[:, :n_clusters], n_clusters, seed)
        clear = size_entropy(labels, n_clusters) >= LEAST_ENTROPY
        gap = spectrum.gap(n_clusters) if clear and len(spectrum.values) > n_clusters else 0.0
        sparse = named.graph if scipy.sparse.issparse(named.graph) else None
        members.append(
            Member(named.name, named.kind, named.rank, sparse, spectrum.values, gap, labels)
        )
        if monitor is not None and monitor(members[-1]):
            break
    return members


def quiet_labels(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster an embedding; where it has too few different rows, some clusters stay empty."""
    with warnings.catch_warnings():
        # One warning of `SubspaceClustering` says so, not one of k-means for each graph.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Of many clusters few starts find all: with 10 starts two of 38 faces were often joined.
        n_starts = max(KMEANS_STARTS, n_clusters)
        return cluster_rows(vectors, n_clusters, seed, n_starts=n_starts)


def size_entropy(labels: np.ndarray, n_clusters: int) -> float:
    """Return the entropy of the cluster sizes, divided by its largest value."""
    return float(entropy(np.bincount(labels)) / np.log(n_clusters))


def consensus(
    members: Sequence[Member], n_clusters: int, seed: int, weights: Sequence[float] | None = None
) -> np.ndarray:
    """Return labels by the agreement of all members. No N×N matrix is formed."""
    gaps = [member.gap for member in members] if weights is None else list(weights)
    if not any(gaps):
        gaps = [1.0] * len(members)
    blocks = [
        gap * one_hot(member.labels, n_clusters, np.float64)
        for gap, member in zip(gaps, members, strict=True)
        if gap
    ]
    return quiet_labels(agreement_embedding(blocks, n_clusters), n_clusters, seed)


def agreement_embedding(blocks: list[np.ndarray], n_clusters: int) -> np.ndarray:
    """Return leading left singular vectors of weighted one-hot labels, normalised by degree."""
    H = np.concatenate(blocks, axis=1)
    degrees = H @ H.sum(axis=0)
    H = H / np.sqrt(np.where(degrees > 0, degrees, 1.0))[:, None]
    values, vectors = np.linalg.eigh(H.T @ H)
    values, vectors = values[::-1][:n_clusters], vectors[:, ::-1][:, :n_clusters]
    return np.asarray((H @ vectors) / np.sqrt(np.maximum(values, 1e-12)))


def matched(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels renamed to agree with a reference as far as possible."""
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (labels, reference), 1)
    rows, columns = linear_sum_assignment(-counts)
    names = np.empty(n_clusters, dtype=np.int64)
    names[rows] = columns
    return np.asarray(names[labels])


def agreement(members: Sequence[Member], labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return for every sample the weighted fraction of members that agree with its label."""
    weights = np.array([member.weight for member in members])
    if not weights.any():
        weights[:] = 1.0
    same = np.stack([matched(m.labels, labels, n_clusters) == labels for m in members])
    return np.asarray(np.clip(weights @ same / weights.sum(), 0.0, 1.0))


def contradiction(members: Sequence[Member], labels: np.ndarray) -> float:
    """Return the fraction of the weight of all members that contradict a partition."""
    weights = np.array([member.weight for member in members])
    indices = [adjusted_rand_score(member.labels, labels) for member in members]
    against = np.array(indices) < CONTRADICTS
    return float(weights @ against / weights.sum()) if weights.any() else 0.0


def members_table(
    members: Sequence[Member], labels: np.ndarray, n_clusters: int
) -> dict[str, np.ndarray]:
    """Return names, gaps, weights, labels and eigenvalues, labels named as those of the result."""
    n = len(members)
    renamed = [matched(member.labels, labels, n_clusters) for member in members]
    width = len(members[0].values) if members else n_clusters + 1
    return {
        "graph": np.array([member.name for member in members], dtype=str),
        "gap": np.array([member.gap for member in members]),
        "weight": np.array([member.weight for member in members]),
        "labels": np.array(renamed, dtype=np.int64).reshape(n, len(labels)),
        "values": np.array([member.values for member in members]).reshape(n, width),
    }


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
    return float(shares_inside(graph, labels, n_clusters).min())


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
    members: Sequence[Member], current: np.ndarray, coordinates: Coordinates, n_clusters: int
) -> tuple[list[Member], np.ndarray, str | None]:
    """Return elastic nets that were no members yet, the labels that win, and their source.

    `current` are the labels so far; the source is None where they win.
    """
    seed = coordinates.seed
    nets = [member for member in members if member.kind == ELASTIC_NET]
    new = [] if nets else cluster_graphs(elastic_net_graphs(coordinates), n_clusters, seed)
    nets = nets or new
    stays = Member("consensus", "consensus", 0, None, np.empty(0), 0.0, current)
    best = best_associated([*members, *new, stays], n_clusters)
    trusted = [nets[i] for i in TRUSTED_NETS]
    if trusted[0].gap < NET_GAP:
        joint = consensus(trusted, n_clusters, seed, [1.0] * len(trusted))
        if adjusted_rand_score(joint, best.labels) < NET_AGREES:
            return new, joint, "the consensus of the elastic nets"
    return new, best.labels, None if best is stays else f"the graph {best.name!r}"
