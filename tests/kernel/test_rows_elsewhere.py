"""Kernel models of low rank on rows in blocks equal those in memory."""

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from polyspan import MCKUSaL


@pytest.fixture(scope="module", name="X")
def samples():
    return load_digits(n_class=3).data[:300] / 60


OPTIONS = {"gamma": 1.0, "low_rank": 40, "random_state": 0}


@pytest.mark.parametrize("init", ["spectral", "gkiop"])
@pytest.mark.parametrize("lam", [4.0, float("inf")])
@pytest.mark.parametrize("n_chunks", [1, 4])
def test_dask_equals_memory(X, init, lam, n_chunks):
    expected = MCKUSaL(3, 5, init=init, lam=lam, **OPTIONS).fit(X)
    lazy = da.from_array(X, chunks=(-(-len(X) // n_chunks), 64))
    model = MCKUSaL(3, 5, init=init, lam=lam, **OPTIONS).fit(lazy)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert_allclose(model.objective_history_, expected.objective_history_, rtol=1e-9)
    assert np.array_equal(model.labels_.compute(), expected.labels_)
    assert np.array_equal(model.members_[0], expected.members_[0])
    assert_allclose(model.transform(lazy).compute(), expected.transform(X), atol=1e-7)
    assert_allclose(model.reconstruct(lazy).compute(), expected.reconstruct(X), atol=1e-7)
    assert_allclose(model.score(lazy), expected.score(X), rtol=1e-9)


def test_unknown_row_counts(X):
    lazy = da.from_array(X, chunks=(100, 64))
    unknown = lazy[lazy[:, 0] >= 0]
    assert np.isnan(unknown.shape[0])
    model = MCKUSaL(3, 5, **OPTIONS).fit(unknown)
    assert_allclose(model.objective_, MCKUSaL(3, 5, **OPTIONS).fit(X).objective_, rtol=1e-9)


def test_zarr_equals_memory(X, tmp_path):
    file = zarr.create_array(tmp_path / "X", shape=X.shape, chunks=(70, 64), dtype=X.dtype)
    file[:] = X
    model = MCKUSaL(3, 5, **OPTIONS).fit(file)
    assert_allclose(model.objective_, MCKUSaL(3, 5, **OPTIONS).fit(X).objective_, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "set low_rank"),
        ({"low_rank": 40, "residual": "loo"}, "residual='loo'"),
        ({"low_rank": 40, "init": np.zeros(300, dtype=int)}, "labels or seeds"),
        ({"low_rank": 40, "kernel": "precomputed"}, "precomputed"),
        ({"low_rank": 4}, "low_rank=4"),
    ],
)
def test_clear_errors(X, options, message):
    with pytest.raises(ValueError, match=message):
        MCKUSaL(3, 5, **options).fit(da.from_array(X, chunks=(100, 64)))
