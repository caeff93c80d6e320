"""Missing entries: majorise-minimise by brute force, monotone, equal to complete data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.data.missing import observed_mean, recurring_patterns
from polyspan.engine.small_systems import inverses, pairwise_products, solve_packed
from polyspan.geometry import draw_bases, is_orthonormal
from polyspan.linear._solve.alternation import Rules, alternate, refill_empty, worst_block
from polyspan.linear._solve.annealing import anneal
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.problem import prepare
from polyspan.linear._solve.shape import join


@pytest.fixture(params=[7, 10_000])
def size(request, monkeypatch):
    """Rows that are visited at once."""
    monkeypatch.setattr("polyspan.linear._solve.masked.rows_at_once", lambda *a: request.param)
    return request.param


def incomplete(seed=0, n=24, m=10, fraction=0.3, least=4):
    """Return data with holes, at least `least` observed entries in every row."""
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n, m)) * np.linspace(2, 0.5, m)
    keys = rng.uniform(size=(n, m))
    missing = keys < fraction
    best = np.argsort(keys, axis=1)[:, -least:]
    np.put_along_axis(missing, best, False, axis=1)
    X[missing] = np.nan
    return X


def problem_of(X, lam=4.0, prior=0.02, affine=False, xp=np):
    return prepare(xp.asarray(X), lam, center=False, affine=affine, holes=True, prior=prior)[0]


def drawn_frames(shape, affine, seed=1):
    rng = np.random.RandomState(seed)
    bases = draw_bases(shape, rng)
    return join(bases, 0.5 * rng.standard_normal(shape[:-1])) if affine else bases


def brute_force(x, frame, prior, affine=False):
    """Return θ, the penalised residual and the filled sample of one row, by least squares."""
    D, c = (frame[:, :-1], frame[:, -1]) if affine else (frame, np.zeros(len(frame)))
    seen = ~np.isnan(x)
    roots = np.where(seen, 1.0, np.sqrt(prior))
    target = roots * (np.where(seen, x, 0.0) - c)
    theta = np.linalg.lstsq(roots[:, None] * D, target, rcond=None)[0]
    residual = np.sum((target - roots * (D @ theta)) ** 2)
    return theta, residual, np.where(seen, x, (1 - prior) * (c + D @ theta))


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("prior", [0.0, 0.02, 0.5])
def test_assignment_and_sums_by_brute_force(xp, size, prior, affine):
    X = incomplete()
    m = X.shape[1]
    frames = drawn_frames((2, 3, m, 2), affine)
    problem = problem_of(X, prior=prior, affine=affine, xp=xp)
    labels, sums = problem.assign(xp.asarray(frames), with_products=True)
    weights = m / (~np.isnan(X)).sum(axis=1)
    for r in range(2):
        fits = [[brute_force(x, frame, prior, affine) for frame in frames[r]] for x in X]
        residual = np.array([[fit[1] for fit in row] for row in fits])
        expected = residual.argmin(axis=1)
        assert np.array_equal(np.asarray(labels)[:, r], expected)
        won = weights * residual.min(axis=1)
        assert_allclose(problem.total - float(sums.energy[r]), won.sum())
        for p in range(3):
            D, c = (frames[r, p][:, :2], frames[r, p][:, -1] if affine else np.zeros(m))
            own = np.flatnonzero(expected == p)
            theta = np.array([fits[i][p][0] for i in own]).reshape(-1, 2)
            filled = np.array([fits[i][p][2] for i in own]).reshape(-1, m)
            assert_allclose((filled - c) @ D, theta, atol=1e-10)
            product = (weights[own, None] * filled).T @ theta
            assert_allclose(np.asarray(sums.products)[r, p], product, atol=1e-9)
            if affine:
                assert_allclose(np.asarray(sums.coefficients)[r, p], weights[own] @ theta)
                assert_allclose(np.asarray(sums.totals)[r, p], weights[own] @ filled, atol=1e-10)
                assert_allclose(np.asarray(sums.mass)[r, p], weights[own].sum())
        worst, _ = problem.rows.reduce(worst_block, xp.asarray(frames[r]), problem.shape, len(X))
        assert_allclose(np.asarray(worst.residuals), np.sort(won)[::-1], atol=1e-10)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("prior", [None, 0.0, 0.02, 1.0])
def test_gains_are_what_the_best_fit_takes_off_the_norm(xp, size, prior, affine):
    """Also for complete rows, which have no prior."""
    X = incomplete()
    if prior is None:
        X = np.nan_to_num(X, nan=0.3)
        problem, _ = prepare(xp.asarray(X), 4.0, center=False, affine=affine)
    else:
        problem = problem_of(X, prior=prior, affine=affine, xp=xp)
    frames = drawn_frames((2, 3, 10, 2), affine)
    weights = 10 / (~np.isnan(X)).sum(axis=1)
    for fit in problem.rows.block.fits(*problem.shape.split(xp.asarray(frames))):
        found, coefficients = np.asarray(fit.gains), np.asarray(fit.coefficients)
        for k, i in enumerate(range(*fit.which.indices(len(X)))):
            for r in range(2):
                for p in range(3):
                    theta, residual, _ = brute_force(X[i], frames[r, p], prior or 0.0, affine)
                    gain = weights[i] * (np.nansum(X[i] ** 2) - residual)
                    assert_allclose(found[r, p, k], gain, atol=1e-10)
                    assert_allclose(coefficients[r, p, :, k], theta, atol=1e-10)


@pytest.mark.parametrize("affine", [False, True])
def test_soft_sums_become_hard_ones(xp, size, affine):
    X = incomplete()
    frames = xp.asarray(drawn_frames((2, 3, 10, 2), affine))
    problem = problem_of(X, affine=affine, xp=xp)
    labels, hard = problem.assign(frames, with_products=True)
    responsibilities, soft = problem.soft_assign(frames, 1e-9, keep=True)
    assert np.array_equal(np.asarray(responsibilities).argmax(axis=2), np.asarray(labels))
    assert_allclose(np.asarray(soft.energy), np.asarray(hard.energy))
    for name in ("products", "coefficients", "totals", "mass"):
        found, expected = getattr(soft, name), getattr(hard, name)
        assert (found is None) == (expected is None) == (name != "products" and not affine)
        if found is not None:
            assert_allclose(np.asarray(found), np.asarray(expected), atol=1e-8)


@pytest.mark.parametrize("affine", [False, True])
def test_patterns_that_recur_are_shared(xp, size, affine):
    rng = np.random.RandomState(0)
    patterns = rng.uniform(size=(3, 10)) < 0.3
    which = rng.randint(0, 3, size=40)
    X = np.where(patterns[which], np.nan, rng.standard_normal((40, 10)))
    problem = problem_of(X, affine=affine)
    block = problem.rows.block
    assert block.shared is not None
    assert len(block.shared) == 3
    assert np.array_equal(block.shared[block.patterns], np.isnan(X))
    frames = drawn_frames((1, 2, 10, 3), affine)
    plain = replace(problem.rows, block=replace(block, patterns=None, shared=None))
    _, expected = replace(problem, rows=plain).assign(frames, with_products=True)
    moved = problem_of(X, affine=affine, xp=xp)
    assert moved.rows.block.shared is not None
    _, found = moved.assign(xp.asarray(frames), with_products=True)
    assert_allclose(np.asarray(found.products), expected.products, atol=1e-9)
    assert_allclose(np.asarray(found.energy), expected.energy)
    assert recurring_patterns(np.isnan(incomplete())) == (None, None)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(8, 40),
    m=st.integers(5, 14),
    fraction=st.floats(0.0, 0.7),
    lam=st.sampled_from([0.1, 4.0, float("inf")]),
    prior=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    dtype=st.sampled_from(["float64", "float32"]),
    affine=st.booleans(),
    solver=st.sampled_from(["power", "exact"]),
)
def test_f2_with_its_prior_never_rises(seed, n, m, fraction, lam, prior, dtype, affine, solver):
    X = incomplete(seed, n, m, fraction).astype(dtype)
    problem = problem_of(X, lam, prior, affine)
    frames = drawn_frames((2, 2, m, 2), affine, seed).astype(dtype)
    rules = Rules(solver, max_iter=8, tol=0.0)
    slack = 1e-9 if dtype == "float64" else 1e-4
    for solution in alternate(problem, frames, rules):
        history = np.array(solution.history)
        assert np.all(np.diff(history) <= slack * (np.abs(history[:-1]) + problem.rounding))
        assert is_orthonormal(
            problem.shape.split(solution.frames)[0], 1e-10 if dtype == "float64" else 1e-5
        )


@given(seed=st.integers(0, 1000), temperature=st.floats(0.01, 2.0), affine=st.booleans())
def test_free_energy_never_rises_with_holes(seed, temperature, affine):
    problem = problem_of(incomplete(seed), affine=affine)
    frames = drawn_frames((1, 3, 10, 2), affine, seed)
    _, history = anneal(problem, frames, [temperature] * 8)
    assert np.all(np.diff(history, axis=0) <= 1e-9 * np.abs(history[:-1]))


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("prior", [0.0, 0.02])
def test_nothing_missing_equals_complete_data_step_by_step(prior, affine):
    X = np.random.RandomState(0).standard_normal((30, 9))
    masked = problem_of(X, prior=prior, affine=affine)
    complete, _ = prepare(X, 4.0, center=False, affine=affine)
    frames = drawn_frames((2, 3, 9, 2), affine)
    other = frames
    for _ in range(10):
        labels, sums = masked.assign(frames, with_products=True)
        expected, reference = complete.assign(other, with_products=True)
        assert np.array_equal(labels, expected)
        assert_allclose(
            masked.objective(frames, sums.energy), complete.objective(other, reference.energy)
        )
        frames = masked.shape.step(frames, sums, masked.weights)
        other = complete.shape.step(other, reference, complete.weights)
        assert_allclose(frames, other, atol=1e-9)


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
    (stuck,) = alternate(problem, start[None], rules)
    filled = refill_empty(problem, stuck, rules)
    assert filled.objective <= stuck.objective
    assert np.all(np.diff(filled.history) <= problem.rounding)


@pytest.mark.parametrize("affine", [False, True])
def test_sums_and_filled_samples_for_given_labels_by_brute_force(xp, size, affine):
    X = incomplete(seed=6)
    frames = drawn_frames((3, 10, 2), affine, seed=7)
    labels = np.random.RandomState(8).randint(2, size=24)  # the third subspace has no member
    problem = problem_of(X, affine=affine, xp=xp)
    block = problem.rows.block
    bases, points = problem.shape.split(xp.asarray(frames))
    products, filled, coefficients = np.zeros((3, 10, 2)), [], []
    for x, label, weight in zip(X, labels, np.asarray(block.weights), strict=True):
        theta, _, y = brute_force(x, frames[label], block.prior, affine)
        products[label] += weight * np.outer(y, theta)
        filled.append(y)
        coefficients.append(theta)
    completed, weights = block.completed(bases, points, xp.asarray(labels))
    assert_allclose(np.asarray(completed.X), filled, atol=1e-10)
    assert_allclose(np.asarray(weights), 10 / (~np.isnan(X)).sum(axis=1))
    if not affine:
        found = block.assigned_coefficients(bases, xp.asarray(labels))
        assert_allclose(np.asarray(found), coefficients, atol=1e-10)
    own = xp.asarray(labels[None, :])
    split = problem.shape.split(xp.asarray(frames[None]))
    parts = [fit.member_sums(own[:, fit.which])["products"] for fit in block.fits(*split)]
    assert len(parts) == (4 if size == 7 else 1)
    assert_allclose(sum(np.asarray(part)[0] for part in parts), products, atol=1e-10)


@pytest.mark.parametrize("affine", [False, True])
def test_hard_labels_as_weights_give_the_same_sums(affine):
    """On accelerators hard labels are computed as weights as well."""
    problem = problem_of(incomplete(seed=9), affine=affine)
    split = problem.shape.split(drawn_frames((1, 2, 10, 3), affine))
    (fit,) = problem.rows.block.fits(*split)
    labels = np.random.RandomState(0).randint(2, size=(1, 24))
    one = fit.member_sums(labels)
    other = fit.weighted_sums((labels[:, None] == np.arange(2)[:, None]).astype(float))
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert_allclose(value, other[name], atol=1e-12, err_msg=name)


def test_rows_without_enough_entries_are_left_out():
    X = incomplete()
    X[3], X[5, 1:], X[8, 2:] = np.nan, np.nan, np.nan
    X[5, 0] = X[8, 0] = X[8, 1] = 1.0
    few = MaskedBlock.of(X, np.full(10, 0.5), 2.0, 0.02, 1)
    expected = MaskedBlock.of(np.delete(X, [3, 5], axis=0), np.full(10, 0.5), 2.0, 0.02, 0)
    assert np.array_equal(few.values, expected.values)
    assert np.array_equal(few.weights, expected.weights)
    assert np.array_equal(few.values[0][~np.isnan(X[0])], (2 * (X[0] - 0.5))[~np.isnan(X[0])])
    assert MaskedBlock.of(X[[3, 5]], None, 1.0, 0.02, 1) is None


def test_rows_with_too_few_entries_have_no_residual_whatever_rows_are_beside_them():
    # Their systems are singular: an inverse that rows share would lose all digits.
    bases = draw_bases((1, 1, 4, 2), np.random.RandomState(0))
    X = np.full((200, 4), np.nan)
    X[:, 3] = np.linspace(1.0, 2.0, len(X))
    block = MaskedBlock.of(X, None, 1.0, 0.0, too_few=0)
    assert block.shared is not None
    gains = np.concatenate([fit.gains[0, 0] for fit in block.fits(bases, None)])
    assert_allclose(gains, block.norms, rtol=1e-9)


def test_an_unknown_that_nothing_determines_is_zero(xp):
    # The second pivot is exactly 0, the third system is zero altogether.
    packed = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])[None]
    right = np.array([[1.0, 3.0, 0.0], [0.0, 3.0, 0.0]])[None]
    found = np.asarray(solve_packed(xp.asarray(packed), xp.asarray(right)))
    assert_allclose(found[0], [[1.0, 3.0, 0.0], [-1.0, 0.0, 0.0]])


def test_systems_that_are_singular_have_no_inverses(xp):
    regular, singular = ([1.0, 0.5, 1.0], [1.0, 1.0, 1.0])
    assert_allclose(np.asarray(inverses(xp.asarray([[[v] for v in regular]])))[0, 0, 0, 0], 4 / 3)
    assert inverses(xp.asarray([[[v] for v in singular]])) is None
    assert inverses(xp.asarray(np.empty((2, 0, 3)))).shape == (2, 3, 0, 0)


def test_few_observed_entries_weigh_as_many_as_there_are_features():
    X = np.full((4, 6), np.nan)
    for i, n in enumerate((1, 2, 3, 6)):
        X[i, :n] = 1.0 + i
    problem, _ = prepare(X, 4.0, center=False, holes=True)
    block = problem.rows.block
    order = np.argsort(block.values.sum(axis=1))
    assert_allclose(block.weights[order], [6, 3, 2, 1])
    assert_allclose(block.squared_norms()[order], 6 * (block.values[order].max(axis=1)) ** 2)
