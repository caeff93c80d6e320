"""Methods that return samples follow `set_output`, as `transform` does."""

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
    compare,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.model_selection import choose_by_noise

DATA = make_union_of_subspaces(
    (20, 20), n_features=8, subspace_dim=2, spread=0.5, noise=0.05, random_state=0
)
HOLES = mask_entries(DATA.X, 0.1, random_state=0)
NAMES = [f"f{i}" for i in range(8)]
CASES = [
    (MiCUSaL(2, 2, random_state=0), "reconstruct", DATA.X),
    (MiCUSaL(2, 2, affine=True, random_state=0), "reconstruct", DATA.X),
    (RobustMiCUSaL(2, 2, random_state=0), "reconstruct", HOLES),
    (RobustMiCUSaL(2, 2, random_state=0), "impute", HOLES),
    (SubspaceMixture(2, 2, random_state=0), "reconstruct", HOLES),
    (SubspaceMixture(2, 2, random_state=0), "impute", HOLES),
    (MCKUSaL(2, 2, random_state=0), "reconstruct", DATA.X),
    (RobustMCKUSaL(2, 2, random_state=0), "reconstruct", HOLES),
    (RobustMCKUSaL(2, 2, random_state=0), "impute", HOLES),
    (SubspaceOutlierDetector(), "contributions", HOLES),
    (SubspaceImputer(1, 2, n_fits=1), "impute_std", HOLES),
]


def named(value):
    return value if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize(("model", "method", "X"), CASES, ids=named)
@pytest.mark.parametrize("where", ["estimator", "global"])
def test_pandas(model, method, X, where):
    table = pd.DataFrame(X, columns=NAMES, index=[f"row {k}" for k in range(len(X))])
    plain = getattr(clone(model).fit(table), method)(table)
    # What is imputed is the kind of table that was given.
    filled = isinstance(model, SubspaceImputer) or method == "impute"
    assert isinstance(plain, pd.DataFrame if filled else np.ndarray)
    if filled:
        assert list(plain.columns) == NAMES
        assert plain.index.equals(table.index)
    plain = np.asarray(plain)
    model = clone(model).fit(table)
    if where == "estimator":
        model.set_output(transform="pandas")
        found = getattr(model, method)(table)
        of_array = getattr(clone(model).fit(X), method)(X)
    else:
        with sklearn.config_context(transform_output="pandas"):
            found = getattr(model, method)(table)
            of_array = getattr(clone(model).fit(X), method)(X)
    assert list(found.columns) == NAMES
    assert found.index.equals(table.index)
    assert np.array_equal(found.to_numpy(), plain)
    assert list(of_array.columns) == [f"x{i}" for i in range(8)]


@pytest.mark.parametrize(("model", "method", "X"), CASES, ids=named)
def test_polars(model, method, X):
    table = pl.DataFrame(dict(zip(NAMES, X.T, strict=True)))
    plain = getattr(clone(model).fit(table), method)(table)
    if method == "impute":
        assert isinstance(plain, pl.DataFrame)
        assert plain.columns == NAMES
    found = getattr(clone(model).set_output(transform="polars").fit(table), method)(table)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == NAMES
    assert np.array_equal(found.to_numpy(), plain)


def test_columns_without_names_are_kept():
    table = pd.DataFrame(HOLES, columns=range(1, 9))
    filled = RobustMiCUSaL(2, 2, random_state=0).fit(table).impute(table)
    assert filled.columns.equals(table.columns)
    assert not filled.isna().to_numpy().any()


def test_noise_is_still_an_argument_of_reconstruct():
    model = SubspaceMixture(2, 2, random_state=0).set_output(transform="pandas").fit(DATA.X)
    found = model.reconstruct(DATA.X, noise=0.1)
    assert isinstance(found, pd.DataFrame)
    assert not found.equals(model.reconstruct(DATA.X))


@pytest.mark.parametrize("method", ["transform", "reconstruct", "impute"])
def test_of_a_dask_array_frames_are_refused(method):
    X = da.from_array(HOLES, chunks=(10, 8))
    model = RobustMiCUSaL(2, 2, random_state=0).fit(X)
    assert hasattr(getattr(model, method)(X), "__dask_graph__")
    model.set_output(transform="pandas")
    with pytest.raises(ValueError, match="would gather what is made of a dask array"):
        getattr(model, method)(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_mapped_file(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("polyspan.data.sliced.SLICE_BYTES", 8 * 8 * 10)
    np.save(tmp_path / "X.npy", DATA.X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = MiCUSaL(2, 2, random_state=0).fit(DATA.X)
    expected = model.reconstruct(DATA.X)
    with sklearn.config_context(transform_output=kind):
        found = model.reconstruct(mapped)
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_what_calls_reconstruct_takes_frames(kind):
    model = MiCUSaL(2, 2, random_state=0)
    grid = {"subspace_dim": [1, 2]}
    plain = choose_by_noise(model, DATA.X, 0.1, grid, random_state=0)
    expected = compare(DATA.X, [model], X_clean=DATA.X_clean).rows[0]["reconstruction_error"]
    model.set_output(transform=kind)
    assert choose_by_noise(model, DATA.X, 0.1, grid, random_state=0).table == plain.table
    row = compare(DATA.X, [model], X_clean=DATA.X_clean).rows[0]
    assert row["error"] is None
    assert row["reconstruction_error"] == expected
