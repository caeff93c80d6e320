"""Where graphs contradict each other a mixture speaks: what the model then says of samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from polyspan import SubspaceClustering
from polyspan.clustering.second_opinion import MIXTURE, by_mixture, common_dim, stability
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import clustering_error
from polyspan.plotting import plot_partition
from polyspan.storage.models import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")
X, LABELS = load_iris(return_X_y=True)
X = scale(X)


@pytest.fixture(scope="module")
def model():
    return SubspaceClustering(3, random_state=0).fit(X)


def test_the_posterior_labels_samples(model, tmp_path):
    assert clustering_error(LABELS, model.labels_) <= 0.05
    save_model(model, tmp_path / "m.skops")
    for one in (model, load_model(tmp_path / "m.skops")):
        assert_array_equal(one.predict(X), model.labels_)
        memberships = one.memberships(X)
        assert_allclose(memberships.sum(axis=1), 1.0)
        assert_array_equal(memberships.argmax(axis=1), model.labels_)
        assert_allclose(memberships.max(axis=1), model.confidence_)
        assert one.agreement_ == 1.0
        for c, (point, basis) in enumerate(zip(one.means_, one.bases_, strict=True)):
            about = X - point  # distances to the affine subspaces, by hand
            residuals = np.linalg.norm(about - about @ basis @ basis.T, axis=1)
            assert_allclose(one.transform(X)[:, c], residuals, atol=1e-9)
        assert np.linalg.norm(one.reconstruct(X) - X) < 0.3 * np.linalg.norm(X)


def test_it_says_who_speaks(model):
    assert model.source_ == MIXTURE
    assert 0 < model.certainty_ < 0.8  # not high: the graphs see other clusters
    assert "contradict their consensus" in model.verdict_
    text = " ".join(model.summary().split())
    assert "the clusters of a mixture of affine subspaces" in text
    assert "compare with k-means" in text
    assert "Source" in dict(model._short_summary().facts)
    assert "MiCUSaL" not in text
    assert "unsure" in model.summary(X)
    inside = model.coordinates(X)  # of every sample in its own affine subspace, by hand
    for c in range(3):
        own = model.labels_ == c
        assert_allclose(inside[own], (X[own] - model.means_[c]) @ model.bases_[c], atol=1e-9)


def test_figures_of_the_mixture(model):
    axes = plot_partition(model, X)
    assert len(axes)


def test_where_the_graphs_speak_nothing_of_the_mixture_is_left():
    data = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0)
    model = SubspaceClustering(2, random_state=0).fit(X)
    model.fit(data.X)
    assert not hasattr(model, "_mixture")
    assert not model.means_.any()
    assert model.means_.shape == (2, 12)


def test_the_number_is_that_of_the_lowest_bic():
    model = SubspaceClustering(random_state=0).fit(scale(load_wine().data))
    assert model.source_ == MIXTURE
    table = model._mixture.candidates_
    best = table["n_subspaces"][np.argmin(table["bic"])]
    assert model.n_clusters_ == best == len(model.means_)


def test_stability_is_one_for_clusters_that_repeat_and_low_for_chance():
    rng = np.random.RandomState(0)
    assert stability(lambda rows: LABELS[rows], len(X), rng) == 1.0
    assert abs(stability(lambda rows: rng.randint(3, size=len(rows)), 300, rng)) < 0.1


def test_many_columns_are_judged_along_principal_directions(model):
    rng = np.random.RandomState(0)
    frame = np.linalg.qr(rng.standard_normal((90, 4)))[0]
    wide = X @ frame.T + 1e-3 * rng.standard_normal((150, 90))
    second = by_mixture(wide, 3, 0)
    assert second.axes.shape == (90, 30)
    first = [int(np.argmax(second.mixture.labels_ == c)) for c in range(3)]
    assert first == sorted(first)
    assert common_dim(second.mixture.candidates_) <= 5
    found = SubspaceClustering(3, random_state=0).fit(wide)
    assert found.source_ == MIXTURE
    assert found.bases_.shape[1] == 90
    assert_array_equal(found.predict(wide), found.labels_)
    assert np.linalg.norm(found.reconstruct(wide) - wide) < 0.3 * np.linalg.norm(wide)


def test_a_mixture_is_not_exported(model, tmp_path):
    pytest.importorskip("onnx")
    from polyspan.storage.export import export_model

    with pytest.raises(TypeError, match="those of a mixture"):
        export_model(model, tmp_path / "m.onnx")
