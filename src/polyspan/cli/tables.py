"""Tables from files and to files: lines with cells, .parquet, .npy and .npz."""

from __future__ import annotations

import gzip
import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polyspan.base.checks import first_ten
from polyspan.cli.cells import Rows, as_cells, content_of, split_cells
from polyspan.cli.errors import CommandError, say, unreadable
from polyspan.cli.files import STANDARD, Writer, ending_of, reading
from polyspan.cli.options import FRAMES, TABLES, TEXT, Reading

#: Columns of these names, or without a name, count the rows where all their numbers differ.
COUNTERS = ("id", "index", "row", "unnamed: 0")


@dataclass(frozen=True)
class Table:
    """A file with all its columns, whose names are text, and how it was read."""

    path: Path
    frame: pd.DataFrame
    """With types as pandas and pyarrow give them."""
    reading: Reading
    rows: Rows | None = None
    """Cells of all lines of a file of text as they are written."""
    line_end: str = "\n"

    @property
    def cells(self) -> Rows:
        """The cells without those of the header."""
        return (self.rows or [])[int(self.reading.header) :]

    @property
    def chosen(self) -> pd.DataFrame:
        """The columns that --columns and --drop leave."""
        taken = split_names(self.reading.columns, self.frame) or list(self.frame)
        left_out = split_names(self.reading.drop, self.frame)
        unknown = [name for name in (*taken, *left_out) if name not in self.frame]
        if unknown:
            known = first_ten(list(self.frame))
            raise CommandError(f"{self.path} has no column {unknown[0]!r}: its columns are {known}")
        used = [name for name in taken if name not in left_out]
        if not used:
            raise CommandError(f"no column of {self.path} is left: see --columns and --drop")
        return self.frame[used]

    def for_model(self, model: Any) -> pd.DataFrame:
        """Return the columns that a model was fitted to."""
        wanted = list(getattr(model, "feature_names_in_", self.chosen))
        missing = [name for name in wanted if name not in self.frame]
        if missing:
            raise CommandError(
                f"{self.path} lacks {len(missing)} of the {len(wanted)} columns that the model was "
                f"fitted to: {first_ten(missing)}"
            )
        return self.frame[wanted]

    def with_results(self, used: Any, results: dict[str, Any], output: Path) -> pd.DataFrame:
        """Return results, after the columns that were not used where the output can hold these."""
        frame = pd.DataFrame(index=self.frame.index)
        if ending_of(output) in FRAMES and ending_of(self.path) in FRAMES:
            frame = self.frame.drop(columns=list(used))
        for k, name in enumerate(self.frame):
            if name in frame and self.rows is not None:
                frame[name] = [content_of(row[k]) for row in self.cells]
        for name, values in results.items():
            frame[name if name not in frame else f"polyspan_{name}"] = values
        return frame


def split_names(words: Sequence[str] | None, known: Any) -> list[str]:
    """Split at commas, but not in names that contain them."""
    parts = [[word] if word in known else word.split(",") for word in words or ()]
    return [name if name in known else name.strip() for part in parts for name in part]


def read_table(path: Path, how: Reading) -> Table:
    """Read a file, the standard input for -; all of it at once."""
    ending = ending_of(path)
    if ending not in TABLES:
        raise unreadable(f"{path}: polyspan reads {', '.join(TABLES)}")
    with reading(path):
        content = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
        if ending in TEXT:
            table = _read_lines(path, content, how)
        elif ending == ".parquet":
            table = Table(path, _read_parquet(path, content), how)
        else:
            table = Table(path, _read_array(path, content, how.key), how)
    if not table.frame.size:
        raise CommandError(f"{path} is empty: it has no rows, or no columns")
    table.frame.columns = table.frame.columns.map(str)
    return table


def separator(path: Path, how: Reading) -> str:
    """Return what separates cells: what --sep says, which writes a tab as a backslash and a t."""
    usual = "\t" if ending_of(path).startswith(".tsv") else ","
    return (how.sep or usual).replace("\\t", "\t")


def _read_lines(path: Path, content: bytes, how: Reading) -> Table:
    """Read lines with cells by pandas, and keep the cells as they are written."""
    if ending_of(path).endswith(".gz"):
        content = gzip.decompress(content)
    try:
        text = content.decode(how.encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise unreadable(f"{path} is not in {how.encoding}: {error}; give --encoding") from error
    sep = separator(path, how)
    rows = split_cells(path, text, sep)
    if not rows:
        raise unreadable(f"{path} is empty")
    names = [content_of(cell) for cell in rows[0]] if how.header else []
    check_unique(path, [name for name in names if name])
    dates: list[Any] = split_names(how.parse_dates, names)
    # From pandas 3.1 on the nearest double is the default, and the option is deprecated.
    recent = tuple(int(part) for part in pd.__version__.split(".")[:2]) >= (3, 1)
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=sep,
            header=0 if how.header else None,
            index_col=False,
            decimal=how.decimal,
            thousands=how.thousands,
            parse_dates=dates if how.header else [int(name) for name in dates],
            low_memory=False,
            **({} if recent else {"float_precision": "round_trip"}),
        )
    except (ValueError, TypeError) as error:  # options that do not fit, quotes without an end
        raise unreadable(f"cannot read {path}: {error}") from error
    if len(frame) != len(rows) - how.header:
        raise unreadable(f"{path} has {len(rows)} lines, of which pandas reads {len(frame)}")
    table = Table(path, frame, how, rows, "\r\n" if "\r\n" in text else "\n")
    for name in dates:
        if frame[name if how.header else int(name)].dtype.kind != "M":
            raise CommandError(f"--parse-dates {name}: {path} has cells there that are no dates")
    return table


def _read_parquet(path: Path, content: bytes) -> pd.DataFrame:
    """Read columns in the types of the file: pandas' own cannot hold whole numbers with holes."""
    import pyarrow.parquet

    check_unique(path, pyarrow.parquet.read_schema(io.BytesIO(content)).names)
    return pd.read_parquet(io.BytesIO(content), dtype_backend="pyarrow")


def _read_array(path: Path, content: bytes, key: str | None) -> pd.DataFrame:
    """Read an array of numbers; without pickles, which could run code."""
    found = np.load(io.BytesIO(content), allow_pickle=False)
    if not isinstance(found, np.ndarray):
        keys = list(found.files)
        if (key or keys[0]) not in keys or (key is None and len(keys) > 1):
            raise CommandError(f"{path} holds the arrays {first_ten(keys)}: choose one by --key")
        found = found[key or keys[0]]
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise CommandError(
            f"{path} holds {found.dtype} of the shape {found.shape}: need real numbers in two "
            "dimensions, samples as rows"
        )
    return pd.DataFrame(found.astype(found.dtype.newbyteorder("="), copy=False))


def check_unique(path: Path, names: Sequence[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise CommandError(f"{path} has several columns called {first_ten(twice)}: rename them")


def numbers_of(table: Table) -> pd.DataFrame:
    """Return the columns with numbers as floats; say which others are passed over.

    Columns that count the rows would be a direction of their own: --columns takes them.
    """
    found = table.chosen
    text = [name for name in found if not pd.api.types.is_numeric_dtype(found[name].dtype)]
    numbers = found.drop(columns=text)
    numbers = numbers.astype("float32" if {*numbers.dtypes} == {np.dtype("f4")} else "float64")
    empty = [name for name in numbers if numbers[name].isna().all()]
    count: list[str] = []
    if ending_of(table.path) in FRAMES and not table.reading.columns:
        count = [name for name in numbers if counts_rows(numbers[name].to_numpy(), name)]
    for names, why in (
        (text, "hold text"),
        (empty, "are empty"),
        (count, "only count the rows (--columns takes them)"),
    ):
        if names:
            say("note", f"passed over, since they {why}: {first_ten(names)}")
    numbers = numbers.drop(columns=[*empty, *count])
    if not numbers.shape[1]:
        raise CommandError(
            f"{table.path} has no column of numbers: there is nothing to learn from (are --sep and "
            "--decimal right?)"
        )
    return numbers


def counts_rows(values: np.ndarray, name: str) -> bool:
    """Tell whether a column counts rows: 7, 8, 9, … or, where its name says so, in any order."""
    if not np.isfinite(values).all() or (values != np.rint(values)).any() or len(values) < 3:
        return False
    different = name.strip().lower() in COUNTERS and len(np.unique(values)) == len(values)
    return different or bool((np.diff(values) == 1).all())


def filled_writer(table: Table, filled: pd.DataFrame, path: Path) -> Writer:
    """Return what writes a table whose holes are filled.

    From lines to lines with the same separator all other cells stay as they are written.
    """
    sep, how = separator(table.path, table.reading), table.reading
    tabs = ending_of(path).startswith(".tsv")
    if table.rows is None or ending_of(path) not in TEXT or tabs != (sep == "\t"):
        return frame_writer(filled, path, header=how.header)
    cells = [list(row) for row in table.cells]
    for k, name in enumerate(table.frame):
        column, new = table.frame[name], filled[name]
        holes = np.flatnonzero(column.isna() & new.notna())
        if len(holes):
            seen = np.flatnonzero(column.notna())
            texts = [cells[i][k] for i in seen]
            found = as_cells(new.iloc[holes], column.iloc[seen], texts, how.decimal, sep)
            for i, cell in zip(holes, found, strict=True):
                cells[i][k] = cell
    head = (table.rows or [])[: int(how.header)]
    text = "".join(sep.join(row) + table.line_end for row in (*head, *cells))
    return _packed(text.encode(how.encoding), ending_of(path))


def frame_writer(frame: pd.DataFrame, path: Path, *, header: bool = True) -> Writer:
    """Return what writes a data frame in the format that the name of the file says."""
    ending, index = ending_of(path), not isinstance(frame.index, pd.RangeIndex)
    if ending in TEXT:
        sep = "\t" if ending.startswith(".tsv") else ","
        # Lines end in the same way on every system.
        text = frame.to_csv(sep=sep, index=index, header=header, lineterminator="\n")
        return _packed(text.encode(), ending)
    if ending == ".parquet":
        return lambda file: frame.to_parquet(file, index=index or None)
    numbers = frame.select_dtypes(["number", "bool"])
    lost = [name for name in frame if name not in numbers]
    if not numbers.shape[1]:
        raise CommandError(f"{path} can hold numbers only: write to {', '.join(FRAMES)}")
    if lost:
        say("note", f"not in {path}, which can hold numbers only: {first_ten(lost)}")
    dtype = np.float32 if {*numbers.dtypes} == {np.dtype("f4")} else np.float64
    X = numbers.to_numpy(dtype, na_value=np.nan)
    return lambda file: np.save(file, X) if ending == ".npy" else np.savez(file, X=X)


def _packed(content: bytes, ending: str) -> Writer:
    """Return what writes bytes, packed where the ending says so, without the time of the day."""
    packed = gzip.compress(content, mtime=0) if ending.endswith(".gz") else content
    return lambda file: file.write(packed)
