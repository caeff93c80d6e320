"""Nearest rows: equal to a plain search, and nearly so by trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

from polyspan.base.arrays import unit_rows
from polyspan.graphs import edges
from polyspan.graphs.edges import among_all, nearest_distances, nearest_rows


@pytest.fixture(name="Q")
def unit():
    """Rows near two curves, as those of real data are: not uniform in all directions."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 3, (400, 1))
    rows = np.concatenate([np.cos(t), np.sin(t), np.cos(2 * t), t**2 / 9, 0 * t, 0 * t], axis=1)
    rows[200:] = rows[200:, ::-1]
    return unit_rows(rows + 0.01 * rng.standard_normal(rows.shape))


def recall(found, expected):
    return np.mean([np.isin(a, b).mean() for a, b in zip(found, expected, strict=True)])


@pytest.mark.parametrize("lines", [False, True])
def test_all_pairs_by_hand(Q, lines):
    Q = Q * np.where(np.arange(len(Q)) % 2, 1.0, -1.0)[:, None]
    cosines, columns = nearest_rows(Q, 4, 0, lines=lines)
    products = np.abs(Q @ Q.T) if lines else Q @ Q.T
    np.fill_diagonal(products, -2.0)
    assert_allclose(cosines, -np.sort(-products, axis=1)[:, :4])
    assert_allclose(np.take_along_axis(products, columns, axis=1), cosines)


def test_distances_equal_those_of_scikit_learn(Q):
    distances, columns = nearest_distances(Q, 5, 0)
    expected, theirs = NearestNeighbors(n_neighbors=5).fit(Q).kneighbors()
    assert_allclose(distances, expected, atol=1e-7)
    assert recall(columns, theirs) == 1.0


def test_distances_of_copies_are_zero(Q):
    distances, columns = nearest_distances(np.repeat(Q[:50], 2, axis=0), 1, 0)
    assert_array_equal(distances, 0.0)
    assert_array_equal(columns[:, 0], np.arange(100) ^ 1)


def test_rows_of_zeros_are_next_to_each_other(Q):
    Q[[3, 70, 90]] = 0.0
    distances, columns = nearest_distances(Q, 2, 0)
    assert {frozenset(columns[k]) | {k} for k in (3, 70, 90)} == {frozenset((3, 70, 90))}
    assert_array_equal(distances[[3, 70, 90]], 0.0)


@pytest.mark.parametrize("lines", [False, True])
def test_trees_find_nearly_all(Q, lines, monkeypatch):
    Q = Q * np.where(np.arange(len(Q)) % 2, 1.0, -1.0)[:, None] if lines else Q
    _, expected = nearest_rows(Q, 5, 0, lines=lines)
    monkeypatch.setattr(edges, "EXACT_ROWS", 100)
    monkeypatch.setattr(edges, "LEAF_ROWS", 40)
    cosines, columns = nearest_rows(Q, 5, 0, lines=lines)
    assert recall(columns, expected) > 0.95
    products = np.take_along_axis(Q @ Q.T, columns, axis=1)
    assert_allclose(cosines, np.abs(products) if lines else products, atol=1e-6)
    assert (np.diff(cosines, axis=1) <= 0).all()
    assert all(len(set(row)) == 5 for row in columns)
    assert not (columns == np.arange(len(Q))[:, None]).any()
    again = nearest_rows(Q, 5, 0, lines=lines)
    assert_array_equal(columns, again[1])
    monkeypatch.setattr(edges, "N_TREES", 1)
    assert recall(nearest_rows(Q, 5, 0, lines=lines)[1], expected) < recall(columns, expected)


def test_trees_take_copies_and_small_leaves(monkeypatch):
    monkeypatch.setattr(edges, "EXACT_ROWS", 10)
    monkeypatch.setattr(edges, "LEAF_ROWS", 3)
    cosines, columns = nearest_rows(np.ones((50, 1)), 5, 0)
    assert_array_equal(cosines, 1.0)
    assert all(len({*row, k}) == 6 for k, row in enumerate(columns))


def test_other_namespaces(Q, xp, monkeypatch):
    for exact in (1000, 100):
        monkeypatch.setattr(edges, "EXACT_ROWS", exact)
        monkeypatch.setattr(edges, "LEAF_ROWS", 60)
        expected, columns = nearest_distances(Q, 4, 0)
        found, theirs = nearest_distances(xp.asarray(Q), 4, 0)
        assert_allclose(found, expected, atol=1e-7)
        assert recall(theirs, columns) > 0.999


def test_queries_may_be_rows_themselves(Q):
    _, columns = among_all(Q[5:9], Q, 1)
    assert_array_equal(columns[:, 0], [5, 6, 7, 8])
