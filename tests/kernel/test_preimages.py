import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.kernel.functions import Kernel
from polyspan.kernel.nystrom import NystromMap
from polyspan.kernel.preimages import Expansion, combination_weights, polish, preimages

Y = np.random.RandomState(0).standard_normal((8, 5))
KERNELS = [
    Kernel("rbf", gamma=0.1),
    Kernel("poly", gamma=1, coef0=1, degree=3),
    Kernel("poly", gamma=0.5, coef0=0, degree=5),
    Kernel("linear"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}{k.degree}")
def test_a_mapped_sample_comes_back(kernel):
    G = kernel(Y)
    point = Expansion.of(np.eye(8), G)
    assert_allclose(point.squares, np.diag(G))
    assert_allclose(np.diag(point.feature_distances(np.diag(G))), 0, atol=1e-12)
    e = combination_weights(kernel, point, np.diag(G))
    assert_allclose(preimages(kernel, e, Y), Y, atol=1e-12)


def test_expansion_by_explicit_features():
    """Degree 2 without a constant: the features are all products of two entries."""
    kernel = Kernel("poly", gamma=1, coef0=0, degree=2)
    phi = np.einsum("ni,nj->nij", Y, Y).reshape(8, -1)
    weights = np.random.RandomState(1).standard_normal((3, 8))
    point = Expansion.of(weights, kernel(Y))
    points = weights @ phi
    assert_allclose(point.products, points @ phi.T)
    assert_allclose(point.squares, np.sum(points**2, axis=1))
    distances = ((points[:, None, :] - phi) ** 2).sum(axis=2)
    assert_allclose(point.feature_distances(np.diag(kernel(Y))), distances)


def test_entries_are_weighted_by_how_often_they_were_observed():
    observed = np.random.RandomState(2).uniform(size=Y.shape) < 0.7
    values = np.where(observed, Y, 0.0)
    e = np.random.RandomState(3).uniform(0.1, 1, (2, 8))
    gauss = preimages(KERNELS[0], e, values, observed)
    for u in range(5):
        seen = observed[:, u]
        expected = (e[:, seen] @ Y[seen, u]) / (e.sum(axis=1) * seen.sum() / 8)
        assert_allclose(gauss[:, u], expected)
        plain = preimages(KERNELS[1], e, values, observed, corrected=False)
        assert_allclose(plain[:, u], e[:, seen] @ Y[seen, u])
        better = preimages(KERNELS[1], e, values, observed)
        assert_allclose(better[:, u], plain[:, u] * 8 / seen.sum())


def test_polishing_never_lowers_the_likeness():
    kernel = KERNELS[0]
    rng = np.random.RandomState(4)
    weights = rng.uniform(0, 1, (5, 8))
    start = rng.standard_normal((5, 5))
    before = np.sum(weights * kernel(start, Y), axis=1)
    z = polish(kernel, start, weights, Y)
    after = np.sum(weights * kernel(z, Y), axis=1)
    assert (after > before).all()
    values = weights * kernel(z, Y)
    assert_allclose(z, values @ Y / values.sum(axis=1, keepdims=True), atol=1e-5)


def test_nystrom_with_all_samples_as_landmarks_is_exact():
    kernel = KERNELS[0]
    map_ = NystromMap.of(kernel, Y)
    X = np.random.RandomState(5).standard_normal((4, 5))
    assert_allclose(map_(X) @ map_(Y).T, kernel(X, Y), atol=1e-10)
    twice = NystromMap.of(kernel, np.concatenate([Y, Y[:2]]))
    assert twice.rank == 8
    assert_allclose(twice(X) @ twice(Y).T, kernel(X, Y), atol=1e-8)
