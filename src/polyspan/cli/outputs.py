"""Results in files of any format that is read, written whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.files import atomic_write
from polyspan.cli.csv_files import Layout, read_text
from polyspan.cli.errors import writing
from polyspan.cli.formats import FRAMES, TEXT, ending_of, packed
from polyspan.cli.separators import Marks
from polyspan.cli.tables import Table


def write_array(
    values: np.ndarray,
    path: Path,
    names: Sequence[str] | None,
    *,
    key: str,
    force: bool,
    index: Any = None,
) -> None:
    """Write an array in the format given by the ending of the file name.

    Parameters
    ----------
    values : array of one or two dimensions
    path : Path
    names : sequence of str or None
        Of the columns, where the format has some; None: a .csv file without a header, and names
        "0", "1", … in a .parquet file, which must have some.
    key : str
        Name of the array in a .npz file.
    force : bool
        Whether a file that is there may be replaced.
    index : pandas index, default=None
        Of the rows, where the format can hold it.
    """
    with writing(path), atomic_write(path, overwrite=force) as part:
        put_array(values, part, ending_of(path), names, key=key, index=index)


def put_array(
    values: np.ndarray,
    temporary: Path,
    ending: str,
    names: Sequence[str] | None,
    *,
    key: str,
    index: Any = None,
) -> None:
    """Write an array to a file that is not in its place yet."""
    if ending == ".npy":
        np.save(temporary, values, allow_pickle=False)
    elif ending == ".npz":
        named: dict[str, Any] = {key: values}
        np.savez(temporary, **named)
    else:
        import pandas as pd

        columns = None if names is None else list(names)
        frame = pd.DataFrame(values, columns=columns, index=index)
        put_frame(frame, temporary, ending, ",", header=names is not None, index=index is not None)


def put_clusters(
    table: Table,
    carried: Sequence[int],
    labels: np.ndarray,
    confidence: np.ndarray,
    temporary: Path,
    ending: str,
) -> None:
    """Write the label and the confidence of every row to a file that is not in its place yet.

    Columns of the table that are carried over come first, in a .csv or .tsv file character for
    character. A .npy file gets two columns of numbers, a .npz file two arrays.
    """
    if ending == ".npy":
        np.save(temporary, np.column_stack([labels, confidence]), allow_pickle=False)
        return
    if ending == ".npz":
        np.savez(temporary, labels=labels, confidence=confidence)
        return
    import pandas as pd

    as_text = bool(carried) and table.layout is not None and ending in TEXT
    frame = pd.DataFrame(index=table.index if table.index is not None else range(len(labels)))
    if carried:
        all_columns = table.frame
        if as_text and table.layout is not None:
            all_columns = read_text(table.path, table.layout)
        named = table.layout is None or table.layout.names is not None
        for k in carried:
            name = str(table.frame.columns[k]) if named else f"column_{k}"
            frame[name] = all_columns.iloc[:, k].to_numpy()
    for name, values in (("label", labels), ("confidence", confidence)):
        frame[name if name not in frame else f"cluster_{name}"] = values
    put_frame(frame, temporary, ending, ",", header=True, index=table.index is not None)


def write_filled(table: Table, filled: np.ndarray, path: Path, *, force: bool) -> None:
    """Write a table with its missing entries filled and everything else unchanged.

    From lines to lines, .csv or .tsv, the other cells keep their very characters; columns that were
    left out, texts among them, are carried over. Between a table and an array format only the
    numbers go.
    """
    with writing(path), atomic_write(path, overwrite=force) as part:
        put_filled(table, filled, part, ending_of(path))


def put_filled(table: Table, filled: np.ndarray, part: Path, ending: str) -> None:
    """Write a table with its missing entries filled to a file that is not in its place yet."""
    if table.frame is None or ending not in FRAMES:
        values = np.where(np.isnan(table.X), filled, table.X).astype(table.X.dtype, copy=False)
        put_array(values, part, ending, table.names, key=table.key or "X")
        return
    layout = table.layout or Layout(",", tuple(str(name) for name in table.frame.columns))
    as_text = table.layout is not None and ending in TEXT
    frame = read_text(table.path, layout) if as_text else table.frame.copy()
    _fill(frame, table, filled, as_text)
    own = not ending_of(table.path).startswith(".tsv")
    delimiter, named = layout.delimiter if own else ",", layout.names is not None
    put_frame(frame, part, ending, delimiter, header=named, index=table.index is not None)


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
            column.iloc[rows] = written(values, table.frame.iloc[:, k], column, marks_of(table, k))
        elif pd.api.types.is_bool_dtype(column.dtype):
            column.iloc[rows] = values >= 0.5
        else:
            whole = bool((values == np.rint(values)).all())
            if not (pd.api.types.is_float_dtype(column.dtype) or whole):
                column = column.astype("Float64")  # the filled entries are not whole numbers
            column.iloc[rows] = values.astype(str(column.dtype).lower())
        frame.isetitem(k, column)


def marks_of(table: Table, k: int) -> Marks:
    """Return how numbers are written into a column."""
    return Marks() if table.layout is None else table.layout.readings.of(k)


def written(values: Sequence[Any], column: Any, texts: Any, marks: Marks) -> list[str]:
    """Write numbers as those of their column are: whole ones without a point, True as True.

    Parameters
    ----------
    values : sequence of numbers
    column : pandas series
        The column as numbers.
    texts : pandas series
        Its cells as text.
    marks : Marks
        Separators of its numbers.
    """
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype):
        words = [word.strip() for word in texts.unique()]
        words = [word for word in words if word.lower() in ("true", "false")] or ["True"]
        spell = next(f for f in (str.title, str.upper, str.lower) if f(words[0]) == words[0])
        return [spell(str(value >= 0.5)) for value in values]
    seen = column.dropna().to_numpy(dtype=np.float64)
    whole = bool((seen == np.rint(seen)).all())
    return [marks.write(float(value), whole) for value in values]


def put_frame(
    frame: Any, part: Path, ending: str, delimiter: str, *, header: bool, index: bool
) -> None:
    """Write a data frame, with its index where it is more than a count of the rows."""
    if ending in TEXT:
        sep = "\t" if ending.startswith(".tsv") else delimiter  # that of .csv files
        label = [name or f"index_{k}" for k, name in enumerate(frame.index.names)]
        how = {"index": index, "index_label": label, "header": header, "sep": sep}
        # Numbers get the shortest form that reads back to the same bits. Lines end in the same way
        # on every system.
        with packed(part, ending) as file:
            frame.to_csv(file, encoding="utf-8", lineterminator="\n", **how)
    else:
        frame.columns = [str(name) for name in frame.columns]
        frame.to_parquet(part, engine="pyarrow", index=index or None)
