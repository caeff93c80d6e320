"""Columns of odd types and values: filled with what they hold, or refused by name."""

import datetime
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

from polyspan import SubspaceImputer

N = 40
RNG = np.random.RandomState(0)
BASE = pd.DataFrame({"x": RNG.randn(N), "y": RNG.randn(N)})
BASE["y"] += BASE["x"]
HOLES = [3, 7]
DAYS = pd.date_range("2020-03-01", periods=N)
BERLIN = ZoneInfo("Europe/Berlin")

pytestmark = pytest.mark.filterwarnings("ignore:(columns that are not|no other column):UserWarning")


def with_column(values, dtype=None, missing=None):
    values = list(values)
    for hole in HOLES:
        values[hole] = missing
    return BASE.assign(c=pd.Series(values, dtype=dtype))


def imputer(**options):
    return SubspaceImputer(method="subspaces", **options)


def filled(table, **options):
    return imputer(**options).fit_transform(table)["c"].iloc[HOLES].tolist()


@pytest.mark.parametrize(
    "values",
    [
        [Decimal(k % 7) / 4 for k in range(N)],
        [Fraction(k % 7, 3) for k in range(N)],
        [k % 7 for k in range(N)],
        [day.date() for day in DAYS],
        [day.to_pydatetime() for day in DAYS],
        list(DAYS),
        [datetime.timedelta(hours=k % 7) for k in range(N)],
        [b"ab"[k % 2 : k % 2 + 1] for k in range(N)],
    ],
    ids=lambda values: type(values[0]).__name__,
)
def test_objects_are_filled_with_objects_of_their_type(values):
    found = filled(with_column(values, object))
    assert {type(one) for one in found} == {type(values[0])}
    assert min(values) <= min(found) <= max(found) <= max(values)


def test_objects_with_time_zones():
    values = [day.to_pydatetime().replace(tzinfo=BERLIN) for day in DAYS]
    found = filled(with_column(values, object))
    assert all(one.tzinfo is BERLIN and one.hour == 0 for one in found)


def test_decimals_have_the_digits_of_their_column():
    found = filled(with_column([Decimal(k % 7).quantize(Decimal("0.01")) for k in range(N)]))
    found += filled(with_column([Decimal(f"{k % 7}.25") for k in range(N)], object))
    assert all(one == round(one, 2) for one in found)


def test_microseconds_of_objects_count():
    values = [day.to_pydatetime() + datetime.timedelta(microseconds=250) for day in DAYS]
    assert any(one.microsecond for one in filled(with_column(values, object)))


def test_midnights_of_a_time_zone_stay_midnights():
    table = with_column(DAYS.tz_localize(BERLIN))  # with a change of the clocks within
    found = filled(table) + [
        one["c"].iloc[3] for one in imputer().fit(table).sample_imputations(table, 9, 0)
    ]
    assert all(one.hour == 0 and str(one.tz) == "Europe/Berlin" for one in found)
    polars = imputer().fit_transform(pl.from_pandas(table))["c"]
    assert all(polars[hole].hour == 0 for hole in HOLES)


def test_hours_that_the_clock_skips():
    times = pd.to_datetime(["2020-03-29 02:30"] * N) + pd.to_timedelta(np.arange(N) % 2 * 365, "D")
    model = imputer().fit(BASE.assign(c=times))
    new = BASE.iloc[:4].assign(c=pd.Series([pd.NaT] * 4, dtype="datetime64[us, Europe/Berlin]"))
    assert model.transform(new)["c"].notna().all()
    assert model.transform(pl.from_pandas(new))["c"].null_count() == 0


def test_another_time_zone_than_in_fit():
    table = with_column(DAYS.tz_localize(BERLIN))
    model = imputer().fit(table)
    there = table.assign(c=table["c"].dt.tz_convert("Asia/Tokyo"))
    here, found = model.transform(table)["c"], model.transform(there)["c"]
    assert (here == found).all()
    assert found.dtype == there["c"].dtype
    again = model.transform(pl.from_pandas(there))["c"]
    assert again.to_list() == found.dt.to_pydatetime().tolist()


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([DAYS[0].tz_localize(BERLIN)] * N),
        pd.Series([pd.Period("2020-01", "M")] * N),
        pd.Series([pd.Timedelta("1h")] * N, dtype="timedelta64[ns]"),
        pd.Series([DAYS[0].date()] * N, dtype=object),
        pd.Series([2**60 + 1] * N, dtype="Int64"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_constant_columns_with_holes(column):
    table = BASE.assign(c=column)
    table.loc[HOLES, "c"] = None
    out = imputer().fit_transform(table)["c"]
    assert out.dtype == column.dtype
    assert (out == column).all()


def test_whole_numbers_beyond_the_precision_of_floats():
    least = 2**63 - 9000
    values = [least + 1000 * (k % 10) - (k % 10 == 9) for k in range(N)]
    table = with_column(values, "Int64")
    draws = [one["c"].iloc[3] for one in imputer().fit(table).sample_imputations(table, 20, 0)]
    assert least <= min(draws) <= max(draws) <= max(values)
    close = with_column([2**63 - 1 - k % 3 for k in range(N)], "Int64")
    with pytest.warns(UserWarning, match=r"'c' \(whole numbers beyond 2\*\*53\)"):
        model = imputer().fit(close)
    assert model.transform(close)["c"].isna().sum() == 2


def test_numbers_in_a_column_of_whole_numbers_are_rounded():
    model = imputer().fit(BASE.assign(c=BASE["x"] + 10))
    floats = BASE.assign(c=np.nan)
    floats.loc[0, "c"] = 10
    exact = model.transform(floats)["c"].iloc[1:]
    whole = model.transform(floats.astype({"c": "Int64"}))["c"].iloc[1:]
    assert whole.tolist() == exact.round().tolist()
    assert model.transform(pl.from_pandas(floats.astype({"c": "Int64"})))["c"][1:].to_list() == (
        whole.tolist()
    )


LISTS = [[k % 3] for k in range(N)]


@pytest.mark.parametrize(
    ("values", "wanted", "may_be"),
    [
        (RNG.randn(N), "date", "number, integer, category, ordered, skip"),
        (np.arange(N) % 9, "duration", "number, integer, category, ordered, skip"),
        (np.arange(N) % 3, "boolean", "with 3 values: it may be number, integer, category"),
        (np.arange(N) % 2 == 0, "number", "boolean, category, ordered, skip"),
        (np.arange(N) % 2 == 0, "integer", "boolean, category, ordered, skip"),
        (DAYS, "number", "date, skip"),
        (DAYS, "category", "date, skip"),
        (pd.to_timedelta(np.arange(N), "h"), "integer", "duration, skip"),
        (LISTS, "category", "values of type list: it may be skip"),
        (np.arange(N) % 3 + 1j, "category", "values of type complex: it may be skip"),
    ],
)
def test_types_that_a_column_cannot_have(values, wanted, may_be):
    with pytest.raises(ValueError, match=f"says '{wanted}' of column 'c'.*{may_be}"):
        imputer(feature_types={"c": wanted}).fit(BASE.assign(c=values))


def test_dates_of_an_array():
    with pytest.raises(ValueError, match="says 'date' of column 0"):
        imputer(feature_types={0: "date"}).fit(BASE.to_numpy())


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (LISTS, "values of type list"),
        (np.arange(N) % 3 + 1j, "values of type complex"),
        ([1, "a"] * (N // 2), "values of several types"),
    ],
)
def test_reasons_of_columns_that_are_passed_through(values, reason):
    with pytest.warns(UserWarning, match=rf"'c' \({reason}\)"):
        imputer().fit(BASE.assign(c=values))


def test_years_with_holes_are_no_identifiers():
    years = pd.DataFrame({"year": pd.array(range(1990, 1990 + N), dtype="Int64")}).join(BASE)
    years.loc[HOLES, "year"] = pd.NA
    assert imputer().fit_transform(years)["year"].notna().all()
    for name in ("id", "Order_ID", "PassengerId", "row number", "Key"):
        model = imputer().fit(years.rename(columns={"year": name}))
        assert model.feature_types_[name] == "skip", name
    for name in ("valid", "grid", "casino", "monkey"):
        model = imputer().fit(years.rename(columns={"year": name}))
        assert model.feature_types_[name] == "integer", name


def test_columns_of_types_that_cannot_be_read():
    sparse = BASE.assign(c=pd.arrays.SparseArray(BASE["x"]))
    with pytest.raises(ValueError, match="column 'c' is of the sparse type"):
        imputer().fit(sparse)
    longest = getattr(pl, "Int128", pl.Int64)  # older releases have no more than 64 bits
    long = pl.from_pandas(BASE).with_columns(c=pl.Series([k % 7 for k in range(N)], dtype=longest))
    out = imputer().fit(long).transform(long[:1].with_columns(c=pl.lit(None, dtype=longest)))
    assert out["c"].dtype == longest
    assert out["c"].null_count() == 0


def test_arrays_in_cells_beside_a_marker():
    cells = BASE.assign(c=pd.Series([np.array([1, 2])] * N))
    with pytest.warns(UserWarning, match="values of type ndarray"):
        imputer(missing_values=-1).fit(cells)
