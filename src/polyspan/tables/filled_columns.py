"""Write filled entries into one column of pandas or Polars, in the type that the column has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from polyspan.tables.column_types import is_object, pandas_zone, shared_type, zone_of_objects
from polyspan.tables.features import DISCRETE, Feature

#: Fractions are filled with those of denominators up to this.
LARGEST_DENOMINATOR = 1000


def filled_pandas(column: Any, feature: Feature, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return a column of pandas with filled entries."""
    pandas = sys.modules["pandas"]
    found, dtype = feature.objects(values), column.dtype
    alone = len(rows) == len(column)
    if alone and not _pandas_can_hold(dtype, feature):
        dtype = feature.type.pandas_dtype(feature.entries)
        dtype = pandas.Series(found).dtype if dtype is None else dtype
    if hasattr(dtype, "categories"):
        dtype = _with_levels(dtype, feature, found)
    observed = column[column.notna()] if is_object(dtype) and not alone else []
    cells = _pandas_cells(found, feature, dtype, observed)
    if alone:
        return pandas.Series(cells, index=column.index, name=column.name).astype(dtype)
    out = column.copy() if dtype == column.dtype else column.astype(dtype)
    out.iloc[rows] = cells
    return out


def filled_polars(column: Any, feature: Feature, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return a column of Polars with filled entries."""
    polars = sys.modules["polars"]
    found, dtype = feature.objects(values), column.dtype
    if len(rows) == len(column) and not _polars_can_hold(dtype, feature):
        dtype = feature.type.polars_dtype(feature.entries)
        dtype = polars.Series(found).dtype if dtype is None else dtype
    elif type(dtype).__name__ == "Enum" and not set(found) <= set(dtype.categories):
        wider = feature.type.categories
        if _in_order(dtype.categories.to_list(), wider):
            dtype = polars.Enum(list(wider))
    new = _polars_cells(found, feature, dtype)
    missing = np.zeros(len(column), dtype=bool)
    missing[rows] = True
    order = np.zeros(len(column), dtype=np.int64)
    order[rows] = np.arange(len(rows))
    old = column if dtype == column.dtype else column.cast(dtype)
    return old.zip_with(polars.Series(~missing), new.gather(order).alias(column.name))


def _pandas_can_hold(dtype: Any, feature: Feature) -> bool:
    """Tell whether a column without any entry has a type for those that come."""
    letter = getattr(dtype, "kind", "O")
    if hasattr(dtype, "categories"):
        return bool(feature.type.categories)
    if feature.entries in DISCRETE or feature.entries == "text":
        types = {type(level) for level in feature.levels}
        text = sys.modules["pandas"].api.types.is_string_dtype(dtype) and not is_object(dtype)
        numbers = types <= {int, float} and letter in "fiu"
        return bool((types == {bool} and letter == "b") or (types == {str} and text) or numbers)
    if letter == "M" and (pandas_zone(dtype) is None) != (not feature.type.zone):
        return False  # the time in `fit` was that of a zone, and here it is not, or vice versa
    return letter in {"number": "f", "integer": "fiu", "date": "M", "duration": "m"}.get(
        feature.entries, ""
    )


def _polars_can_hold(dtype: Any, feature: Feature) -> bool:
    name = type(dtype).__name__
    if feature.entries in DISCRETE or feature.entries == "text":
        types = {type(level) for level in feature.levels}
        text = name in ("String", "Categorical")
        if name == "Enum":
            text = set(feature.levels) <= set(dtype.categories)
        numbers = types <= {int, float} and dtype.is_numeric()
        return bool((types == {bool} and name == "Boolean") or (types == {str} and text) or numbers)
    if feature.entries == "integer":
        return bool(dtype.is_numeric())
    return bool(
        {"number": dtype.is_float() or dtype.is_decimal(), "date": name in ("Date", "Datetime"),
         "duration": name == "Duration"}.get(feature.entries, False)
    )  # fmt: skip


def _with_levels(dtype: Any, feature: Feature, found: Sequence[Any]) -> Any:
    """Return a type of categories with those that are filled in.

    Ordered ones are added only where `fit` knew the order of all of them.
    """
    known = list(dtype.categories)
    new = [level for level in dict.fromkeys(found) if level not in set(known)]
    pandas = sys.modules["pandas"]
    if new and dtype.ordered and _in_order(known, feature.type.categories):
        return pandas.CategoricalDtype(list(feature.type.categories), ordered=True)
    if new and not dtype.ordered:
        return pandas.CategoricalDtype([*known, *new])
    return dtype


def _in_order(some: Sequence[Any], levels: Sequence[Any]) -> bool:
    """Tell whether all of some levels are among these, in the same order."""
    return list(some) == [level for level in levels if level in set(some)]


def _pandas_cells(found: list[Any], feature: Feature, dtype: Any, observed: Any) -> Any:
    if feature.entries in ("date", "duration"):
        return _pandas_times(found, feature, dtype, observed)
    letter = getattr(dtype, "kind", "O")
    if is_object(dtype):
        return _as_held(found, shared_type(observed) or feature.type.holds, feature)
    if letter in "iu":
        return [round(one) for one in found]
    return [float(one) for one in found] if letter == "f" else found


def _as_held(found: list[Any], name: str, feature: Feature) -> list[Any]:
    """Return numbers as objects of the type that the column holds; levels as they are."""
    if feature.entries not in ("number", "integer") or feature.kind == "constant":
        return found
    if name == "Decimal":
        return _decimals(found, feature.decimals)
    if name == "Fraction":
        return [Fraction(one).limit_denominator(LARGEST_DENOMINATOR) for one in found]
    return [round(one) if name == "int" else float(one) for one in found]


def _decimals(found: list[Any], places: int | None) -> list[Decimal]:
    """Return decimals with so many digits after the point; None: with those that a float has."""
    if places is None:
        return [Decimal(str(one)) for one in found]
    return [Decimal(f"{one:.{places}f}") for one in found]


def _pandas_times(found: list[Any], feature: Feature, dtype: Any, observed: Any) -> Any:
    pandas = sys.modules["pandas"]
    name = shared_type(observed) or feature.type.holds if is_object(dtype) else ""
    whole = np.asarray(found, dtype=np.int64)
    if feature.entries == "duration":
        times = pandas.Series(whole.astype("m8[us]"))
        if not is_object(dtype):
            return times.astype(dtype).array
        return [one.to_pytimedelta() if name == "timedelta" else one for one in times]
    moments = pandas.Series(whole.astype("M8[us]"))
    if not is_object(dtype):
        own = pandas_zone(dtype)
        if own is not None:
            zone = feature.type.zone
            there = own if zone in ("", str(own)) else zone
            moments = _localised(moments, there).dt.tz_convert(own)
        return moments.astype(dtype).array
    zone = zone_of_objects(observed) or feature.type.zone
    if zone and name != "date":
        moments = _localised(moments, zone)
    if name == "date":
        return [one.date() for one in moments]
    return [one.to_pydatetime() if name == "datetime" else one for one in moments]


def _localised(moments: Any, zone: Any) -> Any:
    """Return times of the clock in a zone; of two the first, and the next where there is none."""
    first = np.ones(len(moments), dtype=bool)
    return moments.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")


def _polars_cells(found: list[Any], feature: Feature, dtype: Any) -> Any:
    polars = sys.modules["polars"]
    if feature.entries in ("date", "duration") and dtype.is_temporal():
        base = polars.Datetime("us") if feature.entries == "date" else polars.Duration("us")
        new = polars.Series(found, dtype=polars.Int64).cast(base)
        zone = getattr(dtype, "time_zone", None)
        if zone is not None:
            new = _polars_localised(new, feature.type.zone or zone).dt.convert_time_zone(zone)
        return new.cast(dtype)
    if dtype.is_integer():
        found = [round(one) for one in found]
    elif dtype.is_float():
        found = [float(one) for one in found]
    elif dtype.is_decimal() and feature.kind != "constant":
        found = _decimals(found, dtype.scale)
    return polars.Series(found, dtype=dtype)


def _polars_localised(moments: Any, zone: str) -> Any:
    """Return times of the clock in a zone, as `_localised` does; skipped ones an hour later."""
    options = {"ambiguous": "earliest", "non_existent": "null"}
    times = moments.dt.replace_time_zone(zone, **options)
    later = moments.dt.offset_by("1h").dt.replace_time_zone(zone, **options)
    return times.zip_with(times.is_not_null(), later)
