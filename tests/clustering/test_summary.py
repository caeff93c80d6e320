"""What `summary` says, for partitions of every certainty."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyspan.clustering import SubspaceClustering
from polyspan.clustering.summary import Fitted, level, short_summary, summarise

LABELS = np.repeat([0, 1], [30, 10])


def fitted(certainty=0.9, confidence=None, given=True, **others):
    """Two clusters, two graphs: one that gives them and one that does not."""
    members = {
        "graph": np.array(["angles", "neighbours"]),
        "gap": np.array([0.9, 0.1]),
        "weight": np.array([0.81, 0.01]),
        "labels": np.stack([LABELS, np.arange(40) % 2]),
    }
    confidence = np.full(40, 0.95) if confidence is None else confidence
    return Fitted(
        LABELS, confidence, certainty, "the consensus of all graphs", np.array([3, 5]), members,
        number_given=given, **others,
    )  # fmt: skip


def test_a_sure_partition():
    text = summarise(fitted())
    lines = text.splitlines()
    assert lines[0] == (
        "40 samples are in 2 clusters. Sizes: 30, 10. Dimensions of their subspaces: 3, 5."
    )
    assert lines[1] == "The number of clusters was given."
    assert lines[2].startswith("The certainty is high: 0.90 of 1. ")
    assert "those of other tables were often wrong. The labels come from" in lines[2]
    assert lines[2].endswith("The labels come from the consensus of all graphs.")
    assert lines[3] == "1 of 2 graphs agree with the result."
    assert "at least 0.95; one in ten has 0.95 or less." in lines[4]
    assert lines[5] == "No sample has a confidence below .5."
    assert lines[6] == (
        "Next: use the labels. If the columns have different units, compare with k-means first."
    )


def test_unsure_samples_are_named_the_least_sure_first():
    confidence = np.full(40, 0.9)
    confidence[[35, 7, 36]] = [0.4, 0.2, 0.3]
    text = summarise(fitted(confidence=confidence))
    assert "3 samples have a confidence below .5, the least sure first, counted from 0:" in text
    assert "counted from 0: 7, 36, 35." in text
    assert "Cluster 1 has the largest share of them: 20% of its samples." in text
    assert "Next: use the labels; look at the unsure samples first. If the columns" in text


@pytest.mark.parametrize(
    ("certainty", "word", "advice"),
    [
        (0.8, "high", "use the labels"),
        (0.6, "fair", "of samples with a high confidence"),
        (0.3, "low", "try another n_clusters"),
        (0.29, "very low", "k-means or HDBSCAN"),
        (0.0, "very low", "the rows to norm 1"),
        (0.4, "low", "scale the columns to standard deviation 1 if their units differ"),
    ],
)
def test_words_for_certainties(certainty, word, advice):
    assert level(certainty)[0] == word
    assert advice in summarise(fitted(certainty)).splitlines()[-1]


def test_a_number_with_a_strong_rival_is_open():
    evidence = np.array([1.0, 0.2, 0.7])
    text = summarise(fitted(0.68, given=False, evidence=evidence))
    assert "with 70% of its evidence. The number is not settled." in text
    assert "each may hold several groups" in text
    assert "nearly all labels" not in text
    assert "fit the next best number too" in text.splitlines()[-1]
    for sure in (
        fitted(0.9, given=False, evidence=evidence),
        fitted(0.68, given=False, evidence=np.array([1.0, 0.3, 0.2])),
        fitted(0.68, given=True),
    ):
        assert "not settled" not in summarise(sure)
        assert "labels of faces, digits" in summarise(sure)


def test_a_number_that_was_found_has_its_runner_up():
    text = summarise(fitted(given=False, evidence=np.array([2.0, 0.5, 1.0])))
    assert "The next best number is 4, with 50% of its evidence." in text
    assert "not settled" not in text
    # None of the others has any evidence where the best has none.
    flat = summarise(fitted(given=False, evidence=np.zeros(3)))
    assert "found from the gaps of the spectra." in flat
    few = summarise(fitted(0.4, given=False))
    assert "too few samples or directions" in few
    assert "Many labels may be wrong." in few
    assert "give n_clusters if you know it" in few


def test_labels_that_most_graphs_contradict():
    text = summarise(fitted(0.1, contradiction=0.9))
    assert "0.10 of 1. Graphs with 90% of the weight contradict the labels, so these" in text
    assert text.endswith("Next: compare with k-means or a Gaussian mixture.")
    assert "contradict" not in summarise(fitted(0.1, contradiction=0.6))


def test_members_of_some_samples_are_not_compared():
    whole = fitted()
    part = {**whole.members, "labels": whole.members["labels"][:, :20]}
    text = summarise(Fitted(**{**whole.__dict__, "members": part}))
    assert "graphs agree" not in text


def test_one_cluster_has_no_certainty():
    one = Fitted(np.zeros(40, int), np.ones(40), 1.0, "one cluster", np.array([3]), {})
    assert summarise(one).splitlines() == [
        "40 samples are one cluster near a subspace of dimension 3.",
        "The number of clusters was given.",
    ]


def test_the_method():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8)) for _ in "ab"])
    X += 0.01 * rng.standard_normal(X.shape)
    with pytest.raises(NotFittedError):
        SubspaceClustering().summary()
    model = SubspaceClustering(2, random_state=0).fit(X)
    text = model.summary()
    assert text.startswith("60 samples are in 2 clusters. Sizes: 30, 30.")
    longer = model.summary(X)
    assert longer.startswith(f"{text}\n\nSubspaceClustering: 2 subspaces of 8 features, of dim")
    assert "60 samples given, 30 in each." in longer


def test_what_a_notebook_shows():
    confidence = np.full(40, 0.9)
    confidence[[35, 7, 36]] = 0.2
    evidence = np.array([1.0, 0.2, 0.7])
    shown = short_summary(fitted(0.68, confidence, given=False, evidence=evidence))
    facts = dict(shown.facts)
    assert facts["Clusters"] == "2 (found, not settled)"
    assert (facts["Sizes"], facts["Dimensions"]) == ("30, 10", "3, 5")
    assert facts["Certainty"] == "fair: 0.68 of 1"
    assert facts["Graphs"] == "1 of 2 agree with the result"
    assert facts["Unsure samples"] == "3 with a confidence below .5"
    assert facts["Next"].startswith("give n_clusters if you know it")
    assert shown.table["samples"].tolist() == [30, 10]
    assert shown.table["unsure_samples"].tolist() == [1, 2]
    one = Fitted(np.zeros(40, int), np.ones(40), 1.0, "one cluster", np.array([3]), {})
    assert short_summary(one).facts == (
        ("Clusters", "1 (given)"), ("Sizes", "40"), ("Dimensions", "3"),
    )  # fmt: skip
