"""`SubspaceClustering`: what it finds, its invariances, and its place among estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from polyspan import SubspaceClustering
from polyspan.clustering import subspace_clustering
from polyspan.clustering.graphs import EXTRA
from polyspan.geometry import subspace_distance
from polyspan.metrics import clustering_error

RNG = np.random.RandomState(0)
BASES = [np.linalg.qr(RNG.standard_normal((24, s)))[0] for s in (2, 3, 5)]


def draw(n):
    X = np.concatenate([RNG.standard_normal((n, basis.shape[1])) @ basis.T for basis in BASES])
    return X + 0.01 * RNG.standard_normal(X.shape), np.repeat([0, 1, 2], n)


X, LABELS = draw(40)
NEW, NEW_LABELS = draw(15)
MODEL = SubspaceClustering(3, random_state=0).fit(X)


@pytest.mark.parametrize("graphs", ["all", "sparse"])
def test_subspaces_of_unequal_dimension_are_found(graphs):
    model = SubspaceClustering(3, graphs=graphs, random_state=0).fit(X)
    assert clustering_error(LABELS, model.labels_) == 0
    assert sorted(model.subspace_dims_) == [2, 3, 5]
    assert model.bases_.shape == (3, 24, 5)
    for basis, dim in zip(model.bases_, model.subspace_dims_, strict=True):
        assert_allclose(basis[:, :dim].T @ basis[:, :dim], np.eye(dim), atol=1e-10)
        assert not basis[:, dim:].any()
        nearest = min(subspace_distance(basis[:, :dim], b) for b in BASES if b.shape[1] == dim)
        assert nearest < 0.1
    assert model.certainty_ > 0.8
    assert model.separates_
    assert "clearly" in model.verdict_


def test_the_number_of_clusters_is_found():
    model = SubspaceClustering(max_clusters=6, random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert model.evidence_.shape == (5,)
    assert np.array_equal(model.labels_, MODEL.labels_)
    assert not hasattr(model.set_params(n_clusters=3).fit(X), "evidence_")


def test_the_table_of_members():
    table = MODEL.members_
    n_graphs = len(table["graph"])
    assert len(set(table["graph"])) == n_graphs
    assert table["labels"].shape == (n_graphs, len(X))
    assert table["values"].shape == (n_graphs, 4)
    assert_allclose(table["weight"], table["gap"] ** 2)
    assert_allclose(
        MODEL.confidence_,
        table["weight"] @ (table["labels"] == MODEL.labels_) / table["weight"].sum(),
    )


def test_new_samples():
    assert np.array_equal(MODEL.predict(X), MODEL.labels_)
    assert clustering_error(NEW_LABELS, MODEL.predict(NEW)) == 0
    distances = MODEL.transform(NEW)
    assert distances.shape == (len(NEW), 3)
    assert np.array_equal(distances.argmin(axis=1), MODEL.predict(NEW))
    back = MODEL.reconstruct(NEW)
    assert_allclose(np.linalg.norm(NEW - back, axis=1), distances.min(axis=1), atol=1e-10)
    assert_allclose(MODEL.score(NEW), -np.mean(distances.min(axis=1) ** 2))


def test_the_order_of_samples_changes_only_names():
    order = np.random.RandomState(0).permutation(len(X))
    model = SubspaceClustering(3, random_state=0).fit(X[order])
    assert clustering_error(MODEL.labels_[order], model.labels_) == 0
    assert model.certainty_ == pytest.approx(MODEL.certainty_, abs=1e-6)


@pytest.mark.parametrize("scale", [4.0, 1e-3, 1e150, 1e-150])
def test_the_scale_of_samples_changes_nothing(scale):
    model = SubspaceClustering(3, random_state=0).fit(scale * X)
    assert clustering_error(MODEL.labels_, model.labels_) == 0
    assert model.certainty_ == pytest.approx(MODEL.certainty_, abs=1e-6)
    assert_allclose(model.transform(scale * NEW[:5]) / scale, MODEL.transform(NEW[:5]), atol=1e-6)


def test_the_same_seed_gives_the_same_labels_ten_times():
    Z = np.random.RandomState(0).standard_normal((60, 8))
    runs = []
    for _ in range(10):
        with pytest.warns(UserWarning, match="union of subspaces"):
            runs.append(SubspaceClustering(3, close_subspaces=False, random_state=5).fit(Z))
    for run in runs[1:]:
        assert np.array_equal(run.labels_, runs[0].labels_)
        assert np.array_equal(run.confidence_, runs[0].confidence_)


def test_one_cluster_is_principal_components():
    model = SubspaceClustering(1).fit(X)
    assert not model.labels_.any()
    assert model.certainty_ == 1.0
    assert_allclose(model.confidence_, 1.0)
    _, _, Vt = np.linalg.svd(X, full_matrices=False)
    dim = int(model.subspace_dims_[0])
    assert model.subspace_dim_ == dim
    assert subspace_distance(model.bases_[0], Vt[:dim].T) < 1e-6


def test_single_precision():
    model = SubspaceClustering(3, random_state=0).fit(X.astype(np.float32))
    assert clustering_error(MODEL.labels_, model.labels_) == 0
    assert model.bases_.dtype == model.transform(NEW.astype(np.float32)).dtype == np.float32


def test_frames_and_set_output():
    names = [f"f{i}" for i in range(X.shape[1])]
    model = SubspaceClustering(3, random_state=0).set_output(transform="pandas")
    table = model.fit(pd.DataFrame(X, columns=names)).transform(pd.DataFrame(NEW, columns=names))
    assert list(table.columns) == [f"subspaceclustering{i}" for i in range(3)]
    assert np.array_equal(model.labels_, MODEL.labels_)
    assert model.feature_names_in_.tolist() == names


def test_copies():
    assert clone(MODEL).get_params() == MODEL.get_params()
    copy = pickle.loads(pickle.dumps(MODEL))
    assert np.array_equal(copy.labels_, MODEL.labels_)
    assert np.array_equal(copy.transform(NEW), MODEL.transform(NEW))
    assert copy.members_["graph"].tolist() == MODEL.members_["graph"].tolist()


def test_extra_members_join():
    model = SubspaceClustering(3, extra_members=tuple(EXTRA), random_state=0).fit(X)
    joined = set(model.members_["graph"]) - set(MODEL.members_["graph"])
    for name in ("elastic net", "least squares", "ensemble", "shape interaction"):
        assert any(graph.startswith(name) for graph in joined)
    assert clustering_error(LABELS, model.labels_) == 0


def test_unknown_members_are_refused():
    with pytest.raises(ValueError, match=r"extra_members=\['lasso'\] are not known"):
        SubspaceClustering(3, extra_members=["lasso"]).fit(X)


def test_beyond_a_size_exemplars_are_clustered(monkeypatch):
    monkeypatch.setattr(subspace_clustering, "MOST_SAMPLES", 100)
    monkeypatch.setattr(subspace_clustering, "N_EXEMPLARS", 75)
    model = SubspaceClustering(3, random_state=0).fit(X)
    assert clustering_error(LABELS, model.labels_) == 0
    assert model.confidence_.shape == (len(X),)
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    assert model.members_["labels"].shape[1] == 75
