"""What `missing_summary` finds: the same in every kind of table, and nothing by chance."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from polyspan import missing_summary
from polyspan.tables import association, missing

DAY = datetime.datetime(2024, 5, 1)
COLUMNS = {
    "size": [1.5, None, 2.5, 2.5, None, 0.0],
    "count": [1, 2, None, 2, 5, 1],
    "yes": [True, False, None, None, True, True],
    "colour": ["red", None, "blue", "red", "green", "red"],
    "when": [DAY, None, DAY + datetime.timedelta(1), DAY, DAY, DAY],
    "nothing": [None] * 6,
    "same": [7.25] * 6,
}
KINDS = ["number", "integer", "boolean", "text", "date", "empty", "number"]
N_MISSING, N_DISTINCT = [2, 1, 2, 1, 1, 6, 0], [3, 3, 2, 3, 2, 0, 1]


def as_pandas():
    frame = pd.DataFrame(COLUMNS)
    assert frame["count"].dtype == np.float64  # so that whole numbers have to be recognised
    return frame


def as_nullable():
    return as_pandas().convert_dtypes()


def as_rows():
    return [list(row) for row in zip(*COLUMNS.values(), strict=True)]


def as_objects():
    return np.array(as_rows(), dtype=object)


def as_polars():
    return pl.DataFrame(COLUMNS)


def table(rng, n=400, p=6):
    X = rng.standard_normal((n, p))
    X[rng.uniform(size=X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize("make", [as_pandas, as_nullable, as_rows, as_objects, as_polars])
def test_every_kind_of_table_says_the_same(make):
    X = make()
    summary = missing_summary(X)
    assert (summary.n_rows, summary.n_columns) == (6, 7)
    assert [column.kind for column in summary.columns] == KINDS
    assert [column.n_missing for column in summary.columns] == N_MISSING
    assert [column.n_distinct for column in summary.columns] == N_DISTINCT
    assert summary.n_missing == sum(N_MISSING)
    assert summary.fraction_missing == pytest.approx(sum(N_MISSING) / 42)
    names = list(COLUMNS) if hasattr(X, "columns") else list(range(7))
    assert [column.name for column in summary.columns] == names
    assert (summary.empty, summary.constant) == ((names[5],), (names[6],))
    assert summary.n_complete_rows == 0
    assert summary.patterns[0].columns == (names[5],)
    assert summary.patterns[0].n_rows == 2
    assert summary.n_patterns == 5


def test_categories_and_rarer_types():
    frame = pd.DataFrame(
        {
            "plain": pd.Categorical(["b", None, "a"], categories=["a", "b", "unused"]),
            "ordered": pd.Categorical(["b", None, "a"], ordered=True),
            "zoned": pd.to_datetime(["2024-01-01", None, "2024-01-02"], utc=True),
            "month": pd.PeriodIndex(["2024-01", None, "2024-02"], freq="M"),
            "span": pd.to_timedelta([1, None, 2], unit="h"),
            "exact": [decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal(2)],
            "mixed": [1, None, "a"],
            "lists": [[1, 2], None, [1, 2]],
            "huge": pd.Series([10**400, None, 1], dtype=object),
        }
    )
    kinds = ["category", "ordered category", "date", "date", "duration", "number", "other"]
    summary = missing_summary(frame)
    assert [column.kind for column in summary.columns] == [*kinds, "other", "integer"]
    assert [column.n_missing for column in summary.columns] == [1] * 9
    assert [column.n_distinct for column in summary.columns] == [2] * 7 + [1, 2]
    polars = pl.DataFrame(
        {
            "plain": pl.Series(["b", None, "a"], dtype=pl.Categorical),
            "ordered": pl.Series(["b", None, "a"], dtype=pl.Enum(["b", "a"])),
            "day": [DAY.date(), None, DAY.date()],
            "span": [datetime.timedelta(1), None, datetime.timedelta(2)],
            "exact": [decimal.Decimal("1.5"), None, decimal.Decimal(2)],
            "lists": [[1, 2], None, [1, 2]],
            "nan": [float("nan"), None, 0.5],
        }
    )
    kinds = ["category", "ordered category", "date", "duration", "number", "other", "number"]
    summary = missing_summary(polars)
    assert [column.kind for column in summary.columns] == kinds
    assert [column.n_missing for column in summary.columns] == [1] * 6 + [2]
    assert [column.n_distinct for column in summary.columns] == [2, 2, 1, 2, 2, 1, 1]


def test_arrays_of_other_types():
    for values, kind in (
        (np.array([["a"], ["b"]]), "text"),
        (np.array([["2024-01-01"], ["NaT"]], dtype="datetime64[D]"), "date"),
        (np.array([[5], ["NaT"]], dtype="timedelta64[h]"), "duration"),
        (np.array([[np.datetime64("2024-01-01")], [np.datetime64("NaT")]], dtype=object), "date"),
        (np.array([[2**62], [2**62 + 1]]), "integer"),
        (np.array([[1 + 2j], [3j]]), "other"),
        (np.array([[np.inf], [1.0]]), "number"),
    ):
        (column,) = missing_summary(values).columns
        assert column.kind == kind
        assert column.n_missing == (2 - column.n_distinct)
    masked = np.ma.masked_array([[1.5, 2.5], [3.5, 4.5]], mask=[[True, False], [False, False]])
    assert [column.n_missing for column in missing_summary(masked).columns] == [1, 0]


def test_order_of_rows_and_columns_does_not_matter():
    rng = np.random.RandomState(0)
    X = table(rng)
    X[:, 1] = np.where(X[:, 0] > 0.5, np.nan, X[:, 1])
    rows, columns = rng.permutation(len(X)), np.array([3, 1, 5, 0, 4, 2])
    first, second = missing_summary(X), missing_summary(X[np.ix_(rows, columns)])
    assert first.n_complete_rows == second.n_complete_rows == (~np.isnan(X).any(axis=1)).sum()
    assert first.n_patterns == second.n_patterns == len(np.unique(np.isnan(X), axis=0))
    (there,) = [found for found in second.dependences if columns[found.column] == 1]
    (here,) = [found for found in first.dependences if found.column == 1]
    assert here.other == columns[there.other] == 0
    assert here.value == pytest.approx(there.value)


def test_patterns_count_all_rows():
    X = table(np.random.RandomState(1), p=3)
    summary = missing_summary(X)
    assert sum(pattern.n_rows for pattern in summary.patterns) == 400
    assert [p.n_rows for p in summary.patterns] == sorted(
        (p.n_rows for p in summary.patterns), reverse=True
    )
    for pattern in summary.patterns:
        wanted = np.isin(np.arange(3), pattern.columns)
        assert pattern.n_rows == (np.isnan(X) == wanted).all(axis=1).sum()
    complete = next(pattern for pattern in summary.patterns if not pattern.columns)
    assert complete.n_rows == summary.n_complete_rows


def test_columns_that_are_missing_together():
    rng = np.random.RandomState(2)
    X = table(rng)
    X[:, 4] = np.where(np.isnan(X[:, 1]), np.nan, rng.standard_normal(400))
    lost = np.isnan(X[:, 2]) & (rng.uniform(size=400) < 0.8)
    X[:, 5] = np.where(lost, np.nan, rng.standard_normal(400))
    pairs = missing_summary(X).together
    assert [(pair.first, pair.second) for pair in pairs] == [(1, 4), (2, 5)]
    assert pairs[0].correlation == pytest.approx(1.0)
    expected = np.corrcoef(np.isnan(X[:, 2]), np.isnan(X[:, 5]))[0, 1]
    assert pairs[1].correlation == pytest.approx(expected)
    assert pairs[1].n_rows == lost.sum()


def test_one_shared_row_may_be_chance():
    X = np.zeros((50, 2))
    X[7] = np.nan
    assert missing_summary(X).together == ()


def test_a_number_on_which_it_depends():
    rng = np.random.RandomState(3)
    X = rng.standard_normal((500, 5))
    lost = rng.uniform(size=500) < 1 / (1 + np.exp(-2 * X[:, 3]))
    X[lost, 1] = np.nan
    (found,) = missing_summary(X).dependences
    assert (found.column, found.other) == (1, 3)
    assert found.measure == "standardised difference"
    other = X[:, 3]
    assert found.value == pytest.approx((other[lost].mean() - other[~lost].mean()) / other.std())
    assert found.p_value == pytest.approx(stats.pearsonr(lost, other).pvalue, rel=1e-6)
    assert found.hint.startswith("rows without '1' have higher '3' (by ")
    assert found.hint.endswith("it may not be missing completely at random")
    scaled = missing_summary(np.column_stack([X[:, :3], -1e200 * X[:, 3] + 1e201])).dependences
    assert scaled[0].value == pytest.approx(-found.value)
    assert "have lower '3'" in scaled[0].hint


def test_a_category_on_which_it_depends():
    rng = np.random.RandomState(4)
    town = rng.choice(["x", "y", "z"], 500)
    frame = pd.DataFrame({"town": town, "id": [f"row {k}" for k in range(500)]})
    lost = rng.uniform(size=500) < np.where(town == "y", 0.5, 0.1)
    frame["value"] = np.where(lost, np.nan, rng.standard_normal(500))
    (found,) = missing_summary(frame).dependences
    assert (found.column, found.other, found.measure) == ("value", "town", "Cramér's V")
    table = pd.crosstab(lost, town).to_numpy()
    chi2, p_value, *_ = stats.chi2_contingency(table, correction=False)
    assert found.p_value == pytest.approx(p_value)
    assert 0.9 * np.sqrt(chi2 / 500) < found.value < np.sqrt(chi2 / 500)
    assert "'value' is missing more often for some 'town' than for others" in found.hint


def test_nothing_is_found_where_entries_are_missing_by_chance():
    rng = np.random.RandomState(5)
    found = 0
    for _ in range(40):
        frame = pd.DataFrame(rng.standard_normal((200, 6)))
        for j in range(4):
            frame[f"c{j}"] = rng.choice(list("abcdefgh"), 200, p=np.arange(1, 9) / 36)
        summary = missing_summary(frame.mask(rng.uniform(size=frame.shape) < 0.15))
        found += len(summary.dependences) + len(summary.together)
    assert found <= 3


def test_more_rows_and_columns_than_are_compared(monkeypatch):
    rng = np.random.RandomState(6)
    X = rng.standard_normal((3000, 8))
    X[X[:, 0] > 0, 1] = np.nan
    X[:300, 2] = np.nan
    X[:200, 3] = np.nan
    full = missing_summary(X)
    assert [(d.column, d.other) for d in full.dependences] == [(1, 0)]
    assert [(pair.first, pair.second) for pair in full.together] == [(2, 3)]
    monkeypatch.setattr(missing, "MOST_ROWS", 500)
    monkeypatch.setattr(association, "MOST_COLUMNS", 2)
    monkeypatch.setattr(association, "_BLOCK", 3)
    monkeypatch.setattr(association, "_ROWS_AT_ONCE", 700)
    part = missing_summary(X)
    assert part.columns == full.columns
    assert part.patterns == full.patterns
    assert [(d.column, d.other) for d in part.dependences] == [(1, 0)]
    assert part.dependences[0].value == pytest.approx(full.dependences[0].value, abs=0.1)
    assert part.together == ()  # 2 and 3 are not both among the first two columns
    monkeypatch.setattr(association, "MOST_COLUMNS", 3)
    assert missing_summary(X).together == full.together


def test_the_report_names_what_was_found():
    rng = np.random.RandomState(7)
    frame = pd.DataFrame(rng.standard_normal((300, 4)), columns=["age", "income", "a", "b"])
    frame.loc[frame["age"] > 0.5, "income"] = np.nan
    frame.loc[:30, ["a", "b"]] = np.nan
    frame["void"] = None
    frame["fixed"] = 1
    text = str(missing_summary(frame))
    lost = int(frame.isna().sum().sum())
    assert text.startswith(f"300 rows and 6 columns: {lost} of 1800 entries")
    assert "1 column with no information, empty: void" in text
    assert "1 column with no information, constant: fixed" in text
    assert "a and b: 31 rows, correlation 1.00" in text
    assert "rows without 'income' have higher 'age'" in text
    lines = text.splitlines()
    start = lines.index("Columns with missing entries:") + 2
    shown = [line.split()[0] for line in lines[start : start + 4]]
    assert shown == ["void", "income", "a", "b"]


def test_the_report_of_a_wide_table_is_short():
    rng = np.random.RandomState(8)
    X = rng.standard_normal((150, 600))
    X[X[:, 0] > 0, 1:40] = np.nan
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 590:] = np.nan
    frame = pd.DataFrame(X, columns=[f"a long name of a column, number {j}" for j in range(600)])
    lines = str(missing_summary(frame)).splitlines()
    assert len(lines) <= 40
    assert "Columns with missing entries, the first 10 of 600:" in lines
    assert max(len(line) for line in lines) < 200


def test_a_table_without_holes_and_tables_without_entries():
    whole = missing_summary(np.arange(6.0).reshape(3, 2))
    assert str(whole) == "3 rows and 2 columns: nothing is missing."
    assert [pattern.columns for pattern in whole.patterns] == [()]
    assert whole.n_complete_rows == 3
    for shape in ((0, 3), (3, 0), (0, 0)):
        summary = missing_summary(np.empty(shape))
        assert (summary.n_rows, summary.n_columns) == shape
        assert (summary.n_missing, summary.fraction_missing, summary.patterns) == (0, 0.0, ())
        assert "nothing is missing" in str(summary)


def test_the_frame_has_one_row_per_column():
    rng = np.random.RandomState(9)
    frame = pd.DataFrame(rng.standard_normal((200, 3)), columns=["a", "b", "c"])
    frame.loc[frame["a"] > 0, "b"] = np.nan
    summary = missing_summary(frame)
    found = summary.to_frame()
    assert found.index.tolist() == ["a", "b", "c"]
    assert found["n_missing"].tolist() == frame.isna().sum().tolist()
    assert found.loc["b", "differs_in"] == "a"
    assert found.loc["b", "difference"] == summary.dependences[0].value
    assert found["differs_in"].isna().tolist() == [True, False, True]
    assert repr(summary).startswith("MissingSummary(n_rows=200, n_columns=3, n_missing=")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"a list, has shape \(2,\): give rows of one length"),
        ([[1.0], [1.0, 2.0]], "rows of one length"),
        (pd.Series([1.0, np.nan]), r"a Series, has shape \(2,\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (pl.LazyFrame({"a": [1]}), r"X is lazy: pass X.collect\(\)"),
    ],
)
def test_what_is_no_table(X, message):
    with pytest.raises(ValueError, match=message):
        missing_summary(X)
