"""Missing entries: majorise-minimise by brute force, monotone, equal to complete data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.arrays import Rows
from polyspan.geometry import draw_bases, is_orthonormal
from polyspan.solvers.annealing import anneal
from polyspan.solvers.masked_members import member_sums
from polyspan.solvers.masked_preparation import (
    Holes,
    observed_mean,
    prepare_masked,
    recurring_patterns,
)
from polyspan.solvers.micusal import Rules, learn_subspaces, refill_empty
from polyspan.solvers.preparation import prepare
from polyspan.solvers.small_systems import pairwise_products, solve_packed
from polyspan.solvers.updates import power_update


def incomplete(seed=0, n=24, m=10, share=0.3, least=4):
    """Return data with holes, at least `least` observed entries in every row."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m)) * np.linspace(2, 0.5, m)
    keys = rng.uniform(size=(n, m))
    missing = keys < share
    best = np.argsort(keys, axis=1)[:, -least:]
    np.put_along_axis(missing, best, False, axis=1)
    X[missing] = np.nan
    return X


def problem_of(X, lam=4.0, prior=0.02):
    return prepare_masked(X, Holes.of(X), np.zeros(X.shape[1], X.dtype), lam, prior=prior).problem


def as_namespace(xp, problem):
    fields = ("norms", "missing", "weights", "patterns", "shared")
    arrays = {f: getattr(problem, f) for f in fields}
    moved = {f: None if a is None else xp.asarray(a) for f, a in arrays.items()}
    return replace(problem, rows=Rows(xp.asarray(problem.rows.X), None, 7), **moved)


def brute_force(x, D, prior):
    """Return θ, the penalised residual and the filled sample of one row."""
    seen = ~np.isnan(x)
    y = np.where(seen, x, 0.0)
    weights = np.where(seen, 1.0, prior)
    theta = np.linalg.solve((D * weights[:, None]).T @ D, D[seen].T @ y[seen])
    fit = D @ theta
    residual = np.sum(weights * (y - fit) ** 2)
    return theta, residual, np.where(seen, y, (1 - prior) * fit)


@pytest.mark.parametrize("prior", [0.0, 0.02, 0.5])
def test_assignment_and_sums_by_brute_force(xp, prior):
    X = incomplete()
    m = X.shape[1]
    bases = draw_bases((2, 3, m, 2), np.random.RandomState(1))
    problem = as_namespace(xp, problem_of(X, prior=prior))
    labels, sums = problem.assign(xp.asarray(bases), with_products=True)
    weights = m / (~np.isnan(X)).sum(axis=1)
    for r in range(2):
        fits = [[brute_force(x, D, prior) for D in bases[r]] for x in X]
        residual = np.array([[fit[1] for fit in row] for row in fits])
        expected = residual.argmin(axis=1)
        assert np.array_equal(np.asarray(labels)[:, r], expected)
        won = weights * residual.min(axis=1)
        assert_allclose(problem.total - float(sums.energy[r]), won.sum())
        for p in range(3):
            product = np.zeros((m, 2))
            for i in np.flatnonzero(expected == p):
                theta, _, filled = fits[i][p]
                product += weights[i] * np.outer(filled, theta)
                assert_allclose(bases[r, p].T @ filled, theta, atol=1e-10)
            assert_allclose(np.asarray(sums.products)[r, p], product, atol=1e-9)
    found = np.asarray(problem.residuals(xp.asarray(bases[0])))
    fits = [min(brute_force(x, D, prior)[1] for D in bases[0]) for x in X]
    assert_allclose(found, weights * fits, atol=1e-10)


def test_soft_sums_become_hard_ones(xp):
    X = incomplete()
    bases = xp.asarray(draw_bases((2, 3, 10, 2), np.random.RandomState(1)))
    problem = as_namespace(xp, problem_of(X))
    labels, hard = problem.assign(bases, with_products=True)
    shares, soft = problem.weigh(bases, 1e-9)
    assert np.array_equal(np.asarray(shares).argmax(axis=2), np.asarray(labels))
    assert_allclose(np.asarray(soft.products), np.asarray(hard.products), atol=1e-8)
    assert_allclose(np.asarray(soft.energy), np.asarray(hard.energy))


def test_patterns_that_recur_are_shared(xp):
    rng = np.random.RandomState(0)
    patterns = rng.uniform(size=(3, 10)) < 0.3
    which = rng.randint(0, 3, size=40)
    X = np.where(patterns[which], np.nan, rng.standard_normal((40, 10)))
    problem = problem_of(X)
    assert problem.shared is not None
    assert len(problem.shared) == 3
    assert np.array_equal(problem.shared[problem.patterns], np.isnan(X))
    bases = draw_bases((1, 2, 10, 3), rng)
    plain = replace(problem, patterns=None, shared=None)
    _, expected = plain.assign(bases, with_products=True)
    _, found = as_namespace(xp, problem).assign(xp.asarray(bases), with_products=True)
    assert_allclose(np.asarray(found.products), expected.products, atol=1e-9)
    assert_allclose(np.asarray(found.energy), expected.energy)
    assert recurring_patterns(np.isnan(incomplete())) == (None, None)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(8, 40),
    m=st.integers(5, 14),
    share=st.floats(0.0, 0.7),
    lam=st.sampled_from([0.1, 4.0, float("inf")]),
    prior=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_f2_with_its_prior_never_rises(seed, n, m, share, lam, prior, dtype):
    X = incomplete(seed, n, m, share).astype(dtype)
    problem = problem_of(X, lam, prior)
    bases = draw_bases((2, 2, m, 2), np.random.RandomState(seed)).astype(dtype)
    rules = Rules(max_iter=8, tol=0.0)
    slack = 1e-9 if dtype == "float64" else 1e-4
    for solution in learn_subspaces(problem, bases, rules):
        history = np.array(solution.history)
        assert np.all(np.diff(history) <= slack * (np.abs(history[:-1]) + problem.rounding))
        assert is_orthonormal(solution.bases, 1e-10 if dtype == "float64" else 1e-5)


@given(seed=st.integers(0, 1000), temperature=st.floats(0.01, 2.0))
def test_free_energy_never_rises_with_holes(seed, temperature):
    problem = problem_of(incomplete(seed))
    bases = draw_bases((1, 3, 10, 2), np.random.RandomState(seed))
    _, history = anneal(problem, bases, [temperature] * 8)
    assert np.all(np.diff(history, axis=0) <= 1e-9 * np.abs(history[:-1]))


@pytest.mark.parametrize("prior", [0.0, 0.02])
def test_nothing_missing_equals_complete_data_step_by_step(prior):
    X = np.random.RandomState(0).standard_normal((30, 9))
    masked = problem_of(X, prior=prior)
    complete = prepare(X, 4.0, center=False).problem
    bases = draw_bases((2, 3, 9, 2), np.random.RandomState(1))
    other = bases
    for _ in range(10):
        labels, sums = masked.assign(bases, with_products=True)
        expected, reference = complete.assign(other, with_products=True)
        assert np.array_equal(labels, expected)
        assert_allclose(
            masked.objective(bases, sums.energy), complete.objective(other, reference.energy)
        )
        bases = power_update(masked, bases, sums.products)
        other = power_update(complete, other, reference.products)
        assert_allclose(bases, other, atol=1e-9)


def test_small_systems(xp):
    rng = np.random.RandomState(0)
    for s in (1, 2, 5):
        a = rng.standard_normal((3, 7, s, s + 2))
        matrices = a @ a.transpose(0, 1, 3, 2)
        right = rng.standard_normal((3, 7, s))
        rows, columns = np.triu_indices(s)
        packed = matrices[:, :, rows, columns].transpose(0, 2, 1)
        found = solve_packed(xp.asarray(packed.copy()), xp.asarray(right.transpose(0, 2, 1).copy()))
        expected = np.linalg.solve(matrices, right[..., None])[..., 0]
        assert_allclose(np.asarray(found).transpose(0, 2, 1), expected, rtol=1e-8)
    bases = rng.standard_normal((2, 6, 3))
    pairs = np.asarray(pairwise_products(xp.asarray(bases)))
    rows, columns = np.triu_indices(3)
    assert_allclose(pairs, (bases[:, :, rows] * bases[:, :, columns]).transpose(0, 2, 1))


def test_observed_mean_of_huge_entries():
    X = np.array([[1e300, np.nan], [1e300, 2.0], [np.nan, 4.0]])
    assert_allclose(observed_mean(X, np.isnan(X)), [1e300, 3.0])


def test_refilling_with_holes():
    rng = np.random.RandomState(0)
    X = np.zeros((60, 8))
    X[:20, :2], X[20:40, 2:4], X[40:, 4:6] = rng.standard_normal((3, 20, 2))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    problem = problem_of(X, float("inf"))
    start = np.stack([np.eye(8)[:, :2], np.eye(8)[:, 2:4], np.eye(8)[:, 6:8]])
    rules = Rules(tol=1e-9)
    (stuck,) = learn_subspaces(problem, start[None], rules)
    filled = refill_empty(problem, stuck, rules)
    assert filled.objective <= stuck.objective
    assert np.all(np.diff(filled.history) <= problem.rounding)


@pytest.mark.parametrize("size", [5, 100])
def test_sums_for_given_labels_by_brute_force(xp, size):
    X = incomplete(seed=6)
    bases = draw_bases((3, 10, 2), np.random.RandomState(7))
    labels = np.random.RandomState(8).randint(2, size=24)  # the third subspace has no member
    problem = problem_of(X)
    moved = as_namespace(xp, problem)
    moved = replace(moved, rows=Rows(moved.rows.X, None, size))
    products = np.zeros_like(bases)
    energy, filled = 0.0, []
    for x, label, weight in zip(X, labels, problem.weights, strict=True):
        theta, residual, y = brute_force(x, bases[label], problem.prior)
        products[label] += weight * np.outer(y, theta)
        energy += weight * (np.nansum(x**2) - residual)
        filled.append(np.sqrt(weight) * y)
    sums = member_sums(moved, xp.asarray(bases), xp.asarray(labels))
    assert_allclose(np.asarray(sums.products)[0], products, atol=1e-10)
    assert_allclose(np.asarray(sums.energy)[0], energy, rtol=1e-10)
    assert np.asarray(sums.counts).tolist() == [[*np.bincount(labels), 0]]
    completed = moved.completed(xp.asarray(bases), xp.asarray(labels))
    assert_allclose(np.asarray(completed.rows.X), filled, atol=1e-10)


def test_sums_for_given_labels_are_those_of_the_assignment():
    problem = problem_of(incomplete(seed=9))
    bases = draw_bases((1, 2, 10, 3), np.random.RandomState(1))
    labels, sums = problem.assign(bases, with_products=True)
    again = member_sums(problem, bases[0], labels[:, 0])
    assert_allclose(again.products, sums.products, atol=1e-12)
    assert_allclose(again.energy, sums.energy, rtol=1e-12)
    assert np.array_equal(again.counts, sums.counts)
