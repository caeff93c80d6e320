"""A consensus of members: labels of several graphs, each weighted by how clearly it separates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from polyspan.clustering.graphs import Named
from polyspan.clustering.spectra import (
    LEAST_ENTROPY,
    agreement_embedding,
    cluster_embedding,
    leading_spectrum,
    one_hot,
    size_entropy,
)

#: Where the largest gap is below this no graph separates clearly.
CLEAR_GAP = 0.3


@dataclass(frozen=True)
class Member:
    """Labels of one graph."""

    name: str
    kind: str
    rank: int
    values: np.ndarray
    """Leading eigenvalues, one more than clusters."""
    gap: float
    """Relative gap after the last cluster, 0 where clusters are very unequal."""
    labels: np.ndarray

    @property
    def weight(self) -> float:
        """Weight in the consensus."""
        return self.gap**2


def cluster_graphs(graphs: Iterable[Named], n_clusters: int, seed: int) -> list[Member]:
    """Cluster every graph, one after the other: no two dense graphs are held at once."""
    members = []
    for named in graphs:
        spectrum = leading_spectrum(named.graph, n_clusters + 1, seed)
        labels = cluster_embedding(spectrum.vectors[:, :n_clusters], n_clusters, seed)
        clear = size_entropy(labels, n_clusters) >= LEAST_ENTROPY
        gap = spectrum.gap(n_clusters) if clear else 0.0
        members.append(Member(named.name, named.kind, named.rank, spectrum.values, gap, labels))
    return members


def consensus(
    members: Sequence[Member], n_clusters: int, seed: int, weights: Sequence[float] | None = None
) -> np.ndarray:
    """Return labels by the agreement of all members. No N×N matrix is formed."""
    gaps = [member.gap for member in members] if weights is None else list(weights)
    if not any(gaps):
        gaps = [1.0] * len(members)
    blocks = [
        gap * one_hot(member.labels, n_clusters)
        for gap, member in zip(gaps, members, strict=True)
        if gap
    ]
    return cluster_embedding(agreement_embedding(blocks, n_clusters), n_clusters, seed)


def matched(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return labels renamed to agree with a reference as far as possible."""
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (labels, reference), 1)
    rows, columns = linear_sum_assignment(-counts)
    names = np.empty(n_clusters, dtype=np.int64)
    names[rows] = columns
    return names[labels]


def agreement(members: Sequence[Member], labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return for every sample the weighted fraction of members that agree with its label."""
    weights = np.array([member.weight for member in members])
    if not weights.any():
        weights[:] = 1.0
    same = np.stack([matched(m.labels, labels, n_clusters) == labels for m in members])
    return np.asarray(weights @ same / weights.sum())


def rand_index(first: np.ndarray, second: np.ndarray) -> float:
    """Return the adjusted Rand index."""
    return float(adjusted_rand_score(first, second))


def renamed(member: Member, labels: np.ndarray) -> Member:
    """Return a member with other labels."""
    return replace(member, labels=labels)
