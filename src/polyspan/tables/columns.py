"""The columns of a frame: their types, what kind of values they hold, and which are missing."""

from __future__ import annotations

import ast
import datetime
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

#: Types that stand in where the type of `fit` is one of another package.
PANDAS_TYPES = {
    "number": "float64",
    "integer": "Int64",
    "date": "datetime64[us]",
    "duration": "timedelta64[us]",
}
POLARS_TYPES = {
    "number": "Float64",
    "integer": "Int64",
    "date": "Datetime(time_unit='us')",
    "duration": "Duration(time_unit='us')",
}
# A model file names one of these, never another attribute of the package.
_POLARS_NAMES = re.compile(
    r"U?Int\d+|Float\d+|Binary|Boolean|Categorical|Date|Datetime|Decimal|Duration|String|Time"
)


@dataclass(frozen=True)
class ColumnType:
    """The type of a column of a frame, in words that a model file may hold."""

    name: str = ""
    """As pandas or Polars writes it; "category" or "ordered category"; empty for an array."""
    categories: tuple[Any, ...] = ()
    """All categories of the type, also those that do not occur."""
    zone: str = ""
    """Time zone of its dates, whose numbers are those of the clock there."""
    holds: str = ""
    """Name of the type of its entries, if they are objects of one type."""

    def pandas_dtype(self, kind: str) -> Any:
        """Return the type for a column of pandas; None where its levels have to say it.

        `kind` is what its entries are.
        """
        pandas = sys.modules["pandas"]
        if self.categories:
            ordered = self.name == "ordered category"
            return pandas.CategoricalDtype(list(self.categories), ordered=ordered)
        try:
            return pandas.api.types.pandas_dtype(self.name or "none")
        except (TypeError, ValueError, NotImplementedError):  # of Polars, or one of pyarrow
            if kind == "date" and self.zone:
                return pandas.DatetimeTZDtype("us", self.zone)
            instead = PANDAS_TYPES.get(kind)
            return None if instead is None else pandas.api.types.pandas_dtype(instead)

    def polars_dtype(self, kind: str) -> Any:
        """Return the type for a column of Polars, in the same way."""
        polars = sys.modules["polars"]
        if self.categories and all(isinstance(level, str) for level in self.categories):
            if self.name == "ordered category":
                return polars.Enum(list(self.categories))
            return polars.Categorical()
        found = _polars_type(self.name) or _polars_type(POLARS_TYPES.get(kind, ""))
        if kind == "date" and self.zone and not zone_of_type(found):
            return polars.Datetime("us", self.zone)
        return found


def _polars_type(text: str) -> Any:
    """Return a type of Polars by what it writes of itself; None for another text."""
    name, _, rest = text.partition("(")
    kind = _POLARS_NAMES.fullmatch(name) and getattr(sys.modules["polars"], name, None)
    if kind is None:
        return None
    options = re.findall(r"(\w+)=('[^']*'|\w+)", "" if name == "Categorical" else rest)
    return kind(**{option: ast.literal_eval(value) for option, value in options})


def shared_type(values: Iterable[Any]) -> str:
    """Return the name of the type that all values have; empty where they have several."""
    kinds = {type(value) for value in values}
    return kinds.pop().__name__ if len(kinds) == 1 else ""


def zone_of_type(dtype: Any) -> Any:
    """Return the time zone of a type of pandas or Polars; None without one, and for objects."""
    own = getattr(dtype, "pyarrow_dtype", dtype)
    return getattr(own, "tz", getattr(own, "time_zone", None))


def is_object(dtype: Any) -> bool:
    """Tell the type of pandas that holds any objects."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def zone_of_objects(values: Iterable[Any]) -> Any:
    """Return the time zone of the first of some dates that are objects."""
    return getattr(next(iter(values), None), "tzinfo", None)


#: What a column of an array has.
NO_TYPE = ColumnType()


@dataclass(frozen=True)
class Entries:
    """One column of a table, as it was given."""

    name: Any
    missing: np.ndarray
    """Boolean, one per row: NaN, None, NA, NaT."""
    observed: np.ndarray
    """All other entries, in their order."""
    kind: str | None = None
    """What the type of the column says; None where the values have to say it."""
    levels: list[Any] | None = None
    """The categories of the type, in its order."""
    type: ColumnType = NO_TYPE

    def values(self) -> list[Any]:
        """Return the observed entries as objects of Python."""
        return list(self.observed.tolist())


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
    observed = entries.observed
    if not len(observed):
        return Values("empty", np.empty(0), 0)
    letter = observed.dtype.kind
    if entries.kind is not None or letter not in "biufmM":
        objects = entries.values()
        codes = _codes(objects)
        kind, numbers = (entries.kind, codes) if entries.kind else of_objects(objects)
        return Values(kind, numbers, int(codes.max()) + 1)
    kind = {"b": "boolean", "f": "number", "M": "date", "m": "duration"}.get(letter, "integer")
    if kind in ("date", "duration"):  # in microseconds
        observed = observed.astype(f"{letter}8[us]").astype(np.int64)
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
        kept = ColumnType(kind, tuple(map(plain, levels)))
        found = _objects([levels[code] for code in observed.cat.codes])
        return Entries(name, missing, found, kind, levels, kept)
    if is_object(dtype):
        objects = observed.to_numpy()
        zone = str(zone_of_objects(objects) or "")
        kept = ColumnType("object", (), zone, shared_type(objects))
        return Entries(name, missing, objects, type=kept)
    if str(dtype).startswith("period["):
        observed = observed.dt.start_time
    zone = zone_of_type(observed.dtype)
    kept = ColumnType(str(dtype), zone=str(zone or ""))
    if zone is not None:  # what the clock says there, so that midnights are whole days
        observed = observed.dt.tz_localize(None)
    is_date = getattr(observed.dtype, "kind", "O") == "M"
    found = observed.to_numpy(dtype="datetime64[us]" if is_date else None)
    return Entries(name, missing, np.asarray(found), type=kept)


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
    if kind is not None:
        values = _objects(observed.cast(str).to_list())
        if kind == "category":  # the categories are those of all columns of the process
            return Entries(name, missing, values, kind, type=ColumnType(str(dtype)))
        levels = dtype.categories.to_list()
        return Entries(name, missing, values, kind, levels, ColumnType(kind, tuple(levels)))
    zone = zone_of_type(dtype)
    kept = ColumnType(str(dtype), zone=zone or "")
    if zone is not None:  # what the clock says there, so that midnights are whole days
        observed = observed.dt.replace_time_zone(None)
    plain = dtype.is_numeric() and not dtype.is_decimal() and "128" not in str(dtype)
    if plain or dtype.is_temporal():
        return Entries(name, missing, observed.to_numpy(), type=kept)
    values = _objects(observed.to_list())
    return Entries(name, missing, values, type=replace(kept, holds=shared_type(values)))


def plain(value: Any) -> Any:
    """Return Python's own form of a scalar of NumPy: it is equal, and can be stored in a file."""
    return value.item() if isinstance(value, np.generic) else value


def _objects(values: list[Any]) -> np.ndarray:
    """Return an array of objects, also of such that NumPy would take for rows."""
    return np.fromiter(values, dtype=object, count=len(values))


def of_objects(observed: list[Any]) -> tuple[str, np.ndarray]:
    """Return the kind of objects by their types, one of those of `Values`, and numbers for them."""
    types = {type(entry) for entry in observed}

    def are(*kinds: type) -> bool:
        return all(issubclass(kind, kinds) for kind in types)

    if are(bool, np.bool_):
        return "boolean", np.array(observed, dtype=np.float64)
    if are(Real, Decimal, np.bool_):
        numbers = np.array([_float(entry) for entry in observed])
        return "integer" if are(Integral, np.bool_) else _whole(numbers), numbers
    if are(datetime.date, np.datetime64):
        return "date", np.array([_microseconds(entry) for entry in observed])
    if are(datetime.timedelta, np.timedelta64):
        return "duration", np.array(observed, dtype="timedelta64[us]").astype(np.float64)
    text = are(str, bytes)
    return "text" if text else "other", _codes(observed)


def _float(entry: Any) -> float:
    try:
        return float(entry)
    except OverflowError:  # an integer with hundreds of digits
        return math.inf


def _microseconds(entry: Any) -> float:
    """Return a date, with a time or without, in microseconds since 1970, as the clock there."""
    if isinstance(entry, datetime.datetime):
        entry = entry.replace(tzinfo=None)
    return float(np.datetime64(entry, "us").astype(np.int64))


def _codes(values: Iterable[Any]) -> np.ndarray:
    """Return 0, 1, … for distinct values, in the order in which they come."""
    known: dict[Any, int] = {}
    keys = (value if is_hashable(value) else repr(value) for value in values)
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def is_hashable(value: Any) -> bool:
    """Tell whether a value can be a level, which a list or an array in a cell cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
