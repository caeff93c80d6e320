"""Tables in and out: frames of pandas and Polars keep their types, arrays stay arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from polyspan.base.optional import import_optional
from polyspan.tables.column_types import is_object, pandas_zone, shared_type, zone_of_objects
from polyspan.tables.features import DISCRETE, Feature

#: Fractions are filled with those of denominators up to this.
LARGEST_DENOMINATOR = 1000


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
    filled = zip(columns_of_frame(X), features, rows, values, strict=True)
    columns = [_filled(*one) if len(one[2]) else None for one in filled]
    if is_pandas(X):
        out = X.copy()
        for j, column in enumerate(columns):
            if column is not None:
                out.isetitem(j, column)
        return out
    kept = zip(X.get_columns(), columns, strict=True)
    return type(X)([old if new is None else new for old, new in kept])


def columns_of_frame(X: Any) -> list[Any]:
    """Return the columns of a pandas or Polars frame."""
    return [X.iloc[:, j] for j in range(X.shape[1])] if is_pandas(X) else list(X.get_columns())


def holds_numbers(column: Any) -> bool:
    """Tell whether the type of a column is one of numbers: without any entry it gets zeros."""
    kind = column.dtype
    return bool(kind.kind in "iuf" if hasattr(column, "iloc") else kind.is_numeric())


def _filled(column: Any, feature: Feature, rows: np.ndarray, values: np.ndarray) -> Any:
    """Return a filled column; raise an error where its type cannot hold what is filled in."""
    pandas = hasattr(column, "iloc")
    if feature.kind == "empty":
        if not holds_numbers(column):
            return column
        feature = Feature(feature.name, "constant", (0,), entries="integer")
    try:
        fill = filled_pandas if pandas else filled_polars
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
    for j, (column, feature) in enumerate(zip(columns_of_frame(X), features, strict=True)):
        wanted = feature.type.zone
        if is_pandas(X):
            zone = pandas_zone(column.dtype)
            if wanted and zone is not None and str(zone) != wanted:
                X = X.copy(deep=False)
                X.isetitem(j, column.dt.tz_convert(wanted))
        elif wanted and getattr(column.dtype, "time_zone", None) not in (None, wanted):
            X = X.with_columns(column.dt.convert_time_zone(wanted))
    return X


def without_columns(X: Any, kept: np.ndarray) -> Any:
    """Return some columns of a frame."""
    if is_pandas(X):
        return X.iloc[:, np.flatnonzero(kept)]
    return X.select([name for name, keep in zip(X.columns, kept, strict=True) if keep])


def with_indicators(X: Any, indicators: np.ndarray, names: Sequence[str]) -> Any:
    """Return a frame with columns that say where entries were missing."""
    if is_pandas(X):
        pandas = sys.modules["pandas"]
        columns: Any = list(names)
        if X.columns.nlevels > 1:
            rest = ("",) * (X.columns.nlevels - 1)
            columns = pandas.MultiIndex.from_tuples([(name, *rest) for name in names])
        added = pandas.DataFrame(indicators, index=X.index, columns=columns)
        return pandas.concat([X, added], axis=1)
    series = sys.modules["polars"].Series
    return X.with_columns([series(*one) for one in zip(names, indicators.T, strict=True)])


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
