"""Algorithm 3: the compiled sweep, its plain twin, the paper's formulas."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import RobustMiCUSaL
from polyspan.baselines import KGROUSE
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear._solve.alternation import Rules
from polyspan.linear._solve.grouse import closeness_step, learn_by_grouse, sweep
from polyspan.linear._solve.problem import prepare


def data(seed=0, n=20, m=12, s=3, fraction=0.3):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    missing = rng.uniform(size=X.shape) < fraction
    return np.where(missing, 0.0, X), missing, draw_bases((m, s), rng)


def literal_sweep(D, values, missing, members, steps):
    """Steps 12 to 16 of Algorithm 3 as printed."""
    D = D.copy()
    for i in members:
        seen = ~missing[i]
        theta = np.linalg.pinv(D[seen]) @ values[i, seen]
        omega = D @ theta
        r = np.where(seen, values[i] - omega, 0.0)
        mu = np.linalg.norm(r) * np.linalg.norm(omega)
        angle = mu * steps[i]
        direction = (np.cos(angle) - 1) * omega / np.linalg.norm(omega)
        direction = direction + np.sin(angle) * r / np.linalg.norm(r)
        D = D + np.outer(direction, theta / np.linalg.norm(theta))
    return D


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.7])
def test_sweep_equals_plain_twin_and_paper(fraction):
    values, missing, basis = data(fraction=fraction, n=15, m=20)
    steps = np.full(15, 0.4)
    members = np.array([3, 1, 14, 0])
    compiled, plain = basis.T.copy(), basis.T.copy()
    sweep(compiled, values, missing, members, steps)
    sweep.py_func(plain, values, missing, members, steps)
    assert_allclose(compiled, plain, atol=1e-10)
    expected = literal_sweep(basis, values, missing, members, steps)
    assert_allclose(compiled.T, expected, atol=1e-10)


def test_bases_stay_orthonormal_over_many_sweeps():
    values, missing, basis = data(n=200, m=40, s=5)
    columns = basis.T.copy()
    for t in range(1, 101):
        sweep(columns, values, missing, np.arange(200), np.full(200, 1.5 / t))
    assert is_orthonormal(columns.T, 1e-8)


def test_a_sample_that_fits_or_vanishes_changes_nothing():
    values, missing, basis = data()
    missing[:] = False
    values[0], values[1] = 0.0, basis @ np.ones(3)
    columns = basis.T.copy()
    sweep(columns, values, missing, np.array([0, 1]), np.ones(20))
    assert_allclose(columns.T, basis, atol=1e-12)


def test_closeness_step_is_a_geodesic_that_raises_closeness():
    rng = np.random.RandomState(0)
    basis, *others = draw_bases((3, 10, 3), rng)
    wide = np.concatenate(others, axis=1)
    turned = closeness_step(basis, wide, 0.05)
    assert is_orthonormal(turned, 1e-12)
    A = sum(other @ other.T for other in others)
    delta = 2 * (np.eye(10) - basis @ basis.T) @ A @ basis
    u, sigma, vt = np.linalg.svd(delta, full_matrices=False)
    printed = basis @ vt.T @ np.diag(np.cos(0.05 * sigma)) @ vt
    printed = printed + u @ np.diag(np.sin(0.05 * sigma)) @ vt
    assert_allclose(turned, printed, atol=1e-12)
    before = sum(subspace_distance(basis, other) ** 2 for other in others)
    after = sum(subspace_distance(turned, other) ** 2 for other in others)
    assert after < before
    # Half the step twice is not the step, but zero is nothing, and no others is nothing.
    assert_allclose(closeness_step(basis, wide, 0.0), basis, atol=1e-12)
    assert closeness_step(basis, wide[:, :0], 1.0) is basis
    gradient = (turned - basis) / 0.05
    small = (closeness_step(basis, wide, 1e-6) - basis) / 1e-6
    assert_allclose(small, delta, atol=1e-4)
    assert np.sum(gradient * delta) > 0


def problem_of(values, missing, lam=2.0):
    X = np.where(missing, np.nan, values)
    return prepare(X, lam, center=False, holes=True)[0]


@pytest.mark.parametrize("lam", [2.0, np.inf])
def test_outer_loop_by_hand(lam):
    """Without the closeness term (λ=∞) the steps are those of λ=1, without the geodesics."""
    values, missing, _ = data(n=30, m=12, fraction=0.2)
    problem = problem_of(values, missing, lam)
    start = draw_bases((2, 12, 3), np.random.RandomState(5))
    rules = Rules(max_iter=1, tol=0.0)
    found = learn_by_grouse(problem, start, rules, step_size=0.5, n_sweeps=3)
    bases = start.copy()
    labels, _ = problem.assign(start[None], with_products=False)
    for p in range(2):
        members = np.flatnonzero(labels[:, 0] == p)
        for t in (1, 2, 3):
            if np.isfinite(lam):
                bases[p] = closeness_step(bases[p], bases[1 - p], 0.5 / t)
            steps = (lam if np.isfinite(lam) else 1.0) * 0.5 / t * problem.rows.block.weights
            bases[p] = literal_sweep(bases[p], values, missing, members, steps)
    assert_allclose(found.frames, bases, atol=1e-8)
    assert (found.stopped, found.n_iter, len(found.history)) == ("max_iter", 1, 2)


def test_reasons_for_stopping():
    values, missing, _ = data(n=30)
    problem = problem_of(values, missing)
    start = draw_bases((2, 12, 3), np.random.RandomState(5))
    easy, steps = Rules(max_iter=50, tol=1.0), {"step_size": 0.1, "n_sweeps": 2}
    assert learn_by_grouse(problem, start, easy, **steps).stopped == "converged"
    seen = []
    asked = learn_by_grouse(problem, start, easy, **steps, monitor=lambda *a: not seen.append(a))
    assert (asked.stopped, asked.n_iter) == ("callback", 0)
    assert seen[0][:3] == (0, 0, asked.objective)


def test_the_first_change_of_the_objective_can_end_the_loop():
    values, missing, _ = data(n=30)
    problem = problem_of(values, missing)
    start = draw_bases((2, 12, 3), np.random.RandomState(5))
    easy = Rules(max_iter=50, tol=float("inf"))
    assert learn_by_grouse(problem, start, easy, step_size=0.1, n_sweeps=2).n_iter == 1


@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_long_steps_keep_bases_orthonormal(scale):
    """Data that are not of norm 1: errors of the Gram matrix once grew until nothing was finite."""
    for seed in range(6):
        rng = np.random.RandomState(seed)
        X = scale * rng.standard_normal((30, 5))
        X[rng.random_sample(X.shape) < 0.3] = np.nan
        for model in (
            KGROUSE(2, 2, n_sweeps=20, n_init=3, random_state=seed),
            RobustMiCUSaL(
                2, 2, solver="grouse", init="random", max_iter=3, n_sweeps=20, random_state=seed
            ),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # samples with two entries, and few iterations
                model.fit(X)
            assert is_orthonormal(model.bases_)
            assert np.isfinite(model.objective_)


def test_a_sample_that_fixes_no_coefficients_is_passed_over():
    """Its observed rows of the basis are dependent."""
    columns = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    before = columns.copy()
    missing = np.array([[False, True, False, False]])
    sweep(columns, np.array([[1.0, 0.0, 2.0, 3.0]]), missing, np.array([0]), np.ones(1))
    assert np.array_equal(columns, before)
