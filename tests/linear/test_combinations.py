"""Rows × observation × shape × residual × solver: each combination works or raises one error."""

import functools
import itertools

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.linear import MiCUSaL, RobustMiCUSaL

ROWS = ("array", "zarr", "memmap", "dask")


def union_data(affine, missing):
    """Return separated samples, N > m, near three (affine) subspaces."""
    rng = np.random.default_rng(3)
    parts = []
    for _ in range(3):
        basis = np.linalg.qr(rng.standard_normal((12, 2)))[0]
        point = 3.0 * rng.standard_normal(12) if affine else np.zeros(12)
        scale = np.array([2.0, 1.0])
        parts.append(rng.standard_normal((70, 2)) * scale @ basis.T + point)
    X = np.concatenate(parts) + 0.02 * rng.standard_normal((210, 12))
    X = X[rng.permutation(len(X))]
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def placed(X, kind, folder):
    """Return the same rows somewhere else."""
    if kind == "zarr":
        return zarr.create_array(store=str(folder / "x.zarr"), data=X, chunks=(64, 12))
    if kind == "dask":
        return da.from_array(X, chunks=(60, -1))
    if kind == "memmap":
        mapped = np.memmap(folder / "x.dat", dtype=X.dtype, mode="w+", shape=X.shape)
        mapped[:] = X
        return mapped
    return X


def model_of(missing, affine, residual, solver, **options):
    kind = RobustMiCUSaL if missing else MiCUSaL
    solver = {"power": "mm"}.get(solver, solver) if missing else solver
    return kind(
        3, 2, affine=affine, residual=residual, solver=solver, center=True,
        **{"init": "anneal", "n_init": 1, "anneal_steps": 10, "random_state": 0, **options},
    )  # fmt: skip


@functools.cache
def fitted_array(missing, affine, residual, solver):
    """Return the model of an array, with which the same rows elsewhere are compared."""
    return model_of(missing, affine, residual, solver).fit(union_data(affine, missing))


COMBINATIONS = list(
    itertools.product(ROWS[1:], (False, True), (False, True), ("plain", "loo"), ("power", "exact"))
)


@pytest.mark.parametrize(("rows", "missing", "affine", "residual", "solver"), COMBINATIONS)
def test_every_combination_gives_the_result_of_an_array(
    rows, missing, affine, residual, solver, tmp_path, monkeypatch
):
    # Slices of a few rows, so that a small file is read in several.
    monkeypatch.setattr("polyspan.data.sliced.SLICE_BYTES", 64 * 12 * 8)
    X = union_data(affine, missing)
    expected = fitted_array(missing, affine, residual, solver)
    elsewhere = placed(X, rows, tmp_path)
    found = model_of(missing, affine, residual, solver).fit(elsewhere)
    assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    assert np.array_equal(np.asarray(found.labels_), expected.labels_)
    for method in ("predict", "transform", "reconstruct"):
        assert_allclose(
            np.asarray(getattr(found, method)(elsewhere)),
            getattr(expected, method)(X),
            rtol=1e-9,
            atol=1e-9,
        )
    if affine:
        assert_allclose(found.anchors_, expected.anchors_, atol=1e-9)
    assert_allclose(
        found.bases_ @ found.bases_.transpose(0, 2, 1),
        expected.bases_ @ expected.bases_.transpose(0, 2, 1),
        atol=1e-9,
    )


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("solver", ["power", "exact"])
@pytest.mark.parametrize("lam", [0.5, 4.0, np.inf])
def test_the_objective_never_rises(missing, affine, solver, lam):
    X = union_data(affine, missing)
    model = model_of(missing, affine, "plain", solver, lam=lam, init="random").fit(X)
    history = model.objective_history_
    assert len(history) > 2
    assert (np.diff(history) <= 1e-9 * np.abs(history[:-1])).all()
    identity = np.broadcast_to(np.eye(2), (3, 2, 2))
    assert_allclose(model.bases_.transpose(0, 2, 1) @ model.bases_, identity, atol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_rows_elsewhere_that_are_not_centred(missing):
    X = 1.0 + union_data(False, missing)
    expected = model_of(missing, False, "plain", "power").set_params(center=False).fit(X)
    found = model_of(missing, False, "plain", "power").set_params(center=False)
    found.fit(placed(X, "dask", None))
    assert_allclose(found.objective_, expected.objective_, rtol=1e-9)
    assert np.array_equal(np.asarray(found.labels_), expected.labels_)


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"solver": "grouse"}, "dask", "solver='grouse' needs all samples in memory"),
        ({"solver": "grouse", "affine": True}, "array", "needs affine=False"),
        ({"solver": "grouse", "residual": "loo"}, "array", "needs residual='plain'"),
    ],
)
def test_combinations_without_meaning_have_one_error(options, rows, message, tmp_path):
    X = placed(union_data(False, True), rows, tmp_path)
    with pytest.raises(ValueError, match=message):
        RobustMiCUSaL(3, 2, **options).fit(X)


def test_exact_updates_elsewhere_need_few_features():
    X = da.ones((2000, 1025), chunks=(500, -1))
    with pytest.raises(ValueError, match="at most 1024 features"):
        MiCUSaL(2, 1, solver="exact").fit(X)


@pytest.mark.parametrize("rows", ROWS[1:])
@pytest.mark.parametrize("unit", [2.0**-700, 2.0**700])
def test_rows_elsewhere_may_have_any_unit(rows, unit, tmp_path):
    """Sums and squares would leave the range of numbers: rows are scaled as they are read."""
    X = union_data(False, False) + 1.0
    near, far = (model_of(False, False, "plain", "power", lam=np.inf) for _ in range(2))
    near.fit(X)
    far.fit(placed(unit * X, rows, tmp_path))
    assert_allclose(far.mean_ / unit, near.mean_, rtol=1e-9)
    assert_allclose(far.mean_ / unit, X.mean(axis=0), rtol=1e-9)
    assert_array_equal(far.labels_, near.labels_)
