"""The types of columns of frames: read in `fit`, and given to columns of new rows without one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
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
_POLARS_NAMES = frozenset(
    f"{kind}{size}" for kind in ("Int", "UInt") for size in (8, 16, 32, 64, 128)
) | {
    "Binary", "Boolean", "Categorical", "Date", "Datetime", "Decimal", "Duration", "Float32",
    "Float64", "String", "Time",
}  # fmt: skip


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
        if kind == "date" and self.zone and not getattr(found, "time_zone", None):
            return polars.Datetime("us", self.zone)
        return found


def _polars_type(text: str) -> Any:
    """Return a type of Polars by what it writes of itself; None for another text."""
    name, _, rest = text.partition("(")
    if name not in _POLARS_NAMES or not re.fullmatch(r"[\w=', /+:-]*\)?", rest):
        return None
    call: Any = ast.parse(f"f({rest.removesuffix(')')})", mode="eval").body
    options = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    if name == "Categorical":
        options = {}
    return getattr(sys.modules["polars"], name)(**options)


def shared_type(values: Iterable[Any]) -> str:
    """Return the name of the type that all values have; empty where they have several."""
    kinds = {type(value) for value in values}
    return kinds.pop().__name__ if len(kinds) == 1 else ""


def pandas_zone(dtype: Any) -> Any:
    """Return the time zone of a type of pandas; None without one, and for objects."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    return getattr(dtype if arrow is None else arrow, "tz", None)


def is_object(dtype: Any) -> bool:
    """Tell the type of pandas that holds any objects."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def zone_of_objects(values: Iterable[Any]) -> Any:
    """Return the time zone of the first of some dates that are objects."""
    return getattr(next(iter(values), None), "tzinfo", None)


#: What a column of an array has.
NO_TYPE = ColumnType()
