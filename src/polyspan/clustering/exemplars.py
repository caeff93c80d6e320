"""Labels of all samples from those that are clustered: distinct samples, of many some exemplars.

Samples that occur several times are clustered once: a graph would cut through equal ones. Those
that are no exemplars belong to the nearest subspace, or to the cluster that exemplars vote for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from polyspan.base.arrays import chunk_rows, row_slices, unit_rows
from polyspan.clustering.coordinates import (
    Coordinates,
    energies_in,
    in_range,
    subspaces_of,
)
from polyspan.clustering.decision import Partition
from polyspan.graphs.edges import among_all

#: The nearest exemplars that vote, in the coordinates that hold this part of the energy.
N_VOTES = 5
ENERGY = 0.999
#: One exemplar of so many is held out to compare both rules.
HELD_OUT = 5
#: Groups of held-out exemplars with similar margins, whose mean confidence is passed on.
N_GROUPS = 10

#: Labels of rows, and by how much each won, from 0 to 1.
Rule = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def distinct_samples(X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return samples without copies, and for every sample its index there; None without copies."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    inverse = np.empty(len(X), dtype=np.int64)
    for i, row in enumerate(np.ascontiguousarray(X)):
        # A digest, not the row: the samples are not held twice.
        inverse[i] = seen.setdefault(blake2b(row.tobytes(), digest_size=16).digest(), len(seen))
        if inverse[i] == len(first):
            first.append(i)
    return (X, None) if len(first) == len(X) else (X[first], inverse)


def with_copies(found: Partition, inverse: np.ndarray | None) -> Partition:
    """Return a partition of distinct samples as one of all samples."""
    if inverse is None:
        return found
    members = [replace(m, labels=m.labels[inverse], graph=None) for m in found.members]
    return replace(found, labels=found.labels[inverse], members=members)


@dataclass(frozen=True)
class Exemplars:
    """Samples that were clustered."""

    X: np.ndarray
    labels: np.ndarray
    confidence: np.ndarray
    n_clusters: int

    def __getitem__(self, which: np.ndarray) -> Exemplars:
        labels, confidence = self.labels[which], self.confidence[which]
        return Exemplars(self.X[which], labels, confidence, self.n_clusters)

    def nearest_subspace(self, bases: np.ndarray | None = None) -> Rule:
        """Return the rule by which a sample belongs to its nearest subspace."""
        if bases is None:
            bases, _ = subspaces_of(self.X, self.labels, self.n_clusters)

        def rule(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            energies = energies_in(rows, bases)
            left = np.maximum((rows**2).sum(axis=1, keepdims=True) - energies, 0.0)
            nearest, following = np.sqrt(np.partition(left, 1, axis=1)[:, :2].T)
            margins = 1.0 - nearest / np.where(following > 0, following, 1.0)
            return np.argmax(energies, axis=1), margins

        return rule

    def votes(self, coordinates: Coordinates) -> Rule:
        """Return the rule by which the nearest exemplars vote, each by its confidence."""
        V = coordinates.V[:, : coordinates.rank_at(ENERGY)]
        known = unit_rows(self.X @ V).astype(np.float32)
        k = min(N_VOTES, len(known))

        def rule(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            _, nearest = among_all(unit_rows(rows @ V).astype(np.float32), known, k)
            votes = np.zeros((len(rows), self.n_clusters))
            # A vote without confidence still decides where there is no other.
            weights = self.confidence[nearest] + 1e-3
            np.add.at(votes, (np.arange(len(rows))[:, None], self.labels[nearest]), weights)
            shares = votes / votes.sum(axis=1, keepdims=True)
            return np.argmax(votes, axis=1), shares.max(axis=1)

        return rule


def extend(
    X: np.ndarray, chosen: np.ndarray, known: Exemplars, coordinates: Coordinates, bases: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and confidence of all samples; the chosen ones keep theirs.

    The others go to their nearest subspace, or as their nearest exemplars vote: by the rule that
    gives more of the held-out exemplars their own label. The confidence of a sample is the mean of
    held-out exemplars that won by a similar margin, where a wrong label counts as 0.
    """
    labels, confidence = np.empty(len(X), dtype=np.int64), np.empty(len(X))
    if known.n_clusters == 1:
        labels[:], confidence[:] = 0, 1.0
        labels[chosen], confidence[chosen] = known.labels, known.confidence
        return labels, confidence
    known = replace(known, X=in_range(known.X))
    order = np.random.RandomState(coordinates.seed).permutation(len(chosen))
    held, kept = known[order[::HELD_OUT]], known[np.delete(order, np.s_[::HELD_OUT])]
    by_subspace, margins = kept.nearest_subspace()(held.X)
    by_votes, shares = kept.votes(coordinates)(held.X)
    right = (by_subspace == held.labels), (by_votes == held.labels)
    if right[1].sum() > right[0].sum():
        rule, scale = known.votes(coordinates), _calibration(shares, right[1] * held.confidence)
    else:
        rule = known.nearest_subspace(bases)
        scale = _calibration(margins, right[0] * held.confidence)
    for which in row_slices(len(X), chunk_rows(X.shape[1], X.itemsize)):
        labels[which], won_by = rule(in_range(X[which]))
        confidence[which] = np.interp(won_by, *scale) * X[which].any(axis=1)
    labels[chosen], confidence[chosen] = known.labels, known.confidence
    return labels, confidence


def _calibration(margins: np.ndarray, worth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean margins and mean confidence of groups, by ascending margin."""
    groups = np.array_split(np.argsort(margins, kind="stable"), min(N_GROUPS, len(margins)))
    means = np.array([[margins[g].mean(), worth[g].mean()] for g in groups])
    return means[:, 0], means[:, 1]
