"""Tables of numbers, categories and dates in files, with their missing entries filled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.files import atomic_write
from polyspan.cli.column_types import moments_of
from polyspan.cli.csv_files import Layout, read_text
from polyspan.cli.errors import CommandError, writing
from polyspan.cli.formats import FRAMES, TEXT, ending_of
from polyspan.cli.mixed_tables import MixedTable
from polyspan.cli.outputs import marks_of, put_array, put_frame, written
from polyspan.cli.parquet_files import write_filled_parquet
from polyspan.cli.separators import Marks


def write_mixed(
    mixed: MixedTable, filled: Sequence[Any], paths: Sequence[Path], *, force: bool
) -> None:
    """Write completed tables, each to its file; none gets its name before all are written.

    What was observed stays as it is: characters of lines, types and metadata of .parquet files.

    Parameters
    ----------
    mixed : MixedTable
    filled : sequence of data frames
        `mixed.columns` with missing entries filled.
    """
    with ExitStack() as stack:
        for frame, path in zip(filled, paths, strict=True):
            stack.enter_context(writing(path))
            part = stack.enter_context(atomic_write(path, overwrite=force))
            _put(mixed, frame, part, ending_of(path))


def check_numbers(mixed: MixedTable, path: Path) -> list[str]:
    """Return the names of columns that an array cannot hold; refuse a table without any other."""
    if ending_of(path) in FRAMES:
        return []
    table = mixed.table
    others = [table.column(k) for k in table.used if not table.is_numeric(k)]
    if len(others) == len(table.used):
        raise CommandError(
            f"{path} can hold numbers only, and no column of {table.path} does: write to "
            f"{', '.join(FRAMES)}"
        )
    return others


def _put(mixed: MixedTable, filled: Any, part: Path, ending: str) -> None:
    """Write one table to a file that is not in its place yet."""
    table = mixed.table
    from_lines = table.layout is not None
    if ending == ".parquet" and not from_lines:
        fills = {
            str(table.frame.columns[table.used[j]]): (rows, filled.iloc[rows, j])
            for j, rows in _filled_rows(mixed, filled)
        }
        write_filled_parquet(table.path, fills, part)
    elif ending in TEXT and from_lines:
        _put_lines(mixed, filled, part, ending)
    elif ending in FRAMES:
        frame = table.frame.copy()
        for j, rows in _filled_rows(mixed, filled):
            frame.isetitem(table.used[j], _typed(mixed, filled, j, rows))
        named = table.layout is None or table.layout.names is not None
        put_frame(frame, part, ending, ",", header=named, index=table.index is not None)
    else:
        _put_numbers(mixed, filled, part, ending)


def _filled_rows(mixed: MixedTable, filled: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Return the columns in which something was filled, and in which rows."""
    found = mixed.missing & np.asarray(filled.notna())
    for j in np.flatnonzero(found.any(axis=0)):
        yield int(j), np.flatnonzero(found[:, j])


def _put_lines(mixed: MixedTable, filled: Any, part: Path, ending: str) -> None:
    """Write lines with cells; those that were observed keep their very characters."""
    table, layout = mixed.table, mixed.table.layout
    assert layout is not None
    frame = read_text(table.path, layout)
    for j, rows in _filled_rows(mixed, filled):
        column = frame.iloc[:, table.used[j]].copy()
        column.iloc[rows] = _cells(mixed, filled, j, rows, column, layout)
        frame.isetitem(table.used[j], column)
    own = not ending_of(table.path).startswith(".tsv")
    delimiter, named = layout.delimiter if own else ",", layout.names is not None
    put_frame(frame, part, ending, delimiter, header=named, index=False)


def _cells(
    mixed: MixedTable, filled: Any, j: int, rows: np.ndarray, texts: Any, layout: Layout
) -> list[str]:
    """Return what was filled in, written as the other cells of its column are."""
    values = filled.iloc[rows, j]
    column = mixed.columns.iloc[:, j]
    if column.dtype.kind == "M":
        return moments_of(values, mixed.dates.get(j))
    if isinstance(values.iloc[0], str):
        return [str(value) for value in values]
    return written(values, column, texts, layout.readings.of(mixed.table.used[j]))


def _typed(mixed: MixedTable, filled: Any, j: int, rows: np.ndarray) -> Any:
    """Return a filled column in the type of its file, whole numbers as such.

    Dates of lines stay text, in their form.
    """
    import pandas as pd

    table = mixed.table
    k = table.used[j]
    column = table.frame.iloc[:, k].copy()
    values = filled.iloc[rows, j]
    if table.layout is None and column.dtype != object:
        return filled.iloc[:, j].set_axis(column.index)
    if pd.api.types.infer_dtype(column, skipna=True) == "date":  # without a time
        column.iloc[rows] = values.to_list()
        return column
    if filled.dtypes.iloc[j].kind == "M":
        column = column.astype(object)
        column.iloc[rows] = moments_of(values, mixed.dates.get(j))
    elif not table.is_numeric(k) or pd.api.types.is_bool_dtype(column.dtype):
        column = column.astype(object) if column.isna().all() else column
        column.iloc[rows] = values.to_numpy()
    else:
        column.iloc[rows] = _as_numbers(values, marks_of(table, k))
        if (column.isna() | (column == np.rint(column))).all():
            column = column.astype("Int64" if column.isna().any() else "int64")
    return column


def _as_numbers(values: Any, marks: Marks) -> np.ndarray:
    """Return what was filled as numbers, also where these were taken for categories."""
    if isinstance(values.iloc[0], str):
        return marks.numbers(values.astype("str"))
    return np.asarray(values.to_numpy(dtype=np.float64))


def _put_numbers(mixed: MixedTable, filled: Any, part: Path, ending: str) -> None:
    """Write the columns of numbers as an array."""
    table = mixed.table
    rows = dict(_filled_rows(mixed, filled))
    numeric = [(j, k) for j, k in enumerate(table.used) if table.is_numeric(k)]
    kinds = {str(table.frame.dtypes.iloc[k]).lower() for _, k in numeric}
    dtype = np.float32 if kinds == {"float32"} else np.float64
    X = np.empty((len(filled), len(numeric)), dtype=dtype)
    for place, (j, k) in enumerate(numeric):
        X[:, place] = table.frame.iloc[:, k].to_numpy(dtype=dtype, na_value=np.nan)
        if j in rows:
            X[rows[j], place] = _as_numbers(filled.iloc[rows[j], j], marks_of(table, k))
    put_array(X, part, ending, None, key="X")
