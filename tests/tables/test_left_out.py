"""What the imputer leaves out is said: columns that it drops, entries that stay missing."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from polyspan import SubspaceImputer

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
X[:, 1] += X[:, 0]
X[:, 2] -= X[:, 0]
X[5, 0] = X[6, 1] = np.nan
NOTES = [None if k in (4, 9) else f"text {k}" for k in range(40)]
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "note": NOTES})
VOID = FRAME.assign(void=np.nan, blank=pd.Series([None] * 40, dtype=object))


def imputer(**options):
    return SubspaceImputer(method="subspaces", n_fits=1, **options)


def said(call):
    """Return what a call returns, and the messages of its warnings, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    assert all(one.filename == __file__ for one in found)
    messages = [str(one.message) for one in found]
    assert len(messages) == len(set(messages))
    return result, [text for text in messages if "are not used" not in text]


@pytest.mark.parametrize("package", [pd.DataFrame, pl.from_pandas])
def test_entries_that_stay_missing(package):
    frame = package(FRAME)
    model = imputer()
    wanted = ["2 entries stay missing: 2 in 'note' (free text); say in feature_types what these"]
    for call in (
        lambda: model.fit_transform(frame),
        lambda: model.transform(frame),
        lambda: model.sample_imputations(frame, 3, random_state=0),
    ):
        _, messages = said(call)
        assert [text[: len(wanted[0])] for text in messages] == wanted
    assert said(lambda: model.transform(frame[:4]))[1] == []  # nothing stays missing


def test_what_the_user_skips_is_no_news():
    assert said(lambda: imputer(feature_types={"note": "skip"}).fit_transform(FRAME))[1] == []
    plain = FRAME.drop(columns="note")
    assert said(lambda: imputer().fit_transform(plain))[1] == []
    assert said(lambda: imputer(feature_types={2: "skip"}).fit_transform(X))[1] == []


def test_columns_that_are_dropped():
    model = imputer(feature_types={"note": "skip"})
    filled, messages = said(lambda: model.fit_transform(VOID))
    assert filled.columns.tolist() == ["a", "b", "c", "note"]
    wanted = "columns without any observed entry are dropped: 'void', 'blank', 2 of 6; keep_empty"
    assert [text[: len(wanted)] for text in messages] == [wanted]
    assert said(lambda: model.transform(VOID))[1] == []  # fit has said it
    new = VOID.assign(void=np.where(np.arange(40) < 7, 1.0, np.nan))
    _, messages = said(lambda: model.transform(new))
    assert len(messages) == 1
    assert "are dropped, and have entries now: 'void' (7); fit again" in messages[0]


def test_columns_of_an_array_that_are_dropped():
    empty = np.column_stack([X, np.full(40, np.nan)])
    filled, messages = said(lambda: imputer().fit_transform(empty))
    assert filled.shape == (40, 3)
    assert len(messages) == 1
    assert "dropped: 3, 1 of 4; keep_empty_features=True" in messages[0]
    assert said(lambda: imputer(keep_empty_features=True).fit_transform(empty))[1] == []


@pytest.mark.parametrize("package", [pd.DataFrame, pl.from_pandas])
def test_columns_that_are_kept_empty(package):
    model = imputer(keep_empty_features=True, feature_types={"note": "skip"})
    filled, messages = said(lambda: model.fit_transform(package(VOID)))
    assert filled.shape == (40, 6)
    assert len(messages) == 1
    assert "40 entries stay missing: 40 in 'blank' (no entry in fit)" in messages[0]
    assert (np.asarray(filled["void"]) == 0).all()


@pytest.mark.parametrize(
    ("values", "culprit"),
    [
        ([20.0, "unknown", 30.0], r"'unknown' \(1 of 3 entries\)"),
        (["20.0", "unknown", "30"], r"'unknown' \(1 of 3 entries\)"),
        ([20.0, "x", "unknown"], r"'x' \(2 of 3 entries\)"),
        (["20", "30", None], r"'20' \(2 of 2 entries\)"),
        ([20.0, pd.Timestamp("2020-01-01"), 3], r"Timestamp\('2020-01-01 00:00:00'\) \(1 of 3"),
    ],
)
def test_the_culprit_is_named(values, culprit):
    model = imputer().fit(FRAME.drop(columns="note"))
    new = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": [1.0] * 3, "c": [1.0] * 3})
    with pytest.raises(ValueError, match=rf"column 'a' had numbers in fit and now holds {culprit}"):
        model.transform(new)


def test_a_column_that_became_one_of_categories_or_dates():
    model = imputer().fit(FRAME.drop(columns="note"))
    new = FRAME.drop(columns="note").assign(a=pd.Categorical([20.0] * 40))
    with pytest.raises(ValueError, match="and now is a column of the type category: give numbers"):
        model.transform(new)
    dated = FRAME.drop(columns="note").assign(a=pd.date_range("2024-01-01", periods=40))
    with pytest.raises(ValueError, match=r"holds datetime.*2024, 1, 1.*\(40 of 40 entries\)"):
        model.transform(dated)
    days = imputer().fit(dated)
    with pytest.raises(ValueError, match=r"'a' had dates in fit and now holds 'soon' \(1 of 40"):
        days.transform(dated.astype({"a": object}).assign(a=lambda t: ["soon", *t["a"][1:]]))
