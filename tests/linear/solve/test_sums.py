"""One pass over the rows: labels, energies and sums, for any chunks and namespace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.geometry import draw_bases
from polyspan.linear._solve.leave_one_out import coefficient_scatter_block
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear._solve.shape import Affine, Linear, join
from polyspan.linear._solve.sums import assign_block, soft_assign_block


def problem(seed=0, n=40, m=9, starts=2, n_subspaces=3, s=2):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m)) + 1.0
    return X, X.mean(axis=0), draw_bases((starts, n_subspaces, m, s), rng)


def block_of(xp, X, mean, size, explicit=False):
    mean = xp.asarray(mean)
    return CompleteBlock(xp.asarray(X), mean, size, None if explicit else mean)


def assign(block, frames, shape=None):
    """Return labels and sums, products among them."""
    return assign_block(block, frames, shape or Linear(), True)[::-1]


def soft_assign(block, frames, temperature, shape=None):
    """Return responsibilities and sums."""
    return soft_assign_block(block, frames, shape or Linear(), temperature, keep=True)[::-1]


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
    block = block_of(xp, X, mean, size, explicit)
    labels, sums = assign(block, xp.asarray(bases))
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
    weights, sums = soft_assign(block_of(xp, X, mean, size), xp.asarray(bases), temperature)
    assert_allclose(np.asarray(weights), expected)
    assert_allclose(np.asarray(sums.energy), (expected * energy).sum(axis=(0, 2)))
    assert_allclose(np.asarray(sums.entropy), (expected * np.log(expected)).sum(axis=(0, 2)))
    Y = X - mean
    for r in range(2):
        for p in range(3):
            scatter = (Y * expected[:, r, p, None]).T @ Y
            assert_allclose(np.asarray(sums.products)[r, p], scatter @ bases[r, p], atol=1e-12)


def test_cold_responsibilities_are_hard_labels(xp):
    X, mean, bases = problem()
    block = block_of(xp, X, mean, 11)
    labels, hard = assign(block, xp.asarray(bases))
    weights, soft = soft_assign(block, xp.asarray(bases), 1e-9)
    assert np.array_equal(np.asarray(weights).argmax(axis=2), np.asarray(labels))
    assert_allclose(np.asarray(soft.products), np.asarray(hard.products), atol=1e-9)
    assert_allclose(np.asarray(soft.entropy), 0, atol=1e-9)


def test_a_tiny_temperature_overflows_nowhere():
    X, mean, bases = problem()
    with np.errstate(over="raise", invalid="raise"):
        weights, sums = soft_assign(CompleteBlock(X, mean, 40), bases, 1e-300)
    assert np.isfinite(weights).all()
    assert np.isfinite(sums.entropy).all()


def test_float32_sums_are_kept_in_double_where_they_are_totals():
    X, mean, bases = problem()
    block = CompleteBlock(X.astype(np.float32), mean.astype(np.float32), 7)
    _, sums = assign(block, bases.astype(np.float32))
    assert sums.energy.dtype == np.float64
    assert sums.products.dtype == np.float32


def affine_brute_force(X, mean, bases, points):
    """Gains ‖y‖² - r and D_lᵀ(y - c_l) of each sample and subspace, and the centred samples."""
    Y = X - mean
    inside = np.einsum("nrpm,rpms->nrps", Y[:, None, None] - points, bases)
    rest = Y[:, None, None] - points - np.einsum("nrps,rpms->nrpm", inside, bases)
    return Y, np.sum(Y**2, axis=1)[:, None, None] - np.sum(rest**2, axis=3), inside


@pytest.mark.parametrize("size", [40, 7])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("temperature", [None, 0.7])
def test_affine_sums_by_brute_force(xp, size, explicit, temperature):
    X, mean, bases = problem()
    points = np.random.RandomState(1).standard_normal(bases.shape[:3])
    Y, gains, inside = affine_brute_force(X, mean, bases, points)
    block, frames = block_of(xp, X, mean, size, explicit), xp.asarray(join(bases, points))
    if temperature is None:
        found, sums = assign(block, frames, Affine(1.0))
        assert np.array_equal(np.asarray(found), gains.argmax(axis=2))
        weights = (gains.argmax(axis=2)[..., None] == np.arange(3)).astype(float)
    else:
        found, sums = soft_assign(block, frames, temperature, Affine(1.0))
        weights = np.exp((gains - gains.max(axis=2, keepdims=True)) / temperature)
        weights /= weights.sum(axis=2, keepdims=True)
        assert_allclose(np.asarray(found), weights)
    products = np.einsum("nrp,nm,nrps->rpms", weights, Y, inside)
    expected = {
        "counts": weights.sum(axis=0),
        "energy": (weights * gains).sum(axis=(0, 2)),
        "coefficients": np.einsum("nrp,nrps->rps", weights, inside),
        "products": products,
        "totals": np.einsum("nrp,nm->rpm", weights, Y),
    }
    for name, value in expected.items():
        assert_allclose(np.asarray(getattr(sums, name)), value, atol=1e-11, err_msg=name)


def test_sums_of_blocks_add_up_and_starts_are_taken_out():
    X, mean, bases = problem()
    _, whole = assign(CompleteBlock(X, mean, 40), bases)
    parts = [assign(CompleteBlock(X[k : k + 9], mean, 5), bases)[1] for k in range(0, 40, 9)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    _, second = assign(CompleteBlock(X, mean, 40), bases[1:])
    for name in ("counts", "energy", "coefficients", "products"):
        assert_allclose(getattr(total, name), getattr(whole, name), atol=1e-12, err_msg=name)
        of_second = getattr(whole.of_starts(np.array([1])), name)
        assert_allclose(of_second, getattr(second, name), atol=1e-12, err_msg=name)
    assert total.totals is None


def test_labels_that_change_are_counted():
    X, mean, bases = problem()
    block = CompleteBlock(X, mean, 7)
    before = np.random.RandomState(2).randint(3, size=(40, 2))
    scatter, _ = coefficient_scatter_block(block, bases, Linear(), before)
    leverage = scatter.leverage(affine=False)
    sums, labels = assign_block(block, bases, Linear(), False, leverage, before)
    assert np.array_equal(sums.changed, (labels != before).sum(axis=0))
    assert sums.products is None
