"""Trimming: samples with the largest residuals take no part in the updates."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.base.progress import FitProgress
from polyspan.baselines import KSubspaces
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.linear._solve.alternation import alternate
from polyspan.linear._solve.trimming import kept_weights
from polyspan.linear.fitting import _centred_on_kept
from polyspan.linear.options import sized_plan
from polyspan.linear.reading import read
from polyspan.linear.starts import relative_to_mean
from polyspan.metrics import average_subspace_distance

N, M, N_OUT = 90, 20, 10
DATA = make_union_of_subspaces(
    (30, 30, 30), n_features=M, subspace_dim=2, spread=0.5, noise=0.01, random_state=0
)


def with_outliers(seed=0, shift=0.0, n=N_OUT):
    """Return the samples and uniform ones of the same norm, perhaps away from the others."""
    found = np.random.RandomState(seed).standard_normal((n, M))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.concatenate([DATA.X, found + shift])


OUTLIER = np.arange(N + N_OUT) >= N
X = with_outliers()
HOLES = mask_entries(X, 0.2, random_state=0)


def distance(model):
    return average_subspace_distance(model.bases_, DATA.bases)


@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize("options", [{}, {"solver": "exact"}, {"lam": float("inf")}])
def test_outliers_are_trimmed(options, shift):
    options = {"lam": 4.0, **options}
    X = with_outliers(shift=shift)
    clean = MiCUSaL(3, 2, random_state=0, **options).fit(DATA.X)
    model = MiCUSaL(3, 2, random_state=0, trim=0.1, **options).fit(X)
    assert np.array_equal(model.trimmed_, OUTLIER)
    # About the mean of the samples that are not trimmed: as if there were no others.
    assert_allclose(model.mean_, clean.mean_, atol=1e-12)
    assert_allclose(model.objective_, clean.objective_, rtol=1e-4)
    assert distance(model) <= 1.01 * distance(clean)
    assert distance(MiCUSaL(3, 2, random_state=0, **options).fit(X)) > 1.15 * distance(clean)
    assert np.array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("place", ["sphere", "cube", "corner"])
def test_outliers_leave_the_accuracy_of_the_paper_setting(place):
    data = make_union_of_subspaces(random_state=0)
    low, high = data.X.min(axis=0), data.X.max(axis=0)
    rng = np.random.RandomState(1)
    n, m = len(data.X) // 9, data.X.shape[1]
    others = rng.uniform(low, high, (n, m))
    if place == "sphere":
        others = rng.standard_normal((n, m))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
    elif place == "corner":  # in one direction, which the mean of all samples goes to
        others = 0.8 * high + 0.2 * others
    options = {"n_subspaces": 5, "subspace_dim": 13, "random_state": 0}
    clean = MiCUSaL(**options).fit(data.X)
    model = MiCUSaL(**options, trim=0.1).fit(np.concatenate([data.X, others]))
    assert model.trimmed_[len(data.X) :].mean() > 0.99
    assert_allclose(model.mean_, data.X[~model.trimmed_[: len(data.X)]].mean(axis=0), atol=1e-3)
    found = average_subspace_distance(model.bases_, data.bases)
    assert found <= 1.02 * average_subspace_distance(clean.bases_, data.bases)


@pytest.mark.parametrize("kind", [MiCUSaL, RobustMiCUSaL])
def test_outliers_of_affine_subspaces_are_trimmed(kind):
    X = with_outliers(shift=3.0)
    X = mask_entries(X, 0.1, random_state=0) if kind is RobustMiCUSaL else X
    model = kind(3, 2, affine=True, random_state=0, trim=0.1).fit(X)
    assert np.array_equal(model.trimmed_, OUTLIER)


def test_outliers_with_holes_are_trimmed():
    model = RobustMiCUSaL(3, 2, random_state=0, trim=0.1).fit(HOLES)
    clean = RobustMiCUSaL(3, 2, random_state=0).fit(HOLES[:N])
    assert np.array_equal(model.trimmed_, OUTLIER)
    assert distance(model) <= 1.05 * distance(clean)


@pytest.mark.filterwarnings("ignore:subspaces .* have at most k2")
def test_other_models_trim():
    assert np.array_equal(KSubspaces(3, 2, random_state=0, trim=0.1).fit(X).trimmed_, OUTLIER)
    options = {"merge_threshold": 0.3, "lam": 20.0, "random_state": 0}
    plain = AdaptiveMiCUSaL(6, 3, **options).fit(X)
    model = AdaptiveMiCUSaL(6, 3, trim=0.1, **options).fit(X)
    assert model.n_subspaces_ < plain.n_subspaces_  # some had learned outliers
    assert model.objective_ < plain.objective_
    assert model.trimmed_.sum() == N_OUT


@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("init", ["random", "anneal"])
@pytest.mark.parametrize("holes", [False, True])
def test_the_objective_never_rises(solver, affine, init, holes):
    solver = {"power": "mm"}.get(solver, solver) if holes else solver
    kind = RobustMiCUSaL if holes else MiCUSaL
    options = {"solver": solver, "affine": affine, "init": init, "random_state": 2}
    model = kind(3, 2, trim=0.25, n_init=1, **options).fit(HOLES if holes else X)
    history = model.objective_history_
    assert (np.diff(history) <= 1e-10 * history[0]).all()
    assert_allclose(model.objective_, history[-1], rtol=1e-7)


def test_the_objective_is_that_of_the_samples_that_take_part():
    model = MiCUSaL(3, 2, lam=float("inf"), random_state=0, trim=0.1).fit(X)
    kept = -model.score_samples(X)[~model.trimmed_]
    assert_allclose(model.objective_, kept.sum(), rtol=1e-9)
    assert kept.max() <= -model.score_samples(X)[model.trimmed_].max()


def test_no_trimming_leaves_no_attribute():
    model = MiCUSaL(3, 2, random_state=0, trim=0.1).fit(X)
    model.set_params(trim=0.0).fit(X)
    assert not hasattr(model, "trimmed_")


def test_samples_without_weight_are_not_trimmed():
    weights = np.r_[np.zeros(5), np.ones(N - 5 + N_OUT)]
    model = MiCUSaL(3, 2, random_state=0, trim=0.1).fit(X, sample_weight=weights)
    assert model.trimmed_.shape == (N + N_OUT,)
    assert not model.trimmed_[:5].any()
    assert model.trimmed_[5:].sum() in (9, 10)


@pytest.mark.parametrize("solver", ["power", "exact"])
def test_empty_subspaces_are_not_refilled_with_outliers(solver):
    start = np.concatenate([DATA.bases, DATA.X[[0, 30, 60]][:, :, None]], axis=2)
    start[2, :, -1] += 50.0  # nobody chooses this one at first
    model = MiCUSaL(3, 2, affine=True, lam=float("inf"), init=start, trim=0.1, solver=solver)
    model.fit(with_outliers(shift=3.0))
    assert np.array_equal(model.trimmed_, OUTLIER)
    assert len(np.unique(model.labels_[:N])) == 3


def test_kept_weights_by_hand():
    values = np.array([[3.0, 1.0, 2.0, 5.0]])
    assert kept_weights(values, None, 0.25).tolist() == [[1, 1, 1, 0]]
    assert kept_weights(values, None, 0.375).tolist() == [[0.5, 1, 1, 0]]
    assert kept_weights(values, np.array([[2.0, 1.0, 1.0, 4.0]]), 0.625).tolist() == [[1, 1, 1, 0]]
    assert kept_weights(values, None, 0.0).tolist() == [[1, 1, 1, 1]]


def test_kept_weights_are_whole_where_they_can_be():
    for n in range(2, 200):
        for trimmed in range(n):
            kept = kept_weights(np.arange(n, dtype=float)[None], None, trimmed / n)
            assert kept.sum() == n - trimmed


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MiCUSaL(trim=0.1, residual="loo"), r"trim=0.1 needs residual='plain'"),
        (RobustMiCUSaL(trim=0.1, solver="grouse"), r"solver='grouse' needs trim=0.0"),
        (MiCUSaL(trim=1.0), "trim"),
        (MiCUSaL(trim=-0.1), "trim"),
        (
            MiCUSaL(3, 4, trim=0.99),
            r"n_samples=100 without the fraction trim=0.99, that is 1, is fewer than .* = 12: "
            r".*; lower n_subspaces, subspace_dim or trim",
        ),
        (MiCUSaL(3, 4, affine=True, trim=0.855), r"that is 14.5, is fewer than .* = 15"),
        (AdaptiveMiCUSaL(3, 5, trim=0.96), r"trim=0.96, that is 4, is fewer than max_dim=5"),
    ],
)
def test_combinations_that_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)


def test_as_many_samples_as_directions_are_enough():
    model = MiCUSaL(3, 4, trim=0.88, init="random", n_init=1, max_iter=2, tol=1.0, random_state=0)
    assert model.fit(X).trimmed_.sum() == 88


def test_the_run_about_the_final_mean_refills_empty_subspaces():
    X = with_outliers(shift=3.0)
    start = np.concatenate([DATA.bases, DATA.X[[0, 30, 60]][:, :, None]], axis=2)
    start[2, :, -1] += 50.0  # nobody chooses this one
    model = MiCUSaL(3, 2, affine=True, lam=float("inf"), init=start, trim=0.1)
    plan = sized_plan(model)
    data = read(model, X, 2).trimmed(0.1, center=True)
    make = partial(data.problem, float("inf"), center=True, affine=True)
    problem, working = make(start=start)
    frames = working.to_working(relative_to_mean(start, working.mean, True))
    (stuck,) = alternate(problem, frames[None], plan.rules)
    assert (stuck.counts == 0).tolist() == [False, False, True]
    progress = FitProgress(model, X, None, plan.n_runs, plan.max_steps)
    _, _, found = _centred_on_kept(make, problem, working, plan, stuck, progress)
    assert (found.counts > 0).all()
    assert found.objective < stuck.objective
    assert (np.diff(found.history) <= 1e-10 * found.history[0]).all()


def test_the_run_about_the_final_mean_has_all_iterations():
    options = {"init": "random", "n_init": 1, "tol": 0.0, "trim": 0.1, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = MiCUSaL(3, 2, max_iter=3, **options).fit(with_outliers(shift=3.0))
    assert model.n_iter_ == 3 == len(model.objective_history_) - 1
    assert not model.converged_


def test_streams_and_lazy_rows_are_not_trimmed():
    import dask.array as dask_array

    assert not hasattr(MiCUSaL(trim=0.1), "partial_fit")
    reason = "no attribute 'partial_fit': trim=0.1 needs all samples in memory, not batches"
    with pytest.raises(AttributeError, match=reason):
        MiCUSaL(trim=0.1).partial_fit(X)
    with pytest.raises(ValueError, match="needs all samples in memory, not a dask array"):
        MiCUSaL(trim=0.1).fit(dask_array.from_array(X, chunks=(50, M)))
