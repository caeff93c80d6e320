"""What a fit says about itself in words: how sure it is, and what is wrong with the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polyspan.clustering.consensus import CLEAR_GAP, Member
from polyspan.clustering.decision import MOSTLY
from polyspan.graphs.spectra import GAP_FLOOR

#: Partitions of at least this certainty are called clear.
SURE = 0.8
#: A partition of lower certainty is reported as one that does not separate.
UNSURE = 0.3
NO_SUBSPACES = (
    "these data do not look like a union of subspaces: k-means or HDBSCAN may serve better"
)
#: The gaps speak for another number of clusters if their squares sum to this many times as much.
FEWER = 4.0
#: Where fewer of the samples lie nearest to the subspace of their own cluster, a warning says so.
AGREES = 0.9


def verdict(
    certainty: float,
    largest_gap: float,
    confidence: float,
    agreement: float,
    contradiction: float = 0.0,
) -> str:
    """Return one sentence on the whole partition, with the numbers behind it."""
    numbers = (
        f"(certainty {certainty:.2f} of 1, largest gap of a spectrum {largest_gap:.2f} of 1, "
        f"mean agreement of the graphs {confidence:.2f} of 1, {agreement:.0%} of the samples "
        "nearest to the subspace of their cluster)"
    )
    if certainty >= SURE:
        return f"the clusters separate clearly {numbers}"
    if certainty >= UNSURE:
        return f"the clusters separate, but some labels are doubtful {numbers}"
    if contradiction > MOSTLY:
        return (
            f"graphs with {contradiction:.0%} of the weight contradict the labels, so these are "
            f"probably wrong: compare with k-means or a Gaussian mixture {numbers}"
        )
    return f"{NO_SUBSPACES} {numbers}"


def fewer_clusters(members: Sequence[Member], n_clusters: int) -> int | None:
    """Return a smaller number of clusters that the spectra clearly show instead, or None."""
    if not members or max(member.gap for member in members) >= CLEAR_GAP:
        return None
    known = [member.values for member in members if len(member.values) > n_clusters]
    if n_clusters < 3 or not known:
        return None
    values = np.stack(known)
    gaps = np.maximum(0.0, (values[:, :-1] - values[:, 1:]) / (1.0 - values[:, 1:] + GAP_FLOOR))
    evidence = (gaps**2).sum(axis=0)  # for 1, 2, … clusters
    best = int(np.argmax(evidence[1:])) + 2
    clear = gaps[:, best - 1].max() >= CLEAR_GAP
    return best if clear and evidence[best - 1] > FEWER * evidence[n_clusters - 1] else None


def fallen_apart(members: Sequence[Member], n_clusters: int) -> int:
    """Return how many graphs have more connected components than there are clusters."""
    return sum(
        len(member.values) > n_clusters and member.values[n_clusters] > 1.0 - 1e-9
        for member in members
    )


def complaints(
    members: Sequence[Member],
    labels: np.ndarray,
    n_clusters: int,
    n_zero: int,
    agreement: float,
    certainty: float,
) -> Iterator[str]:
    """Yield a sentence for everything that a user should change about the input.

    `agreement` is the fraction of the samples that lie nearest to the subspace of their cluster.
    """
    n = len(labels)
    if n_zero:
        yield (
            f"{n_zero} of {n} samples are zero: they lie in every subspace, so their labels say "
            "nothing and their confidence is 0"
        )
    if n_clusters == 1:
        return
    sizes = np.bincount(labels, minlength=n_clusters)
    if (sizes == 0).any():
        yield (
            f"only {int((sizes > 0).sum())} of {n_clusters} clusters have samples: ask for fewer "
            "clusters"
        )
    elif (sizes < 3).any():
        yield (
            f"{int((sizes < 3).sum())} of {n_clusters} clusters have fewer than three samples: "
            "ask for fewer clusters"
        )
    fallen = fallen_apart(members, n_clusters)
    if 2 * fallen > len(members) and certainty < SURE:
        yield (
            f"{fallen} of {len(members)} graphs fall apart into more than {n_clusters} components, "
            "and count for nothing: try more clusters, or leave out samples far from all others"
        )
    if agreement < AGREES:
        yield (
            f"{1.0 - agreement:.0%} of the samples lie nearer to the subspace of another cluster "
            "than to that of their own: predict, transform and reconstruct do not follow labels_"
        )
    fewer = fewer_clusters(members, n_clusters)
    if fewer is not None:
        yield f"the spectra show {fewer} clusters rather than n_clusters={n_clusters}"
