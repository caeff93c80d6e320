"""Elastic-net codes: optimality conditions, scikit-learn's minimum, exemplars; the estimator."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import ElasticNet

from polyspan.base.arrays import unit_rows
from polyspan.baselines import ElasticNetSubspaceClustering
from polyspan.baselines.elastic_net import elastic_net_codes
from polyspan.datasets import make_union_of_subspaces
from polyspan.graphs.edges import symmetric_affinity
from polyspan.metrics import clustering_error


def draw(n=30, m=12, seed=0):
    return unit_rows(np.random.RandomState(seed).standard_normal((n, m)))


def miss(X, codes, gamma, l1_ratio, *, nonnegative, atoms=None):
    """Return by how much the codes miss their optimality conditions, over the weight."""
    weight, ridge = l1_ratio / gamma, (1 - l1_ratio) / gamma
    gradient = (X - codes @ X) @ X.T - ridge * codes
    at_zero = gradient if nonnegative else np.abs(gradient)
    worst = np.where(
        codes == 0, np.maximum(at_zero - weight, 0), np.abs(gradient - weight * np.sign(codes))
    )
    np.fill_diagonal(worst, 0.0)
    return np.max(worst[:, atoms] if atoms is not None else worst) / weight


@given(
    seed=st.integers(0, 500),
    n=st.integers(2, 80),
    m=st.integers(1, 15),
    gamma=st.sampled_from([2.0, 10.0, 50.0]),
    l1_ratio=st.sampled_from([0.5, 0.9, 1.0]),
    nonnegative=st.booleans(),
)
def test_optimality_conditions(seed, n, m, gamma, l1_ratio, nonnegative):
    X = draw(n, m, seed)
    found, failed = elastic_net_codes(X, gamma, l1_ratio, nonnegative=nonnegative)
    codes = found.toarray()
    assert failed == 0
    assert np.all(np.diag(codes) == 0)
    assert not nonnegative or codes.min() >= 0
    assert miss(X, codes, gamma, l1_ratio, nonnegative=nonnegative) < 1e-4


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.5, 0.9])
def test_the_minimum_of_scikit_learn(l1_ratio, nonnegative):
    X, gamma = draw(70, 20), 30.0
    codes = elastic_net_codes(X, gamma, l1_ratio, nonnegative=nonnegative)[0].toarray()
    for i in range(0, 70, 7):
        others = np.delete(np.arange(70), i)
        model = ElasticNet(
            1 / (gamma * 20), l1_ratio=l1_ratio, positive=nonnegative, fit_intercept=False,
            tol=1e-10, max_iter=100_000,
        )  # fmt: skip
        assert_allclose(codes[i, others], model.fit(X[others].T, X[i]).coef_, atol=1e-5)


def test_samples_that_lack_candidates_of_the_right_sign():
    """Where no product is positive a nonnegative code is empty: no sample may use itself."""
    X = np.eye(6)
    assert elastic_net_codes(X, 50.0, nonnegative=True)[0].nnz == 0
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert elastic_net_codes(X, 50.0, nonnegative=True)[0].nnz == 0


def test_codes_use_exemplars_alone_and_are_best_among_them():
    X, gamma = draw(120, 15), 20.0
    exemplars = np.array([3, 17, 40, 41, 77, 90, 118])
    found, failed = elastic_net_codes(X, gamma, exemplars=exemplars)
    assert failed == 0
    codes = found.toarray()
    assert set(np.flatnonzero(codes.any(axis=0))) <= set(exemplars)
    assert codes.any(axis=1).sum() > 100
    assert miss(X, codes, gamma, 0.9, nonnegative=False, atoms=exemplars) < 1e-4


def test_candidates_that_are_missed_are_added():
    """The best atom of the residual is not among the first candidates: near twins hide it."""
    rng = np.random.RandomState(0)
    bundle = unit_rows(np.r_[1.0, np.zeros(9)] + 0.01 * rng.standard_normal((60, 10)))
    hidden = unit_rows(np.array([[0.1, 1.0, *np.zeros(8)]]))
    sample = unit_rows(np.array([[1.0, 0.8, *np.zeros(8)]]))
    X = np.concatenate([bundle, hidden, sample])
    codes = elastic_net_codes(X, 50.0)[0].toarray()
    assert codes[-1, 60] > 0.3
    assert miss(X, codes[:], 50.0, 0.9, nonnegative=False) < 1e-3


def test_duplicates_and_zero_rows():
    X = draw(10, 6)
    X = np.concatenate([X, X, np.zeros((2, 6))])
    codes, failed = elastic_net_codes(X, 50.0)
    assert failed == 0
    assert codes[20:].nnz == codes[:, 20:].nnz == 0
    largest = np.argmax(np.abs(codes.toarray()[:20]), axis=1)
    assert np.array_equal(largest, np.r_[10:20, 0:10])


def test_a_graph_of_codes():
    X = draw(50, 8)
    found, _ = elastic_net_codes(X, 50.0)
    codes = np.abs(found.toarray())
    codes /= codes.max(axis=1, keepdims=True)
    assert_allclose(symmetric_affinity(found).toarray(), codes + codes.T, atol=1e-12)


def test_few_exemplars_still_find_the_subspaces():
    data = make_union_of_subspaces(
        (60, 60), n_features=30, subspace_dim=2, spread=0.8, noise=0.01, random_state=0
    )
    models = [
        ElasticNetSubspaceClustering(2, 2, n_exemplars=k, random_state=0).fit(data.X)
        for k in (30, 30, 500)
    ]
    assert models[0].affinity_.nnz < models[2].affinity_.nnz
    assert np.array_equal(models[0].labels_, models[1].labels_)
    for model in models:
        assert clustering_error(data.labels, model.labels_) <= 0.05


def test_a_ridge_joins_more_samples():
    X = draw(60, 20)
    sizes = [elastic_net_codes(X, 50.0, ratio)[0].nnz for ratio in (1.0, 0.9, 0.5)]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize(
    "options",
    [{"gamma": 0.0}, {"l1_ratio": 0.0}, {"l1_ratio": 1.1}, {"nonnegative": 2}, {"n_exemplars": 1}],
    ids=str,
)
def test_bad_parameters(options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        ElasticNetSubspaceClustering(**options).fit(draw())


def test_samples_without_neighbours_are_told():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ElasticNetSubspaceClustering(2, random_state=0).fit(np.eye(8))
    assert any("8 of 8 samples have no neighbour" in str(w.message) for w in caught)
