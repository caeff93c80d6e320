"""What `summary` says, for partitions of every certainty."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyspan.clustering import SubspaceClustering
from polyspan.clustering.summary import level, summarise

LABELS = np.repeat([0, 1], [30, 10])
MEMBERS = {
    "graph": np.array(["angles", "neighbours"]),
    "gap": np.array([0.9, 0.1]),
    "weight": np.array([0.81, 0.01]),
    "labels": np.stack([LABELS, np.arange(40) % 2]),
}


def fitted(certainty=0.9, confidence=None, **others):
    """Two clusters, two graphs: one that gives them and one that does not."""
    return SimpleNamespace(
        labels_=LABELS,
        confidence_=np.full(40, 0.95) if confidence is None else confidence,
        certainty_=certainty,
        subspace_dims_=np.array([3, 5]),
        **{"members_": MEMBERS, **others},
    )


def one_cluster():
    zeros, ones = np.zeros(40, int), np.ones(40)
    return SimpleNamespace(
        labels_=zeros, confidence_=ones, certainty_=1.0, subspace_dims_=np.array([3]), members_={}
    )


def test_a_sure_partition():
    found = summarise(fitted())
    clusters, sure, unsure, advice = found.sentences
    assert clusters == "40 samples are in 2 clusters. The number was given."
    assert sure.startswith("The certainty is high: 0.90 of 1. At this level nearly all labels")
    assert sure.endswith("those of other tables were often wrong.")
    assert unsure == "Unsure samples, counted from 0: 0 with a confidence below .5."
    assert advice == (
        "Next: use the labels. If the columns have different units, compare with k-means first."
    )
    assert found.table["samples"].tolist() == [30, 10]
    assert found.table["dimension"].tolist() == [3, 5]
    assert found.table["median_confidence"].tolist() == [0.95, 0.95]
    lines = str(found).splitlines()
    assert lines[-4] == ""
    assert max(map(len, lines)) <= 80
    assert lines[-1].split() == ["1", "10", "5", "0.95", "0"]


def test_unsure_samples_are_named_the_least_sure_first():
    confidence = np.full(40, 0.9)
    confidence[[35, 7, 36]] = [0.4, 0.2, 0.3]
    found = summarise(fitted(confidence=confidence))
    assert found.sentences[2] == (
        "Unsure samples, counted from 0: 3 with a confidence below .5, the least sure first: "
        "7, 36, 35."
    )
    assert found.table["unsure_samples"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("certainty", "word", "advice"),
    [
        (0.8, "high", "use the labels"),
        (0.6, "fair", "of samples with a high confidence"),
        (0.3, "low", "give n_clusters if you know it"),
        (0.29, "very low", "k-means or HDBSCAN"),
        (0.0, "very low", "scale columns or rows"),
        (0.4, "low", "scale the columns to standard deviation 1 if their units differ"),
    ],
)
def test_words_for_certainties(certainty, word, advice):
    assert level(certainty)[1] == word
    assert advice in summarise(fitted(certainty)).sentences[-1]


def test_a_number_with_a_strong_rival_is_open():
    evidence = np.array([1.0, 0.2, 0.7])
    clusters, sure, _, advice = summarise(fitted(0.68, evidence_=evidence)).sentences
    assert "the next best is 4, with 70% of the evidence, so it is not settled." in clusters
    assert "each may hold several groups" in sure
    assert "nearly all labels" not in sure
    assert "fit the next best number too" in advice
    for settled in (
        fitted(0.9, evidence_=evidence),
        fitted(0.68, evidence_=np.array([1.0, 0.3, 0.2])),
        fitted(0.68),
    ):
        text = " ".join(summarise(settled).sentences)
        assert "not settled" not in text
        assert "labels of faces, digits" in text


def test_a_number_that_was_found_has_its_runner_up():
    first = summarise(fitted(evidence_=np.array([2.0, 0.5, 1.0]))).sentences[0]
    assert first.endswith("The number was found; the next best is 4, with 50% of the evidence.")
    # None of the others has any evidence where the best has none.
    for evidence in (np.zeros(3), np.zeros(0), np.array([1.0])):
        assert summarise(fitted(evidence_=evidence)).sentences[0].endswith("The number was found.")


def test_labels_that_most_graphs_contradict():
    found = summarise(fitted(0.1, contradiction_=0.9))
    assert "of the weight contradict the labels, so these are probably" in found.sentences[1]
    assert found.sentences[-1] == "Next: compare with k-means or a Gaussian mixture."
    assert dict(found.facts)["Contradiction"] == "graphs with 90% of the weight disagree"
    assert "contradict" not in str(summarise(fitted(0.1, contradiction_=0.6)).sentences)


def test_members_of_some_samples_are_not_compared():
    part = {**MEMBERS, "labels": MEMBERS["labels"][:, :20]}
    assert "Graphs" not in dict(summarise(fitted(members_=part)).facts)
    assert dict(summarise(fitted()).facts)["Graphs"] == "1 of 2 agree with the result"


def test_one_cluster_has_no_certainty():
    found = summarise(one_cluster())
    assert str(found) == "40 samples are one cluster near a subspace of dimension 3."
    assert found.facts == (("Clusters", "1 (given)"), ("Sizes", "40"), ("Dimensions", "3"))


def test_the_method():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8)) for _ in "ab"])
    X += 0.01 * rng.standard_normal(X.shape)
    with pytest.raises(NotFittedError):
        SubspaceClustering().summary()
    model = SubspaceClustering(2, random_state=0).fit(X)
    text = model.summary()
    assert text.startswith("60 samples are in 2 clusters. The number was given.\n")
    longer = model.summary(X)
    assert longer.startswith(f"{text}\n\nSubspaceClustering: 2 subspaces of 8 features, of dim")
    assert model._short_summary().table["samples"].tolist() == [30, 30]


def test_what_a_notebook_shows():
    confidence = np.full(40, 0.9)
    confidence[[35, 7, 36]] = 0.2
    shown = summarise(fitted(0.68, confidence, evidence_=np.array([1.0, 0.2, 0.7])))
    facts = dict(shown.facts)
    assert facts["Clusters"] == "2 (found, not settled)"
    assert (facts["Sizes"], facts["Dimensions"]) == ("30, 10", "3, 5")
    assert facts["Certainty"] == "fair: 0.68 of 1"
    assert facts["Unsure samples"] == "3 with a confidence below .5"
    assert facts["Next"].startswith("give n_clusters if you know it")
    assert "Certainty" in shown.short_html()
