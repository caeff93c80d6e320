"""RobustMiCUSaL: limits, bad input, filled entries, the paper's setting."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases, is_orthonormal, subspace_distance
from polyspan.metrics import average_subspace_distance, clustering_error

pytestmark = pytest.mark.filterwarnings("ignore:no sample is assigned")
DATA = make_union_of_subspaces(
    (40, 40), n_features=20, subspace_dim=3, spread=0.3, noise=0.02, random_state=0
)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("init", ["anneal", "random"])
def test_without_holes_it_is_micusal(center, init):
    # The defaults of the two schedules differ.
    schedule = {"anneal_steps": 30, "anneal_range": (0.5, 0.05)}
    options = {"init": init, "center": center, "random_state": 0, **schedule}
    robust = RobustMiCUSaL(2, 3, **options).fit(DATA.X)
    plain = MiCUSaL(2, 3, **options).fit(DATA.X)
    assert np.array_equal(robust.bases_, plain.bases_)
    assert np.array_equal(robust.labels_, plain.labels_)
    assert robust.objective_ == plain.objective_
    assert np.array_equal(robust.predict(DATA.X_test), plain.predict(DATA.X_test))
    assert_allclose(robust.transform(DATA.X_test), plain.transform(DATA.X_test), atol=1e-12)
    assert_allclose(robust.reconstruct(DATA.X_test), plain.reconstruct(DATA.X_test), atol=1e-12)
    assert_allclose(robust.score(DATA.X_test), plain.score(DATA.X_test))
    assert np.array_equal(robust.impute(DATA.X_test), DATA.X_test)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("pattern", ["sample", "overall", "block", "side"])
def test_holes_are_filled_and_observed_entries_kept(center, dtype, pattern):
    X = mask_entries(DATA.X.astype(dtype), 0.3, pattern=pattern, random_state=0)
    before = X.copy()
    model = RobustMiCUSaL(2, 3, center=center, random_state=0).fit(X)
    assert np.array_equal(X, before, equal_nan=True)
    assert model.bases_.dtype == X.dtype
    assert is_orthonormal(model.bases_, 1e-10 if dtype == "float64" else 1e-5)
    filled = model.impute(X)
    seen = ~np.isnan(X)
    assert filled.dtype == X.dtype
    assert np.array_equal(filled[seen], X[seen])
    error = np.mean((filled[~seen] - DATA.X_clean[~seen]) ** 2)
    assert error < 0.3 * np.mean(DATA.X_clean[~seen] ** 2)
    assert clustering_error(DATA.labels, model.labels_) < 0.1
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.all(np.diff(model.objective_history_) <= 1e-5 * model.objective_history_[:-1])


def test_other_holes_in_new_data():
    model = RobustMiCUSaL(2, 3, random_state=0).fit(mask_entries(DATA.X, 0.2, random_state=0))
    Z = mask_entries(DATA.X_test, 0.4, pattern="block", random_state=1)
    assert clustering_error(DATA.labels_test, model.predict(Z)) < 0.1
    assert np.isfinite(model.reconstruct(Z)).all()
    distances = model.transform(Z)
    assert distances.shape == (80, 2)
    assert_allclose(model.score(Z), -np.mean(distances.min(axis=1) ** 2))
    # One sample by hand: least squares on its observed entries, with the prior on the others.
    x, basis = Z[0], model.bases_[1]
    seen = ~np.isnan(x)
    weights = np.where(seen, 1.0, model.fill_prior)
    theta = np.linalg.solve((basis * weights[:, None]).T @ basis, basis[seen].T @ x[seen])
    residual = np.linalg.norm(x[seen] - basis[seen] @ theta)
    assert_allclose(distances[0, 1], residual * np.sqrt(20 / seen.sum()))


def test_objective_by_its_definition():
    X = mask_entries(DATA.X, 0.3, random_state=0)
    model = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    total = 0.0
    for x, label in zip(X, model.labels_, strict=True):
        seen = ~np.isnan(x)
        basis = model.bases_[label]
        weights = np.where(seen, 1.0, model.fill_prior)
        theta = np.linalg.solve((basis * weights[:, None]).T @ basis, basis[seen].T @ x[seen])
        fit = basis @ theta
        total += 20 / seen.sum() * np.sum(weights * (np.where(seen, x, 0) - fit) ** 2)
    apart = 2 * subspace_distance(*model.bases_) ** 2
    assert_allclose(model.objective_, apart + model.lam_ * total)


def test_rows_with_too_few_entries_are_told_and_left_out():
    X = mask_entries(DATA.X, 0.2, random_state=0)
    X[5, 3:] = np.nan
    X[9] = np.nan
    message = r"2 of 80 rows have at most subspace_dim=3.*rows 5, 9"
    with pytest.warns(UserWarning, match=message) as caught:
        model = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    assert caught[0].filename == __file__
    others = np.delete(np.arange(80), [5, 9])
    clean = RobustMiCUSaL(2, 3, random_state=0).fit(X[others])
    assert np.array_equal(model.bases_, clean.bases_)
    assert model.labels_[[5, 9]].tolist() == [-1, -1]
    assert np.array_equal(model.labels_[others], clean.labels_)
    assert model.predict(X)[[5, 9]].tolist() == [-1, -1]
    assert np.isfinite(model.reconstruct(X)).all()
    assert np.array_equal(model.reconstruct(X)[9], model.mean_)
    assert np.isfinite(model.transform(X)).all()
    assert np.isnan(model.score_samples(X)[[5, 9]]).all()
    assert_allclose(model.score(X), model.score(X[others]))
    assert np.isnan(model.score(X[[9]]))


def test_few_more_entries_than_dimensions_stay_stable():
    X = mask_entries(DATA.X, 0.75, random_state=0)
    model = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    filled = model.impute(X)
    assert np.abs(filled).max() < 10 * np.nanmax(np.abs(X))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((30, 5), np.nan), "all entries of X are NaN"),
        (np.where(np.arange(5) == 2, np.nan, np.ones((30, 5))), r"1 of 5 columns.*columns 2"),
        (np.where(np.arange(5) == 2, np.inf, np.ones((30, 5))), "infinity"),
        (np.where(np.arange(5) > 0, np.nan, np.eye(30, 5)), r"4 of 5 columns"),
    ],
)
def test_unfit_data(X, message):
    with pytest.raises(ValueError, match=message):
        RobustMiCUSaL(2, 1).fit(X)


def test_unfit_parameters():
    for options in ({"fill_prior": -0.1}, {"step_size": 0.0}, {"n_sweeps": 0}, {"solver": "power"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            RobustMiCUSaL(**options).fit(DATA.X)


def test_scaling_and_huge_entries():
    X = mask_entries(DATA.X, 0.3, random_state=0)
    base = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    for a, lam in itertools.product((1e3, 1e150, 1e-150), (base.lam_, "auto")):
        lam = lam if lam == "auto" else lam / a / a
        model = RobustMiCUSaL(2, 3, lam=lam, random_state=0).fit(a * X)
        assert np.array_equal(model.labels_, base.labels_)
        assert_allclose(model.lam_, base.lam_ / a / a, rtol=1e-9)
        assert_allclose(model.impute(a * X) / a, base.impute(X), atol=1e-6)
        assert_allclose(model.transform(a * X) / a, base.transform(X), atol=1e-6)


def test_same_bits_whatever_n_jobs(monkeypatch):
    monkeypatch.setattr("polyspan.linear.starts.GROUP_BYTES", 1)
    X = mask_entries(DATA.X, 0.3, random_state=0)
    fits = [
        RobustMiCUSaL(2, 3, init="random", n_init=4, random_state=1, n_jobs=n).fit(X)
        for n in (1, 2)
    ]
    assert np.array_equal(fits[0].bases_, fits[1].bases_)


def test_chunks_agree(monkeypatch):
    X = mask_entries(DATA.X, 0.3, random_state=0)
    whole = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    monkeypatch.setattr("polyspan.linear._solve.masked.CHUNK_MAX_BYTES", 16 << 10)
    parts = RobustMiCUSaL(2, 3, random_state=0).fit(X)
    assert np.array_equal(parts.labels_, whole.labels_)
    assert_allclose(parts.objective_, whole.objective_, rtol=1e-10)
    assert_allclose(parts.impute(X), whole.impute(X), atol=1e-7)


def test_grouse():
    X = mask_entries(DATA.X, 0.2, random_state=0)
    model = RobustMiCUSaL(
        2, 3, lam=2.0, init="random", solver="grouse", max_iter=3, n_sweeps=20, n_init=3,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model.fit(X)
    assert is_orthonormal(model.bases_, 1e-8)
    assert model.n_iter_ == 3
    assert np.isfinite(model.impute(X)).all()
    assert clustering_error(DATA.labels, model.labels_) < 0.2


def test_grid_search_on_data_with_holes():
    X = mask_entries(DATA.X, 0.2, random_state=0)
    model = RobustMiCUSaL(2, anneal_steps=20, random_state=0)
    search = GridSearchCV(model, {"subspace_dim": [1, 3]}, cv=3).fit(X)
    assert search.best_params_ == {"subspace_dim": 3}


def test_init_array():
    X = mask_entries(DATA.X, 0.2, random_state=0)
    start = draw_bases((2, 20, 3), np.random.RandomState(0))
    model = RobustMiCUSaL(2, 3, init=start).fit(X)
    again = RobustMiCUSaL(2, 3, init=model.bases_).fit(X)
    assert again.n_iter_ <= 2
    assert_allclose(again.objective_, model.objective_, rtol=1e-5)


@pytest.mark.parametrize(("fraction", "bound"), [(0.1, 0.105), (0.3, 0.130), (0.5, 0.165)])
def test_paper_setting(fraction, bound):
    distances = []
    for seed in range(2):
        data = make_union_of_subspaces(random_state=seed)
        X = mask_entries(data.X, fraction, random_state=seed)
        model = RobustMiCUSaL(5, 13, random_state=seed).fit(X)
        distances.append(average_subspace_distance(model.bases_, data.bases))
    assert np.mean(distances) <= bound
