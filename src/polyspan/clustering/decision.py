"""Which partition to keep: the consensus, a member, or close subspaces that were annealed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics import adjusted_rand_score

from polyspan.base.arrays import some_rows
from polyspan.clustering.consensus import (
    CLEAR_GAP,
    Member,
    agreement,
    angles_suffice,
    consensus,
    contradiction,
    elastic_choice,
    elastic_nets_fit,
)
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.graphs import few_directions
from polyspan.linear import MiCUSaL

#: Energy that the coordinates of residuals hold.
ENERGY = 0.9999
#: Of more samples than this only so many, drawn at random, are judged by residuals, or annealed.
MOST_JUDGED = 5000
MOST_ANNEALED = 3000
#: Standard errors by which another partition must be better.
CLEARLY = 3.0
#: Standard errors by which the consensus must be better to win against the elastic nets.
VERY_CLEARLY = 6.0
#: Dimensions of close subspaces that are tried, also of samples along few directions, and how much
#: lower their residuals must be.
CLOSE_DIMS = (3, 6, 9, 13, 18)
THIN_DIMS = (1, 2)
LOWER = 0.97
#: Where graphs with more than this fraction of the weight contradict the result, the certainty is
#: at most what is left. Where labels were right, some graphs contradicted, but not nearly all.
MOSTLY = 0.7
#: Two annealed runs must agree by this adjusted Rand index.
REPEATABLE = 0.8
# 1 - leverage is at least this: a sample that has a direction of its own says nothing.
LEAST_FREE = 0.05


@dataclass(frozen=True)
class Partition:
    """Labels, and how sure they are."""

    labels: np.ndarray
    certainty: float
    source: str
    """What the labels come from, in words."""
    members: list[Member]
    """All graphs that took part."""
    contradiction: float = 0.0
    """Fraction of the weight of the graphs that contradict; 0 where no graph separates clearly."""


@dataclass(frozen=True)
class Judge:
    """Compares partitions by the leave-one-out residuals of linear subspaces."""

    Z: np.ndarray
    n_clusters: int
    coordinates: Coordinates
    rows: np.ndarray
    """Samples that are judged."""

    @classmethod
    def of(cls, coordinates: Coordinates, n_clusters: int) -> Judge:
        """Take the coordinates that hold nearly all of the energy."""
        r = coordinates.rank_at(ENERGY)
        rows = some_rows(len(coordinates.U), MOST_JUDGED, np.random.RandomState(coordinates.seed))
        return cls(coordinates.U[rows, :r] * coordinates.S[:r], n_clusters, coordinates, rows)

    def residuals(self, labels: np.ndarray, dim: int) -> np.ndarray:
        """Return the leave-one-out residuals of a partition."""
        return leave_one_out(self.Z, labels[self.rows], self.n_clusters, dim)


def leave_one_out(Z: np.ndarray, labels: np.ndarray, n_clusters: int, dim: int) -> np.ndarray:
    """Return squared residuals of every sample to the subspace of its cluster without it.

    r/(1 - h)², r the squared residual to the leading `dim` directions of the cluster and h the
    leverage of the sample in them.
    """
    out = np.zeros(len(Z))
    for c in range(n_clusters):
        own = np.flatnonzero(labels == c)
        if not len(own):
            continue
        U, S, _ = np.linalg.svd(Z[own], full_matrices=False)
        U, S = U[:, :dim], S[:dim]
        residuals = np.maximum((Z[own] ** 2).sum(axis=1) - (U**2) @ S**2, 0.0)
        free = np.maximum(1.0 - (U**2).sum(axis=1), LEAST_FREE)
        out[own] = residuals / free**2
    return out


def paired_t(current: np.ndarray, other: np.ndarray) -> float:
    """Return the mean difference over its standard error: positive where `other` is lower."""
    difference = current - other
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return float(difference.mean() / error) if error > 0 else 0.0


def best_rung(members: Sequence[Member], n_clusters: int) -> int:
    """Return the dimension of a subspace by the subspace graph that separates most clearly."""
    rungs = [member for member in members if member.kind == "subspace"]
    if not rungs:
        return 1
    return max(1, max(rungs, key=lambda member: member.gap).rank // n_clusters)


def decide(members: Sequence[Member], judge: Judge, X: np.ndarray, *, close: bool) -> Partition:
    """Return the partition to keep."""
    n_clusters, coordinates = judge.n_clusters, judge.coordinates
    largest = max(member.gap for member in members)
    dim = best_rung(members, n_clusters) + 1
    labels, source = by_graphs(members, judge, dim)
    everything = list(members)
    if largest < CLEAR_GAP:
        # In very few directions any cloud falls into sectors, and into the same ones each time.
        few = few_directions(coordinates, n_clusters) or 0
        dims = (*(dim for dim in THIN_DIMS if 2 * dim < few), *CLOSE_DIMS)
        found = close_subspaces(labels, judge, X, dims) if close else None
        if found is not None:
            return replace(found, members=everything)
    elif elastic_nets_fit(len(X), n_clusters) and not angles_suffice(
        members, coordinates, n_clusters
    ):
        nets, other, name = elastic_choice(members, labels, coordinates, n_clusters)
        everything += nets
        before, after = judge.residuals(other, dim), judge.residuals(labels, dim)
        if name is not None and paired_t(before, after) <= VERY_CLEARLY:
            labels, source = other, name
    certainty = float(agreement(everything, labels, n_clusters).mean()) * largest
    # Graphs that do not separate have no voice, and close subspaces are judged by two runs.
    against = contradiction(everything, labels) if largest >= CLEAR_GAP else 0.0
    if against > MOSTLY:
        certainty = min(certainty, 1.0 - against)
    return Partition(labels, certainty, source, everything, against)


def by_graphs(members: Sequence[Member], judge: Judge, dim: int) -> tuple[np.ndarray, str]:
    """Return the consensus, or what has clearly lower residuals, and what it is."""
    n_clusters, seed = judge.n_clusters, judge.coordinates.seed
    labels, source = consensus(members, n_clusters, seed), "the consensus of all graphs"
    subspaces = [member for member in members if member.kind == "subspace"]
    others: list[tuple[np.ndarray, str]] = []
    if max(member.gap for member in members) < CLEAR_GAP:
        others = [(member.labels, f"the graph {member.name!r}") for member in members]
    elif subspaces:
        others = [(consensus(subspaces, n_clusters, seed), "the consensus of the subspace graphs")]
    current, lead = judge.residuals(labels, dim), CLEARLY
    for other, name in others:
        t = paired_t(current, judge.residuals(other, dim))
        if t > lead:
            labels, source, lead = other, name, t
    return labels, source


def close_subspaces(
    labels: np.ndarray, judge: Judge, X: np.ndarray, dims: Sequence[int] = CLOSE_DIMS
) -> Partition | None:
    """Return what annealing finds, where it is clearly better and comes out twice, or None.

    A partition with clusters of fewer samples than dimensions is none.
    """
    n, m = X.shape
    n_clusters, seed = judge.n_clusters, judge.coordinates.seed
    best: Partition | None = None
    for dim in dims:
        if 3 * dim * n_clusters > n or dim >= m:
            continue
        first = _annealed(X, n_clusters, dim, seed)
        if np.bincount(first, minlength=n_clusters).min() <= dim:
            continue
        before, after = judge.residuals(labels, dim), judge.residuals(first, dim)
        if after.sum() >= LOWER * before.sum() or paired_t(before, after) <= CLEARLY:
            continue
        agreeing = adjusted_rand_score(first, _annealed(X, n_clusters, dim, seed + 1))
        if agreeing > (REPEATABLE if best is None else best.certainty):
            source = f"close subspaces of dimension {dim}, annealed"
            best = Partition(first, agreeing, source, [])
    return best


def _annealed(X: np.ndarray, n_clusters: int, dim: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial that fails is not kept
        model = MiCUSaL(n_clusters, dim, lam=4.0, init="anneal", center=False, random_state=seed)
        if len(X) <= MOST_ANNEALED:
            return np.asarray(model.fit(X).labels_)
        rows = some_rows(len(X), MOST_ANNEALED, np.random.RandomState(seed))
        return np.asarray(model.fit(X[rows]).predict(X))
