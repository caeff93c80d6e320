"""RobustMiCUSaL on affine subspaces and with its other solvers: definition, descent, limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.datasets import mask_entries
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.metrics import clustering_error

pytestmark = pytest.mark.filterwarnings("ignore:no sample is assigned")


def flats(seed=0, sizes=(60, 80, 70), m=15, s=2, noise=0.05):
    """Nearly parallel affine subspaces, which no linear ones describe."""
    rng = np.random.RandomState(seed)
    common = draw_bases((m, s), rng)
    parts = []
    for n in sizes:
        basis = np.linalg.qr(common + 0.1 * rng.standard_normal((m, s)))[0]
        parts.append(rng.standard_normal((n, s)) @ basis.T + rng.standard_normal(m))
    X = np.concatenate(parts)
    return X + noise * rng.standard_normal(X.shape), np.repeat(np.arange(len(sizes)), sizes)


def direct_objective(model, X):
    """F2 of affine subspaces with its prior about the mean, written out."""
    m = X.shape[1]
    centred = X - model.mean_
    points = model.anchors_ - model.mean_
    total = unit = 0.0
    for x, label in zip(centred, model.labels_, strict=True):
        seen = ~np.isnan(x)
        basis, point = model.bases_[label], points[label]
        weights = np.where(seen, 1.0, model.fill_prior)
        goal = np.where(seen, x, 0.0) - point
        theta = np.linalg.solve((basis * weights[:, None]).T @ basis, basis.T @ (weights * goal))
        total += m / seen.sum() * np.sum(weights * (goal - basis @ theta) ** 2)
        unit += m / seen.sum() * np.sum(x[seen] ** 2) / len(X)
    if np.isinf(model.lam):
        return total
    feet = [c - D @ (D.T @ c) for D, c in zip(model.bases_, points, strict=True)]
    closeness = sum(
        subspace_distance(model.bases_[p], model.bases_[q]) ** 2
        + np.sum((feet[p] - feet[q]) ** 2) / unit
        for p in range(len(feet))
        for q in range(len(feet))
        if p != q
    )
    return closeness + model.lam * total


@pytest.mark.parametrize("lam", [0.2, 4.0, float("inf")])
@pytest.mark.parametrize("solver", ["mm", "exact"])
def test_objective_is_the_one_written_out(lam, solver):
    X, labels = flats()
    X = mask_entries(X, 0.2, random_state=0)
    model = RobustMiCUSaL(
        3, 2, affine=True, lam=lam, solver=solver, fill_prior=0.1, random_state=0
    ).fit(X)
    assert_allclose(model.objective_, direct_objective(model, X), rtol=1e-9)
    assert clustering_error(labels, model.labels_) == 0
    assert np.array_equal(model.labels_, model.predict(X))


@given(
    seed=st.integers(0, 500),
    lam=st.sampled_from([0.05, 4.0, float("inf")]),
    solver=st.sampled_from(["mm", "exact"]),
    affine=st.booleans(),
    prior=st.sampled_from([0.0, 0.02, 1.0]),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_objective_never_rises(seed, lam, solver, affine, prior):
    X, _ = flats(seed, sizes=(15, 20, 12), m=8, noise=0.3)
    X = mask_entries(X, 0.25, random_state=seed)
    model = RobustMiCUSaL(
        3, 2, affine=affine, lam=lam, solver=solver, fill_prior=prior, init="random", n_init=1,
        max_iter=30, tol=0.0, random_state=seed,
    ).fit(X)  # fmt: skip
    history = np.array(model.objective_history_)
    assert np.all(np.diff(history) <= 1e-9 * np.abs(history[:-1]))
    assert is_orthonormal(model.bases_)


@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("affine", [False, True])
def test_without_holes_it_is_micusal(affine, residual):
    X, _ = flats()
    options = {
        "affine": affine, "residual": residual, "center": True, "solver": "exact",
        "anneal_steps": 30, "anneal_range": (0.5, 0.05), "random_state": 0,
    }  # fmt: skip
    robust = RobustMiCUSaL(3, 2, **options).fit(X)
    plain = MiCUSaL(3, 2, **options).fit(X)
    assert np.array_equal(robust.bases_, plain.bases_)
    assert np.array_equal(robust.labels_, plain.labels_)
    assert robust.objective_ == plain.objective_


def test_affine_subspaces_fill_parallel_flats_better():
    X, labels = flats()
    holes = mask_entries(X, 0.3, random_state=1)
    missing = np.isnan(holes)
    errors = {}
    for affine in (False, True):
        model = RobustMiCUSaL(3, 2, affine=affine, center=True, random_state=0).fit(holes)
        filled = model.impute(holes)
        assert np.array_equal(filled[~missing], X[~missing])
        errors[affine] = np.mean((filled - X)[missing] ** 2)
    assert clustering_error(labels, model.labels_) < 0.02
    assert errors[True] < 0.5 * errors[False]


def test_translation_and_scale():
    X, _ = flats()
    X = mask_entries(X, 0.2, random_state=0)
    shift = np.linspace(-3, 5, X.shape[1])
    one = RobustMiCUSaL(3, 2, affine=True, random_state=0).fit(X)
    moved = RobustMiCUSaL(3, 2, affine=True, random_state=0).fit(X + shift)
    scaled = RobustMiCUSaL(3, 2, affine=True, random_state=0).fit(3 * X)
    assert np.array_equal(one.labels_, moved.labels_)
    assert np.array_equal(one.labels_, scaled.labels_)
    assert_allclose(moved.anchors_, one.anchors_ + shift, atol=1e-8)
    assert_allclose(scaled.anchors_, 3 * one.anchors_, atol=1e-8)
    assert_allclose(moved.objective_, one.objective_, rtol=1e-8)


def test_where_the_exact_step_ends_the_power_step_stays():
    X, _ = flats(noise=0.3)
    X = mask_entries(X, 0.3, random_state=0)
    exact = RobustMiCUSaL(3, 2, solver="exact", tol=1e-12, random_state=0).fit(X)
    after = RobustMiCUSaL(3, 2, init=exact.bases_, solver="mm", tol=0.0, max_iter=20).fit(X)
    assert np.array_equal(after.labels_, exact.labels_)
    assert_allclose(after.objective_, exact.objective_, rtol=1e-9)
    for one, other in zip(after.bases_, exact.bases_, strict=True):
        assert_allclose(subspace_distance(one, other), 0, atol=1e-4)


def test_points_without_closeness_are_means_of_what_is_observed():
    X, labels = flats(s=0)
    X = mask_entries(X, 0.3, random_state=0)
    model = RobustMiCUSaL(
        3, 0, affine=True, lam=float("inf"), fill_prior=0.0, tol=1e-14, random_state=0
    ).fit(X)
    assert clustering_error(labels, model.labels_) == 0
    for p, point in enumerate(model.anchors_):
        own = X[model.labels_ == p]
        seen = ~np.isnan(own)
        weights = seen / seen.sum(axis=1, keepdims=True)
        expected = (weights * np.nan_to_num(own)).sum(axis=0) / weights.sum(axis=0)
        assert_allclose(point, expected, atol=1e-5)
