"""Write results to .npy, .npz, .csv and .parquet files, completely or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.csv_files import Layout, read_text
from polyspan.cli.errors import writing
from polyspan.cli.tables import Table
from polyspan.files import atomic_write

#: Formats that can hold text and numbers, so that all columns are written.
FRAMES = (".csv", ".parquet")


def write_array(
    values: np.ndarray, path: Path, names: Sequence[str] | None, *, key: str, force: bool
) -> None:
    """Write an array in the format given by the ending of the file name.

    Parameters
    ----------
    values : array of one or two dimensions
    path : Path
    names : sequence of str or None
        Names of the columns, for .csv and .parquet. None: a .csv file has no header; a .parquet
        file, which needs names, has "0", "1", …
    key : str
        Name of the array in a .npz file.
    force : bool
        Whether an existing file may be replaced.
    """
    with writing(path), atomic_write(path, overwrite=force) as temporary:
        _save_array(values, temporary, names, key=key)


def _save_array(
    values: np.ndarray, temporary: Path, names: Sequence[str] | None, *, key: str
) -> None:
    """Write an array to the temporary file of `atomic_write`."""
    ending = temporary.suffix.lower()
    if ending == ".npy":
        np.save(temporary, values, allow_pickle=False)
    elif ending == ".npz":
        named: dict[str, Any] = {key: values}
        np.savez(temporary, **named)
    else:
        import pandas as pd

        frame = pd.DataFrame(values, columns=None if names is None else list(names))
        _save_frame(frame, temporary, Layout(",", None if names is None else tuple(names)))


def write_filled(table: Table, filled: np.ndarray, path: Path, *, force: bool) -> None:
    """Write a table with its missing entries filled and everything else unchanged.

    From .csv to .csv the text of the other cells stays the same; columns that were left out, such
    as text, are copied. If input or output is .npy or .npz, only the numbers are written.
    """
    with writing(path), atomic_write(path, overwrite=force) as temporary:
        if table.frame is None or path.suffix.lower() not in FRAMES:
            values = np.where(np.isnan(table.X), filled, table.X).astype(table.X.dtype, copy=False)
            _save_array(values, temporary, table.names, key=table.key or "X")
            return
        layout = table.layout or Layout(",", tuple(str(name) for name in table.frame.columns))
        as_text = table.layout is not None and path.suffix.lower() == ".csv"
        frame = read_text(table.path, layout) if as_text else table.frame.copy()
        _fill(frame, table, filled, as_text)
        _save_frame(frame, temporary, layout)


def round_integer_columns(X: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Round the filled entries of columns whose observed entries are all whole numbers."""
    with np.errstate(invalid="ignore"):
        whole = ((np.rint(X) == X) | np.isnan(X)).all(axis=0) & ~np.isnan(X).all(axis=0)
    return np.asarray(np.where(whole, np.rint(filled), filled))


def _fill(frame: Any, table: Table, filled: np.ndarray, as_text: bool) -> None:
    import pandas as pd

    for j, k in enumerate(table.used):
        rows = np.flatnonzero(np.isnan(table.X[:, j]) & ~np.isnan(filled[:, j]))
        if not len(rows):
            continue
        column = frame.iloc[:, k].copy()
        values = filled[rows, j]
        if as_text:
            column.iloc[rows] = [_format_number(value.item(), table.X[:, j]) for value in values]
        else:
            whole = bool((values == np.rint(values)).all())
            if not (pd.api.types.is_float_dtype(column.dtype) or whole):
                column = column.astype("Float64")  # the filled entries are not whole numbers
            column.iloc[rows] = values.astype(str(column.dtype).lower())
        frame.isetitem(k, column)


def _format_number(value: float, column: np.ndarray) -> str:
    """Return a number as text, in the style of its column: whole numbers without a point."""
    seen = column[~np.isnan(column)]
    if value == round(value) and (seen == np.rint(seen)).all():
        return str(int(value))
    return repr(value)


def _save_frame(frame: Any, temporary: Path, layout: Layout) -> None:
    if temporary.suffix.lower() == ".csv":
        # pandas writes the shortest text that reads back to the same bits.
        frame.to_csv(temporary, index=False, header=layout.names is not None, sep=layout.delimiter)
    else:
        frame.columns = [str(name) for name in frame.columns]
        frame.to_parquet(temporary, engine="pyarrow", index=False)
