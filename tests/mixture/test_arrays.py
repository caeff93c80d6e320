"""SubspaceMixture on arrays of other namespaces: results equal NumPy, on the input's device."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone

from polyspan import SubspaceMixture
from polyspan.base.arrays import device, to_numpy
from polyspan.datasets import make_union_of_subspaces, mask_entries
from support import require_torch

X = 2.0 + (
    make_union_of_subspaces(
        (40, 40), n_features=14, subspace_dim=2, spread=0.8, noise=0.1, random_state=1
    ).X
)
HOLES = mask_entries(X, 0.2, random_state=0)
HOLES[:20] = np.where(np.isnan(HOLES[0]), np.nan, X[:20])  # one mask that recurs
HOLES[20:30] = X[20:30]
HOLES[30] = np.nan
MANY_FEATURES = make_union_of_subspaces((20, 20), n_features=520, subspace_dim=2, random_state=0).X
SHORT = {"max_iter": 10, "anneal_steps": 3, "tol": 1e-2}
LESS = {"max_iter": 25, "anneal_steps": 5}  # other settings on few iterations
SETTINGS = [
    {"affine": False, "noise": "shared", "closeness": 0.0},
    {"affine": False, "center": False, "noise": 0.2, "closeness": 4.0},
    {"noise": "shared", "subspace_dim": 0, "n_init": 2},
    {"n_subspaces": 1, "subspace_dim": 3},
]
METHODS = ["predict", "predict_proba", "transform", "score_samples", "reconstruct", "impute"]
FITTED = ["weights_", "means_", "variances_", "noise_variances_", "mean_", "subspace_distances_"]


def mixture(**options):
    return SubspaceMixture(
        **{"n_subspaces": 2, "subspace_dim": 2, "init": "anneal", "random_state": 0, **options}
    )


@pytest.fixture
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def spans(bases):
    return bases @ np.swapaxes(bases, 1, 2)  # free of the signs that an eigenvector may have


def assert_same(found, expected, where, rtol, atol):
    assert type(found) is type(where)
    assert device(found) == device(where)
    assert to_numpy(found).dtype == expected.dtype
    assert_allclose(to_numpy(found), expected, rtol=rtol, atol=atol)


def assert_same_model(found, expected, moved, data, rtol=1e-9, atol=1e-9):
    """Compare all that is fitted and all that is computed for some data, NumPy's last."""
    for name in FITTED:
        assert_same(getattr(found, name), getattr(expected, name), moved, rtol, atol)
    assert_same(found.labels_, expected.labels_, moved, 0, 0)
    assert_same(found.log_likelihood_history_, expected.log_likelihood_history_, moved, rtol, atol)
    assert_allclose(spans(to_numpy(found.bases_)), spans(expected.bases_), atol=atol)
    assert (found.n_iter_, found.converged_) == (expected.n_iter_, expected.converged_)
    for name in METHODS:
        value, plain = getattr(found, name)(moved), getattr(expected, name)(data)
        assert_same(value, plain, moved, rtol, atol)
    noisy = found.reconstruct(moved, noise=0.3)
    assert_same(noisy, expected.reconstruct(data, noise=0.3), moved, rtol, atol)
    for name in ("score", "bic"):
        value = getattr(found, name)(moved)
        assert isinstance(value, float)
        assert_allclose(value, getattr(expected, name)(data), rtol=rtol)


@pytest.mark.filterwarnings("ignore:EM did not converge")
@pytest.mark.parametrize("options", SETTINGS, ids=str)
@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_results_equal_numpy(accelerator, data, options, dispatch):
    moved = accelerator.asarray(data)
    found = mixture(**LESS, **options).fit(moved)
    with sklearn.config_context(array_api_dispatch=False):
        expected = mixture(**LESS, **options).fit(data)
    assert_same_model(found, expected, moved, data)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_every_way_to_fit_equals_numpy(place, data, dispatch):
    moved = place.asarray(data)
    found = mixture().fit(moved)
    with sklearn.config_context(array_api_dispatch=False):
        expected = mixture().fit(data)
    assert_same_model(found, expected, moved, data)
    labels = clone(found).fit_predict(moved)
    assert np.array_equal(to_numpy(labels), expected.labels_)
    distances = clone(found).fit_transform(moved)
    assert_allclose(to_numpy(distances), expected.transform(data), rtol=1e-9)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("options", [{"tol": 1e-3}, {"affine": False, "noise": "shared"}], ids=str)
def test_single_precision_stays(place, data, options, dispatch):
    data = data.astype(np.float32)
    moved = place.asarray(data)
    found = mixture(**options).fit(moved)
    expected = mixture(**options).fit(data)
    assert to_numpy(found.bases_).dtype == np.float32
    assert_same_model(found, expected, moved, data, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_many_features(place, holes, dispatch):
    data = mask_entries(MANY_FEATURES, holes, random_state=0) if holes else MANY_FEATURES
    moved = place.asarray(data)
    found, expected = mixture(**SHORT).fit(moved), mixture(**SHORT).fit(data)
    assert_same_model(found, expected, moved, data, rtol=1e-7, atol=1e-7)


def test_fewer_samples_than_dimensions(place, dispatch):
    data = HOLES[31:36]
    found = mixture(n_subspaces=1, subspace_dim=8, noise=0.3).fit(place.asarray(data))
    expected = mixture(n_subspaces=1, subspace_dim=8, noise=0.3).fit(data)
    assert_allclose(found.log_likelihood_, expected.log_likelihood_, rtol=1e-9)


def test_a_start_that_looks_at_some_of_the_samples(place, dispatch, monkeypatch):
    monkeypatch.setattr("polyspan.mixture.starts.START_SAMPLES", 25)
    for data in (X, HOLES):
        moved = place.asarray(data)
        assert_same_model(mixture().fit(moved), mixture().fit(data), moved, data)


@pytest.mark.parametrize("learned", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize(
    "precisions", [("float64", "float32"), ("float32", "float64")], ids=lambda p: "-then-".join(p)
)
def test_new_data_of_another_precision(place, learned, precisions, dispatch):
    first, second = precisions
    rng = np.random.default_rng(0)
    new = mask_entries(X + 0.1 * rng.standard_normal(X.shape), 0.4, random_state=1)
    found = mixture(**SHORT).fit(place.asarray(learned.astype(first)))
    expected = mixture(**SHORT).fit(learned.astype(first))
    for data in (X.astype(second), new.astype(second)):
        moved = place.asarray(data)
        for name in METHODS:
            value, plain = getattr(found, name)(moved), getattr(expected, name)(data)
            assert_same(value, plain, moved, 1e-3, 1e-3)
        noisy = expected.reconstruct(data, noise=0.2)
        assert_same(found.reconstruct(moved, noise=0.2), noisy, moved, 1e-3, 1e-3)


def test_new_data_in_chunks(place, dispatch, monkeypatch):
    found, expected = mixture().fit(place.asarray(HOLES)), mixture().fit(HOLES)
    monkeypatch.setattr("polyspan.mixture._solve.gaussians.chunk_rows", lambda *a, **k: 7)
    moved = place.asarray(HOLES)
    for name in METHODS:
        value, plain = getattr(found, name)(moved), getattr(expected, name)(HOLES)
        assert_same(value, plain, moved, 1e-9, 1e-9)


def test_samples_are_drawn_by_numpy(place, dispatch):
    moved = place.asarray(HOLES)
    drawn, labels = mixture().fit(moved).sample(50, random_state=3)
    expected, theirs = mixture().fit(HOLES).sample(50, random_state=3)
    assert_same(labels, theirs, moved, 0, 0)
    # A basis vector may have the other sign, and the samples drawn along it too.
    assert type(drawn) is type(moved)
    assert device(drawn) == device(moved)
    assert to_numpy(drawn).shape == expected.shape
    again = mixture().fit(moved).sample(50, random_state=3)[0]
    assert np.array_equal(to_numpy(again), to_numpy(drawn))
    round_ones = {"subspace_dim": 0}
    drawn, _ = mixture(**round_ones).fit(moved).sample(50, random_state=3)
    expected, _ = mixture(**round_ones).fit(HOLES).sample(50, random_state=3)
    assert_same(drawn, expected, moved, 1e-9, 1e-9)


@pytest.mark.parametrize("options", [{}, {"affine": False, "center": False}], ids=str)
def test_warm_start_goes_on_from_numpy(place, options, dispatch):
    options = {**options, "warm_start": True}
    expected, found = mixture(**options).fit(X), mixture(**options).fit(X)
    moved = place.asarray(HOLES + 0.1)
    assert_same_model(found.fit(moved), expected.fit(HOLES + 0.1), moved, HOLES + 0.1)


def test_without_dispatch_tensors_become_numpy_arrays():
    torch = require_torch()
    model, expected = mixture().fit(torch.asarray(HOLES)), mixture().fit(HOLES)
    assert np.array_equal(model.bases_, expected.bases_)
    assert np.array_equal(model.impute(torch.asarray(HOLES)), expected.impute(HOLES))


def test_numpy_under_dispatch_and_what_does_not_mix(place, dispatch):
    model = mixture().fit(HOLES)
    with sklearn.config_context(array_api_dispatch=False):
        expected = mixture().fit(HOLES)
    assert_same_model(model, expected, HOLES, HOLES)
    for name in [*METHODS, "score", "bic"]:
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            getattr(model, name)(place.asarray(HOLES))
    with pytest.raises(ValueError, match="never observed"):
        mixture().fit(place.asarray(np.where(np.arange(14) == 2, np.nan, X)))


def test_pickle_keeps_tensors(dispatch):
    torch = require_torch()
    moved = torch.asarray(HOLES)
    model = mixture().fit(moved)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(to_numpy(loaded.impute(moved)), to_numpy(model.impute(moved)))
