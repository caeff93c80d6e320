"""The figure of what is missing: what its artists hold."""

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

from polyspan.plotting import plot_missing

X = np.random.RandomState(0).standard_normal((60, 4))
X[np.random.RandomState(1).uniform(size=X.shape) < [0.0, 0.2, 0.5, 1.0]] = np.nan


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_the_picture_is_the_mask_and_the_bars_are_its_means():
    table, bars = plot_missing(X)
    (image,) = table.get_images()
    np.testing.assert_array_equal(image.get_array(), np.isnan(X))
    assert image.get_clim() == (0, 1)
    assert list(image.get_extent()) == [-0.5, 3.5, 59.5, -0.5]
    heights, edges, _ = bars.patches[0].get_data()
    np.testing.assert_allclose(heights, np.isnan(X).mean(axis=0))
    np.testing.assert_allclose(edges, [-0.5, 0.5, 1.5, 2.5, 3.5])
    assert bars.get_xlim() == table.get_xlim()
    assert table.get_title() == f"{np.isnan(X).mean():.1%} of 240 entries are missing"


@pytest.mark.parametrize("max_rows", [1, 7, 30, 59])
def test_many_rows_are_binned(max_rows):
    table, bars = plot_missing(X, max_rows=max_rows)
    (image,) = table.get_images()
    shown = np.asarray(image.get_array())
    parts = np.split(np.isnan(X), np.linspace(0, 60, max_rows + 1).astype(int)[1:-1])
    np.testing.assert_allclose(shown, [part.mean(axis=0) for part in parts])
    assert list(image.get_extent()) == [-0.5, 3.5, 59.5, -0.5]  # rows keep their numbers
    np.testing.assert_allclose(bars.patches[0].get_data()[0], np.isnan(X).mean(axis=0))
    assert len(table.figure.axes) == 2  # with the bar of colours


def test_names_of_few_columns_and_numbers_of_many():
    names = ["age", "income", "sex", "town"]
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        table, _ = plot_missing(frame)
        assert [text.get_text() for text in table.get_xticklabels()] == names
        np.testing.assert_array_equal(table.get_images()[0].get_array(), np.isnan(X))
    table, _ = plot_missing(np.tile(X, 20))
    assert table.get_xlabel() == "column"
    assert len(table.get_xticks()) < 80


def test_text_on_given_axes():
    _, ax = plt.subplots()
    table, _ = plot_missing([["a", None], [None, "b"], ["c", "d"]], ax=ax)
    assert table is ax
    np.testing.assert_array_equal(table.get_images()[0].get_array(), [[0, 1], [1, 0], [0, 0]])


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="X has 0 columns and no entries"):
        plot_missing(np.empty((3, 0)))
    with pytest.raises(ValueError, match="max_rows == 0"):
        plot_missing(X, max_rows=0)
    with pytest.raises(ValueError, match="plot_missing needs a table with rows and columns"):
        plot_missing([1.0, 2.0])
