"""Tables of numbers, categories and dates, as a SubspaceImputer takes them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer

from polyspan.base.checks import first_ten
from polyspan.cli.column_types import Wanted, learned, read_column
from polyspan.cli.columns import positions
from polyspan.cli.csv_files import read_text
from polyspan.cli.dates import DateForm
from polyspan.cli.errors import CommandError, say
from polyspan.cli.separators import is_text, mark_among_numbers
from polyspan.cli.tables import (
    Table,
    check_clear,
    check_finite,
    check_width,
    model_names,
    named_text,
    numbers_of,
)
from polyspan.tables import SubspaceImputer
from polyspan.tables.features import TYPES
from polyspan.tables.reading import wanted_types

#: Why a column with a single value, other than a number, is not filled: a blank cell may mean the
#: opposite.
ONE_VALUE = "only one value"


@dataclass(frozen=True)
class MixedTable:
    """The columns of a file that a SubspaceImputer gets, and what is needed to write them back."""

    table: Table
    """The file, with all its columns."""
    columns: Any
    """Data frame of the columns that are used, dates as dates."""
    dates: dict[int, DateForm] = field(default_factory=dict)
    """Form of the dates, by positions in `columns`."""
    reasons: dict[Any, str] = field(default_factory=dict)
    """Why the command itself passes columns through, by their names in `columns`."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.table.path

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns that are used."""
        return len(self.columns), self.columns.shape[1]

    @property
    def index(self) -> Any:
        """Names of the rows, where the file has them."""
        return self.table.index

    @property
    def missing(self) -> np.ndarray:
        """Boolean, one per entry."""
        return np.asarray(self.columns.isna())

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return int(self.missing.sum())

    @property
    def names(self) -> list[str]:
        """Names of the columns that are used, or their positions in the file."""
        return [self.table.column(k) for k in self.table.used]

    def for_fit(self) -> Any:
        """Return the data for `fit`."""
        return self.columns


def mixed_table(table: Table, model: SubspaceImputer, types: Sequence[str] | None) -> MixedTable:
    """Return the columns of a file for a model that is to be fitted, and tell it what they are.

    Parameters
    ----------
    table : Table
        As `read_chosen` reads it.
    model : SubspaceImputer
        Its `feature_types` are set.
    types : sequence of str or None
        "name=type" pairs, separated by commas.
    """
    labels = _labels(table)
    set_types(model, table, types)
    said = wanted_types(model.feature_types, labels)
    how = [Wanted(kind, "as --types says") if kind else None for kind in said]
    found = _read(table, labels, how)
    for j, (label, kind) in enumerate(zip(labels, said, strict=True)):
        why = "" if kind is not None else _reason(table, table.used[j], found.columns.iloc[:, j])
        if why:
            found.reasons[label], said[j] = why, "skip"
    if any(said):
        model.feature_types = {
            label: kind for label, kind in zip(labels, said, strict=True) if kind
        }
    if found.missing.all():
        raise CommandError(f"{table.path} has no entry at all: there is nothing to learn from")
    return found


def known_table(table: Table, model: SubspaceImputer) -> MixedTable:
    """Return the columns of a file as a fitted model knows them."""
    check_width(table.path, len(table.used), model)
    labels = model_names(model) or range(len(table.used))
    return _read(table, labels, [learned(one) for one in model._features])


def set_types(model: SubspaceImputer, table: Table, types: Sequence[str] | None) -> None:
    """Give a model the types of columns that --types says."""
    if not types:
        return
    labels, chosen = _labels(table), {}
    for word in _pairs(types, table.names):
        name, equals, kind = word.rpartition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{word!r} is not name=type", param_hint="--types")
        if kind.strip() not in TYPES:
            raise typer.BadParameter(
                f"{kind.strip()!r} of column {name} is none of {', '.join(TYPES)}",
                param_hint="--types",
            )
        n_columns = table.X.shape[1]
        for k in positions(table.path, n_columns, table.names, [name.strip()]):
            if k not in table.used:
                raise CommandError(f"--types names column {table.column(k)}, which is left out")
            chosen[labels[table.used.index(k)]] = kind.strip()
    model.feature_types = chosen


def _pairs(types: Sequence[str], names: tuple[str, ...] | None) -> list[str]:
    """Split at commas, but not in names that contain them."""
    known = set(names or ())
    return [
        word
        for item in types
        for word in ([item] if item.rpartition("=")[0] in known else item.split(","))
    ]


def _labels(table: Table) -> list[Any]:
    """Return the names of the columns that are used; positions among them where there are none."""
    if table.names is None:
        return list(range(len(table.used)))
    return [table.names[k] for k in table.used]


def _read(table: Table, labels: Sequence[Any], how: list[Wanted | None]) -> MixedTable:
    """Return the columns that are used, each as it is wanted or as its cells say."""
    import pandas as pd

    passed = [one is not None and one.kind in ("skip", "category") for one in how]
    numbers = [k for k, skip in zip(table.used, passed, strict=True) if not skip]
    check_clear(table, numbers)
    numeric = [k for k in numbers if table.is_numeric(k)]
    if numeric:
        check_finite(table, numbers_of(table, numeric), numeric)
    _name_nearly_numbers(table, [k for k in numbers if k not in numeric])
    text_of = _texts(table)
    read = [read_column(table, k, one, text_of) for k, one in zip(table.used, how, strict=True)]
    columns = pd.DataFrame({j: column for j, (column, _) in enumerate(read)})
    columns.columns = list(labels)
    dates = {j: form for j, (_, form) in enumerate(read) if form is not None}
    return MixedTable(table, columns, dates)


def _reason(table: Table, k: int, column: Any) -> str:
    """Say why a column is passed through, though it could be filled; empty if it is not."""
    seen = column.dropna()
    first = seen.iloc[0] if len(seen) else None
    plain = isinstance(first, str | bool | np.bool_ | datetime.date | datetime.timedelta)
    if plain and seen.nunique() == 1:
        return ONE_VALUE
    if not is_text(table.frame, k) or column.dtype.kind == "M":
        return ""
    row = mark_among_numbers(table.frame, k)
    return "" if row is None else f"numbers, but row {row}: {table.frame.iloc[row, k]!r}"


def _name_nearly_numbers(table: Table, text: list[int]) -> None:
    """Tell of columns of numbers that some cells turn into text."""
    named = {k: named_text(table, k) for k in text}
    nearly = [name for k, name in named.items() if name != table.column(k)]
    if nearly:
        say(
            "note",
            f"taken for text, though other cells are numbers: {first_ten(nearly)}; leave such "
            "cells blank where they mean missing",
        )


def _texts(table: Table) -> Callable[[int], Any]:
    """Return a function that gives the cells of a column of lines as text; it reads them once."""
    read: list[Any] = []

    def text_of(k: int) -> Any:
        if table.layout is None:
            return None
        if not read:
            read.append(read_text(table.path, table.layout))
        cells = read[0].iloc[:, k].str.strip().reset_index(drop=True)
        return cells.where(table.frame.iloc[:, k].notna().to_numpy())

    return text_of
