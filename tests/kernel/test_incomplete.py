"""Kernel values from incomplete pairs, their repair, and the bounds of the paper, simulated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.kernels import (
    Kernel,
    coherence,
    estimate_feature_distances,
    estimate_kernel,
    gaussian_kernel_bounds,
    inner_product_deviation,
    mend,
    nearest_positive_definite,
    polynomial_kernel_bounds,
    squared_distance_deviation,
)

KERNELS = [
    Kernel("rbf", gamma=0.2),
    Kernel("poly", gamma=1, coef0=1, degree=3),
    Kernel("linear"),
]


def with_holes(seed, n=7, m=12, fraction=0.3):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m))
    X[rng.uniform(size=X.shape) < fraction] = np.nan
    return X


def pair_by_pair(kernel, x, y):
    common = ~np.isnan(x) & ~np.isnan(y)
    m = len(x)
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * m / common.sum() * np.sum((x - y)[common] ** 2))
    product = m / common.sum() * (x[common] @ y[common])
    return product if kernel.name == "linear" else (product + kernel.coef0) ** kernel.degree


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_all_pairs_equal_the_loop_over_pairs(kernel):
    X, Y = with_holes(0), with_holes(1, n=4)
    expected = [[pair_by_pair(kernel, x, y) for y in Y] for x in X]
    assert_allclose(estimate_kernel(kernel, X, Y).values, expected, rtol=1e-10)
    own = [[pair_by_pair(kernel, x, y) for y in X] for x in X]
    found = estimate_kernel(kernel, X)
    assert_allclose(found.values, own, rtol=1e-10)
    assert np.array_equal(found.values, found.values.T)
    assert found.n_unrelated == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_complete_samples_give_the_kernel_itself(kernel):
    X = np.random.RandomState(2).standard_normal((6, 5))
    assert_allclose(estimate_kernel(kernel, X).values, kernel(X), rtol=1e-10)
    G = kernel(X)
    squares = np.diag(G)[:, None] + np.diag(G) - 2 * G
    # Where a distance is zero, rounding leaves its root at 1e-8.
    found = estimate_feature_distances(kernel, X)
    assert_allclose(found, np.sqrt(np.maximum(squares, 0)), rtol=1e-8, atol=1e-6)


def test_pairs_without_a_common_entry_are_counted_and_filled():
    X = np.array([[1.0, np.nan, np.nan], [np.nan, 2.0, 1.0], [1.0, 1.0, np.nan]])
    found = estimate_kernel(Kernel("linear"), X)
    assert found.n_unrelated == 1
    related = np.ones((3, 3), dtype=bool)
    related[0, 1] = related[1, 0] = False
    np.fill_diagonal(related, False)
    assert_allclose(found.values[0, 1], found.values[related].mean())
    apart = estimate_kernel(Kernel("rbf"), X[:1], X[1:2])
    assert apart.n_unrelated == 1
    assert np.isfinite(apart.values).all()
    given = estimate_kernel(Kernel("rbf", gamma=2.0), X[:1], X[1:], fill=0.5)
    assert_allclose(given.values[0, 0], np.exp(-1.0))


def test_integers_are_numbers_too():
    X = np.arange(6).reshape(3, 2)
    for kernel in KERNELS:
        assert_allclose(estimate_kernel(kernel, X).values, kernel(X.astype(float)))


def test_new_rows_are_mended_alike():
    rng = np.random.RandomState(5)
    G = rng.standard_normal((6, 6))
    G = G + G.T
    mended = mend(G, 1e-3)
    assert_allclose(G @ mended.signs, mended.G, atol=1e-12)
    relative = mend(np.diag([4.0, 0.0, -1.0]), 1e-3, relative=True)
    assert_allclose(np.diag(relative.G), [4.0, 4e-3, 1.0])


def test_kernels_that_cannot_be_estimated():
    with pytest.raises(ValueError, match="'rbf', 'poly' and 'linear' can"):
        estimate_kernel(Kernel(lambda x, y: x @ y), np.eye(3))


@given(st.integers(0, 50))
def test_repair_flips_negative_eigenvalues_and_lifts_zeros(seed):
    rng = np.random.RandomState(seed)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    values = np.array([-2.0, -0.1, 0.0, 1.0, 3.0])
    repaired = nearest_positive_definite((Q * values) @ Q.T, 1e-3)
    assert_allclose(np.linalg.eigvalsh(repaired), [1e-3, 0.1, 1.0, 2.0, 3.0], rtol=1e-9)
    assert_allclose(repaired @ Q, Q * np.array([2.0, 0.1, 1e-3, 1.0, 3.0]), atol=1e-12)


def draws(m, n, count, seed=0):
    return np.random.RandomState(seed).randint(m, size=(count, n))


@pytest.mark.parametrize("delta", [0.02, 0.1])
def test_corollary_1_and_theorem_1_hold_in_simulation(delta):
    rng = np.random.RandomState(3)
    m, n = 400, 250
    z = rng.uniform(0.9, 1.1, m)  # flat: otherwise the bound is vacuous
    alpha = squared_distance_deviation(coherence(z), n, delta)
    assert alpha < 1
    true = z @ z
    estimates = m / n * np.sum(z[draws(m, n, 2000)] ** 2, axis=1)
    inside = (estimates >= (1 - alpha) * true) & (estimates <= (1 + alpha) * true)
    assert inside.mean() >= 1 - 2 * delta
    gamma = 1 / true
    kappa = np.exp(-gamma * true)
    within = []
    for h in np.exp(-gamma * estimates):
        low, high = gaussian_kernel_bounds(h, coherence(z), n, delta)
        within.append(low <= kappa <= high)
    assert np.mean(within) >= 1 - 2 * delta


def test_theorem_1_says_when_it_is_vacuous():
    with pytest.warns(RuntimeWarning, match="vacuous"):
        low, high = gaussian_kernel_bounds(0.5, 3.0, 10, 0.1)
    assert low == 0.0
    assert 0.5 < high < 1


@pytest.mark.parametrize("delta", [0.02, 0.1])
def test_lemma_1_and_theorem_2_hold_in_simulation(delta):
    rng = np.random.RandomState(4)
    m, n, c, degree = 300, 200, 1.0, 3
    x, y = rng.standard_normal((2, m)) / np.sqrt(m)
    beta = inner_product_deviation(m, np.abs(x * y).max(), n, delta)
    estimates = m / n * np.sum((x * y)[draws(m, n, 2000)], axis=1)
    assert (np.abs(estimates - x @ y) <= beta).mean() >= 1 - 2 * delta
    kappa = (x @ y + c) ** degree
    bounds = [polynomial_kernel_bounds((e + c) ** degree, degree, beta) for e in estimates]
    assert np.mean([low <= kappa <= high for low, high in bounds]) >= 1 - 2 * delta


def test_odd_roots_keep_the_sign():
    low, high = polynomial_kernel_bounds(-8.0, 3, 0.5)
    assert_allclose([low, high], [(-2.5) ** 3, (-1.5) ** 3])
    with pytest.raises(ValueError, match="odd degrees"):
        polynomial_kernel_bounds(4.0, 2, 0.1)


def test_bounds_need_common_entries_and_a_probability():
    with pytest.raises(ValueError, match="n_common=0"):
        squared_distance_deviation(1.0, 0, 0.1)
    with pytest.raises(ValueError, match="delta=1"):
        inner_product_deviation(3, 1.0, 2, 1.0)
    assert coherence(np.zeros(3)) == 1.0
