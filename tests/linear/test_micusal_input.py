"""Bad input: a clear error or warning, and the model stays unchanged."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from polyspan import MiCUSaL
from polyspan.geometry import draw_bases, is_orthonormal


def data(n=30, m=6, seed=0):
    return np.random.RandomState(seed).standard_normal((n, m))


def test_nan_names_the_model_that_takes_it():
    X = data()
    X[3, 2] = X[4, 4] = np.nan
    message = r"NaN: 2 of 180 entries.*RobustMiCUSaL"
    with pytest.raises(ValueError, match=message):
        MiCUSaL().fit(X)
    model = MiCUSaL(random_state=0).fit(data())
    for method in ("predict", "transform", "reconstruct", "score", "score_samples"):
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(X)


def bad(kind):
    X = data()
    if kind == "infinity":
        X[0, 0] = np.inf
        return X
    return {
        "sparse": sparse.csr_array(X),
        "complex": X + 1j,
        "text": np.array([["a", "b"], ["c", "d"]]),
        "objects": np.array([[{}, {}], [{}, {}]], dtype=object),
        "no samples": X[:0],
        "no features": X[:, :0],
        "one dimension": X[:, 0],
        "three dimensions": X[None],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("infinity", ValueError, "infinity"),
        ("sparse", TypeError, "[Ss]parse"),
        ("complex", ValueError, "Complex data"),
        ("text", ValueError, "could not convert|Unable to convert|dtype"),
        ("objects", TypeError, "float"),
        ("no samples", ValueError, "0 sample"),
        ("no features", ValueError, "0 feature"),
        ("one dimension", ValueError, "Expected 2D array, got 1D"),
        ("three dimensions", ValueError, "3"),
    ],
)
def test_unfit_data(kind, error, message):
    with pytest.raises(error, match=message):
        MiCUSaL().fit(bad(kind))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_subspaces": 0}, "n_subspaces"),
        ({"n_subspaces": 2.5}, "n_subspaces"),
        ({"subspace_dim": 0}, "subspace_dim"),
        ({"subspace_dim": 6}, "subspace_dim=6 must be smaller than n_features=6"),
        ({"subspace_dim": 9}, "subspace_dim=9 must be smaller than n_features=6"),
        ({"n_subspaces": 16, "subspace_dim": 2}, r"n_samples=30 is fewer than .* = 32"),
        ({"lam": 0.0}, "lam"),
        ({"lam": -1.0}, "lam"),
        ({"lam": float("nan")}, "lam"),
        ({"init": "best"}, "init"),
        ({"solver": "fast"}, "solver"),
        ({"residual": "other"}, "residual"),
        ({"n_init": 0}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"anneal_steps": 0}, "anneal_steps"),
        ({"anneal_range": (0.1, 0.3)}, r"anneal_range=\(0.1, 0.3\)"),
        ({"anneal_range": (0.3,)}, "two numbers"),
        ({"anneal_range": (0.3, "a")}, "two numbers"),
        ({"init": np.zeros((3, 5, 1))}, r"\(3, 5, 1\).*\(3, 6, 1\)"),
        ({"init": np.zeros((3, 6, 1))}, "independent columns"),
        ({"init": np.full((3, 6, 1), np.nan)}, "NaN or infinity"),
    ],
)
def test_unfit_parameters(options, message):
    model = MiCUSaL(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(data())
    assert not hasattr(model, "bases_")


def test_init_that_is_not_orthonormal_is_mended_with_a_warning():
    start = draw_bases((2, 6, 2), np.random.RandomState(0))
    skew = start @ np.array([[1.0, 0.3], [0.0, 2.0]])
    kept = skew.copy()
    with pytest.warns(UserWarning, match="not orthonormal"):
        model = MiCUSaL(2, 2, init=skew).fit(data())
    assert np.array_equal(skew, kept)
    assert is_orthonormal(model.bases_, 1e-10)


def test_init_array_is_one_start():
    start = draw_bases((2, 6, 2), np.random.RandomState(0))
    with pytest.warns(RuntimeWarning, match="n_init=5 is not used"):
        MiCUSaL(2, 2, init=start, n_init=5).fit(data())


def test_not_fitted_and_wrong_features():
    with pytest.raises(NotFittedError):
        MiCUSaL().predict(data())
    with pytest.raises(NotFittedError):
        _ = MiCUSaL().subspace_distances_
    model = MiCUSaL(random_state=0).fit(data())
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.predict(data(m=5))


def test_max_iter_reached_warns_and_is_told():
    model = MiCUSaL(init="random", max_iter=1, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model.fit(data())
    assert not model.converged_
    assert model.n_iter_ == 1
    assert MiCUSaL(random_state=0).fit(data()).converged_


@pytest.mark.parametrize("init", ["anneal", "random"])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("lam", [4.0, float("inf")])
@pytest.mark.filterwarnings("ignore:no sample is assigned")
def test_degenerate_data(init, solver, lam):
    base = data(12)
    cases = {
        "equal rows": np.tile(base[:1], (12, 1)),
        "zero rows": np.zeros((12, 6)),
        "rank one": np.outer(np.arange(12.0), base[0]),
    }
    for name, X in cases.items():
        model = MiCUSaL(3, 2, lam=lam, init=init, solver=solver, random_state=0)
        with pytest.warns(UserWarning, match=r"span only [01] directions, fewer than"):
            model.fit(X)
        assert is_orthonormal(model.bases_, 1e-10), name
        assert np.isfinite(model.objective_), name
        assert np.all(np.diff(model.objective_history_) <= 1e-9), name


@pytest.mark.filterwarnings("ignore:no sample is assigned")
def test_duplicate_and_zero_rows_among_others():
    X = np.vstack([data(20), data(20), np.zeros((4, 6))])
    model = MiCUSaL(2, 2, center=False, random_state=0).fit(X)
    assert np.array_equal(model.labels_[:20], model.labels_[20:40])
    assert len(set(model.labels_[40:])) == 1


def test_empty_subspaces_are_not_silent():
    rng = np.random.RandomState(0)
    X = np.outer(rng.standard_normal(40), np.eye(6)[0]) + 1e-9 * rng.standard_normal((40, 6))
    start = np.stack([np.eye(6)[:, [0]], np.eye(6)[:, [1]]])
    with pytest.warns(UserWarning, match=r"assigned to subspaces \[1\].*lower n_subspaces"):
        model = MiCUSaL(2, 1, lam=1e-6, init=start, center=False).fit(X)
    assert set(model.labels_) == {0}
