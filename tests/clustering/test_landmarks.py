"""Graphs to landmarks: with all samples as landmarks the graph of all pairs, thin otherwise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.clustering import SubspaceClustering, landmarks
from polyspan.clustering.coordinates import unit_rows
from polyspan.clustering.graphs import all_angles
from polyspan.clustering.landmarks import ToLandmarks, angles_to_landmarks
from polyspan.clustering.spectra import leading_spectrum
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import clustering_error
from support import require_torch

ROWS = unit_rows(np.random.default_rng(0).standard_normal((90, 4)))


def test_with_all_samples_it_is_the_graph_of_all_pairs():
    W = all_angles(ROWS)
    dense, thin = leading_spectrum(W, 4, 0), leading_spectrum(ToLandmarks(W), 4, 0)
    # Those of the bipartite graph are absolute values of those of the graph.
    assert_allclose(thin.values[:3], dense.values[:3], atol=1e-7)
    assert_allclose(np.abs(np.sum(thin.vectors * dense.vectors, axis=0))[:3], 1.0, atol=1e-6)


def test_vectors_are_those_of_the_bipartite_graph():
    graph = angles_to_landmarks(ROWS, 2, 0)
    W = np.asarray(graph.weights, dtype=float)
    assert W.shape == (90, 45)
    scaled = W / np.sqrt(W.sum(axis=1))[:, None] / np.sqrt(W.sum(axis=0))
    U, S, _ = np.linalg.svd(scaled, full_matrices=False)
    found = leading_spectrum(graph, 5, 0)
    assert_allclose(found.values, S[:5], atol=1e-8)
    assert_allclose(found.values[0], 1.0)
    assert_allclose(np.abs(np.sum(found.vectors * U[:, :5], axis=0)), 1.0, atol=1e-6)


def test_weights_are_powers_of_cosines_and_no_landmark_is_joined_to_itself():
    graph = angles_to_landmarks(ROWS, 2, 3)
    chosen = np.sort(np.random.RandomState(3).choice(90, 45, replace=False))
    expected = np.abs(ROWS @ ROWS[chosen].T) ** 6
    expected[chosen, np.arange(45)] = 0.0
    assert_allclose(graph.weights, expected, atol=1e-7)


def test_the_number_of_landmarks_is_bounded(monkeypatch):
    monkeypatch.setattr(landmarks, "N_LANDMARKS", 10)
    monkeypatch.setattr(landmarks, "LANDMARKS_PER_CLUSTER", 6)
    for n_clusters, expected in ((1, 10), (3, 18), (50, 45)):
        assert angles_to_landmarks(ROWS, n_clusters, 0).weights.shape == (90, expected)


def test_samples_without_edges_have_vectors_of_zeros():
    weights = np.zeros((6, 3), dtype=np.float32)
    weights[:2, 0] = weights[2:5, 1] = 1.0
    found = leading_spectrum(ToLandmarks(weights), 3, 0)
    assert_allclose(found.values, [1.0, 1.0, 0.0], atol=1e-8)
    assert_array_equal(found.vectors[5], 0.0)


@pytest.mark.parametrize("n_clusters", [3, None])
def test_without_all_pairs_the_clusters_are_the_same(n_clusters):
    data = make_union_of_subspaces(
        (80, 50, 120), n_features=30, subspace_dim=3, spread=0.6, noise=0.02, random_state=0
    )
    model = SubspaceClustering(n_clusters, graphs="sparse", random_state=0).fit(data.X)
    assert any(name.startswith("angles to landmarks") for name in model.members_["graph"])
    assert not any(name.startswith("angles, rank") for name in model.members_["graph"])
    assert model.n_clusters_ == 3
    assert clustering_error(data.labels, model.labels_) == 0.0


def test_on_another_namespace():
    torch = require_torch()
    graph = angles_to_landmarks(torch.asarray(ROWS), 2, 0)
    assert isinstance(graph.weights, torch.Tensor)
    expected = leading_spectrum(angles_to_landmarks(ROWS, 2, 0), 4, 0)
    found = leading_spectrum(graph, 4, 0)
    assert_allclose(found.values, expected.values, atol=1e-6)
