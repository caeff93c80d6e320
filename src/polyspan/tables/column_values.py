"""The columns of a frame: what kind of values they hold, and which entries are missing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from polyspan.tables.column_types import (
    NO_TYPE,
    ColumnType,
    is_object,
    pandas_zone,
    shared_type,
    zone_of_objects,
)


@dataclass(frozen=True)
class Entries:
    """One column of a table, as it was given."""

    name: Any
    missing: np.ndarray
    """Boolean, one per row: NaN, None, NA, NaT."""
    observed: np.ndarray
    """All other entries, in their order; codes where the type is one of categories."""
    kind: str | None = None
    """What the type of the column says; None where the values have to say it."""
    levels: list[Any] | None = None
    """The categories that codes stand for."""
    type: ColumnType = NO_TYPE

    def values(self) -> list[Any]:
        """Return the observed entries themselves, not their codes."""
        observed = self.observed.tolist()
        return observed if self.levels is None else [self.levels[code] for code in observed]


@dataclass(frozen=True)
class Values:
    """The observed values of one column as numbers."""

    kind: str
    """"number", "integer", "boolean", "date", "duration", "category", "ordered category", "text",
    "other" or "empty"."""
    numbers: np.ndarray
    """Measured values, or codes 0, 1, … of distinct ones."""
    n_distinct: int


def columns_of(X: Any) -> Iterator[Entries]:
    """Return the columns of a frame of pandas or Polars."""
    if hasattr(X, "iloc"):
        return (_of_pandas(name, column) for name, column in X.items())
    return (_of_polars(column) for column in X.get_columns())


def values_of(entries: Entries) -> Values:
    """Return the observed values of a column as numbers, and what they are."""
    observed, kind = entries.observed, entries.kind
    if kind is not None:
        codes = _codes(observed.tolist())
        return Values(kind, codes, _count(codes))
    if not len(observed):
        return Values("empty", np.empty(0), 0)
    if observed.dtype.kind not in "biufmM":
        objects = observed.tolist()
        kind, numbers = _of_objects(objects)
        return Values(kind, numbers, _count(_codes(objects)))
    kinds = {"b": "boolean", "m": "duration", "M": "date", "f": "number"}
    kind = kinds.get(observed.dtype.kind, "integer")
    if kind in ("date", "duration"):  # in microseconds
        observed = observed.astype(f"{observed.dtype.kind}8[us]").astype(np.int64)
    numbers = observed.astype(np.float64)
    return Values(_whole(numbers) if kind == "number" else kind, numbers, len(np.unique(observed)))


def _whole(numbers: np.ndarray) -> str:
    """Return "integer" for whole numbers: pandas turns them into floats where one is missing."""
    whole = np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()
    return "integer" if whole else "number"


def _of_pandas(name: Any, column: Any) -> Entries:
    dtype = column.dtype
    if hasattr(column, "sparse"):
        raise ValueError(
            f"column {name!r} is of the sparse type {dtype}: convert it by .sparse.to_dense()"
        )
    missing = np.asarray(column.isna(), dtype=bool)
    observed = column[~missing]
    if hasattr(dtype, "categories") and hasattr(column, "cat"):
        kind = "ordered category" if dtype.ordered else "category"
        levels = list(dtype.categories)
        kept = ColumnType(kind, _plain_levels(levels))
        return Entries(name, missing, observed.cat.codes.to_numpy(), kind, levels, kept)
    if is_object(dtype):
        return _of_objects_column(name, missing, observed.to_numpy())
    if str(dtype).startswith("period["):
        observed = observed.dt.start_time
    zone = pandas_zone(observed.dtype)
    kept = ColumnType(str(dtype), zone="" if zone is None else str(zone))
    if getattr(observed.dtype, "kind", "O") == "M":
        if zone is not None:  # what the clock says there, so that midnights are whole days
            observed = observed.dt.tz_localize(None)
        return Entries(name, missing, observed.to_numpy(dtype="datetime64[us]"), type=kept)
    return Entries(name, missing, np.asarray(observed.to_numpy()), type=kept)


def _of_objects_column(name: Any, missing: np.ndarray, observed: np.ndarray) -> Entries:
    zone = zone_of_objects(observed)
    kept = ColumnType("object", (), "" if zone is None else str(zone), shared_type(observed))
    return Entries(name, missing, observed, type=kept)


def _of_polars(column: Any) -> Entries:
    dtype = column.dtype
    lost = column.is_null()
    if dtype.is_float():
        lost = lost | column.is_nan().fill_null(value=True)
    missing, observed = lost.to_numpy(), column.filter(~lost)
    # The categories of an Enum are compared in their order.
    kinds = {"Categorical": "category", "Enum": "ordered category"}
    kind = kinds.get(type(dtype).__name__)
    name = column.name
    if kind == "category":
        # Codes of a Categorical are those of all columns of the process.
        values = _objects(observed.cast(str).to_list())
        return Entries(name, missing, values, kind, type=ColumnType(str(dtype)))
    if kind is not None:
        codes, levels = observed.to_physical().to_numpy(), dtype.categories.to_list()
        return Entries(name, missing, codes, kind, levels, ColumnType(kind, tuple(levels)))
    zone = getattr(dtype, "time_zone", None)
    kept = ColumnType(str(dtype), zone=zone or "")
    if zone is not None:  # what the clock says there, so that midnights are whole days
        observed = observed.dt.replace_time_zone(None)
    plain = dtype.is_numeric() and not dtype.is_decimal() and "128" not in str(dtype)
    if plain or dtype.is_temporal():
        return Entries(name, missing, observed.to_numpy(), type=kept)
    values = _objects(observed.to_list())
    return Entries(name, missing, values, type=replace(kept, holds=shared_type(values)))


def _plain_levels(levels: list[Any]) -> tuple[Any, ...]:
    """Return categories with scalars of NumPy as Python's own, which a model file may hold."""
    return tuple(one.item() if isinstance(one, np.generic) else one for one in levels)


def _objects(values: list[Any]) -> np.ndarray:
    """Return an array of objects, also of such that NumPy would take for rows."""
    return np.fromiter(values, dtype=object, count=len(values))


def kind_of(value: Any) -> str:
    """Return the kind of a single value, one of those of `Values`."""
    return _of_objects([value])[0]


def _of_objects(observed: list[Any]) -> tuple[str, np.ndarray]:
    """Return the kind of objects by their types, and numbers for them."""
    types = {type(entry) for entry in observed}
    if _all_of(types, (bool, np.bool_)):
        return "boolean", np.array(observed, dtype=np.float64)
    if _all_of(types, (Real, Decimal, np.bool_)):
        numbers = np.array([_float(entry) for entry in observed])
        return "integer" if _all_of(types, (Integral, np.bool_)) else _whole(numbers), numbers
    if _all_of(types, (datetime.date, np.datetime64)):
        return "date", np.array([_microseconds(entry) for entry in observed])
    if _all_of(types, (datetime.timedelta, np.timedelta64)):
        return "duration", np.array(observed, dtype="timedelta64[us]").astype(np.float64)
    text = _all_of(types, (str, bytes))
    return "text" if text else "other", _codes(observed)


def _all_of(types: set[type], kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in types)


def _float(entry: Any) -> float:
    try:
        return float(entry)
    except OverflowError:  # an integer with hundreds of digits
        return math.inf


def _microseconds(entry: Any) -> float:
    """Return a date, with a time or without, in microseconds since 1970, as the clock there."""
    if isinstance(entry, np.datetime64):
        return float(entry.astype("datetime64[us]").astype(np.int64))
    time = 3600 * getattr(entry, "hour", 0) + 60 * getattr(entry, "minute", 0)
    days = entry.toordinal() - datetime.date(1970, 1, 1).toordinal()
    seconds = 86400 * days + time + getattr(entry, "second", 0)
    return float(1_000_000 * seconds + getattr(entry, "microsecond", 0))


def _codes(values: Iterable[Any]) -> np.ndarray:
    """Return 0, 1, … for distinct values, in the order in which they come."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(_key(v), len(known)) for v in values], dtype=np.int64)


def _key(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:  # a list or an array in a cell
        return repr(value)
    return value


def _count(codes: np.ndarray) -> int:
    return int(codes.max()) + 1 if len(codes) else 0
