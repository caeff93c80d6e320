"""What `SubspaceClustering` says about input that it can do little with."""

import warnings

import numpy as np
import pytest

from polyspan import SubspaceClustering
from polyspan.clustering.consensus import Member
from polyspan.clustering.summary import NO_SUBSPACES, complaints, fewer_clusters, verdict


def union(n_subspaces=3, n=20, m=20, dim=2):
    rng = np.random.RandomState(0)
    bases = [np.linalg.qr(rng.standard_normal((m, dim)))[0] for _ in range(n_subspaces)]
    X = np.concatenate([rng.standard_normal((n, dim)) @ b.T for b in bases])
    return X + 0.01 * rng.standard_normal(X.shape)


def messages(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    assert model.labels_.shape == (len(X),)
    assert np.isfinite(model.confidence_).all()
    assert 0 <= model.certainty_ <= 1
    assert np.isfinite(model.transform(X)).all()
    return [str(warning.message) for warning in caught]


def test_noise_is_no_union_of_subspaces():
    model = SubspaceClustering(3, random_state=0)
    found = messages(model, np.random.RandomState(0).standard_normal((90, 10)))
    assert any(NO_SUBSPACES in message for message in found)
    assert NO_SUBSPACES in model.verdict_
    assert f"certainty {model.certainty_:.2f}" in model.verdict_
    assert not model.separates_


def test_missing_entries_are_refused():
    X = union()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"polyspan\.SubspaceImputer"):
        SubspaceClustering(3).fit(X)


def test_more_clusters_than_samples_are_refused():
    with pytest.raises(ValueError, match="n_clusters=7 is larger than n_samples=6"):
        SubspaceClustering(7).fit(union(n=2))


@pytest.mark.parametrize("n", [3, 5])
def test_fewer_than_three_samples_for_each_cluster(n):
    found = messages(SubspaceClustering(2, random_state=0), union(1)[:n])
    assert any("fewer than three samples" in message for message in found)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_too_few_samples_to_find_a_number(n):
    model = SubspaceClustering(random_state=0)
    found = messages(model, union(1)[:n])
    assert model.n_clusters_ == 1
    assert model.certainty_ == 0
    assert any("too few" in message for message in found)


def test_zero_rows():
    X = union()
    X[:4] = 0.0
    model = SubspaceClustering(3, random_state=0)
    found = messages(model, X)
    assert any("4 of 60 samples are zero" in message for message in found)
    assert not model.confidence_[:4].any()


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("n_clusters", [2, 3, None])
def test_all_samples_are_equal(value, n_clusters):
    found = messages(SubspaceClustering(n_clusters, random_state=0), np.full((30, 4), value))
    assert found


def test_constant_rows():
    X = union()
    X[:20] = np.random.RandomState(0).uniform(1, 2, 20)[:, None]
    model = SubspaceClustering(3, random_state=0)
    messages(model, X)
    assert len(set(model.labels_[:20])) == 1


def test_duplicates_keep_together():
    X = np.repeat(union(n=8), 3, axis=0)
    model = SubspaceClustering(3, random_state=0)
    messages(model, X)
    assert (model.labels_.reshape(-1, 3) == model.labels_[::3, None]).all()


def test_few_different_samples_fill_few_clusters():
    X = np.repeat(np.eye(4)[:2], 20, axis=0)
    found = messages(SubspaceClustering(4, random_state=0), X)
    assert any("only 2 of 4 clusters have samples" in message for message in found)


def test_graphs_that_fall_apart():
    directions = np.repeat(union(n=3, n_subspaces=4), 15, axis=0)  # more than neighbours
    X = directions * np.random.RandomState(0).uniform(1, 2, len(directions))[:, None]
    found = messages(SubspaceClustering(2, random_state=0), X)
    assert any("fall apart into more than 2 components" in message for message in found)


def member(values, gap):
    return Member("m", "subspace", 9, None, np.asarray(values), gap, np.zeros(30, dtype=int))


def test_more_clusters_than_the_spectra_show():
    shown = [member([1, 0.99, 0.98, 0.3, 0.28, 0.27], 0.01)] * 3
    assert fewer_clusters(shown, 5) == 3
    assert fewer_clusters([member([1, 0.99, 0.98, 0.97, 0.96, 0.3], 0.94)], 5) is None
    assert fewer_clusters([], 5) is None
    labels = np.arange(30) % 5
    assert list(complaints(shown, labels, 5, 0, 1.0, 0.5)) == [
        "the spectra show 3 clusters rather than n_clusters=5"
    ]


def test_verdicts_have_three_degrees():
    sentences = [verdict(certainty, 0.5, 0.6, 0.9) for certainty in (0.9, 0.5, 0.1)]
    assert "clearly" in sentences[0]
    assert "doubtful" in sentences[1]
    assert NO_SUBSPACES in sentences[2]
    assert all("0.50" in sentence and "0.60" in sentence for sentence in sentences)
