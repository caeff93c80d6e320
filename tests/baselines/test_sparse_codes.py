"""The lasso of every sample over all others: optimality conditions, dependence, scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Lasso

from polyspan.baselines.sparse import lasso_codes


def miss(gram, codes, weights):
    """Return by how much every sample misses its optimality conditions, over its weight."""
    codes = codes.toarray()
    n = len(codes)
    gradient = gram[:n] - codes @ gram
    worst = np.where(codes == 0, np.abs(gradient) - weights[:, None], 0.0)
    worst = np.where(codes != 0, np.abs(gradient - np.sign(codes) * weights[:, None]), worst)
    worst[np.arange(n), np.arange(n)] = 0.0
    return np.max(worst / weights[:, None])


@given(
    seed=st.integers(0, 500),
    n=st.integers(2, 40),
    m=st.integers(1, 12),
    rank=st.integers(1, 12),
    fraction=st.sampled_from([1.0, 0.3, 0.05, 1e-3, 1e-5]),
    constant=st.sampled_from([0.0, 10.0]),
)
def test_optimality_conditions(seed, n, m, rank, fraction, constant):
    rng = np.random.RandomState(seed)
    Y = rng.standard_normal((n, min(rank, m))) @ rng.standard_normal((min(rank, m), m))
    Y = np.concatenate([Y, np.full((n, 1), constant)], axis=1)
    gram = Y @ Y.T
    weights = fraction * np.full(n, np.abs(gram - np.diag(np.diag(gram))).max())
    codes, failed = lasso_codes(gram, weights)
    assert failed == 0
    assert np.all(codes.diagonal() == 0)
    assert miss(gram, codes, weights) < 1e-5


def test_duplicates_and_zero_rows():
    rng = np.random.RandomState(0)
    Y = rng.standard_normal((10, 6))
    Y = np.concatenate([Y, Y, np.zeros((2, 6))])
    gram = Y @ Y.T
    weights = np.full(22, 0.01)
    codes, failed = lasso_codes(gram, weights)
    assert failed == 0
    assert miss(gram, codes, weights) < 1e-6
    assert codes[20:].nnz == codes[:, 20:].nnz == 0


@pytest.mark.parametrize("fraction", [0.3, 0.01])
def test_the_objective_of_scikit_learn(fraction):
    rng = np.random.RandomState(0)
    Y = rng.standard_normal((30, 12))
    gram = Y @ Y.T
    weight = fraction * np.abs(gram - np.diag(np.diag(gram))).max()
    codes, _ = lasso_codes(gram, np.full(30, weight))
    for i, code in enumerate(codes.toarray()):
        others = np.delete(np.arange(30), i)
        model = Lasso(weight / 12, fit_intercept=False, tol=1e-12, max_iter=100_000)
        expected = model.fit(Y[others].T, Y[i]).coef_
        assert_allclose(code[others], expected, atol=1e-6)


def test_affine_trajectories_converge():
    """A large constant entry, and samples that depend on each other up to slight noise."""
    rng = np.random.RandomState(0)
    flats = [
        rng.standard_normal((50, 3)) @ rng.standard_normal((3, 60)) + rng.standard_normal(60)
        for _ in range(3)
    ]
    X = np.concatenate(flats) + 1e-3 * rng.standard_normal((150, 60))
    Y = np.concatenate([X, np.full((150, 1), 10.0)], axis=1)
    gram = Y @ Y.T
    off = np.abs(X @ X.T)
    np.fill_diagonal(off, 0.0)
    weights = np.full(150, off.max(axis=1).min() / 20.0)
    codes, failed = lasso_codes(gram, weights)
    assert failed == 0
    assert miss(gram, codes, weights) < 1e-6
