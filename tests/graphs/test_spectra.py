"""Spectral clustering of graphs: connected ones, and those that fall into parts."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import laplacian
from sklearn.base import clone

from polyspan import MCKUSaL
from polyspan.baselines import RobustSparseSubspaceClustering
from polyspan.graphs import spectra
from polyspan.graphs.spectra import cluster_graph, graph_embedding, leading_spectrum
from polyspan.metrics import clustering_error

PARTS = np.repeat([0, 1, 2], 40)


def graph_of(between, seed=0):
    """Return a random graph of three groups; edges from one to the next weigh `between`."""
    rng = np.random.RandomState(seed)
    weights = rng.random((120, 120)) * (rng.random((120, 120)) < 0.1)
    weights[PARTS[:, None] != PARTS] = 0
    for node in range(120):  # a ring through each group, so that it is one part
        weights[node, node - node % 40 + (node + 1) % 40] = 1.0
    weights[[0, 40], [40, 80]] = between
    return scipy.sparse.csr_array(weights + weights.T)


@pytest.mark.parametrize("assign_labels", ["kmeans", "cluster_qr"])
@pytest.mark.parametrize("between", [0.0, 0.01])
def test_groups_are_found_from_every_seed(between, assign_labels):
    for seed in range(8):
        labels = cluster_graph(graph_of(between, seed), 3, seed, assign_labels)
        assert clustering_error(PARTS, labels) == 0


def test_coordinates_are_constant_on_the_parts():
    embedding = graph_embedding(graph_of(0.0), 3, seed=0)
    for part in range(3):
        own = embedding[part == PARTS]
        assert_allclose(own, np.broadcast_to(own[0], own.shape), atol=1e-10)


def test_eigenvectors_of_a_connected_graph():
    graph = graph_of(0.2)
    matrix, roots = laplacian(graph, normed=True, return_diag=True)
    vectors = (graph_embedding(graph, 3, seed=0) * roots[:, None]).T
    assert_allclose(vectors @ vectors.T, np.eye(3), atol=1e-10)
    expected = np.linalg.eigvalsh(matrix.toarray())[:3]
    assert_allclose([v @ (matrix @ v) for v in vectors], expected, atol=1e-10)


def test_a_node_without_edges_is_no_cluster():
    joined = graph_of(0.0).toarray()
    joined[5] = joined[:, 5] = 0.0
    labels = cluster_graph(scipy.sparse.csr_array(joined), 3, seed=0)
    rest = np.arange(120) != 5
    assert clustering_error(PARTS[rest], labels[rest]) == 0


def blocks(sizes, between=0.0):
    """Return complete blocks: a graph most of whose eigenvalues are equal."""
    part = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.where(part[:, None] == part, 1.0, between)
    np.fill_diagonal(weights, 0.0)
    return scipy.sparse.csr_array(weights)


@pytest.mark.parametrize(
    ("sizes", "n_components"), [((3,) * 60, 6), ((2,) * 100, 3), ((2,) * 100, 6), ((150,) * 4, 10)]
)
def test_equal_eigenvalues_give_the_same_bits_every_time(sizes, n_components):
    graph = blocks(sizes)
    first = graph_embedding(graph, n_components, seed=0)
    for _ in range(9):
        assert np.array_equal(graph_embedding(graph, n_components, seed=0), first)


@pytest.mark.parametrize(
    "model",
    [
        MCKUSaL(3, 1, n_neighbors=1, gamma=0.5, random_state=0),
        RobustSparseSubspaceClustering(6, 1, random_state=0),
    ],
)
def test_fits_on_equal_eigenvalues_repeat(model):
    """Pairs of samples that are alike: a graph in a hundred equal parts."""
    rng = np.random.RandomState(0)
    X = np.repeat(np.eye(100), 2, axis=0)[:, rng.permutation(100)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts are joined, directions are few
        labels = [clone(model).fit(X).labels_ for _ in range(10)]
    for other in labels[1:]:
        assert np.array_equal(other, labels[0])


def test_ties_go_to_larger_parts():
    embedding = graph_embedding(blocks((5, 9, 7)), 2, seed=0)
    assert np.all(embedding[:5] == 0)
    assert np.all(embedding[5:14, 0] != 0)
    assert np.all(embedding[14:, 1] != 0)


def test_lanczos_equals_the_dense_solver(monkeypatch):
    rng = np.random.default_rng(0)
    graph = scipy.sparse.random_array((60, 60), density=0.2, rng=rng)
    graph = (graph + graph.T).tocsr()
    dense = leading_spectrum(graph, 4, 0)
    monkeypatch.setattr(spectra, "DENSE_BELOW", 10)
    monkeypatch.setattr(spectra, "UNSEEDED_ABOVE", 10)
    found = leading_spectrum(graph, 4, 0)
    assert_allclose(found.values, dense.values, atol=1e-8)
    assert_allclose(np.abs(np.sum(found.vectors * dense.vectors, axis=0)), 1.0, atol=1e-6)


def test_what_does_not_converge_has_no_gap(monkeypatch):
    def fail(*arguments, **options):
        raise spectra.ArpackNoConvergence("no", np.array([0.9, 1.0]), np.eye(500)[:, :2])

    monkeypatch.setattr(spectra, "eigsh", fail)
    monkeypatch.setattr(spectra, "UNSEEDED_ABOVE", 10)
    path = scipy.sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(500, 500))
    found = leading_spectrum(path.tocsr(), 4, 0)
    assert_allclose(found.values, [1.0, 0.9, 0.9, 0.9])
    assert found.gap(2) == found.gap(3) == 0.0
    assert_array_equal(found.vectors[:, 0], np.eye(500)[:, 1])
    assert not found.vectors[:, 2:].any()
