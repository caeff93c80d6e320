"""Rows in blocks: the measurements add up, and the same rows are used as in memory."""

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose
from sklearn.base import clone

from polyspan import RobustMiCUSaL
from polyspan.data.working import Extent, measure_block
from polyspan.datasets import make_union_of_subspaces, mask_entries


@pytest.mark.parametrize("factors", [(1e90, 1e70), (1e70, 1e90), (1e-90, 1.0), (1e90, 1e-90)])
def test_blocks_of_different_scales_add_up(factors):
    rng = np.random.default_rng(0)
    blocks = [factor * rng.uniform(1, 2, (30, 4)) for factor in factors]
    one, two = (measure_block(block, np.float64, 0, None)[0] for block in blocks)
    assert one.scale != two.scale
    both = one + two
    assert both.scale == min(one.scale, two.scale)
    assert_allclose(both.sums / both.scale, blocks[0].sum(axis=0) + blocks[1].sum(axis=0))
    assert both.n_rows == 60
    assert both.largest == max(block.max() for block in blocks)


def test_a_mean_of_blocks_of_different_scales():
    X = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0).X + 1
    X = np.concatenate([X[::2] * 1e90, X[1::2] * 1e70])
    options = {"center": True, "lam": np.inf, "random_state": 0}
    model = RobustMiCUSaL(2, 2, **options).fit(da.from_array(X, chunks=(60, 12)))
    assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)
    assert_allclose(model.mean_, RobustMiCUSaL(2, 2, **options).fit(X).mean_, rtol=1e-12)


def test_what_is_missing_is_counted_where_rows_are_learned_from():
    X = np.arange(20.0).reshape(5, 4)
    X[0, 1:], X[2, 3], X[4, 0] = np.nan, np.nan, np.inf
    with np.errstate(invalid="ignore"):
        extent, per_row = measure_block(X, np.float64, 1, None)
    assert per_row is None
    assert (extent.n_rows, extent.n_learned) == (5, 4)
    assert (extent.n_missing, extent.n_infinite) == (4, 1)
    assert extent.observed.tolist() == [4, 4, 4, 3]
    assert extent.sums.tolist()[1:] == [5 + 9 + 13 + 17, 6 + 10 + 14 + 18, 7 + 15 + 19]
    assert measure_block(X[:0], np.float64, 1, None) == (None, None)


def test_a_row_map_is_measured_not_the_rows():
    extent, _ = measure_block(np.ones((3, 4)), np.float64, 0, lambda rows: 5 * rows[:, :2])
    assert isinstance(extent, Extent)
    assert (extent.largest, extent.sums.tolist()) == (5.0, [15.0, 15.0])


@pytest.mark.parametrize("rows", ["dask", "zarr"])
@pytest.mark.parametrize("n_observed", [1, 2])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("residual", ["plain", "loo"])
def test_rows_with_few_observed_entries_are_not_learned_from(
    rows, n_observed, affine, residual, tmp_path, monkeypatch
):
    """As many as a subspace has dimensions, or fewer: they count neither in the mean nor in F2."""
    monkeypatch.setattr("polyspan.data.sliced.SLICE_BYTES", 1)  # a slice is a chunk
    X = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0).X
    X = mask_entries(X, 0.2, random_state=0)
    few = np.full((27, 12), np.nan)
    few[:, :n_observed] = 40.0
    X = np.concatenate([X[:50], few, X[50:]])  # one chunk has no other rows
    chunks = (20, 12)
    if rows == "dask":
        elsewhere = da.from_array(X, chunks=chunks)
    else:
        elsewhere = zarr.create_array(tmp_path / "X.zarr", data=X, chunks=chunks)
    model = RobustMiCUSaL(
        2, 2, center=True, affine=affine, residual=residual, n_init=1, anneal_steps=10,
        random_state=0,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="27 of 147 rows have at most subspace_dim=2"):
        expected = clone(model).fit(X)
    with pytest.warns(UserWarning, match="27 of 147 rows have at most subspace_dim=2"):
        model.fit(elsewhere)
    assert np.abs(expected.mean_).max() < 1
    assert_allclose(model.mean_, expected.mean_, atol=1e-12)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    labels = np.asarray(model.labels_)
    assert np.array_equal(labels, expected.labels_)
    assert (labels[50:77] == -1).all()
