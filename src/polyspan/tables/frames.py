"""Tables in and out: frames of pandas and Polars keep their types, arrays stay arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from polyspan.base.optional import import_optional
from polyspan.tables.columns import is_object, shared_type, zone_of_objects, zone_of_type
from polyspan.tables.features import DISCRETE, TIMES, Feature

#: Fractions are filled with those of denominators up to this.
LARGEST_DENOMINATOR = 1000
#: Letters of the types of pandas, and names of those of Polars, that can hold some entries.
PANDAS_HOLDS = {"bool": "b", "number": "f", "integer": "fiu", "date": "M", "duration": "m"}
POLARS_HOLDS = {
    "bool": ("Boolean",),
    "str": ("String", "Categorical"),
    "date": ("Date", "Datetime"),
    "duration": ("Duration",),
}
#: Methods of pandas that make times those of Python.
AS_PYTHON = {"date": "date", "datetime": "to_pydatetime", "timedelta": "to_pytimedelta"}


def is_frame(X: Any) -> bool:
    """Tell frames of pandas and Polars from arrays and lists."""
    return is_pandas(X) or hasattr(X, "get_columns")


def is_pandas(X: Any) -> bool:
    """Tell a frame of pandas."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def with_filled(
    X: Any, features: Sequence[Feature], rows: list[np.ndarray], values: list[np.ndarray]
) -> Any:
    """Return a copy of a frame in which entries are filled; types and other entries stay.

    Parameters
    ----------
    rows : list of arrays
        For each column, the rows of the entries.
    values : list of arrays
        Numbers; levels of discrete columns as 0, 1, …
    """
    out = X.copy() if is_pandas(X) else X.clone()
    replace = out.isetitem if is_pandas(X) else out.replace_column
    for j, (column, feature) in enumerate(zip(columns_of_frame(X), features, strict=True)):
        if len(rows[j]):
            replace(j, _filled(column, feature, rows[j], values[j]))
    return out


def columns_of_frame(X: Any) -> list[Any]:
    """Return the columns of a pandas or Polars frame."""
    return [X.iloc[:, j] for j in range(X.shape[1])] if is_pandas(X) else list(X.get_columns())


def holds_numbers(column: Any) -> bool:
    """Tell whether the type of a column is one of numbers: without any entry it gets zeros."""
    kind = column.dtype
    return bool(kind.kind in "iuf" if hasattr(column, "iloc") else kind.is_numeric())


def _filled(column: Any, feature: Feature, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return a filled column; raise an error where its type cannot hold what is filled in."""
    if feature.kind == "empty":
        if not holds_numbers(column):
            return column
        feature = Feature(feature.name, "constant", (0,), entries="integer")
    try:
        fill = filled_pandas if hasattr(column, "iloc") else filled_polars
        return fill(column, feature, rows, values)
    except Exception as error:  # packages and their releases raise many types
        before = f", which was {feature.type.name} in fit," if feature.type.name else ""
        raise ValueError(
            f"column {feature.name!r}{before} is of type {column.dtype} now, which cannot hold "
            f"{feature.objects(values)[0]!r}, by which a missing entry is filled: convert it to "
            "the type of fit, or fit again"
        ) from error


def in_zones_of_fit(X: Any, features: Sequence[Feature]) -> Any:
    """Return a frame whose dates are in the time zones of `fit`: numbers are those of clocks."""
    out = X.copy(deep=False) if is_pandas(X) else X.clone()
    replace = out.isetitem if is_pandas(X) else out.replace_column
    for j, (column, feature) in enumerate(zip(columns_of_frame(X), features, strict=True)):
        wanted, zone = feature.type.zone, zone_of_type(column.dtype)
        if wanted and zone is not None and str(zone) != wanted:
            convert = column.dt.tz_convert if is_pandas(X) else column.dt.convert_time_zone
            replace(j, convert(wanted))
    return out


def without_columns(X: Any, kept: np.ndarray) -> Any:
    """Return some columns of a frame."""
    places = np.flatnonzero(kept).tolist()
    return X.iloc[:, places] if is_pandas(X) else X[:, places]


def with_indicators(X: Any, indicators: np.ndarray, names: Sequence[str]) -> Any:
    """Return a frame with columns that say where entries were missing."""
    if not is_pandas(X):
        return X.hstack(column_frame(X, names, indicators))
    levels = X.columns.nlevels
    columns = names if levels == 1 else [(name, *[""] * (levels - 1)) for name in names]
    added = column_frame(X, columns, indicators)
    return sys.modules["pandas"].concat([X, added], axis=1)


def as_container(X: Any, container: str) -> Any:
    """Return a frame as one of the package that `set_output` asks for."""
    if container == "polars" and is_pandas(X):
        polars = import_optional("polars", "the output that set_output asks for")
        return polars.from_pandas(X)
    if container == "pandas" and not is_pandas(X):
        return X.to_pandas()
    return X


def column_frame(X: Any, columns: Sequence[Any], values: np.ndarray) -> Any:
    """Return numbers as a frame of the same package, with the same index, as X."""
    if is_pandas(X):
        return sys.modules["pandas"].DataFrame(values, index=X.index, columns=list(columns))
    return type(X)(values, schema=[str(name) for name in columns], orient="row")


def filled_pandas(column: Any, feature: Feature, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return a column of pandas with filled entries."""
    pandas = sys.modules["pandas"]
    found, dtype = feature.objects(values), column.dtype
    alone = len(rows) == len(column)
    if alone and not _pandas_can_hold(dtype, feature):
        dtype = feature.type.pandas_dtype(feature.entries) or pandas.Series(found).dtype
    if hasattr(dtype, "categories"):
        known = list(dtype.categories)
        levels = _with_levels(known, dtype.ordered, feature, found)
        if levels != known:
            dtype = pandas.CategoricalDtype(levels, ordered=dtype.ordered)
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
        dtype = feature.type.polars_dtype(feature.entries) or polars.Series(found).dtype
    elif type(dtype).__name__ == "Enum":
        dtype = polars.Enum(_with_levels(dtype.categories.to_list(), True, feature, found))
    new = _polars_cells(found, feature, dtype)
    order = np.zeros(len(column), dtype=np.int64)
    order[rows] = np.arange(len(rows))
    observed = polars.Series(~np.isin(np.arange(len(column)), rows))
    old = column if dtype == column.dtype else column.cast(dtype)
    return old.zip_with(observed, new.gather(order).alias(column.name))


def _held(feature: Feature) -> str:
    """Return what a column has to hold: a kind of `NUMBERS`, or the name of the type of levels."""
    if feature.entries not in DISCRETE and feature.entries != "text":
        return feature.entries
    numbers = all(type(level) in (int, float) for level in feature.levels)
    return "integer" if numbers else shared_type(feature.levels)


def _pandas_can_hold(dtype: Any, feature: Feature) -> bool:
    """Tell whether a column without any entry has a type for those that come."""
    letter, held = getattr(dtype, "kind", "O"), _held(feature)
    if hasattr(dtype, "categories"):
        return bool(feature.type.categories)
    if held == "str":
        return sys.modules["pandas"].api.types.is_string_dtype(dtype) and not is_object(dtype)
    if letter == "M" and (zone_of_type(dtype) is None) != (not feature.type.zone):
        return False  # the time in `fit` was that of a zone, and here it is not, or vice versa
    return letter in PANDAS_HOLDS.get(held, "")


def _polars_can_hold(dtype: Any, feature: Feature) -> bool:
    name, held = type(dtype).__name__, _held(feature)
    if name == "Enum":
        return held == "str" and set(feature.levels) <= set(dtype.categories)
    if held == "integer":
        return bool(dtype.is_numeric())
    if held == "number":
        return bool(dtype.is_float() or dtype.is_decimal())
    return name in POLARS_HOLDS.get(held, ())


def _with_levels(
    known: list[Any], ordered: bool, feature: Feature, found: Sequence[Any]
) -> list[Any]:
    """Return the categories of a type with those that are filled in.

    Ordered ones are added only where `fit` knew the order of all of them.
    """
    new = [level for level in dict.fromkeys(found) if level not in set(known)]
    wider = list(feature.type.categories)
    if new and ordered and known == [level for level in wider if level in set(known)]:
        return wider
    return known if ordered else [*known, *new]


def _pandas_cells(found: list[Any], feature: Feature, dtype: Any, observed: Any) -> Any:
    if feature.entries in TIMES:
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
        return _decimals(found, round(-np.log10(feature.step)) if feature.step else None)
    if name == "Fraction":
        return [Fraction(one).limit_denominator(LARGEST_DENOMINATOR) for one in found]
    return [round(one) if name == "int" else float(one) for one in found]


def _decimals(found: list[Any], places: int | None) -> list[Decimal]:
    """Return decimals with so many digits after the point; None: with those that a float has."""
    if places is None:
        return [Decimal(str(one)) for one in found]
    return [Decimal(f"{one:.{places}f}") for one in found]


def _pandas_times(found: list[Any], feature: Feature, dtype: Any, observed: Any) -> Any:
    letter = "m" if feature.entries == "duration" else "M"
    times = sys.modules["pandas"].Series(np.asarray(found, dtype=np.int64).astype(f"{letter}8[us]"))
    zone = feature.type.zone
    if not is_object(dtype):
        own = zone_of_type(dtype)
        if own is not None:
            there = own if zone in ("", str(own)) else zone
            times = _localised(times, there).dt.tz_convert(own)
        return times.astype(dtype).array
    name = shared_type(observed) or feature.type.holds
    zone = zone_of_objects(observed) or zone
    if zone and name != "date":
        times = _localised(times, zone)
    return [getattr(one, AS_PYTHON[name])() if name in AS_PYTHON else one for one in times]


def _localised(moments: Any, zone: Any) -> Any:
    """Return times of the clock in a zone; of two the first, and the next where there is none."""
    first = np.ones(len(moments), dtype=bool)
    return moments.dt.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")


def _polars_cells(found: list[Any], feature: Feature, dtype: Any) -> Any:
    polars = sys.modules["polars"]
    if feature.entries in TIMES and dtype.is_temporal():
        base = polars.Datetime("us") if feature.entries == "date" else polars.Duration("us")
        new = polars.Series(found, dtype=polars.Int64).cast(base)
        zone = zone_of_type(dtype)
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
