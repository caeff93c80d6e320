"""What a clustering says of itself: how sure it is, what is wrong with the input, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.clustering.consensus import CLEAR_GAP, Member
from polyspan.clustering.decision import MOSTLY
from polyspan.graphs.spectra import GAP_FLOOR
from polyspan.summaries import Summary, listed

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
FOLLOWED = 0.9
#: A graph agrees with the result from this adjusted Rand index on.
AGREES = 0.8
#: A sample is unsure where less than this weight of the graphs agrees with its label.
UNSURE_SAMPLE = 0.5
#: The number is open where the next best one has more than this share of its evidence, unless the
#: certainty is high: groups may be clearly apart and yet fall apart further.
RIVAL = 1 / 3
#: From which certainty on a partition is called what, what that says about its labels, and what is
#: best done next.
LEVELS = (
    (
        0.8,
        "high",
        "At this level nearly all labels of faces, digits and samples near subspaces were right; "
        "those of other tables were often wrong.",
        "use the labels. If the columns have different units, compare with k-means first.",
    ),
    (
        0.6,
        "fair",
        "At this level most labels of faces, digits and samples near subspaces were right; those "
        "of other tables were often wrong.",
        "use the labels of samples with a high confidence, and look at the others.",
    ),
    (
        0.3,
        "low",
        "Many labels may be wrong.",
        "scale the columns to standard deviation 1 if their units differ, or the rows to norm 1 "
        "if only their direction matters; give n_clusters if you know it.",
    ),
    (
        0.0,
        "very low",
        "The labels say little.",
        "scale columns or rows; if the certainty stays very low, these data do not look like a "
        "union of subspaces: compare with k-means or HDBSCAN.",
    ),
)


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


def verdict_of_mixture(certainty: float, stable: float, contradiction: float) -> str:
    """Return one sentence on clusters of the mixture, with the numbers behind it."""
    return (
        f"graphs with {contradiction:.0%} of the weight contradict their consensus, so a mixture "
        f"of affine subspaces speaks (certainty {certainty:.2f} of 1; with a fifth of the samples "
        f"left out it repeats its clusters with an adjusted Rand index of {stable:.2f})"
    )


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
    if agreement < FOLLOWED:
        yield (
            f"{1.0 - agreement:.0%} of the samples lie nearer to the subspace of another cluster "
            "than to that of their own: predict, transform and reconstruct do not follow labels_"
        )
    fewer = fewer_clusters(members, n_clusters)
    if fewer is not None:
        yield f"the spectra show {fewer} clusters rather than n_clusters={n_clusters}"


def summarise(model: Any) -> Summary:
    """Return what a fitted `SubspaceClustering` found, how sure it is, and what to do next."""
    labels, confidence = to_numpy(model.labels_), to_numpy(model.confidence_)
    dims = to_numpy(model.subspace_dims_)
    n_clusters, sizes = len(dims), np.bincount(labels, minlength=len(dims))
    rival, is_open = _rival(model)
    how = "found" if hasattr(model, "evidence_") else "given"
    facts = {
        "Clusters": f"{n_clusters} ({how}{', not settled' * is_open})",
        "Sizes": listed(sizes),
        "Dimensions": listed(dims),
    }
    if n_clusters == 1:
        what = f"{len(labels)} samples are one cluster near a subspace of dimension {dims[0]}."
        return Summary((what,), facts=tuple(facts.items()))
    own = [confidence[labels == c] for c in range(n_clusters)]
    table = {
        "cluster": np.arange(n_clusters),
        "samples": sizes,
        "dimension": dims,
        "median_confidence": np.array([np.median(one) if len(one) else np.nan for one in own]),
        "unsure_samples": np.array([int((one < UNSURE_SAMPLE).sum()) for one in own]),
    }
    _, word, meaning, advice = level(model.certainty_)
    contradiction = getattr(model, "contradiction_", 0.0)  # files of older versions lack it
    facts["Certainty"] = f"{word}: {model.certainty_:.2f} of 1"
    if hasattr(model, "_mixture"):
        facts["Source"] = model.source_
        meaning = (
            f"Graphs with {contradiction:.0%} of the weight contradict their consensus, so these "
            "are the clusters of a mixture of affine subspaces."
        )
        advice = "use the labels of samples with a high confidence, and compare with k-means."
    elif contradiction > MOSTLY:
        facts["Contradiction"] = f"graphs with {contradiction:.0%} of the weight disagree"
        meaning, advice = (
            f"Graphs with {contradiction:.0%} of the weight contradict the labels, so these are "
            "probably wrong.",
            ("compare with k-means or a Gaussian mixture."),
        )
    elif is_open:
        meaning = "It is about these clusters: each may hold several groups."
        advice = "give n_clusters if you know it; else fit the next best number too, and compare."
    agreeing = _agreeing(model, labels)
    if agreeing:
        facts["Graphs"] = agreeing
    unsure = np.flatnonzero(confidence < UNSURE_SAMPLE)
    unsure = unsure[np.argsort(confidence[unsure], kind="stable")]
    facts["Unsure samples"] = f"{len(unsure)} with a confidence below .5"
    facts["Next"] = advice
    least = f", the least sure first: {first_ten(unsure)}" if len(unsure) else ""
    sentences = (
        f"{len(labels)} samples are in {n_clusters} clusters. The number was {how}{rival}.",
        f"The certainty is {facts['Certainty']}. {meaning}",
        f"Unsure samples, counted from 0: {facts['Unsure samples']}{least}.",
        f"Next: {advice}",
    )
    return Summary(sentences, table, tuple(facts.items()))


def level(certainty: float) -> tuple[float, str, str, str]:
    """Return the entry of `LEVELS` for a certainty."""
    return next(one for one in LEVELS if certainty >= one[0])


def _rival(model: Any) -> tuple[str, bool]:
    """Name the next best number of clusters, if any, and tell whether it leaves the number open."""
    if hasattr(model, "_mixture"):
        return "", False
    evidence = to_numpy(getattr(model, "evidence_", np.zeros(0)))
    if len(evidence) < 2 or not evidence.max() > 0:
        return "", False
    first, second = np.argsort(-evidence, kind="stable")[:2]
    share = float(evidence[second] / evidence[first])
    is_open = share > RIVAL and level(model.certainty_)[1] != "high"
    text = f"; the next best is {second + 2}, with {share:.0%} of the evidence"
    return text + ", so it is not settled" * is_open, is_open


def _agreeing(model: Any, labels: np.ndarray) -> str:
    """Say how many graphs agree with the result; nothing where only some samples were clustered."""
    every = model.members_["labels"]
    if not len(every) or every.shape[1] != len(labels):
        return ""
    agree = sum(adjusted_rand_score(own, labels) >= AGREES for own in every)
    return f"{agree} of {len(every)} agree with the result"
