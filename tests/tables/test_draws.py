"""Draws of completed tables: spread, correlation, intervals; tables of all sizes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from polyspan import SubspaceImputer, pool_estimates
from polyspan.datasets import mask_entries
from polyspan.tables import filling
from polyspan.tables.filling import SubspaceModel, affordable_tree_rows
from polyspan.tables.model import TableModel

RNG = np.random.default_rng(0)


def correlated(n, n_columns=4, rho=0.8, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    return np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((n, n_columns))


@pytest.mark.parametrize("options", [{}, {"n_subspaces": 1, "subspace_dim": 2}])
def test_draws_have_the_spread_and_the_correlation_of_the_truth(options):
    truth = correlated(400)
    holes = truth.copy()
    rows = RNG.random(400) < 0.4
    holes[rows, :2] = np.nan
    model = SubspaceImputer(**options).fit(holes)
    draws = np.array(model.sample_imputations(holes, 20, random_state=0))
    assert np.array_equal(draws[:, ~rows], np.broadcast_to(truth[~rows], draws[:, ~rows].shape))
    left = (draws - draws.mean(axis=0))[:, rows, :2].reshape(-1, 2)
    real = truth[rows, :2] - model.transform(holes)[rows, :2]
    assert_allclose(left.std(axis=0), real.std(axis=0), rtol=0.3)
    assert abs(np.corrcoef(left.T)[0, 1] - np.corrcoef(real.T)[0, 1]) < 0.2
    assert_allclose(draws.mean(axis=0), model.transform(holes), atol=0.7)


def test_nearly_equal_columns_stay_nearly_equal_in_draws():
    rng = np.random.default_rng(1)
    one = rng.standard_normal(400)
    table = np.column_stack(
        [one, one + 0.05 * rng.standard_normal(400), one + rng.normal(size=400)]
    )
    rows = rng.random(400) < 0.3
    holes = table.copy()
    holes[rows, :2] = np.nan
    drawn = SubspaceImputer().fit(holes).sample_imputations(holes, 5, random_state=0)
    apart = np.mean([np.std((a[:, 0] - a[:, 1])[rows]) for a in drawn])
    assert apart < 0.25 * np.std(drawn[0][rows, 0])


def test_intervals_of_hidden_entries():
    truth = np.exp(0.5 * correlated(500, 6, seed=2))
    holes = mask_entries(truth, 0.3, random_state=0)
    draws = np.array(SubspaceImputer().fit(holes).sample_imputations(holes, 60, random_state=0))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    hidden = np.isnan(holes)
    assert 0.84 < np.mean((truth >= low) & (truth <= high), where=hidden) < 0.95
    assert draws.min() >= np.nanmin(holes)


def test_pooled_means_are_wider_than_those_of_one_table():
    truth = correlated(200, seed=3)
    holes = mask_entries(truth, 0.4, random_state=0)
    model = SubspaceImputer(method="subspaces").fit(holes)
    draws = model.sample_imputations(holes, 10, random_state=0)
    pooled = pool_estimates(
        [one.mean(axis=0) for one in draws], [one.var(axis=0) / len(one) for one in draws]
    )
    filled = model.transform(holes)
    assert (pooled.std_error > filled.std(axis=0) / np.sqrt(len(filled))).all()


def test_what_was_learned_is_uncertain_too():
    truth = correlated(40, seed=4)
    holes = truth.copy()
    holes[0, 0] = np.nan
    model = SubspaceImputer(method="subspaces").fit(holes)._model
    rng = np.random.RandomState(0)
    slopes = [model.redrawn(rng)[0].covariance[0, 1] for _ in range(30)]
    assert 0.02 < np.std(slopes) < 0.5
    assert abs(np.mean(slopes) - model.linear.covariance[0, 1]) < 0.15


def test_complete_tables_and_blocks():
    truth = correlated(300, seed=5)
    model = SubspaceImputer(method="subspaces").fit(truth)
    assert np.array_equal(model.transform(truth), truth)
    assert not model.impute_std(truth).any()
    assert model.impute_proba(truth) == {}
    assert np.array_equal(model.sample_imputations(truth, 1)[0], truth)
    frame = pd.DataFrame({"a": truth[:, 0], "b": truth[:, 1] > 0})
    assert (SubspaceImputer().fit(frame).impute_proba(frame)["b"].max(axis=1) == 1).all()


def test_rows_come_out_the_same_in_blocks(monkeypatch):
    holes = mask_entries(correlated(90, seed=6), 0.3, random_state=0)
    model = SubspaceImputer().fit(holes)
    whole = model.transform(holes)
    monkeypatch.setattr("polyspan.tables.model.NUMBERS_AT_ONCE", 17 * 16)
    assert_allclose(model.transform(holes), whole)
    assert_allclose(np.vstack([model.transform(row[None]) for row in holes[:9]]), whole[:9])


def test_tall_tables_are_learned_from_a_part(monkeypatch):
    monkeypatch.setattr(filling, "MOST_PLAIN_ROWS", 60)
    monkeypatch.setattr(filling, "TREE_WORK", 0)
    truth = correlated(500, seed=7)
    truth[:, 3] = 0
    truth[499, 3] = 1.0  # a value that hardly any part has
    holes = mask_entries(truth, 0.2, random_state=0)
    holes[499, 3] = 1.0
    model = SubspaceImputer().fit(holes)
    assert model._model.n_table_rows < 70
    assert model._model.trees is None
    off = (model.transform(holes) - truth)[:, :3][np.isnan(holes[:, :3])]
    assert off.std() < 0.75


def test_wide_tables_get_subspaces_of_low_dimension():
    rng = np.random.default_rng(8)
    truth = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 200))
    holes = mask_entries(truth, 0.2, random_state=0)
    model = SubspaceImputer().fit(holes)
    assert isinstance(model._model, SubspaceModel)
    hidden = np.isnan(holes)
    assert (model.transform(holes) - truth)[hidden].std() < 0.3 * truth.std()
    assert np.isfinite(model.sample_imputations(holes, 1, random_state=0)[0]).all()


def test_trees_are_left_out_where_they_take_long():
    assert affordable_tree_rows(600, 12, 12) == 600
    assert affordable_tree_rows(20_000, 200, 200) < filling.LEAST_TREE_ROWS
    holes = mask_entries(correlated(100, seed=9), 0.2, random_state=0)
    auto, plain = (SubspaceImputer(method=m).fit(holes)._model for m in ("auto", "subspaces"))
    assert isinstance(auto, TableModel)
    assert auto.trees is not None
    assert plain.trees is None


def test_trees_and_ranks_learn_what_is_not_linear():
    rng = np.random.default_rng(10)
    a, b, c = rng.uniform(-2, 2, (3, 400))
    curved = np.column_stack(
        [a, b, c, np.sin(2 * a), a * b, b**2, np.abs(c) - a, np.cos(b * c), np.exp(c)]
    )
    factors = rng.standard_normal((400, 2)) @ rng.standard_normal((2, 8))
    skewed = np.exp(factors + 0.2 * rng.standard_normal(factors.shape))
    for truth, method in ((curved, "auto"), (skewed, "subspaces")):
        holes = mask_entries(truth, 0.3, random_state=0)
        hidden = np.isnan(holes)
        scale = truth.std(axis=0)

        def error(found, truth=truth, hidden=hidden, scale=scale):
            return np.sqrt(np.mean((((found - truth) / scale)[hidden]) ** 2))

        ours = error(SubspaceImputer(method=method).fit_transform(holes))
        linear = error(SubspaceImputer(1, truth.shape[1] - 1).fit_transform(holes))
        assert ours < 0.8 * linear


def test_independent_columns_are_filled_with_their_mean():
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = rng.standard_normal((100, 6))
        holes = mask_entries(truth, 0.2, random_state=seed)
        hidden = np.isnan(holes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filled = SubspaceImputer(method="subspaces").fit_transform(holes)
        assert any("no other column tells anything" in str(one.message) for one in caught)
        mean = np.where(hidden, np.nanmean(holes, axis=0), holes)
        ratios.append(((filled - truth) ** 2).sum() / ((mean - truth) ** 2).sum())
    assert np.sqrt(np.mean(ratios)) < 1.005
