"""What a fitted clustering says, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from polyspan.arrays import to_numpy
from polyspan.checks import first_ten
from polyspan.clustering.decision import MOSTLY
from polyspan.summaries import Summary, listed

#: A graph agrees with the result from this adjusted Rand index on.
AGREES = 0.8
#: A sample is unsure where less than this weight of the graphs agrees with its label.
UNSURE_SAMPLE = 0.5
#: The number is open where the next best one has more than this share of its evidence, unless the
#: certainty is high: groups may be clearly apart and yet fall apart further.
RIVAL = 1 / 3
#: From which certainty on a partition is called what, and what that says about its labels.
LEVELS = (
    (0.8, "high", "At this level nearly all labels of faces, digits and samples near subspaces "
                  "were right; those of other tables were often wrong."),
    (0.6, "fair", "At this level most labels of faces, digits and samples near subspaces were "
                  "right; those of other tables were often wrong."),
    (0.3, "low", "Many labels may be wrong."),
    (0.0, "very low", "The labels say little."),
)  # fmt: skip


@dataclass(frozen=True)
class Fitted:
    """What the text is made of: the attributes of a fitted `SubspaceClustering`."""

    labels: np.ndarray
    confidence: np.ndarray
    certainty: float
    source: str
    dims: np.ndarray
    """Dimension of the subspace of each cluster."""
    members: Mapping[str, np.ndarray]
    """Table of graphs: "graph", "gap", "weight", "labels"."""
    evidence: np.ndarray | None = None
    """Evidence for 2, 3, … clusters, where the number was found."""
    number_given: bool = True
    contradiction: float = 0.0
    """Fraction of the weight of the graphs that contradict the result."""

    @classmethod
    def of(cls, model: Any) -> Fitted:
        """Return what a fitted model has, in NumPy arrays wherever the model is."""
        found = hasattr(model, "evidence_")  # since the fit; the parameter may have changed
        return cls(
            to_numpy(model.labels_), to_numpy(model.confidence_), model.certainty_, model.source_,
            to_numpy(model.subspace_dims_), model.members_,
            to_numpy(model.evidence_) if found else None, number_given=not found,
            contradiction=getattr(model, "contradiction_", 0.0),  # files of older versions lack it
        )  # fmt: skip


def summarise(fitted: Fitted) -> str:
    """Return some lines about the clusters, how sure they are, and what to do next."""
    return "\n".join(_sentences(fitted))


def short_summary(fitted: Fitted) -> Summary:
    """Return the same sentences with the sizes and the certainty, for a notebook."""
    facts = tuple(_facts(fitted))
    if len(fitted.dims) == 1:
        return Summary(tuple(_sentences(fitted)), facts=facts)
    return Summary(tuple(_sentences(fitted)), _table(fitted), facts)


def _sentences(fitted: Fitted) -> list[str]:
    lines = [_clusters(fitted), _number(fitted)]
    if len(fitted.dims) > 1:
        lines += [_certainty(fitted), _members(fitted), _confidence(fitted), _unsure(fitted)]
        lines += [f"Next: {_advice(fitted)}"]
    return [line for line in lines if line]


def _facts(fitted: Fitted) -> Iterator[tuple[str, str]]:
    """Yield the sizes and the certainty, as names and values."""
    n_clusters = len(fitted.dims)
    how = "given" if fitted.number_given else "found"
    if _open_number(fitted):
        how += ", not settled"
    yield "Clusters", f"{n_clusters} ({how})"
    yield "Sizes", listed(np.bincount(fitted.labels, minlength=n_clusters))
    yield "Dimensions", listed(fitted.dims)
    if n_clusters == 1:
        return
    word, _ = level(fitted.certainty)
    yield "Certainty", f"{word}: {fitted.certainty:.2f} of 1"
    if fitted.contradiction > MOSTLY:
        yield "Contradiction", f"graphs with {fitted.contradiction:.0%} of the weight disagree"
    agreeing = _agreeing(fitted)
    if agreeing is not None:
        yield "Graphs", f"{agreeing.sum()} of {len(agreeing)} agree with the result"
    n_unsure = int((fitted.confidence < UNSURE_SAMPLE).sum())
    yield "Unsure samples", f"{n_unsure} with a confidence below .5"
    yield "Next", _advice(fitted)


def _table(fitted: Fitted) -> dict[str, np.ndarray]:
    """Return sizes, dimension and confidence of every cluster."""
    every = range(len(fitted.dims))
    own = [fitted.confidence[fitted.labels == c] for c in every]
    return {
        "cluster": np.arange(len(fitted.dims)),
        "samples": np.array([len(one) for one in own]),
        "dimension": fitted.dims,
        "median_confidence": np.array([np.median(one) if len(one) else np.nan for one in own]),
        "unsure_samples": np.array([int((one < UNSURE_SAMPLE).sum()) for one in own]),
    }


def level(certainty: float) -> tuple[str, str]:
    """Return a word for a certainty, and a sentence on what it says about the labels."""
    return next((word, meaning) for least, word, meaning in LEVELS if certainty >= least)


def _clusters(fitted: Fitted) -> str:
    n, n_clusters = len(fitted.labels), len(fitted.dims)
    if n_clusters == 1:
        return f"{n} samples are one cluster near a subspace of dimension {fitted.dims[0]}."
    sizes = np.bincount(fitted.labels, minlength=n_clusters)
    return (
        f"{n} samples are in {n_clusters} clusters. Sizes: {listed(sizes)}. Dimensions of their "
        f"subspaces: {listed(fitted.dims)}."
    )


def _number(fitted: Fitted) -> str:
    if fitted.number_given:
        return "The number of clusters was given."
    if fitted.evidence is None or not len(fitted.evidence):
        return "There are too few samples or directions to look for more clusters."
    order = np.argsort(-fitted.evidence, kind="stable")
    text = "The number of clusters was found from the gaps of the spectra"
    if len(order) == 1 or not fitted.evidence[order[0]] > 0:
        return f"{text}."
    share = float(fitted.evidence[order[1]] / fitted.evidence[order[0]])
    text += f". The next best number is {order[1] + 2}, with {share:.0%} of its evidence."
    return text + (" The number is not settled." if _open_number(fitted) else "")


def _open_number(fitted: Fitted) -> bool:
    """Tell whether another number of clusters has nearly as much evidence."""
    if fitted.number_given or fitted.evidence is None or len(fitted.evidence) < 2:
        return False
    second, first = np.sort(fitted.evidence)[-2:]
    high = level(fitted.certainty)[0] == "high"
    return bool(first > 0 and second > RIVAL * first and not high)


def _certainty(fitted: Fitted) -> str:
    word, meaning = level(fitted.certainty)
    if fitted.contradiction > MOSTLY:
        meaning = (
            f"Graphs with {fitted.contradiction:.0%} of the weight contradict the labels, so these "
            "are probably wrong."
        )
    elif _open_number(fitted):
        meaning = "It is about these clusters: each may hold several groups."
    return (
        f"The certainty is {word}: {fitted.certainty:.2f} of 1. {meaning} The labels come from "
        f"{fitted.source}."
    )


def _agreeing(fitted: Fitted) -> np.ndarray | None:
    """Tell which graphs agree with the result; None where only some samples were clustered."""
    names, labels = fitted.members["graph"], fitted.members["labels"]
    if not len(names) or labels.shape[1] != len(fitted.labels):
        return None
    return np.array([adjusted_rand_score(own, fitted.labels) >= AGREES for own in labels])


def _members(fitted: Fitted) -> str:
    """Say how many graphs agree with the result; `members_` has their names."""
    agree = _agreeing(fitted)
    if agree is None:
        return ""
    return f"{int(agree.sum())} of {len(agree)} graphs agree with the result."


def _confidence(fitted: Fitted) -> str:
    low, middle = np.quantile(fitted.confidence, [0.1, 0.5])
    return (
        f"Half of the samples have a confidence of at least {middle:.2f}; one in ten has {low:.2f} "
        "or less."
    )


def _unsure(fitted: Fitted) -> str:
    """Name the least sure samples, and the cluster with most of them for its size."""
    unsure = np.flatnonzero(fitted.confidence < UNSURE_SAMPLE)
    if not len(unsure):
        return "No sample has a confidence below .5."
    order = unsure[np.argsort(fitted.confidence[unsure], kind="stable")]
    have = "sample has" if len(unsure) == 1 else "samples have"
    shares = np.array(
        [np.mean(fitted.confidence[fitted.labels == c] < UNSURE_SAMPLE)
         if np.any(fitted.labels == c) else 0.0 for c in range(len(fitted.dims))]
    )  # fmt: skip
    worst = int(np.argmax(shares))
    return (
        f"{len(unsure)} {have} a confidence below .5, the least sure first, counted from 0: "
        f"{first_ten(order)}. "
        f"Cluster {worst} has the largest share of them: {shares[worst]:.0%} of its samples."
    )


def _advice(fitted: Fitted) -> str:
    word, _ = level(fitted.certainty)
    unsure = bool((fitted.confidence < UNSURE_SAMPLE).any())
    if word == "high":
        return (
            f"use the labels{'; look at the unsure samples first' if unsure else ''}. If the "
            "columns have different units, compare with k-means first."
        )
    if fitted.contradiction > MOSTLY:
        return "compare with k-means or a Gaussian mixture."
    if _open_number(fitted):
        return (
            "give n_clusters if you know it; else fit the next best number too, and look at "
            "samples of the largest cluster."
        )
    if word == "fair":
        return "use the labels of samples with a high confidence, and look at the others."
    norms = (
        "scale the columns to standard deviation 1 if their units differ, or the rows to norm 1 if "
        "only their direction matters"
    )
    if word == "low":
        number = "try another n_clusters"
        if not fitted.number_given:
            number = "give n_clusters if you know it"
        return f"{norms}, {number}, and trust only samples with a high confidence."
    return (
        f"{norms}. If the certainty stays very low, these data do not look like a union of "
        "subspaces: compare with k-means or HDBSCAN."
    )
