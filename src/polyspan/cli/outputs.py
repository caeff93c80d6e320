"""Results to .npy, .npz, .csv and .parquet files, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.csv_files import Layout, read_text
from polyspan.cli.errors import writing
from polyspan.cli.tables import Table
from polyspan.files import whole_file

#: Formats with text beside numbers, to which all columns go.
FRAMES = (".csv", ".parquet")


def write_array(
    values: np.ndarray, path: Path, names: Sequence[str] | None, *, key: str, force: bool
) -> None:
    """Write an array in the format that the name of the file asks for.

    Parameters
    ----------
    values : array of one or two dimensions
    path : Path
    names : sequence of str or None
        Of the columns, for .csv and .parquet; None: a .csv file without a header, and names
        "0", "1", … in a .parquet file, which must have some.
    key : str
        Name of the array in a .npz file.
    force : bool
        Whether a file that is there may be replaced.
    """
    with writing(path), whole_file(path, overwrite=force) as part:
        _put_array(values, part, names, key=key)


def _put_array(values: np.ndarray, part: Path, names: Sequence[str] | None, *, key: str) -> None:
    """Write an array to a file that is not in its place yet."""
    ending = part.suffix.lower()
    if ending == ".npy":
        np.save(part, values, allow_pickle=False)
    elif ending == ".npz":
        named: dict[str, Any] = {key: values}
        np.savez(part, **named)
    else:
        import pandas as pd

        frame = pd.DataFrame(values, columns=None if names is None else list(names))
        _put_frame(frame, part, Layout(",", None if names is None else tuple(names)))


def write_filled(table: Table, filled: np.ndarray, path: Path, *, force: bool) -> None:
    """Write a table with its missing entries filled and all else as it was.

    From .csv to .csv the other cells keep their very characters; columns that were left out, texts
    among them, are carried over. Between a table and an array format only the numbers go.
    """
    with writing(path), whole_file(path, overwrite=force) as part:
        if table.frame is None or path.suffix.lower() not in FRAMES:
            values = np.where(np.isnan(table.X), filled, table.X).astype(table.X.dtype, copy=False)
            _put_array(values, part, table.names, key=table.key or "X")
            return
        layout = table.layout or Layout(",", tuple(str(name) for name in table.frame.columns))
        as_text = table.layout is not None and path.suffix.lower() == ".csv"
        frame = read_text(table.path, layout) if as_text else table.frame.copy()
        _fill(frame, table, filled, as_text)
        _put_frame(frame, part, layout)


def whole_where_whole(X: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Round what is filled in columns whose observed entries are all whole numbers."""
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
            column.iloc[rows] = [_written(value.item(), table.X[:, j]) for value in values]
        else:
            whole = bool((values == np.rint(values)).all())
            if not (pd.api.types.is_float_dtype(column.dtype) or whole):
                column = column.astype("Float64")  # integers cannot hold what is filled in
            column.iloc[rows] = values.astype(str(column.dtype).lower())
        frame.isetitem(k, column)


def _written(value: float, column: np.ndarray) -> str:
    """Write a number as those of its column are: whole ones without a point."""
    seen = column[~np.isnan(column)]
    if value == round(value) and (seen == np.rint(seen)).all():
        return str(int(value))
    return repr(value)


def _put_frame(frame: Any, part: Path, layout: Layout) -> None:
    if part.suffix.lower() == ".csv":
        # Numbers get the shortest form that reads back to the same bits.
        frame.to_csv(part, index=False, header=layout.names is not None, sep=layout.delimiter)
    else:
        frame.columns = [str(name) for name in frame.columns]
        frame.to_parquet(part, engine="pyarrow", index=False)
