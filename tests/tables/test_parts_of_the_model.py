"""Margins, encodings, weights, forests and donors: what the model of a table is made of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import ndtr
from sklearn.ensemble import ExtraTreesRegressor

from polyspan import SubspaceImputer
from polyspan.tables import filling, forest_loops
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Encoding, Margin, level_probabilities
from polyspan.tables.forests import Forest
from polyspan.tables.learning import RIDGE, simplex_weights
from polyspan.tables.model import drawn_levels


def test_scores_of_ranks_do_not_depend_on_the_scale():
    rng = np.random.default_rng(0)
    column = rng.standard_normal(200)
    scores = Margin.of(column).to_scores(column)
    assert_allclose(scores, Margin.of(np.exp(5 * column)).to_scores(np.exp(5 * column)))
    assert np.abs(scores - column).mean() < 0.1
    assert np.isnan(Margin.of(column).to_scores(np.array([np.nan]))).all()
    assert_allclose(Margin.of(column).to_scores(np.array([99.0])), scores.max())


def test_expectations_of_a_skewed_column():
    rng = np.random.default_rng(1)
    margin = Margin.of(np.exp(rng.standard_normal(200_000)))
    mean, variance = np.array([0.0, 1.0, -1.0]), np.array([0.25, 0.25, 0.04])
    assert_allclose(margin.expectation(mean, variance), np.exp(mean + variance / 2), rtol=0.05)
    sure = margin.expectation(margin.scores[[3, 500]], np.full(2, 1e-12))
    assert_allclose(sure, margin.distinct[[3, 500]], rtol=1e-2)
    far = margin.expectation(np.array([-50.0, 50.0]), np.ones(2))
    assert_allclose(far, [margin.values[0], margin.values[-1]])


def test_levels_of_a_latent_variable():
    found = level_probabilities(np.array([0.0, 3.0]), np.array([1.0, 0.01]), np.array([-1.0, 1.0]))
    assert_allclose(found[0], [ndtr(-1), ndtr(1) - ndtr(-1), ndtr(-1)])
    assert_allclose(found[1], [0, 0, 1], atol=1e-12)


def test_encoded_columns_come_back():
    rng = np.random.default_rng(2)
    table = np.column_stack(
        [rng.standard_normal(50) * 9 + 4, rng.integers(0, 4, 50), rng.integers(0, 3, 50)]
    )
    encoding = Encoding.of(table, [0, 4, 3], [False, False, True])
    assert [column.stop - column.start for column in encoding.columns] == [1, 3, 1]
    standardised, scores = encoding.scales(table)
    targets = encoding.targets(table, standardised)
    assert_allclose(standardised.mean(axis=0), 0, atol=1e-12)
    sure = np.full((50, 5), 1e-8)
    for j, column in enumerate(encoding.columns):
        own = standardised[:, column.block]
        found = encoding.from_standardised(j, own, sure[:, column.block])
        truth = targets[j]
        assert_allclose(found, truth, atol=1e-4)
        assert_allclose(encoding.to_standardised(j, truth), own, atol=1e-9)
        found = encoding.from_scores(j, scores[:, column.block], sure[:, column.block])
        assert_allclose(found, truth, atol=0.2)
        assert len(encoding.centre(j)) == truth.shape[1]


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_the_least_squares_in_the_simplex(seed):
    rng = np.random.default_rng(seed)
    members = rng.standard_normal((30, 3)) + rng.standard_normal((30, 1))
    truth = members @ rng.uniform(-0.5, 0.8, 3) + 0.3 * rng.standard_normal(30)
    gram, side, centre = members.T @ members, members.T @ truth, np.full(3, 1 / 3)

    def value(w):
        return w @ gram @ w - 2 * side @ w + RIDGE * np.sum((w - centre) ** 2)

    found = simplex_weights(gram, side, centre, RIDGE)
    assert (found >= 0).all()
    assert found.sum() <= 1 + 1e-12
    twin = minimize(
        value, centre, method="SLSQP", bounds=[(0, 1)] * 3,
        constraints={"type": "ineq", "fun": lambda w: 1 - w.sum()},
    )  # fmt: skip
    assert value(found) <= twin.fun + 1e-6


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_forests_are_those_of_scikit_learn(n_outputs):
    rng = np.random.default_rng(4)
    X, new = (np.round(rng.standard_normal((n, 4)), 3) for n in (80, 50))
    targets = np.round(rng.standard_normal((80, n_outputs)), 3)
    X, new, targets = (np.rint(a * 2**16) / 2**16 for a in (X, new, targets))
    forest = Forest.fit(X, targets, 7, 2, 5)
    model = ExtraTreesRegressor(7, min_samples_leaf=2, max_features=1.0, random_state=5)
    expected = model.fit(X, targets if n_outputs > 1 else targets[:, 0]).predict(new)
    assert_allclose(forest.predict(new), expected.reshape(50, n_outputs), atol=1e-5)


def test_the_compiled_loop_has_a_plain_twin():
    rng = np.random.default_rng(5)
    X, targets = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    forest = Forest.joined([Forest.fit(X, targets, 3, 1, seed) for seed in (0, 1)])
    nodes = (forest.features, forest.thresholds, forest.left, forest.right, forest.values)
    plain = np.zeros((40, 2))
    grid = (np.rint(X * 2**16) / 2**16).astype(np.float32)
    forest_loops.mean_of_trees.py_func(grid, forest.roots, *nodes, plain)
    assert_allclose(forest.predict(X), plain)
    assert len(forest.roots) == 6


def test_errors_of_donors_grow_where_the_gaussian_is_unsure():
    rng = np.random.default_rng(6)
    variances = rng.uniform(0.1, 1.0, 3000)
    truth = rng.standard_normal(3000)
    predicted = truth + np.sqrt(2 * variances) * rng.standard_normal(3000)
    donors = Donors.of(np.arange(3000), predicted, truth, variances, truth)
    assert donors.slope > 0.5
    low, high = donors.spread(np.array([0.1, 1.0]))
    assert_allclose([low, high], np.sqrt([0.2, 2.0]), rtol=0.25)
    errors = (truth - predicted) / donors.spread(variances)
    assert_allclose(np.mean(errors**2), 1, rtol=0.05)


def test_draws_have_the_spread_of_the_donors():
    rng = np.random.default_rng(7)
    truth = rng.standard_normal(1000)
    predicted = 0.8 * truth + 0.3 * rng.standard_normal(1000)
    donors = Donors.of(np.arange(1000), predicted, truth, np.full(1000, 0.3), truth)
    at = np.zeros(4000)
    drawn = donors.draw(at, donors.spread(at + 0.3), rng.uniform(size=4000), np.ones(1000))
    near = np.abs(predicted) < 0.1
    assert abs(drawn.std() - (truth - predicted)[near].std()) < 0.1
    steps = np.round(2 * truth)
    stepped = Donors.of(np.arange(1000), predicted, truth, np.full(1000, 0.3), steps)
    assert stepped.stepped
    drawn = stepped.draw(at, at + 1, rng.uniform(size=4000), np.ones(1000))
    assert set(drawn) <= set(steps)


def test_levels_are_drawn_as_often_as_they_are_probable():
    probabilities = np.tile([0.1, 0.6, 0.3], (5000, 1))
    drawn = drawn_levels(probabilities, np.random.default_rng(8).uniform(size=5000))
    assert_allclose(np.bincount(drawn.astype(int)) / 5000, [0.1, 0.6, 0.3], atol=0.03)


def curved_or_flat(curved):
    """A column is a square of another, or a sum of others with noise."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((1020, 3))
    last = X[:, 0] ** 2 if curved else X.sum(axis=1)
    X = np.column_stack([X, last + 0.2 * rng.standard_normal(1020)])
    X[rng.rand(*X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("curved", [True, False])
@pytest.mark.parametrize("plain_rows", [filling.MOST_PLAIN_ROWS, 900])
def test_trees_are_learned_only_where_a_trial_shows_that_they_help(monkeypatch, curved, plain_rows):
    """The model is bit for bit that of the option that the trial chooses."""
    monkeypatch.setattr(filling, "MOST_PLAIN_ROWS", plain_rows)
    X = curved_or_flat(curved)
    found = SubspaceImputer().fit(X)
    assert (found._model.trees is not None) == curved
    monkeypatch.setattr(filling, "LEAST_TRIED_ROWS", 1021)  # no trial
    with_trees = SubspaceImputer().fit(X)
    assert with_trees._model.trees is not None
    expected = with_trees if curved else SubspaceImputer(method="subspaces").fit(X)
    assert np.array_equal(found.transform(X), expected.transform(X))


def test_wide_tables_have_the_trial_too(monkeypatch):
    """Trees can be learned from few of their rows only; without trees more of them are used."""
    monkeypatch.setattr(filling, "TREE_WORK", 7e6)
    X = curved_or_flat(curved=False)
    assert filling.LEAST_TREE_ROWS <= filling.affordable_tree_rows(1020, 4, 4) < 1020
    model = SubspaceImputer().fit(X)._model
    assert (model.trees, model.n_table_rows) == (None, 1020)
