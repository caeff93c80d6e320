"""The columns of a file in the types that a SubspaceImputer wants."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.cli.dates import DateForm, first_other, form_for, read_dates
from polyspan.cli.errors import CommandError
from polyspan.cli.separators import first_text, is_text
from polyspan.cli.tables import Table
from polyspan.tables.features import Feature

#: What the cells of a column must be, in words.
NEEDS = {
    "number": "numbers",
    "integer": "numbers",
    "boolean": "True and False",
    "category": "text",
    "date": "dates in one ISO form, such as 2024-01-31",
    "duration": "durations, which only .parquet files have",
}


@dataclass(frozen=True)
class Wanted:
    """What a column has to be."""

    kind: str
    """A type of `NEEDS`, "ordered", or "skip" for a column that stays as it is."""
    why: str
    fitted: bool = False
    """Whether a model says so, which fills what it has learned."""


def learned(feature: Feature) -> Wanted:
    """Return what a column has to be for a model that was fitted to one like it."""
    why = "as in the table that the model was fitted to"
    if feature.kind in ("skip", "empty"):
        return Wanted("skip", why, fitted=True)
    if not feature.levels:
        return Wanted(feature.kind, why, fitted=True)
    first = feature.levels[0]
    for types, kind in (
        (str, "category"),
        (bool, "boolean"),
        (int | float, "number"),
        (datetime.date, "date"),
        (datetime.timedelta, "duration"),
    ):
        if isinstance(first, types):
            return Wanted(kind, why, fitted=True)
    return Wanted("skip", why, fitted=True)


def read_column(
    table: Table, k: int, wanted: Wanted | None, text_of: Callable[[int], Any]
) -> tuple[Any, DateForm | None]:
    """Return a column of a file in the type that is wanted, and the form of its dates.

    Parameters
    ----------
    table : Table
    k : int
        Position of the column in the file.
    wanted : Wanted or None
        None: as the cells say.
    text_of : callable
        Gives the cells of a column of lines as they are written; None for other files.
    """
    import pandas as pd

    column = table.frame.iloc[:, k].reset_index(drop=True)
    kind = None if wanted is None else wanted.kind
    lines = table.layout is not None
    if kind == "skip":
        return column, None
    if wanted is not None and kind in NEEDS and column.isna().all():
        return _without_entry(len(column), wanted.kind), None
    if lines and kind in (None, "date") and is_text(table.frame, k):
        dates = read_dates(column)
        if dates is not None:
            return pd.Series(dates[0]), dates[1]
    if lines and kind in (None, "category", "ordered") and is_text(table.frame, k):
        return column.str.strip().astype(object), None
    if lines and kind == "category":
        return text_of(k).astype(object), None
    if wanted is not None and not _fits(column, wanted):
        raise _refusal(table, k, wanted)
    if wanted is not None and wanted.fitted and hasattr(column, "cat"):
        column = column.astype(object)  # the model may fill a category that these rows do not have
    return column, None


def moments_of(values: Any, form: DateForm | None) -> list[str]:
    """Return dates as text, in the form of their column."""
    moments = values.to_numpy(dtype="datetime64[us]")
    return (form or form_for(moments)).write(moments)


def _without_entry(n_rows: int, kind: str) -> Any:
    """Return a column without any entry in a type that can be filled."""
    import pandas as pd

    types = {"category": "object", "boolean": "boolean", "date": "datetime64[us]"}
    types |= {"duration": "timedelta64[us]"}
    return pd.Series(index=range(n_rows), dtype=types.get(kind, "float64"))


def _fits(column: Any, wanted: Wanted) -> bool:
    """Tell whether a column has the type that is wanted."""
    import pandas as pd

    seen, kind = column.dropna(), wanted.kind
    held = pd.api.types.infer_dtype(seen.astype(object) if hasattr(seen, "cat") else seen)
    if kind in ("number", "integer"):
        return held == "decimal" or bool(pd.api.types.is_numeric_dtype(column.dtype))
    if kind == "date":
        return held in ("date", "datetime", "datetime64", "period")
    if kind == "duration":
        return held in ("timedelta", "timedelta64")
    needed = {"boolean": "boolean", "category": "string"}.get(kind)
    return not wanted.fitted or needed in (None, held)


def _refusal(table: Table, k: int, wanted: Wanted) -> CommandError:
    """Return the error for a column of another type, with the first cell that is wrong."""
    column = table.frame.iloc[:, k]
    wrong = column.notna().to_numpy()
    if is_text(table.frame, k):
        if wanted.kind == "date":
            wrong = np.arange(len(column)) == first_other(column)
        elif wanted.kind == "boolean":
            wrong = wrong & ~column.str.strip().str.lower().isin(["true", "false"]).to_numpy()
        else:
            wrong = np.arange(len(column)) == first_text(table.frame, k)[0]
    row = int(np.argmax(wrong))
    name = table.column(k)
    advice = "fit again" if wanted.fitted else f"say --types {name}=skip"
    return CommandError(
        f"column {name} of {table.path} must hold {NEEDS[wanted.kind]}, {wanted.why}, and row "
        f"{row} is {str(column.iloc[row])!r}: mend it, leave the cell blank, or {advice}"
    )
