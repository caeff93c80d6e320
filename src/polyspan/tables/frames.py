"""Tables in and out: frames of pandas and Polars keep their types, arrays stay arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyspan._optional import import_optional
from polyspan.tables.column_types import pandas_zone
from polyspan.tables.features import Feature
from polyspan.tables.filled_columns import filled_pandas, filled_polars


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
