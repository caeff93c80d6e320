"""Sparse codes: optimality of the lasso, OMP against scikit-learn's, and the graph's Laplacian."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import laplacian
from sklearn.linear_model import Lasso, OrthogonalMatchingPursuit

from polyspan.baselines import RobustSparseSubspaceClustering
from polyspan.baselines.base import estimate_n_clusters, warn_about_graph
from polyspan.baselines.sparse import (
    duality_gaps,
    lasso_codes,
    omp_codes,
    residual_squares,
    two_step_weights,
)
from polyspan.graphs.edges import symmetric_affinity
from polyspan.graphs.spectra import cluster_graph, eigengap, least_eigenvectors


def samples(seed, n=20, m=8):
    X = np.random.RandomState(seed).standard_normal((n, m))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def violations(gram, codes, weights):
    """Return how far the optimality conditions of every lasso are missed."""
    dense = codes.toarray()
    gradient = gram - dense @ gram
    off = np.maximum(np.abs(gradient) - weights[:, None], 0)
    missed = np.where(dense != 0, np.abs(gradient - weights[:, None] * np.sign(dense)), off)
    np.fill_diagonal(missed, 0)
    return missed


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(2, 12), st.floats(0.001, 0.9))
def test_lasso_meets_its_optimality_conditions(seed, n, m, weight):
    X = samples(seed, n, m)
    weights = np.full(n, weight)
    codes, failed = lasso_codes(X @ X.T, weights)
    assert failed == 0
    assert codes.diagonal().max() == 0
    assert violations(X @ X.T, codes, weights).max() <= 1e-6
    assert duality_gaps(X @ X.T, codes, weights).max() <= 1e-5


def test_lasso_equals_scikit_learns():
    X = samples(0, 25, 10)
    codes, _ = lasso_codes(X @ X.T, np.full(25, 0.05))
    for i in (0, 7, 24):
        others = np.delete(np.arange(25), i)
        model = Lasso(alpha=0.05 / 10, fit_intercept=False, tol=1e-10, max_iter=10**5)
        expected = model.fit(X[others].T, X[i]).coef_
        assert_allclose(codes.toarray()[i, others], expected, atol=1e-6)


def test_lasso_with_duplicates_and_zeros():
    X = samples(1, 12, 6)
    X[3], X[5] = X[2], 0
    weights = np.full(12, 0.02)
    codes, failed = lasso_codes(X @ X.T, weights)
    assert failed == 0
    assert violations(X @ X.T, codes, weights).max() <= 1e-6
    assert codes[[5]].nnz == codes[:, [5]].nnz == 0


@pytest.mark.parametrize("n_nonzero", [1, 3, 6])
def test_omp_equals_scikit_learns(n_nonzero):
    X = samples(2, 30, 12)
    codes = omp_codes(X @ X.T, n_nonzero).toarray()
    for i in (0, 13, 29):
        others = np.delete(np.arange(30), i)
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=n_nonzero, fit_intercept=False)
        assert_allclose(codes[i, others], model.fit(X[others].T, X[i]).coef_, atol=1e-10)
    assert (np.count_nonzero(codes, axis=1) <= n_nonzero).all()
    assert np.diag(codes).max() == 0


def test_omp_stops_where_nothing_is_left():
    basis = np.eye(6)[:2]
    X = samples(3, 10, 2) @ basis
    codes = omp_codes(X @ X.T, 5)
    assert np.diff(codes.indptr).max() <= 2
    assert residual_squares(X @ X.T, codes).max() < 1e-14


def test_two_step_weights():
    X = samples(4, 40, 10)
    gram = X @ X.T
    weights = two_step_weights(gram, 0.5)
    # The code of least 1-norm with that residual, found the slow way for one sample.
    low, high = 1e-4, 1.0
    for _ in range(60):
        middle = np.sqrt(low * high)
        codes, _ = lasso_codes(gram, np.full(40, middle))
        close = residual_squares(gram, codes)[0] <= 0.25
        low, high = (middle, high) if close else (low, middle)
    codes, _ = lasso_codes(gram, np.full(40, low))
    assert_allclose(weights[0], 0.25 / abs(codes.toarray()[0]).sum(), rtol=0.01)


def test_the_duality_gap_of_the_robust_variant():
    X = samples(5, 60, 12)
    for lam in (None, 0.05, "two-step"):
        model = RobustSparseSubspaceClustering(2, 2, lam=lam, random_state=0).fit(X)
        assert 0 <= model.duality_gap_ + 1e-12 < 1e-5


def blocks(sizes, seed=0):
    rng = np.random.RandomState(seed)
    parts = [rng.uniform(0.5, 1.0, (n, n)) for n in sizes]
    matrix = scipy.sparse.block_diag(parts, format="csr")
    return scipy.sparse.csr_array((matrix + matrix.T) / 2)


def test_eigenvalues_and_the_gap():
    graph = blocks((5, 8, 7))
    dense = graph.toarray()
    degrees = dense.sum(axis=1) - np.diag(dense)
    np.fill_diagonal(dense, 0)
    normalised = np.eye(20) - dense / np.sqrt(np.outer(degrees, degrees))
    expected = np.linalg.eigvalsh(normalised)[:6]
    matrix = laplacian(graph, normed=True).tocsr()
    assert_allclose(least_eigenvectors(matrix, 6, 0)[0], expected, atol=1e-10)
    assert eigengap(np.array([0.0, 0.01, 0.8, 0.9])) == 2
    assert estimate_n_clusters(graph, 8, 0) == 3
    large = blocks((300, 300), seed=1)
    assert estimate_n_clusters(large, 6, 0) == 2


def test_labels_of_a_graph_in_parts_and_of_isolated_samples():
    graph = blocks((6, 9))
    labels = cluster_graph(graph, 2, 0)
    assert len(set(labels[:6])) == len(set(labels[6:])) == 1
    assert labels[0] != labels[-1]
    assert cluster_graph(graph, 1, 0).tolist() == [0] * 15
    lonely = scipy.sparse.csr_array(scipy.sparse.block_diag([graph, [[0.0]]], format="csr"))
    assert cluster_graph(lonely, 2, 0).shape == (16,)
    with pytest.warns(UserWarning, match="1 of 16 samples have no neighbour"):
        warn_about_graph(lonely, 2)
    with pytest.warns(UserWarning, match="2 connected components, more than the 1"):
        warn_about_graph(graph, 1)


def test_affinity_of_codes():
    codes = scipy.sparse.csr_array(np.array([[0.0, -2.0, 1.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]]))
    expected = np.array([[0.0, 1.0, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert_allclose(symmetric_affinity(codes).toarray(), expected + expected.T)
