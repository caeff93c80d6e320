"""Lines, planes and clouds: samples along few directions, and labels that no subspaces explain."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from polyspan.clustering import SubspaceClustering
from polyspan.clustering import subspace_clustering as module
from polyspan.clustering.coordinates import beyond_chance, in_range, subspaces_of
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import clustering_error
from polyspan.plotting import plot_partition
from support import require_torch

UNION = make_union_of_subspaces(
    (60, 60, 60), n_features=30, subspace_dim=3, spread=0.6, noise=0.02, random_state=0
)


def flats(n_clusters, dim, n_features, noise, n=40, seed=0):
    """Return samples of subspaces that are drawn at random, on both sides of zero."""
    rng = np.random.RandomState(seed)
    bases = [np.linalg.qr(rng.standard_normal((n_features, dim)))[0] for _ in range(n_clusters)]
    X = np.concatenate([rng.standard_normal((n, dim)) @ basis.T for basis in bases])
    return X + noise * rng.standard_normal(X.shape), np.repeat(np.arange(n_clusters), n)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("n_clusters", "n_features", "noise"),
    [(2, 2, 0.005), (2, 4, 0.005), (3, 6, 0.005), (3, 30, 0.0), (3, 30, 0.005)],
)
def test_lines_are_found_in_any_dimension(n_clusters, n_features, noise, known):
    X, labels = flats(n_clusters, 1, n_features, noise)
    model = SubspaceClustering(n_clusters if known else None, random_state=0).fit(X)
    assert model.n_clusters_ == n_clusters
    assert clustering_error(labels, model.labels_) < 0.02  # samples near zero are all noise
    assert model.certainty_ > 0.8


def test_more_lines_than_dimensions():
    X, labels = flats(5, 1, 4, 0.005, seed=1)
    model = SubspaceClustering(5, random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) < 0.02


def test_planes_that_fill_the_space_are_found():
    X, labels = flats(3, 2, 6, 0.005)
    model = SubspaceClustering(3, random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) == 0.0


@pytest.mark.parametrize("n_clusters", [2, None])
def test_one_elongated_cloud_is_no_union_of_subspaces(n_clusters):
    """Neighbours cut it by sign, but x and -x lie in one subspace."""
    X = np.random.RandomState(0).standard_normal((100, 2)) * [10, 1]
    with pytest.warns(UserWarning, match="do not look like a union of subspaces"):
        model = SubspaceClustering(n_clusters, random_state=0).fit(X)
    assert not model.separates_


@pytest.mark.parametrize("n_clusters", [5, 8])
def test_too_many_clusters_are_not_certain(n_clusters):
    with pytest.warns(UserWarning, match="the spectra show 3 clusters"):
        model = SubspaceClustering(n_clusters, random_state=0).fit(UNION.X)
    assert model.certainty_ < 0.3
    assert (np.bincount(model.labels_, minlength=n_clusters) > 0).all()


@pytest.mark.parametrize("offset", [0.0, 1.0, 3.0])
def test_predictions_follow_the_labels_also_with_a_common_part(offset):
    """Its direction holds nearly all energy of every cluster: subspaces need more dimensions."""
    X = UNION.X + offset
    model = SubspaceClustering(3, random_state=0).fit(X)
    assert clustering_error(UNION.labels, model.labels_) == 0.0
    assert np.mean(model.predict(X) == model.labels_) == pytest.approx(model.agreement_, abs=0.01)
    assert model.agreement_ > 0.95


def test_labels_at_random_agree_by_chance():
    X, _ = flats(1, 2, 6, 0.01, n=300)
    _, agreement = subspaces_of(X, np.random.RandomState(0).randint(3, size=300), 3)
    assert beyond_chance(agreement, 3) < 0.3
    assert beyond_chance(1.0, 3) == beyond_chance(0.2, 1) == 1.0
    assert beyond_chance(1 / 3, 3) == pytest.approx(0.0)
    assert beyond_chance(0.1, 3) == 0.0


@pytest.mark.filterwarnings("ignore:.*clusters have samples")
def test_nothing_is_predicted_into_a_cluster_without_samples():
    X = np.repeat([[1, 0.2, 0], [0, 1, 0.1]], 20, axis=0)
    model = SubspaceClustering(4, random_state=0).fit(X)
    empty = np.flatnonzero(np.bincount(model.labels_, minlength=4) == 0)
    assert (model.subspace_dims_[empty] == 0).all()
    new = np.random.RandomState(0).standard_normal((50, 3))
    assert not np.isin(model.predict(new), empty).any()
    assert (model.confidence_ == 0).all()  # there was nothing to compare


def test_confidence_and_what_was_given():
    model = SubspaceClustering(random_state=0).fit(UNION.X)
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    assert "was found" in model.set_params(n_clusters=3).summary()
    model.fit(UNION.X)
    assert "was given" in model.set_params(n_clusters=None).summary()
    with pytest.raises(NotFittedError):
        _ = SubspaceClustering().separates_


@pytest.mark.parametrize("scale", [1.0, 1e160, 1e-170])
def test_exemplars_zeros_copies_and_scales(scale, monkeypatch):
    monkeypatch.setattr(module, "MOST_SAMPLES", 100)
    monkeypatch.setattr(module, "N_EXEMPLARS", 90)
    X = scale * np.concatenate([np.repeat(UNION.X, 2, axis=0), np.zeros((9, 30))])
    with pytest.warns(UserWarning, match="9 of 369 samples are zero"):
        model = SubspaceClustering(3, random_state=0).fit(X)
    assert np.array_equal(model.labels_[:360:2], model.labels_[1:360:2])
    assert clustering_error(UNION.labels, model.labels_[:360:2]) == 0.0
    assert np.isfinite(model.confidence_).all()
    assert (model.confidence_[360:] == 0).all()
    assert (model.confidence_[:360] > 0.5).all()


def test_rows_in_range_keep_their_type():
    rows = np.ones((2, 3), dtype=np.float32)
    assert in_range(rows) is rows
    assert np.array_equal(in_range(1e-300 * np.eye(2)) > 0, np.eye(2) > 0)


def test_words_and_figures_of_a_model_elsewhere():
    torch = require_torch()
    import sklearn

    X = torch.asarray(UNION.X)
    with sklearn.config_context(array_api_dispatch=True):
        model = SubspaceClustering(random_state=0).fit(X)
        assert "180 samples are in 3 clusters" in model.summary()
        assert len(plot_partition(model, X)) == 4
