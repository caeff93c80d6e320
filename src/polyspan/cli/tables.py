"""Tables of numbers from files of arrays, lines with cells, and .parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from polyspan.base.checks import first_ten
from polyspan.cli.array_files import check_rows, read_array
from polyspan.cli.columns import by_name, positions
from polyspan.cli.csv_files import Layout, check_unique, read_csv
from polyspan.cli.errors import CommandError, counted, decoding, reading, say, unreadable
from polyspan.cli.formats import ENDINGS, FRAMES, TEXT, ending_of
from polyspan.cli.parquet_files import read_parquet
from polyspan.cli.separators import Marks, as_booleans, first_text


@dataclass(frozen=True)
class Table:
    """The numbers of a file, and what is needed to write them back in the same form."""

    path: Path
    X: np.ndarray
    """Samples as rows; NaN where missing."""
    names: tuple[str, ...] | None
    """Names of the columns; None if the file has none."""
    frame: Any = None
    """All columns of a file that is no array, with the index of a .parquet file."""
    used: tuple[int, ...] = ()
    """Which columns of `frame` are in `X`."""
    layout: Layout | None = None
    """Of a file of lines with cells."""
    key: str | None = None
    """Name of the array in a .npz file."""

    @property
    def index(self) -> Any:
        """Names of the rows, as a .parquet file has them; None where they are only counted."""
        import pandas as pd

        index = None if self.frame is None else self.frame.index
        counted_only = index is None or index.equals(pd.RangeIndex(len(index)))
        return None if counted_only and getattr(index, "name", None) is None else index

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of columns that are used."""
        return self.X.shape[0], self.X.shape[1]

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return int(np.isnan(self.X).sum())

    def is_numeric(self, k: int) -> bool:
        """Tell whether a column of `frame` holds numbers, True and False among them."""
        import pandas as pd

        return bool(pd.api.types.is_numeric_dtype(self.frame.dtypes.iloc[k]))

    def column(self, k: int) -> str:
        """Return the name of a column of `X`, or its position where it has none."""
        return str(k) if self.names is None else self.names[k]

    def for_fit(self) -> Any:
        """Return the data for `fit`, with the names of the columns if there are any."""
        return _as_frame(self.X, self.names)

    def for_model(self, model: Any) -> Any:
        """Return the data for a method of a fitted model; check the number of columns."""
        known = model_names(model)
        check_width(self.path, self.X.shape[1], model)
        return _as_frame(self.X, known)


def check_width(path: Path, n_columns: int, model: Any) -> None:
    """Refuse another number of columns than a model was fitted to."""
    known, expected = model_names(model), int(model.n_features_in_)
    if n_columns != expected:
        shown = "" if known is None else f" ({first_ten(known)})"
        raise CommandError(
            f"{path} has {counted(n_columns, 'column')}, but the model was fitted to "
            f"{expected}{shown}: choose them with --columns or --drop"
        )


def model_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    key: str | None = None,
    header: str = "auto",
    model: Any = None,
    *,
    only_numbers: bool = False,
    carried: bool = False,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Table:
    """Read the numbers of a file.

    Parameters
    ----------
    path : Path
    columns, drop : sequence of str, default=None
        Columns to take or to leave out: names, positions from 0, ranges "2:10".
    key : str, default=None
        Name of the array in a .npz file.
    header : {"auto", "yes", "no"}
        Whether the first line of a .csv file holds names.
    model : fitted estimator, default=None
        If both the model and the file have names of columns, the columns of the model are taken,
        in its order.
    only_numbers : bool, default=False
        Leave out columns of text, instead of refusing them; refuse a table without any number.
    carried : bool, default=False
        Whether columns that the model does not know are written to the output unchanged; a note
        about them says so.
    decimal, thousands : str, default=None
        The separators in the numbers of a .csv or .tsv file; found from the cells if not given.
    """
    how: dict[str, Any] = {"carried": carried, "decimal": decimal, "thousands": thousands}
    table = read_chosen(path, columns, drop, key, header, model, **how)
    return as_numbers(table, only_numbers=only_numbers)


def as_numbers(table: Table, *, only_numbers: bool = False) -> Table:
    """Return a table of `read_chosen` with the numbers of its columns."""
    used = list(table.used)
    if table.frame is not None:
        check_clear(table, used)
        if only_numbers:
            used = _pass_over(table, used)
    X = table.X[:, used] if table.frame is None else numbers_of(table, used)
    check_finite(table, X, used)
    if only_numbers and np.isnan(X).all():
        raise CommandError(f"{table.path} has no number at all: there is nothing to learn from")
    names = None if table.names is None else tuple(table.names[k] for k in used)
    return replace(table, X=X, names=names, used=tuple(used))


def read_chosen(
    path: Path,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    key: str | None = None,
    header: str = "auto",
    model: Any = None,
    *,
    carried: bool = False,
    decimal: str | None = None,
    thousands: str | None = None,
) -> Table:
    """Read a file and choose columns, as `read_table` does; its entries stay what they are.

    `X` and `names` are those of all columns, and `X` has numbers only where the file is an array.
    """
    _check_options(path, key, decimal, thousands)
    with reading(path), decoding(path):
        if ending_of(path) in FRAMES:
            table = _read_frame(path, header, decimal, thousands)
        else:
            X, key = read_array(path, key)
            table = Table(path, X, None, key=key)
    names, n_columns = table.names, table.X.shape[1]
    taken = range(n_columns) if not columns else positions(path, n_columns, names, columns)
    left_out = set(positions(path, n_columns, names, drop or ()))
    used = [k for k in dict.fromkeys(taken) if k not in left_out]
    wanted = None if model is None else model_names(model)
    if wanted is not None and names is not None and not columns:
        used = by_name(path, {names[k]: k for k in used}, wanted, carried)
    if not used:
        raise CommandError(f"no column of {path} is left: see --columns and --drop")
    return replace(table, used=tuple(used))


def _check_options(path: Path, key: str | None, decimal: str | None, thousands: str | None) -> None:
    """Refuse files of other formats, and options that are not for this one."""
    ending = ending_of(path)
    if ending not in ENDINGS:
        raise unreadable(f"{path}: polyspan reads {', '.join(ENDINGS)}")
    if key is not None and ending != ".npz":
        raise CommandError(f"--key is for .npz files, and {path} is none")
    if decimal is not None and decimal == thousands:
        raise typer.BadParameter(f"--decimal and --thousands are both {decimal!r}")
    if (decimal, thousands) != (None, None) and ending not in TEXT:
        raise CommandError(f"--decimal and --thousands are for {', '.join(TEXT)}: {path} is none")


def _read_frame(path: Path, header: str, decimal: str | None, thousands: str | None) -> Table:
    layout = None
    if ending_of(path) in TEXT:
        frame, layout = read_csv(path, header, decimal, thousands)
        names = layout.names
    else:
        frame = read_parquet(path)
        as_booleans(frame)
        names = tuple(str(name) for name in frame.columns)
        check_unique(path, list(names))
    check_rows(path, frame)
    return Table(path, np.empty(frame.shape), names, frame=frame, layout=layout)


def check_finite(table: Table, X: np.ndarray, used: list[int]) -> None:
    """Refuse infinity, and say where it is."""
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise CommandError(
            f"{table.path} has {len(infinite)} infinite entries (the first in row {row} of column "
            f"{table.column(used[column])}): leave the cells blank where they mean missing, or "
            "mend them"
        )


def check_clear(table: Table, used: list[int]) -> None:
    """Refuse columns of numbers that are not written in one way; say how the others were read."""
    if table.layout is None:
        return
    readings = table.layout.readings
    for k in used:
        if k in readings.unclear:
            raise CommandError(
                f"column {table.column(k)} of {table.path} {readings.unclear[k]} (--decimal, "
                "--thousands, --drop)"
            )
    names = [table.column(k) for k in used if readings.marks.get(k, Marks()) != Marks()]
    if names:
        say("note", f"read with decimal commas or thousands separators: {first_ten(names)}")


def _pass_over(table: Table, used: list[int]) -> list[int]:
    """Return the columns that hold numbers, or are empty; name the others."""
    text = [k for k in used if not table.is_numeric(k)]
    if text and len(text) == len(used):
        raise CommandError(
            f"{table.path} has no column of numbers among {len(used)}: there is nothing to learn "
            "from; turn text into numbers first"
        )
    if text:
        names = first_ten([named_text(table, k) for k in text])
        say("note", f"passed over, since they hold text: {names}")
    return [k for k in used if k not in text]


def named_text(table: Table, k: int) -> str:
    """Return the name of a column of text, with its first text where other cells are numbers."""
    row, some_numbers = first_text(table.frame, k)
    at = "" if row is None or not some_numbers else f" (row {row}: {table.frame.iloc[row, k]!r})"
    return f"{table.column(k)}{at}"


def numbers_of(table: Table, used: list[int]) -> np.ndarray:
    """Return columns of a frame as numbers; refuse text and say where it is."""
    frame = table.frame
    text = [k for k in used if not table.is_numeric(k)]
    if text:
        names = [table.column(k) for k in text]
        row, _ = first_text(frame, text[0])
        cell = "" if row is None else str(frame.iloc[row, text[0]])
        at = f" (row {row} of {names[0]}: {cell!r})" if cell else ""
        raise CommandError(
            f"{table.path} has {counted(len(text), 'column')} with cells that are not numbers{at}: "
            f"leave out with --drop {','.join(names[:10])}{', …' * (len(names) > 10)}, or choose "
            "with --columns"
        )
    kinds = {str(frame.dtypes.iloc[k]).lower() for k in used}
    dtype = np.float32 if kinds == {"float32"} else np.float64
    X = np.empty((len(frame), len(used)), dtype=dtype)
    for j, k in enumerate(used):
        X[:, j] = frame.iloc[:, k].to_numpy(dtype=dtype, na_value=np.nan)
    return X


def _as_frame(X: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """Return a data frame where there are names, else the array."""
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(names))
