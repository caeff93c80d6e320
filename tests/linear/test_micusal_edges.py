"""Edge cases that failed before: small norms, vanishing clusters, extreme scales, ties, threads."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_info

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.base.arrays import limit_threads
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases, is_orthonormal
from polyspan.metrics import clustering_error

DATA = make_union_of_subspaces(
    (40, 40), n_features=20, subspace_dim=3, spread=0.3, noise=0.02, random_state=0
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("residual", ["plain", "loo"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_data_of_every_type(dtype, solver, residual, value):
    X = np.full((12, 5), value, dtype=dtype)
    model = MiCUSaL(2, 2, solver=solver, residual=residual, random_state=0).fit(X)
    assert is_orthonormal(model.bases_, 1e-5)
    assert model.objective_ >= 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e-2, 1e-4])
@pytest.mark.parametrize("options", [{}, {"solver": "exact"}, {"init": "random"}])
def test_a_lambda_far_too_small_is_never_worse_than_one_subspace(scale, options):
    X = DATA.X * scale
    model = MiCUSaL(2, 3, lam=4.0, random_state=0, **options).fit(X)
    pooled = PCA(3).fit(X)
    residual = np.sum((X - pooled.inverse_transform(pooled.transform(X))) ** 2)
    assert model.objective_ <= 4.0 * residual * 1.05


def test_one_subspace_by_power_steps_is_pca_whatever_lambda():
    for lam in (1e-8, 1e-4, 4.0):
        model = MiCUSaL(1, 3, lam=lam, random_state=0).fit(DATA.X)
        pooled = PCA(3).fit(DATA.X)
        expected = np.sum((DATA.X - pooled.inverse_transform(pooled.transform(DATA.X))) ** 2)
        assert_allclose(model.objective_, lam * expected, rtol=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_leave_one_out_with_vanishing_clusters():
    rng = np.random.RandomState(1)
    low_rank = rng.standard_normal((43, 2)) @ rng.standard_normal((2, 28))
    rng = np.random.RandomState(5)
    uneven = rng.standard_normal((60, 10)) * 10.0 ** rng.randint(-3, 4, 10)
    fits = [
        MiCUSaL(3, 5, residual="loo", center=False, random_state=0).fit(low_rank),
        MiCUSaL(4, 3, residual="loo", random_state=0).fit(uneven.astype("float32")),
    ]
    for model in fits:
        assert is_orthonormal(model.bases_, 1e-5)
        assert np.isfinite(model.objective_)


def test_exact_updates_of_more_than_half_the_dimensions(monkeypatch):
    monkeypatch.setattr("polyspan.linear._solve.exact.DENSE_FEATURES", 1)
    X = np.random.RandomState(0).standard_normal((80, 30)) * np.linspace(3, 1, 30)
    for s in (3, 16, 29):
        model = MiCUSaL(1, s, solver="exact", lam=np.inf, random_state=0).fit(X)
        pooled = PCA(s).fit(X)
        residual = np.sum((X - pooled.inverse_transform(pooled.transform(X))) ** 2)
        assert_allclose(model.objective_, residual, rtol=1e-8)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("a", "dtype"),
    [(1e-200, "float64"), (1e-305, "float64"), (1e200, "float64"), (1e-37, "float32")],
)
def test_scales_beyond_what_lambda_can_follow(a, dtype):
    X = (a * DATA.X).astype(dtype)
    for lam in (4.0, float("inf")):
        model = MiCUSaL(2, 3, lam=lam, random_state=0).fit(X)
        assert is_orthonormal(model.bases_, 1e-5)
        assert np.isfinite(model.transform(X)).all()


def test_a_row_is_judged_by_itself():
    model = MiCUSaL(2, 3, random_state=0).fit(DATA.X)
    alone = model.transform(DATA.X)
    crowd = np.vstack([DATA.X, DATA.X[:1] * 1e200, DATA.X[:1] * 1e-200])
    assert_allclose(model.transform(crowd)[:80], alone)
    assert np.array_equal(model.predict(crowd)[:80], model.predict(DATA.X))
    assert_allclose(model.reconstruct(crowd)[:80], model.reconstruct(DATA.X))
    single = MiCUSaL(2, 3, random_state=0).fit(DATA.X.astype("float32"))
    assert np.isfinite(single.transform(DATA.X * 1e30)).all()


def test_history_has_an_entry_per_iteration_also_after_refilling():
    X = make_union_of_subspaces(
        (20, 20, 20), n_features=15, subspace_dim=2, spread=0.5, random_state=99
    ).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(8):
            model = MiCUSaL(6, 2, lam=0.5, init="random", n_init=1, random_state=seed).fit(X)
            assert len(model.objective_history_) == model.n_iter_ + 1
            assert np.all(np.diff(model.objective_history_) <= 1e-9)
            assert model.objective_history_[-1] == model.objective_


def test_a_nearly_orthonormal_start_is_orthonormalised():
    start = draw_bases((2, 20, 3), np.random.RandomState(0))
    single = MiCUSaL(2, 3, init=start * (1 + 1.5e-4)).fit(DATA.X.astype("float32"))
    assert np.all(np.diff(single.objective_history_) <= 1e-5)
    double = MiCUSaL(2, 3, init=start * (1 + 5e-9), tol=1e-9).fit(DATA.X)
    assert np.all(np.diff(double.objective_history_) <= 1e-12)


def test_warnings_point_at_the_caller():
    rng = np.random.RandomState(0)
    cases = {
        "span only": lambda: MiCUSaL(2, 2).fit(np.outer(rng.standard_normal(9), np.ones(4))),
        "did not converge": lambda: MiCUSaL(
            2, 3, init="random", max_iter=1, tol=0.0, random_state=0
        ).fit(DATA.X),
        "not orthonormal": lambda: MiCUSaL(
            2, 3, init=2 * draw_bases((2, 20, 3), rng)
        ).fit(DATA.X),
        "is not used": lambda: MiCUSaL(
            2, 3, init=draw_bases((2, 20, 3), rng), n_init=3
        ).fit(DATA.X),
    }  # fmt: skip
    for message, fit in cases.items():
        with pytest.warns(Warning, match=message) as caught:
            fit()
        (found,) = [w for w in caught if message in str(w.message)]
        assert found.filename == __file__, message


def test_uneven_features_are_not_called_degenerate():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((60, 5)) * [3000, 1, 1, 1, 1]
    for uneven in (X.astype("float32"), X * [1e5, 1, 1, 1, 1]):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            MiCUSaL(1, 2, random_state=0).fit(uneven)
        assert [str(one.message) for one in caught] == []


@pytest.mark.filterwarnings("ignore")
def test_ties_in_the_reduced_span_are_broken_as_in_predict():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((3, 30))[rng.randint(0, 3, 8)]
    model = MiCUSaL(2, 1, init="random", n_init=1, random_state=0).fit(X)
    assert np.array_equal(model.labels_, model.predict(X))


def test_other_layouts_and_types():
    expected = MiCUSaL(2, 3, random_state=0).fit(DATA.X).labels_
    frozen = DATA.X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((80, 40))
    wide[:, ::2] = DATA.X
    for X in (np.asfortranarray(DATA.X), frozen, wide[:, ::2], DATA.X.tolist()):
        assert clustering_error(expected, MiCUSaL(2, 3, random_state=0).fit(X).labels_) == 0
    whole = np.round(DATA.X * 100).astype(int)
    assert MiCUSaL(2, 3, lam=4e-4, random_state=0).fit(whole).bases_.dtype == np.float64


def test_small_work_runs_on_one_thread_and_gives_the_others_back():
    def blas():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = blas()
    for work, n_parallel, expected in ((1.0, 1, {1}), (1e12, 2, {1}), (1e12, 1, set(before))):
        with limit_threads(work, n_parallel):
            during = blas()
        assert set(during) == expected
        assert blas() == before


@pytest.mark.parametrize(
    "init", [np.ones((2, 20, 3)) * 1j, np.full((2, 20, 3), "a")], ids=["complex", "text"]
)
def test_init_of_another_type_is_named(init):
    with pytest.raises(ValueError, match="init has the type"):
        MiCUSaL(2, 3, init=init).fit(DATA.X)


@pytest.mark.parametrize("model", [MiCUSaL, RobustMiCUSaL])
def test_subspaces_that_have_come_together_are_reported(model):
    X = make_union_of_subspaces(
        (60, 60), n_features=20, subspace_dim=2, spread=0.4, noise=0.05, random_state=0
    ).X
    for scale in (1e-2, 1e-4):
        with pytest.warns(UserWarning, match="all 2 subspaces coincide: lam=4 is small"):
            model(2, 2, lam=4.0, random_state=0).fit(X * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(2, 2, random_state=0).fit(X)
        model(2, 2, lam=4e4, random_state=0).fit(X * 1e-2)
        model(1, 2, random_state=0).fit(X * 1e-4)
