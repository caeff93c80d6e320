"""Updates: the exact one is the top eigenvectors, the power step never raises the objective."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan.engine.krylov import _residual, leading_subspace
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.linear._solve import exact
from polyspan.linear._solve.alternation import update_exactly
from polyspan.linear._solve.exact import exact_step, moments_block
from polyspan.linear._solve.problem import prepare
from polyspan.linear._solve.shape import join, leading_directions, power_step


def setting(xp=np, seed=0, n=60, m=12, n_subspaces=3, s=2, lam=4.0):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m)) * np.linspace(2, 0.5, m)
    bases = draw_bases((n_subspaces, m, s), rng)
    problem, _ = prepare(xp.asarray(X), lam, center=True)
    labels, _ = problem.assign(xp.asarray(bases[None]), with_products=False)
    return X - X.mean(axis=0), problem, bases, labels[:, 0]


def exact_update(problem, bases, labels):
    return update_exactly(problem, bases, labels[:, None], 0)


def literal_update(Y, bases, labels, lam):
    bases = bases.copy()
    for p in range(len(bases)):
        members = Y[labels == p]
        A = members.T @ members * (1.0 if np.isinf(lam) else lam / 2)
        if np.isfinite(lam):
            A = A + sum(b @ b.T for q, b in enumerate(bases) if q != p)
        bases[p] = np.linalg.eigh(A)[1][:, -bases.shape[2] :]
    return bases


@pytest.mark.parametrize("lam", [0.1, 4.0, 1e6, float("inf")])
@pytest.mark.parametrize(("n", "m"), [(60, 12), (30, 25), (200, 5)])
def test_exact_update_is_the_literal_one(xp, lam, n, m):
    Y, problem, bases, labels = setting(xp, n=n, m=m, lam=lam)
    expected = literal_update(Y, bases, np.asarray(labels), lam)
    found = np.asarray(exact_update(problem, xp.asarray(bases), labels))
    assert is_orthonormal(found, 1e-12)
    for a, b in zip(found, expected, strict=True):
        assert subspace_distance(a, b) < 1e-6


@pytest.mark.parametrize("lam", [4.0, float("inf")])
def test_products_find_what_the_dense_solver_finds(xp, lam, monkeypatch):
    Y, problem, bases, labels = setting(xp, n=400, m=40, lam=lam)
    monkeypatch.setattr(exact, "DENSE_FEATURES", 1)
    found = np.asarray(exact_update(problem, xp.asarray(bases), labels))
    for a, b in zip(found, literal_update(Y, bases, np.asarray(labels), lam), strict=True):
        assert subspace_distance(a, b) < 1e-5


def test_products_that_do_not_settle_warn(monkeypatch):
    _, problem, bases, labels = setting(n=400, m=40)
    monkeypatch.setattr(exact, "DENSE_FEATURES", 1)
    monkeypatch.setattr(exact, "MAX_CYCLES", 1)
    monkeypatch.setattr("polyspan.engine.krylov.KRYLOV_BLOCKS", 1)
    with pytest.warns(ConvergenceWarning, match="not exact"):
        exact_update(problem, bases, labels)


def test_near_the_solution_the_gram_matrix_is_multiplied_not_reduced(monkeypatch):
    Y, problem, bases, labels = setting(n=60, m=55, s=1)
    solved = bases
    for _ in range(60):
        solved = literal_update(Y, solved, labels, 4.0)
    calls = []
    monkeypatch.setattr(
        exact,
        "leading_subspace",
        lambda *a, **k: calls.append(leading_subspace(*a, **k)) or calls[-1],
    )
    found = exact_update(problem, solved, labels)
    assert any(call.converged for call in calls)
    for a, b in zip(found, literal_update(Y, solved, labels, 4.0), strict=True):
        assert subspace_distance(a, b) < 1e-7


@pytest.mark.parametrize("n_members", [1, 2, 4])
def test_members_of_a_low_rank_leave_the_rest_to_the_old_basis(n_members):
    """Few members, or members along few directions, do not fill a subspace of dimension four."""
    rng = np.random.RandomState(0)
    X = np.zeros((40, 30))
    X[:20] = rng.standard_normal((20, 30))
    X[20 : 20 + n_members] = rng.standard_normal((n_members, 2)) @ rng.standard_normal((2, 30))
    problem, _ = prepare(X, float("inf"), center=False)
    bases = draw_bases((2, 30, 4), rng)
    labels = np.repeat([0, 1], 20)
    found = exact_update(problem, bases, labels)
    assert is_orthonormal(found, 1e-12)
    own = X[20 : 20 + n_members]
    assert_allclose(own @ found[1] @ found[1].T, own, atol=1e-10)
    # What is not needed for the members lies in the old subspace and their span.
    both = np.linalg.qr(np.concatenate([bases[1], own.T], axis=1))[0]
    assert_allclose(both @ both.T @ found[1], found[1], atol=1e-10)


@pytest.mark.parametrize("size", [1e-100, 1e-160, 1e-161, 1e-162, 1e-200])
def test_members_far_smaller_than_others_have_an_orthonormal_basis(size):
    """Their squares are below the smallest normal number, and have few digits or none."""
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.standard_normal((20, 5)), size * rng.standard_normal((1, 5))])
    problem, _ = prepare(X, float("inf"), center=False)
    found = exact_update(problem, draw_bases((2, 5, 1), rng), np.repeat([0, 1], [20, 1]))
    assert is_orthonormal(found, 1e-12)


def test_weak_directions_are_orthonormal_too():
    """Images of eigenvectors far below the largest are not orthogonal by themselves."""
    rng = np.random.RandomState(0)
    U, V = draw_bases((30, 3), rng), draw_bases((20, 3), rng)
    X = np.concatenate([V * [1.0, 1e-2, 1e-5] @ U.T, rng.standard_normal((20, 30))])
    problem, _ = prepare(X, float("inf"), center=False)
    found = exact_update(problem, draw_bases((2, 30, 3), rng), np.repeat([0, 1], 20))
    assert is_orthonormal(found, 1e-12)
    assert subspace_distance(found[0], U) < 1e-4


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_directions_of_few_samples_are_filled_up(xp, n):
    rng = np.random.RandomState(0)
    samples, old = rng.standard_normal((n, 8)), draw_bases((8, 3), rng)
    found = np.asarray(leading_directions(xp.asarray(samples), xp.asarray(old)))
    assert found.shape == (8, 3)
    assert is_orthonormal(found, 1e-12)
    left = np.linalg.svd(samples.T, full_matrices=False)[0][:, :3]
    assert_allclose(found @ found.T @ left, left, atol=1e-12)
    span = np.linalg.qr(np.concatenate([left, old if n < 3 else left], axis=1))[0]
    assert_allclose(span @ span.T @ found, found, atol=1e-12)


def test_krylov_leaves_an_invariant_start_that_does_not_lead(xp):
    A = np.diag([5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 0.2, 0.1])
    start = np.eye(8)[:, 4:6]
    matrix = xp.asarray(A)
    found = leading_subspace(lambda block: matrix @ block, xp.asarray(start), max_cycles=50)
    assert found.converged
    assert subspace_distance(np.asarray(found.vectors), np.eye(8)[:, :2]) < 1e-8
    assert_allclose(np.asarray(found.values), [5, 4])


def test_krylov_gives_up_when_the_start_is_far(xp):
    matrix = xp.asarray(np.diag([100.0, 1, 1, 1, 1]))
    start = xp.asarray(np.full((5, 1), 5**-0.5))
    found = leading_subspace(lambda block: matrix @ block, start, max_cycles=9, start_tol=0.1)
    assert not found.converged


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("lam", [0.5, float("inf")])
def test_sums_over_the_members_lead_where_the_members_do(xp, affine, missing, lam):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 12)) * np.linspace(2, 0.5, 12) + 1.0
    if missing:
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
    options = {"center": True, "affine": affine, "holes": missing, "prior": 0.02}
    problem, _ = prepare(xp.asarray(X), lam, **options)
    bases = draw_bases((3, 12, 2), rng)
    frames = join(bases, rng.standard_normal((3, 12))) if affine else bases
    frames, labels = xp.asarray(frames), xp.asarray(rng.randint(2, size=(60, 1)))
    expected = update_exactly(problem, frames, labels, 0)
    block, shape, total = problem.rows.block, problem.shape, None
    for which in (slice(0, 25), slice(25, 60)):  # as blocks that are elsewhere
        part, _ = moments_block(cut(block, which), frames, shape, labels[which, :], 0)
        total = part if total is None else total + part
    found, points = shape.split(exact_step(total, frames, shape, problem.weights))
    other, other_points = shape.split(expected)
    for a, b in zip(np.asarray(found), np.asarray(other), strict=True):
        assert subspace_distance(a, b) < 1e-6
    if affine:
        assert_allclose(np.asarray(points), np.asarray(other_points), atol=1e-10)


def cut(block, which):
    """Return a block of some of the rows."""
    per_row = ("X", "values", "missing", "weights", "norms", "patterns")
    parts = {f: getattr(block, f) for f in block.__dataclass_fields__ if f in per_row}
    return replace(block, **{f: None if a is None else a[which, ...] for f, a in parts.items()})


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(16, 60),
    m=st.integers(3, 15),
    n_subspaces=st.integers(1, 4),
    lam=st.sampled_from([1e-3, 0.5, 4.0, 100.0, float("inf")]),
)
def test_a_power_step_never_raises_the_objective(seed, n, m, n_subspaces, lam):
    _, problem, bases, _ = setting(seed=seed, n=n, m=m, n_subspaces=n_subspaces, lam=lam)
    bases = bases[None]
    values = []
    for _ in range(6):
        _, sums = problem.assign(bases, with_products=True)
        values.append(problem.objective(bases, sums.energy)[0])
        bases = power_step(bases, sums.products, problem.weights)
        assert is_orthonormal(bases, 1e-10)
    assert np.all(np.diff(values) <= 1e-10 * np.abs(values[:-1]) + problem.rounding)


def test_power_steps_lead_to_the_exact_update(xp):
    Y, problem, bases, labels = setting(xp, n_subspaces=1, s=3, n=80)
    stepped = xp.asarray(bases[None])
    for _ in range(300):
        _, sums = problem.assign(stepped, with_products=True)
        stepped = power_step(stepped, sums.products, problem.weights)
    expected = literal_update(Y, bases, np.asarray(labels), 4.0)
    assert subspace_distance(np.asarray(stepped)[0, 0], expected[0]) < 1e-6


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_an_empty_cluster_keeps_its_basis_without_closeness(solver):
    _, problem, bases, labels = setting(lam=float("inf"))
    labels = np.where(labels == 2, 0, labels)
    if solver == "exact":
        updated = exact_update(problem, bases, labels)
    else:
        products = np.zeros((1, *bases.shape))
        updated = power_step(bases[None], products, problem.weights)[0]
    assert subspace_distance(updated[2], bases[2]) < 1e-12


def test_the_residual_of_a_basis_has_no_unit():
    rng = np.random.RandomState(0)
    A = rng.standard_normal((6, 6))
    V = draw_bases((6, 2), rng)
    image = (A + A.T) @ V
    theta = V.T @ image
    expected = np.linalg.norm(image - V @ theta) / np.linalg.norm(theta)
    assert_allclose(_residual(V, image), expected)
    assert_allclose(_residual(V, 100.0 * image), expected)
    assert_allclose(_residual(V, 1e-5 * image), expected)
    assert _residual(V, 0.0 * image) == 0.0
    assert _residual(np.eye(6)[:, :2], 1e-3 * np.eye(6)[:, 3:5]) == np.inf
