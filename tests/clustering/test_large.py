"""`SubspaceClustering` on many samples: sparse graphs, exemplars, and other namespaces."""

import numpy as np
import pytest
import scipy.sparse
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.clustering import SubspaceClustering, decision, exemplars
from polyspan.clustering import coordinates as coordinates_module
from polyspan.clustering import subspace_clustering as module
from polyspan.clustering.coordinates import Coordinates
from polyspan.clustering.exemplars import Exemplars, extend
from polyspan.datasets import make_union_of_subspaces
from polyspan.graphs import edges, spectra
from polyspan.graphs.spectra import leading_spectrum
from polyspan.metrics import clustering_error
from support import require_torch

DATA = make_union_of_subspaces(
    (150, 150, 150), n_features=20, subspace_dim=3, spread=0.6, noise=0.02, random_state=0
)
CURVES = np.linspace(0, 2 * np.pi, 300, endpoint=False)


@pytest.fixture
def large(monkeypatch):
    """Let a few hundred samples be as many as tens of thousands."""
    for where, name, size in (
        (module, "DENSE_SAMPLES", 50), (module, "MOST_SAMPLES", 300), (module, "N_EXEMPLARS", 240),
        (edges, "EXACT_ROWS", 100), (edges, "LEAF_ROWS", 60),
        (coordinates_module, "LARGE", 100), (coordinates_module, "MOST_RANK", 12),
        (decision, "MOST_JUDGED", 120), (decision, "MOST_ANNEALED", 100),
    ):  # fmt: skip
        monkeypatch.setattr(where, name, size)


def test_sparse_graphs_only(large):
    X, labels = DATA.X[::2], DATA.labels[::2]
    model = SubspaceClustering(3, random_state=0).fit(X)
    assert not any(name.startswith("angles") for name in model.members_["graph"])
    assert clustering_error(labels, model.labels_) == 0.0
    assert_array_equal(model.labels_, SubspaceClustering(3, random_state=0).fit(X).labels_)


def test_exemplars_are_clustered_and_others_predicted(large):
    model = SubspaceClustering(3, random_state=0).fit(DATA.X)
    assert model.members_["labels"].shape[1] == 240
    assert model.labels_.shape == model.confidence_.shape == (450,)
    assert clustering_error(DATA.labels, model.labels_) < 0.01
    assert_array_equal(model.predict(DATA.X), model.labels_)
    assert (model.confidence_ > 0.5).all()
    assert (model.confidence_ <= 1).all()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_graph_in_parts_has_the_eigenvalue_one_for_each(kind):
    """Lanczos iterations alone find some of them: equal eigenvalues are found part by part."""
    sizes = [500, 450, 120, 40, 1, 500]
    rng = np.random.default_rng(0)
    blocks = []
    for size in sizes:
        block = rng.uniform(0.5, 1.0, (size, size)) * (rng.random((size, size)) < 0.2)
        block = np.triu(block, 1)
        blocks.append(block + block.T)
    shuffled = rng.permutation(sum(sizes))
    graph = scipy.sparse.block_diag(blocks, format="csr").toarray()[np.ix_(shuffled, shuffled)]
    part_of = np.repeat(range(len(sizes)), sizes)[shuffled]
    found = leading_spectrum(scipy.sparse.csr_array(graph) if kind == "sparse" else graph, 7, 0)
    assert_allclose(found.values[:5], 1.0, atol=1e-9)
    assert (found.values[5:] < 0.9).all()
    assert_allclose(found.vectors.T @ found.vectors, np.eye(7), atol=1e-6)
    for part in (0, 1, 2, 3, 5):
        spans = found.vectors[part_of == part]
        assert np.linalg.matrix_rank(spans[:, :5], tol=1e-6) == 1
    assert_allclose(found.vectors[part_of == 4], 0.0, atol=1e-12)


def test_of_more_parts_than_vectors_the_largest_count():
    sizes = [30, 50, 20, 40]
    graph = scipy.sparse.block_diag([np.ones((s, s)) - np.eye(s) for s in sizes], format="csr")
    found = leading_spectrum(graph, 2, 0)
    assert_allclose(found.values, 1.0)
    assert_array_equal(np.flatnonzero(found.vectors.any(axis=1)), np.r_[30:80, 100:140])


def test_few_samples_are_annealed(large):
    """Close subspaces are found from a part of the samples, and the others are predicted."""
    labels = decision._annealed(DATA.X, 3, 3, 0)
    assert clustering_error(DATA.labels, labels) < 0.01


def test_some_samples_are_judged(large):
    judge = decision.Judge.of(Coordinates.of(DATA.X), 3)
    right = judge.residuals(DATA.labels, 3)
    assert len(right) == 120
    assert right.sum() < 0.5 * judge.residuals(np.roll(DATA.labels, 75), 3).sum()


def curves():
    """Return two circles in one plane of a space: no subspaces, but neighbours tell them apart."""
    around = np.stack([np.cos(CURVES), np.sin(CURVES), np.zeros(300)], axis=1)
    up = np.array([0.0, 0.0, 0.5])
    X = np.concatenate([around + up, around + 2 * up])
    return X, np.repeat([0, 1], 300)


@pytest.mark.parametrize(("data", "votes"), [("subspaces", False), ("curves", True)])
def test_the_rule_that_fits_the_exemplars_is_taken(data, votes, monkeypatch):
    X, labels = curves() if votes else (DATA.X, DATA.labels)
    n_clusters = labels.max() + 1
    chosen = np.arange(0, len(X), 3)
    known = Exemplars(X[chosen], labels[chosen], np.ones(len(chosen)), n_clusters)
    bases, _ = exemplars.subspaces_of(known.X, known.labels, n_clusters)
    coordinates = Coordinates.of(known.X)
    found, confidence = extend(X, chosen, known, coordinates, bases)
    rule = known.votes(coordinates) if votes else known.nearest_subspace(bases)
    other = known.nearest_subspace(bases) if votes else known.votes(coordinates)
    left = np.setdiff1d(np.arange(len(X)), chosen)
    assert_array_equal(found[left], rule(X[left])[0])
    assert (other(X)[0] != labels).mean() > (found != labels).mean()
    assert clustering_error(labels, found) < 0.02
    assert_array_equal(confidence[chosen], 1.0)


def test_confidence_is_that_of_similar_exemplars():
    margins = np.linspace(0, 1, 100)
    at, worth = exemplars._calibration(margins, (margins > 0.5) * 0.8)
    assert_allclose(np.interp([-1.0, 0.05, 0.95, 2.0], at, worth), [0, 0, 0.8, 0.8])


def test_one_cluster():
    X = DATA.X[:30]
    known = Exemplars(X[:20], np.zeros(20, dtype=int), np.full(20, 0.5), 1)
    labels, confidence = extend(X, np.arange(20), known, Coordinates.of(X), np.empty(0))
    assert_array_equal(labels, 0)
    assert_array_equal(confidence, [0.5] * 20 + [1.0] * 10)


@pytest.mark.parametrize("n", [120, 450])
@pytest.mark.parametrize("place", ["torch", "device"])
def test_equals_numpy_and_stays_where_it_was(n, place, request, monkeypatch):
    monkeypatch.setattr(spectra, "DENSE_BELOW", 100)
    xp = require_torch() if place == "torch" else request.getfixturevalue("accelerator")
    X = DATA.X[:: len(DATA.X) // n]
    moved = xp.asarray(X)
    expected = SubspaceClustering(3, random_state=0).fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        found = SubspaceClustering(3, random_state=0).fit(moved)
        labels = found.predict(moved)
    assert_array_equal(to_numpy(found.labels_), expected.labels_)
    assert_array_equal(to_numpy(labels), expected.predict(X))
    assert_allclose(found.members_["gap"], expected.members_["gap"], atol=1e-6)
    for name in ("labels_", "confidence_", "bases_", "mean_", "subspace_dims_"):
        assert type(getattr(found, name)) is type(moved), name
        assert device(getattr(found, name)) == device(moved), name
