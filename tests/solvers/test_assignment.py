"""One pass over the rows: labels, energies and sums, whatever the chunks and the namespace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.arrays import Rows
from polyspan.geometry import draw_bases
from polyspan.solvers.assignment import assign, weigh


def problem(seed=0, n=40, m=9, starts=2, n_subspaces=3, s=2):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m)) + 1.0
    return X, X.mean(axis=0), draw_bases((starts, n_subspaces, m, s), rng)


def rows_of(xp, X, mean, size, explicit=False):
    return Rows(xp.asarray(X), xp.asarray(mean), size, explicit)


def brute_force(X, mean, bases):
    """Labels, members, energy and S_lD_l of each start, sample by sample."""
    Y = X - mean
    starts, n_subspaces, m, s = bases.shape
    energy = np.array([[[np.sum((D.T @ y) ** 2) for D in B] for B in bases] for y in Y])
    labels = energy.argmax(axis=2)
    products = np.zeros((starts, n_subspaces, m, s))
    for i, y in enumerate(Y):
        for r in range(starts):
            p = labels[i, r]
            products[r, p] += np.outer(y, bases[r, p].T @ y)
    return energy, labels, products


@pytest.mark.parametrize("size", [40, 7])
@pytest.mark.parametrize("explicit", [False, True])
def test_hard_assignment_by_brute_force(xp, size, explicit):
    X, mean, bases = problem()
    energy, expected, products = brute_force(X, mean, bases)
    rows = rows_of(xp, X, mean, size, explicit)
    labels, sums = assign(rows, xp.asarray(bases), with_products=True)
    assert np.array_equal(np.asarray(labels), expected)
    assert_allclose(np.asarray(sums.energy), energy.max(axis=2).sum(axis=0))
    assert_allclose(np.asarray(sums.products), products, atol=1e-12)
    counts = [[(expected[:, r] == p).sum() for p in range(3)] for r in range(2)]
    assert np.array_equal(np.asarray(sums.counts), counts)


@pytest.mark.parametrize("size", [40, 7])
def test_soft_assignment_by_brute_force(xp, size):
    X, mean, bases = problem()
    energy, _, _ = brute_force(X, mean, bases)
    temperature = 0.7
    expected = np.exp(energy / temperature)
    expected /= expected.sum(axis=2, keepdims=True)
    weights, sums = weigh(rows_of(xp, X, mean, size), xp.asarray(bases), temperature)
    assert_allclose(np.asarray(weights), expected)
    assert_allclose(np.asarray(sums.energy), (expected * energy).sum(axis=(0, 2)))
    assert_allclose(np.asarray(sums.entropy), (expected * np.log(expected)).sum(axis=(0, 2)))
    Y = X - mean
    for r in range(2):
        for p in range(3):
            scatter = (Y * expected[:, r, p, None]).T @ Y
            assert_allclose(np.asarray(sums.products)[r, p], scatter @ bases[r, p], atol=1e-12)


def test_cold_weights_are_hard_labels(xp):
    X, mean, bases = problem()
    rows = rows_of(xp, X, mean, 11)
    labels, hard = assign(rows, xp.asarray(bases), with_products=True)
    weights, soft = weigh(rows, xp.asarray(bases), 1e-9)
    assert np.array_equal(np.asarray(weights).argmax(axis=2), np.asarray(labels))
    assert_allclose(np.asarray(soft.products), np.asarray(hard.products), atol=1e-9)
    assert_allclose(np.asarray(soft.entropy), 0, atol=1e-9)


def test_a_tiny_temperature_overflows_nowhere():
    X, mean, bases = problem()
    with np.errstate(over="raise", invalid="raise"):
        weights, sums = weigh(Rows(X, mean, 40), bases, 1e-300)
    assert np.isfinite(weights).all()
    assert np.isfinite(sums.entropy).all()


def test_float32_sums_are_kept_in_double_where_they_are_totals():
    X, mean, bases = problem()
    rows = Rows(X.astype(np.float32), mean.astype(np.float32), 7)
    _, sums = assign(rows, bases.astype(np.float32), with_products=True)
    assert sums.energy.dtype == np.float64
    assert sums.products.dtype == np.float32
