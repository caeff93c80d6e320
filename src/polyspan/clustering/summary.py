"""What a fitted clustering says, in plain words and as a small table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.clustering.decision import MOSTLY
from polyspan.summaries import Summary, listed

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
    if contradiction > MOSTLY:
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
