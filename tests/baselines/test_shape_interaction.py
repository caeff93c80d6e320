"""Robust shape interaction: exact on independent subspaces, and how it chooses a rank."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.base.arrays import unit_rows
from polyspan.baselines import RobustShapeInteraction
from polyspan.baselines.base import leading_coordinates, left_singular_vectors
from polyspan.baselines.shape_interaction import (
    cut_per_gap,
    normalised_cut,
    shape_interaction_graph,
)
from polyspan.geometry import draw_bases
from polyspan.metrics import clustering_error


def independent(dims=(2, 3, 4), n=25, m=30, seed=0):
    rng = np.random.RandomState(seed)
    frame = draw_bases((m, sum(dims)), rng) @ rng.standard_normal((sum(dims), sum(dims)))
    parts, first = [], 0
    for d in dims:
        parts.append(rng.standard_normal((n, d)) @ frame[:, first : first + d].T)
        first += d
    return np.concatenate(parts), np.repeat(np.arange(len(dims)), n)


@given(
    seed=st.integers(0, 500), n=st.integers(1, 15), m=st.integers(1, 15), rank=st.integers(1, 15)
)
def test_singular_vectors_from_the_smaller_gram_matrix(seed, n, m, rank):
    rng = np.random.RandomState(seed)
    rank = min(n, m, rank)
    X = draw_bases((n, rank), rng) * np.arange(rank, 0, -1) @ draw_bases((m, rank), rng).T
    U = left_singular_vectors(X)
    assert U.shape == (n, rank)
    assert_allclose(U.T @ U, np.eye(rank), atol=1e-6)
    assert_allclose(U[:, :rank] @ (U.T @ X), X, atol=1e-6)
    assert_allclose(np.linalg.norm(U.T @ X, axis=1), np.arange(rank, 0, -1), atol=1e-6)
    Z = leading_coordinates(X, 1.0, 1)
    assert_allclose(Z @ Z.T, X @ X.T, atol=1e-6)


def test_leading_coordinates_hold_the_energy_asked_for():
    rng = np.random.RandomState(0)
    X = draw_bases((30, 4), rng) * np.sqrt([90.0, 9.0, 0.9, 0.1]) @ draw_bases((12, 4), rng).T
    assert [leading_coordinates(X, e, 1).shape[1] for e in (0.5, 0.95, 0.995)] == [1, 2, 3]
    assert leading_coordinates(X, 0.5, 3).shape[1] == 3
    assert leading_coordinates(X, 0.5, 8).shape[1] == 4
    assert leading_coordinates(np.zeros((5, 3)), 0.5, 1).shape == (5, 1)


@pytest.mark.parametrize("m", [30, 90])
def test_independent_subspaces_are_orthogonal_at_the_right_rank(m):
    X, labels = independent(m=m)
    U = left_singular_vectors(unit_rows(X))
    assert U.shape[1] == 9
    graph = shape_interaction_graph(U, 9).toarray()
    apart = labels[:, None] != labels
    assert graph[apart].max() < 1e-20
    assert np.all(graph.max(axis=1) > 0.01)


def test_a_graph_is_the_powered_cosines():
    X, _ = independent()
    U = left_singular_vectors(X)
    Q = U[:, :5] / np.linalg.norm(U[:, :5], axis=1, keepdims=True)
    expected = 2 * np.abs(Q @ Q.T) ** 3
    np.fill_diagonal(expected, 0.0)
    assert_allclose(shape_interaction_graph(U, 5, power=3).toarray(), expected, atol=1e-12)
    assert shape_interaction_graph(U, 5, q=2).nnz <= 4 * len(X)


@pytest.mark.parametrize("dims", [(2, 2), (2, 3, 4), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("q", [None, 5])
def test_independent_subspaces_of_any_dimension_are_found(dims, q):
    X, labels = independent(dims)
    ranks = range(len(dims), 2 * sum(dims))
    model = RobustShapeInteraction(len(dims), 2, ranks=ranks, q=q, random_state=0).fit(X)
    assert clustering_error(labels, model.labels_) == 0
    if q is None:
        assert model.rank_ == sum(dims)
    assert model.rank_ == model.ranks_[np.argmin(model.cuts_)]
    assert max(model.ranks_) == sum(dims)


def test_the_number_of_clusters():
    X, labels = independent((3, 3, 3))
    model = RobustShapeInteraction(None, 3, random_state=0).fit(X)
    assert (model.n_subspaces_, model.rank_) == (3, 9)
    assert clustering_error(labels, model.labels_) == 0


def test_a_normalised_cut_by_hand():
    edges = np.zeros((4, 4))
    edges[0, 1] = edges[1, 0] = 3.0
    edges[2, 3] = edges[3, 2] = 1.0
    edges[1, 2] = edges[2, 1] = 1.0
    graph = scipy.sparse.csr_array(edges)
    assert_allclose(normalised_cut(graph, np.array([0, 0, 1, 1])), 1 / 7 + 1 / 3)
    assert normalised_cut(graph, np.zeros(4, dtype=int)) == 0
    assert normalised_cut(scipy.sparse.csr_array((4, 4)), np.array([0, 0, 1, 1])) == 2


def test_a_clear_cut_is_preferred():
    blocks = np.kron(np.eye(2), np.ones((6, 6)))
    values = [
        cut_per_gap(scipy.sparse.csr_array(blocks + noise), 2, 2, 0) for noise in (0.01, 0.1, 0.5)
    ]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ranks": []}, "ranks"),
        ({"ranks": [0, 2]}, "ranks"),
        ({"ranks": [1.5]}, "ranks"),
        ({"ranks": [[2]]}, "ranks"),
        ({"ranks": 3}, "ranks"),
        ({"power": 0.0}, "power"),
        ({"q": 0}, "q"),
    ],
    ids=str,
)
def test_bad_parameters(options, words):
    with pytest.raises(ValueError, match=words):
        RobustShapeInteraction(**options).fit(independent()[0])
