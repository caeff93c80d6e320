"""Least-squares codes: closed form against direct solutions, from either Gram matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from polyspan.base.arrays import unit_rows
from polyspan.baselines import LeastSquaresSubspaceClustering
from polyspan.baselines.least_squares import least_squares_graph, ridge_factor


def draw(n, m, seed=0, rank=None):
    rng = np.random.RandomState(seed)
    rank = min(n, m) if rank is None else rank
    return unit_rows(rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m)))


@given(
    seed=st.integers(0, 500),
    n=st.integers(1, 20),
    m=st.integers(1, 20),
    rank=st.integers(1, 20),
    alpha=st.sampled_from([1e-3, 0.1, 10.0]),
)
def test_the_factor_is_the_direct_solution(seed, n, m, rank, alpha):
    X = draw(n, m, seed, min(n, m, rank))
    factor, rest = ridge_factor(X, alpha)
    assert factor.shape == (n, min(n, m))
    gram = X @ X.T
    direct = np.linalg.solve(gram + alpha * np.eye(n), gram)
    assert_allclose(factor @ factor.T, direct, atol=1e-9)
    assert_allclose(rest, 1 - np.diag(direct), atol=1e-9)


def hat_matrix(X, alpha):
    """H of the ridge regression of all samples on all."""
    factor, _ = ridge_factor(X, alpha)
    return factor @ factor.T


def least_squares_codes(X, alpha):
    """C_ij = H_ij/(1 - H_ii) for j ≠ i: no row uses itself."""
    codes = hat_matrix(X, alpha) / ridge_factor(X, alpha)[1][:, None]
    np.fill_diagonal(codes, 0.0)
    return codes


@pytest.mark.parametrize(("n", "m"), [(15, 40), (40, 15)])
@pytest.mark.parametrize("alpha", [1e-6, 0.1])
def test_codes_without_the_own_sample_are_ridge_regressions(n, m, alpha):
    X = draw(n, m)
    codes = least_squares_codes(X, alpha)
    assert np.all(np.diag(codes) == 0)
    for i in range(0, n, 4):
        others = np.delete(np.arange(n), i)
        model = Ridge(alpha, fit_intercept=False, solver="svd").fit(X[others].T, X[i])
        assert_allclose(codes[i, others], model.coef_, atol=1e-6)


def test_a_graph_is_the_powered_codes():
    X = draw(30, 10)
    codes = np.abs(least_squares_codes(X, 0.1)) ** 3
    graph = least_squares_graph(X, 0.1, power=3, q=None, normalize=False)
    assert_allclose(graph.toarray(), codes + codes.T, rtol=1e-9)
    hat = hat_matrix(X, 0.1)
    cosines = np.abs(hat / np.sqrt(np.outer(np.diag(hat), np.diag(hat)))) ** 3
    np.fill_diagonal(cosines, 0.0)
    graph = least_squares_graph(X, 0.1, power=3, q=None)
    assert_allclose(graph.toarray(), 2 * cosines, rtol=1e-9)


def test_a_graph_keeps_the_largest_entries_of_every_code():
    X = draw(30, 10)
    codes = np.abs(least_squares_codes(X, 0.1))
    fourth = np.sort(codes, axis=1)[:, -4:-3]
    kept = np.where(codes >= fourth, codes, 0.0)
    graph = least_squares_graph(X, 0.1, power=1, q=4, normalize=False)
    assert_allclose(graph.toarray(), kept + kept.T, rtol=1e-9)
    assert graph.nnz <= 8 * 30
    everything = least_squares_graph(X, 0.1, power=1, q=100, normalize=False)
    assert_allclose(everything.toarray(), codes + codes.T, rtol=1e-9)


def test_blocks_of_rows_make_no_difference(monkeypatch):
    X = draw(40, 10)
    whole = [least_squares_graph(X, 0.1, q=q) for q in (None, 3)]
    monkeypatch.setattr("polyspan.graphs.edges.chunk_rows", lambda *_: 7)
    for q, expected in zip((None, 3), whole, strict=True):
        assert abs(least_squares_graph(X, 0.1, q=q) - expected).max() < 1e-12


@pytest.mark.parametrize(
    "options", [{"alpha": 0.0}, {"power": 0}, {"q": 0}, {"normalize": 2}], ids=str
)
def test_bad_parameters(options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        LeastSquaresSubspaceClustering(**options).fit(draw(30, 10))
