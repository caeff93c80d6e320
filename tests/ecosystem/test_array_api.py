"""Estimators on arrays of other namespaces: results equal NumPy, on the device of the input."""

import array_api_strict
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits

from polyspan import AdaptiveMiCUSaL, MCKUSaL, MiCUSaL, RobustMCKUSaL, RobustMiCUSaL
from polyspan.base.arrays import device, namespace, to_numpy
from polyspan.baselines import KSubspaces
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.metrics import (
    average_subspace_distance,
    clustering_error,
    estimate_dimension,
    principal_angles,
    relative_reconstruction_error,
    subspace_distance,
)
from support import require_torch

DATA = make_union_of_subspaces(
    (20, 20, 20), n_features=14, subspace_dim=2, spread=0.3, noise=0.05, random_state=0
)
HOLES = mask_entries(DATA.X, 0.2, random_state=0)
DIGITS = load_digits(n_class=2).data[:60] / 60
START = draw_bases((3, 14, 2), np.random.RandomState(0))
EXACT = {"init": "random", "solver": "exact", "n_init": 2}
MODELS = [
    (MiCUSaL(3, 2, random_state=0), DATA.X),
    (MiCUSaL(3, 2, random_state=0, **EXACT), DATA.X),
    (MiCUSaL(3, 2, random_state=0, affine=True, n_init=2), DATA.X),
    (MiCUSaL(3, 2, random_state=0, residual="loo", lam=float("inf")), DATA.X),
    (MiCUSaL(3, 2, init=START), DATA.X),
    (KSubspaces(3, 2, random_state=0), DATA.X),
    (RobustMiCUSaL(3, 2, random_state=0, center=True), HOLES),
    (RobustMiCUSaL(3, 2, random_state=0), DATA.X),
    (MCKUSaL(2, 4, gamma=2.0, lam=20.0, random_state=0), DIGITS),
    (MCKUSaL(2, 4, kernel="poly", init="gkiop", n_init=2, random_state=0), DIGITS),
    (MCKUSaL(2, 4, gamma=2.0, low_rank=30, random_state=0), DIGITS),
    (MCKUSaL(2, 4, gamma=2.0, residual="loo", preimage="fixed_point", random_state=0), DIGITS),
]


def outputs(model, X):
    names = ["predict", "transform", "score_samples", "reconstruct"]
    names += [name for name in ("impute", "memberships") if hasattr(model, name)]
    found = {name: getattr(model, name)(X) for name in names}
    # Bases are unique up to rotations.
    coordinates = model.coordinates(X)
    return {**found, "coordinates": namespace(X).linalg.vector_norm(coordinates, axis=1)}


@pytest.mark.parametrize(("model", "X"), MODELS, ids=str)
@pytest.mark.parametrize("place", ["torch", "device"])
def test_equals_numpy_and_stays_where_it_was(model, X, place, request):
    xp = require_torch() if place == "torch" else request.getfixturevalue("accelerator")
    moved = xp.asarray(X)
    expected = clone(model).fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        found = clone(model).fit(moved)
        assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
        assert_allclose(found.score(moved), expected.score(X), rtol=1e-6)
        assert np.array_equal(to_numpy(found.labels_), expected.labels_)
        plain = outputs(expected, X)
        for name, value in outputs(found, moved).items():
            assert type(value) is type(moved), name
            assert device(value) == device(moved), name
            assert_allclose(to_numpy(value), plain[name], atol=1e-6, err_msg=name)
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray) and name != "init":
            other = getattr(found, name)
            assert device(other) == device(moved), name
            assert to_numpy(other).dtype == value.dtype, name


def test_samples_without_enough_entries(xp):
    X = HOLES.copy()
    X[[3, 8], 1:] = np.nan
    expected = RobustMiCUSaL(3, 2, random_state=0)
    with pytest.warns(UserWarning, match="2 of 60 rows"):
        expected.fit(X)
    with sklearn.config_context(array_api_dispatch=True):
        found = clone(expected)
        with pytest.warns(UserWarning, match="2 of 60 rows"):
            found.fit(xp.asarray(X))
        assert np.array_equal(to_numpy(found.labels_), expected.labels_)
        assert np.flatnonzero(to_numpy(found.labels_) == -1).tolist() == [3, 8]
        assert_allclose(found.score(xp.asarray(X)), expected.score(X), rtol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        AdaptiveMiCUSaL(),
        RobustMiCUSaL(solver="grouse"),
        RobustMCKUSaL(),
    ],
    ids=str,
)
def test_numpy_only_is_said(model):
    X = array_api_strict.asarray(DATA.X)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="works on NumPy arrays only"),
    ):
        model.fit(X)


def test_a_device_without_double_precision():
    where = array_api_strict.Device("no_float64")
    X = array_api_strict.asarray(DATA.X.astype("float32"), device=where)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match=r"no_float64.* has no float64"),
    ):
        MiCUSaL(3, 2).fit(X)


def test_a_device_without_an_operation(accelerator, monkeypatch):
    from polyspan.base import checks

    checks._CHECKED_DEVICES.clear()

    def missing(a):
        raise NotImplementedError("no kernel for this device")

    monkeypatch.setattr(array_api_strict.linalg, "cholesky", missing)
    with pytest.raises(ValueError, match=r"lacks the operation linalg.cholesky \(no kernel"):
        checks.check_device(accelerator.asarray(DATA.X))
    checks._CHECKED_DEVICES.clear()


def test_metrics_in_every_namespace(xp, accelerator):
    other = draw_bases((3, 14, 2), np.random.RandomState(1))
    expected = (
        subspace_distance(START[0], other[0]),
        average_subspace_distance(START, other),
        relative_reconstruction_error(DATA.X, DATA.X + 0.1),
    )
    dimension, plain = estimate_dimension(DATA.X), principal_angles(START[0], other[0])
    with sklearn.config_context(array_api_dispatch=True):
        for place in (xp, accelerator):
            a, b, X = (place.asarray(array) for array in (START, other, DATA.X))
            found = (
                subspace_distance(a[0, ...], b[0, ...]),
                average_subspace_distance(a, b),
                relative_reconstruction_error(X, X + 0.1),
            )
            assert_allclose(found, expected, rtol=1e-12)
            angles = principal_angles(a[0, ...], b[0, ...])
            assert device(angles) == device(a)
            assert_allclose(to_numpy(angles), plain, rtol=1e-10)
            labels = place.asarray(DATA.labels)
            assert clustering_error(labels, DATA.labels) == 0.0
            assert estimate_dimension(X) == dimension


@pytest.mark.parametrize("dispatch", [False, True])
def test_a_tensor_with_gradients(dispatch):
    torch = require_torch()
    X = torch.asarray(DATA.X).requires_grad_()
    for model in (MiCUSaL(3, 2), MCKUSaL(3, 2)):
        with (
            sklearn.config_context(array_api_dispatch=dispatch),
            pytest.raises(ValueError, match=r"requires gradients.*X\.detach\(\)"),
        ):
            model.fit(X)
