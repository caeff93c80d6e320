"""CSV and TSV files as they come: with or without a header, of many separators, packed or not."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from polyspan.cli.errors import CommandError, counted, say, unreadable
from polyspan.cli.formats import ending_of, open_text
from polyspan.cli.separators import (
    Readings,
    allowed,
    as_booleans,
    is_number,
    read_columns,
)


@dataclass(frozen=True)
class Layout:
    """Format of a CSV file."""

    delimiter: str
    names: tuple[str, ...] | None
    """Names of the columns; None if the file has no header."""
    first_row: int = 0
    """How many lines stand before the first row: blank ones, and the header."""
    readings: Readings = field(default_factory=Readings)
    """How numbers are written."""


def read_csv(
    path: Path, header: str, decimal: str | None = None, thousands: str | None = None
) -> tuple[Any, Layout]:
    """Return a data frame with numbers where a column holds numbers, and the layout.

    Parameters
    ----------
    path : Path
    header : {"auto", "yes", "no"}
        "auto": the first line is a header where one of its cells is no number, or where it counts
        0, 1, 2, … as names of columns of pandas do.
    decimal, thousands : str, default=None
        The separators in numbers, found from the cells where they are not given.
    """
    import pandas as pd

    marks = allowed(decimal, thousands)
    with _csv_errors(path):
        layout = _find_layout(path, header)
        try:
            frame = _parse(path, layout, **_exact_numbers())
        except pd.errors.EmptyDataError as error:
            raise CommandError(f"{path} has a header but no samples") from error
        except pd.errors.ParserError:
            _check_lengths(path, layout)  # names the line as an editor counts it
            raise
        # pandas completes short lines by missing cells.
        if frame.shape[1] > 1 and frame.iloc[:, -1].isna().any():
            _check_lengths(path, layout)
    as_booleans(frame)

    texts = functools.cache(lambda: _parse(path, layout, dtype=str))
    readings = read_columns(frame, lambda k: texts().iloc[:, k], marks)
    return frame, replace(layout, readings=readings)


def read_text(path: Path, layout: Layout) -> Any:
    """Return all cells as text, exactly as in the file."""
    return _parse(path, layout, dtype=str, keep_default_na=False, na_filter=False)


def _exact_numbers() -> dict[str, str]:
    """Return the options with which pandas reads every number as the nearest double."""
    import pandas as pd

    # From pandas 3.1 on this is the default, and the option is deprecated.
    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _parse(path: Path, layout: Layout, **options: Any) -> Any:
    import pandas as pd

    frame = pd.read_csv(
        path,
        compression="gzip" if ending_of(path).endswith(".gz") else None,
        sep=layout.delimiter,
        header=None,
        skiprows=layout.first_row,
        encoding="utf-8-sig",
        skipinitialspace=True,
        low_memory=False,
        **options,
    )
    if layout.names is not None:
        if frame.shape[1] != len(layout.names):
            raise pd.errors.ParserError(
                f"{len(layout.names)} names of columns, but {frame.shape[1]} columns"
            )
        frame.columns = list(layout.names)
    return frame


def _counts(cells: list[str]) -> bool:
    """Tell whether cells are the names that pandas gives: 0, 1, 2, …, after an empty one or not."""
    named = [cell.strip() for cell in cells]
    indexed = named[:1] == [""]
    numbered = named[indexed:]
    return len(numbered) >= (1 if indexed else 3) and numbered == [*map(str, range(len(numbered)))]


def _find_layout(path: Path, header: str) -> Layout:
    """Look at the first line that is not blank."""
    with open_text(path) as file:
        lines = ((k, line) for k, line in enumerate(file) if line.strip())
        n_blank, first = next(lines, (0, ""))
        _, second = next(lines, (0, first))
    without_header = Layout(_delimiter(path, first, second), None)
    cells = _parse(path, without_header, nrows=1, dtype=str).iloc[0].dropna()
    named = not all(is_number(cell, allowed(None, None)) for cell in cells)
    cells = _parse(path, without_header, nrows=1, dtype=str, na_filter=False).iloc[0]
    if header == "no" or (header == "auto" and not (named or _counts([*cells]))):
        return without_header
    names = _names(path, [cell.strip() for cell in cells])
    return Layout(without_header.delimiter, names, n_blank + 1)


def _delimiter(path: Path, first: str, second: str) -> str:
    """Return what separates the cells of the first two lines."""
    import pandas as pd

    if ending_of(path).startswith(".tsv"):
        return "\t"
    first, second = (re.sub('"[^"]*"', "", line) for line in (first, second))
    # In 1,5;2,5;3,5 there are more commas than semicolons.
    for delimiter in (mark for mark in ";\t" if mark in first):
        plain = {"header": None, "dtype": str, "quoting": csv.QUOTE_NONE}
        cells = pd.read_csv(io.StringIO(first), sep=delimiter, **plain).iloc[0]
        if all(is_number(cell, allowed(None, None)) for cell in cells.dropna()):
            return delimiter
    alike = [mark for mark in ",;\t" if 0 < first.count(mark) == second.count(mark)]
    return max(alike or ",;\t", key=first.count)


@contextmanager
def _csv_errors(path: Path) -> Iterator[None]:
    """Turn the errors of pandas into errors of the command."""
    import pandas as pd

    try:
        yield
    except pd.errors.EmptyDataError as error:
        raise unreadable(f"{path} is empty") from error
    except pd.errors.ParserError as error:
        # "Error tokenizing data. C error: EOF inside string starting at row 3"
        reason = str(error).rpartition("error: ")[2].strip()
        raise unreadable(f"cannot read {path}: {reason}; mend the file") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise unreadable(f"{path} is not a CSV file in UTF-8: {error}") from error


def _check_lengths(path: Path, layout: Layout) -> None:
    """Refuse a file with a line that is shorter or longer than the first.

    The csv module is used, since pandas treats a short line as one that ends in empty cells.
    """
    # Line ends are left to the csv module, which knows about those inside quotes.
    with open_text(path) as file:
        rows = csv.reader(file, delimiter=layout.delimiter, skipinitialspace=True)
        n_cells = 0
        for row in rows:
            if row in ([], [""]):  # blank
                continue
            n_cells = n_cells or len(row)
            if len(row) != n_cells:
                raise unreadable(
                    f"{path}, line {rows.line_num}: {counted(len(row), 'cell')}, but {n_cells} in "
                    "the first line: mend the file"
                )


def _names(path: Path, cells: list[str]) -> tuple[str, ...]:
    """Check the names of the columns; name those that have no name."""
    names = []
    for k, cell in enumerate(cells):
        if not cell:
            say(
                "note",
                f"column {k} of {path} has no name and is called unnamed_{k}; where it only counts "
                f"the rows, leave it out: --drop unnamed_{k}",
            )
        names.append(cell or f"unnamed_{k}")
    check_unique(path, names)
    return tuple(names)


def check_unique(path: Path, names: list[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise CommandError(f"{path} has more than one column called {', '.join(twice)}: rename one")
