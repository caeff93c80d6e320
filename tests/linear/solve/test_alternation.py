"""The loops: annealing, the alternation, empty subspaces, leave-one-out residuals, preparation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.base.arrays import chunk_rows
from polyspan.data.rows import ArrayRows
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear._solve.alternation import PATIENCE, Rules, _Run, alternate, refill_empty
from polyspan.linear._solve.annealing import anneal, pooled_residual, temperatures
from polyspan.linear._solve.leave_one_out import SMALLEST_SLACK, coefficient_scatter_block
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear._solve.problem import prepare
from polyspan.linear._solve.shape import Linear, point_closeness_product
from polyspan.linear._solve.sums import Sums, assign_block, member_mask


def setting(xp=np, seed=0, lam=4.0, sizes=(30, 30, 30), m=15, s=2, starts=2):
    data = make_union_of_subspaces(
        sizes, n_features=m, subspace_dim=s, spread=0.3, random_state=seed
    )
    bases = draw_bases((starts, len(sizes), m, s), np.random.RandomState(seed))
    return data, prepare(xp.asarray(data.X), lam, center=True)[0], xp.asarray(bases)


@given(
    seed=st.integers(0, 1000),
    lam=st.sampled_from([0.1, 4.0, float("inf")]),
    temperature=st.floats(1e-3, 1.0),
)
def test_free_energy_never_rises_at_fixed_temperature(seed, lam, temperature):
    _, problem, bases = setting(seed=seed, lam=lam)
    _, history = anneal(problem, bases, [temperature] * 12)
    assert np.all(np.diff(history, axis=0) <= 1e-10 * np.abs(history[:-1]))


def test_annealing_in_other_namespaces(xp):
    _, problem, bases = setting(xp)
    found, history = anneal(problem, bases, temperatures(0.1, 0.3, 0.05, 9))
    _, plain_problem, plain_bases = setting(np)
    expected, plain = anneal(plain_problem, plain_bases, temperatures(0.1, 0.3, 0.05, 9))
    assert history.shape == (9, 2)
    assert_allclose(np.asarray(history), plain)
    assert_allclose(np.asarray(found), expected, atol=1e-9)


def test_annealing_ends_when_the_monitor_stops_every_start():
    _, problem, bases = setting()
    schedule = temperatures(0.1, 0.3, 0.05, 9)
    _, history = anneal(problem, bases, schedule, monitor=lambda run, step, *rest: step >= 2)
    assert history.shape == (3, 2)
    _, history = anneal(problem, bases, schedule, monitor=lambda run, *rest: run == 0)
    assert history.shape == (9, 2)  # the other start goes on


def test_schedule_is_geometric():
    schedule = temperatures(2.0, 0.3, 0.03, 11)
    assert_allclose(schedule[0], 0.6)
    assert_allclose(schedule[-1], 0.06)
    assert_allclose(np.diff(np.log(schedule)), np.log(0.1) / 10)
    assert temperatures(2.0, 0.3, 0.03, 1) == [0.06]


def test_pooled_residual_is_that_of_pca(xp):
    data, problem, bases = setting(xp)
    Y = data.X - data.X.mean(axis=0)
    values = np.linalg.svd(Y, compute_uv=False) ** 2
    unit, ritz, basis = pooled_residual(problem, bases[0, 0, ...])
    assert is_orthonormal(basis, 1e-10)
    assert_allclose(unit, values[2:].sum() / len(Y), rtol=0.05)
    assert_allclose(np.sort(np.asarray(ritz))[::-1], values[:2], rtol=0.05)


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_alternation_in_other_namespaces_and_in_groups(xp, solver):
    _, problem, bases = setting(xp, starts=3)
    rules = Rules(solver=solver, tol=1e-9)
    together = alternate(problem, bases, rules)
    _, plain_problem, plain = setting(np, starts=3)
    for k, solution in enumerate(together):
        (alone,) = alternate(plain_problem, plain[k : k + 1], rules)
        assert solution.stopped == alone.stopped == "converged"
        assert solution.n_iter == alone.n_iter == len(solution.history) - 1
        assert_allclose(solution.history, alone.history, rtol=1e-10)
        assert np.array_equal(np.asarray(solution.labels), alone.labels)
        assert is_orthonormal(solution.frames, 1e-10)


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_result_is_consistent(solver):
    _, problem, bases = setting()
    for solution in alternate(problem, bases, Rules(solver=solver)):
        labels, sums = problem.assign(solution.frames[None], with_products=False)
        assert np.array_equal(labels[:, 0], solution.labels)
        assert_allclose(
            problem.objective(solution.frames[None], sums.energy)[0], solution.objective
        )
        assert solution.history[-1] == solution.objective == solution.criterion
        assert np.array_equal(np.bincount(solution.labels, minlength=3), solution.counts)


def test_reasons_for_stopping():
    _, problem, bases = setting()
    (capped, _) = alternate(problem, bases, Rules(max_iter=2, tol=0.0))
    assert (capped.stopped, capped.n_iter, len(capped.history)) == ("max_iter", 2, 3)
    seen = []

    def monitor(start, iteration, objective, current):
        seen.append((start, iteration, objective))
        assert current.shape == bases.shape[1:]
        return start == 0 and iteration == 1

    first, second = alternate(problem, bases, Rules(tol=0.0), monitor=monitor)
    assert (first.stopped, first.n_iter) == ("callback", 1)
    assert second.stopped == "converged"
    assert [value for start, _, value in seen if start == 0] == list(first.history)


def with_an_empty_subspace(lam):
    """Two bases that fit all samples, and one orthogonal to the data, without samples."""
    rng = np.random.RandomState(0)
    X = np.zeros((60, 8))
    X[:20, :2], X[20:40, 2:4], X[40:, 4:6] = rng.standard_normal((3, 20, 2))
    problem, _ = prepare(X, lam, center=False)
    start = np.stack([np.eye(8)[:, :2], np.eye(8)[:, 2:4], np.eye(8)[:, 6:8]])
    # One subspace takes the third cluster as a lesser evil; the third stays out of the data.
    return problem, start


def test_empty_subspace_is_filled_when_that_is_better():
    problem, start = with_an_empty_subspace(float("inf"))
    rules = Rules(solver="exact", tol=1e-9)
    (stuck,) = alternate(problem, start[None], rules)
    assert (stuck.counts == 0).any()
    filled = refill_empty(problem, stuck, rules)
    assert (filled.counts > 0).all()
    assert filled.objective < stuck.objective
    assert np.all(np.diff(filled.history) <= 0)
    assert filled.n_iter <= rules.max_iter


def test_empty_subspace_stays_when_filling_it_does_not_help():
    problem, start = with_an_empty_subspace(1e-4)
    rules = Rules(solver="exact", tol=1e-9)
    (stuck,) = alternate(problem, start[None], rules)
    stuck = replace(stuck, counts=np.array([60, 0, 0]), objective=-1.0, criterion=-1.0)
    assert refill_empty(problem, stuck, rules) is stuck
    capped = replace(stuck, stopped="max_iter")
    assert refill_empty(problem, capped, rules) is capped


def leave_one_out(block, bases, labels):
    """Return leave-one-out residuals, (n_starts, n_subspaces, n), chunk beside chunk."""
    scatter, _ = coefficient_scatter_block(block, bases, Linear(), labels)
    leverage, found = scatter.leverage(affine=False), []
    for fit in block.fits(bases, None):
        members = member_mask(labels[fit.which, :].T, bases.shape[1], bases.dtype)
        found.append(np.asarray(leverage.residuals(fit, members)))
    return np.concatenate(found, axis=2)


def test_leverage_is_that_of_regression(xp):
    """h of a sample in its own cluster is the diagonal of the hat matrix of the projections."""
    rng = np.random.RandomState(0)
    X, bases = rng.standard_normal((12, 6)), draw_bases((1, 2, 6, 3), rng)
    labels = np.arange(12) % 2
    norms = (X**2).sum(axis=1)
    for size in (12, 5):
        block = CompleteBlock(xp.asarray(X), None, size)
        found = leave_one_out(block, xp.asarray(bases), xp.asarray(labels[:, None]))
        for i in range(12):
            for p in range(2):
                P = X[labels == p] @ bases[0, p]
                residual = norms[i] - np.sum((X[i] @ bases[0, p]) ** 2)
                h = 0.0
                if labels[i] == p:
                    own = X[i] @ bases[0, p]
                    h = own @ np.linalg.inv(P.T @ P) @ own
                slack = max(1 - h, SMALLEST_SLACK)
                assert_allclose(found[0, p, i], residual / slack**2)


def test_leverage_of_responsibilities_is_that_of_labels_where_they_are_hard(xp):
    _, problem, bases = setting(xp)
    labels, _ = problem.assign(bases, with_products=False)
    hard = member_mask(labels.T, 3, bases.dtype)
    weights = xp.permute_dims(hard, (2, 0, 1))
    one, other = (
        problem.rows.reduce(coefficient_scatter_block, bases, problem.shape, membership)[0]
        for membership in (labels, weights)
    )
    for name in ("gram", "total", "mass"):
        assert_allclose(np.asarray(getattr(one, name)), np.asarray(getattr(other, name)))


def test_leverage_of_a_lonely_sample_is_bounded():
    X = np.eye(4)[:2]
    bases = np.stack([np.eye(4)[:, :1], np.eye(4)[:, 1:2]])[None]
    found = leave_one_out(CompleteBlock(X, None, 2), bases, np.array([[0], [1]]))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_leave_one_out_alternation(solver):
    data, problem, _ = setting(sizes=(8, 8, 8), s=2)
    (solution,) = alternate(problem, data.bases[None], Rules(solver=solver, leave_one_out=True))
    assert solution.stopped == "converged"
    assert solution.criterion > 0
    assert is_orthonormal(solution.frames, 1e-10)


def test_prepared_centring_is_the_same_three_ways():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((50, 6)) + 3.0
    Y = X - X.mean(axis=0)
    bases = draw_bases((1, 2, 6, 2), rng)
    sums, expected = assign_block(CompleteBlock(Y, None, 50), bases, Linear(), True)
    mean = X.mean(axis=0)
    for block in (CompleteBlock(X, mean, 9, mean), CompleteBlock(X, mean, 9)):
        found, labels = assign_block(block, bases, Linear(), True)
        assert np.array_equal(labels, expected)
        assert_allclose(found.products, sums.products, atol=1e-11)
        assert_allclose(block.squared_norms(), np.sum(Y**2, axis=1))


def test_a_heavy_mean_is_subtracted_first(monkeypatch):
    monkeypatch.setattr("polyspan.linear._solve.problem.rows_at_once", lambda *a: 10)
    X = np.random.RandomState(0).standard_normal((50, 6))
    light = prepare(X + 1.0, 4.0, center=True)[0].rows.block
    heavy = prepare(X + 1e6, 4.0, center=True)[0].rows.block
    assert light.offset is not None
    assert heavy.mean is not None
    assert heavy.offset is None
    none = prepare(X, 4.0, center=False)[0].rows.block
    assert none.offset is None
    # 37 times as far as the samples are spread: 6·15² > 100·6.
    assert prepare(X + 15.0, 4.0, center=True)[0].rows.block.offset is None


def test_reduction_to_the_span_changes_no_objective():
    rng = np.random.RandomState(0)
    X, start = rng.standard_normal((12, 40)), draw_bases((3, 40, 2), rng)
    reduced, working = prepare(X, 4.0, center=True, start=start)
    assert reduced.rows.block.X.shape == (12, 18)
    assert prepare(np.vstack([X] * 4), 4.0, center=True)[1].span is None
    rules = Rules(solver="exact", tol=1e-12)
    (small,) = alternate(reduced, working.to_working(start)[None], rules)
    Y = X - X.mean(axis=0)
    full = replace(reduced, rows=ArrayRows(CompleteBlock(Y, None, 12), 12, Y))
    (large,) = alternate(full, start[None], rules)
    assert_allclose(small.history, large.history, rtol=1e-9)
    for a, b in zip(working.to_data(small.frames), large.frames, strict=True):
        assert subspace_distance(a, b) < 1e-5


def test_chunks_bound_memory():
    assert chunk_rows(784, 8) * 784 * 8 <= 6 << 20
    assert chunk_rows(10_000_000, 8) == 1
    assert chunk_rows(10, 8, 1_000_000) * 1_000_000 * 8 <= 66 << 20
    assert chunk_rows(4096, 8) == 512


def test_pooled_residual_of_data_that_one_subspace_holds():
    rng = np.random.RandomState(0)
    basis = draw_bases((8, 2), rng)
    problem, _ = prepare(rng.standard_normal((40, 2)) @ basis.T, 2.0, center=False)
    residual, ritz, _ = pooled_residual(problem, draw_bases((8, 2), rng))
    assert 0.0 <= residual < 1e-12 * problem.total
    assert ritz.shape == (2,)


@pytest.mark.parametrize("lam", [0.5, 8.0, float("inf")])
def test_rounding_of_the_objective_grows_with_the_weight_of_the_residuals(lam):
    X = np.random.RandomState(0).standard_normal((40, 8))
    problem, _ = prepare(X, lam, center=False)
    weight = 1.0 if np.isinf(lam) else lam
    assert_allclose(problem.rounding, 4 * np.finfo(float).eps * weight * np.sum(X**2))


@pytest.mark.parametrize("seed", range(5))
def test_the_closeness_of_points_is_semidefinite_and_no_larger_than_it_must(seed):
    rng = np.random.RandomState(seed)
    points, feet = rng.standard_normal((2, 3, 6))
    found = point_closeness_product(points, feet, 3, np.tile(np.eye(6), (3, 1, 1)))
    for matrix, c, foot in zip(found, points, feet, strict=True):
        tilt = foot - 1.5 * c
        bare = -np.outer(tilt, c) - np.outer(c, tilt)
        assert_allclose(matrix - np.eye(6) * (matrix - bare)[0, 0], bare, atol=1e-12)
        assert_allclose(np.linalg.eigvalsh(matrix)[0], 0.0, atol=1e-12)


def recorded(leave_one_out, steps):
    """Return why a run stopped after each step of (objective, changed labels, criterion)."""
    _, problem, _ = setting()
    run, why = _Run(problem, Rules(tol=1e-3, leave_one_out=leave_one_out)), []
    for objective, changed, criterion in steps:
        score = np.array([criterion]) if leave_one_out else None
        sums = Sums(np.ones((1, 3)), np.zeros(1), score=score, changed=np.array([changed]))
        run.record(np.empty(0), (None, 0), sums, objective)
        why.append(run.stopped)
    return why, run.solution()


def test_a_run_ends_where_its_objective_no_longer_falls():
    assert recorded(False, [(5.0, 9, 0), (4.0, 9, 0), (3.999, 9, 0)])[0] == ["", "", "converged"]
    # A rise can only be rounding.
    assert recorded(False, [(5.0, 9, 0), (6.0, 9, 0)])[0] == ["", "converged"]


def test_a_leave_one_out_run_ends_where_labels_and_objective_stay():
    assert recorded(True, [(5.0, 9, 3.0), (4.9999, 0, 3.0)])[0] == ["", "converged"]
    assert recorded(True, [(5.0, 9, 3.0), (4.9999, 1, 3.0)])[0] == ["", ""]
    assert recorded(True, [(5.0, 9, 3.0), (4.0, 0, 3.0)])[0] == ["", ""]
    assert recorded(True, [(5.0, 9, 3.0), (6.0, 0, 3.0)])[0] == ["", ""]  # it may rise


def test_a_leave_one_out_run_keeps_its_best_iterate_but_not_its_start():
    criteria = [1.0, 5.0, 4.0, *[4.5] * PATIENCE]
    steps = [(10.0 - i, 3, criterion) for i, criterion in enumerate(criteria)]
    why, solution = recorded(True, steps)
    assert why == [""] * (len(steps) - 1) + ["converged"]
    assert solution.criterion == 4.0
    assert solution.objective == 8.0
