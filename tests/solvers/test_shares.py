"""Rows in blocks: what is measured adds up, and the same rows are learned from as in memory."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.solvers.share_preparation import measure_block


@pytest.mark.parametrize("factors", [(1e90, 1e70), (1e70, 1e90), (1e-90, 1.0), (1e90, 1e-90)])
def test_blocks_of_different_scales_add_up(factors):
    rng = np.random.default_rng(0)
    blocks = [factor * rng.uniform(1, 2, (30, 4)) for factor in factors]
    one, two = (measure_block(block, np.float64, 0, None) for block in blocks)
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


@pytest.mark.parametrize("n_observed", [1, 2])
def test_rows_with_few_observed_entries_are_not_learned_from(n_observed):
    """As many as a subspace has dimensions, or fewer: they count neither in the mean nor in F2."""
    X = make_union_of_subspaces((60, 60), n_features=12, subspace_dim=2, random_state=0).X
    X = mask_entries(X, 0.2, random_state=0)
    few = np.full((7, 12), np.nan)
    few[:, :n_observed] = 40.0
    X = np.concatenate([X[:50], few, X[50:]])
    options = {"center": True, "random_state": 0}
    with pytest.warns(UserWarning, match="7 of 127 rows have at most subspace_dim=2"):
        expected = RobustMiCUSaL(2, 2, **options).fit(X)
    with pytest.warns(UserWarning, match="7 of 127 rows have at most subspace_dim=2"):
        model = RobustMiCUSaL(2, 2, **options).fit(da.from_array(X, chunks=(40, 12)))
    assert np.abs(expected.mean_).max() < 1
    assert_allclose(model.mean_, expected.mean_, atol=1e-12)
    assert_allclose(model.objective_, expected.objective_, rtol=1e-9)
    assert np.array_equal(model.labels_.compute(), expected.labels_)
