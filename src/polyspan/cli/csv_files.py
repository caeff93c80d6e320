"""CSV files, with or without a header, separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyspan.cli.errors import CommandError, counted, say, unreadable


@dataclass(frozen=True)
class Layout:
    """Format of a CSV file."""

    delimiter: str
    names: tuple[str, ...] | None
    """Names of the columns; None if the file has no header."""
    first_row: int = 0
    """Number of lines before the first row: blank lines and the header."""


def read_csv(path: Path, header: str) -> tuple[Any, Layout]:
    """Return a data frame with numbers where a column holds numbers, and the layout.

    Parameters
    ----------
    path : Path
    header : {"auto", "yes", "no"}
        "auto": the first line is a header if one of its cells is not a number.
    """
    import pandas as pd

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
    return frame, layout


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


def _find_layout(path: Path, header: str) -> Layout:
    """Find delimiter and header from the first line that is not blank."""
    with path.open(encoding="utf-8-sig") as file:
        n_blank, line = next(((k, line) for k, line in enumerate(file) if line.strip()), (0, ""))
    without_header = Layout(max(",;\t", key=line.count), None)
    # A cell that pandas reads neither as a number nor as missing is a name.
    named = any(kind.kind not in "iuf" for kind in _parse(path, without_header, nrows=1).dtypes)
    if header == "no" or (header == "auto" and not named):
        return without_header
    cells = _parse(path, without_header, nrows=1, dtype=str, na_filter=False).iloc[0]
    names = _names(path, [cell.strip() for cell in cells])
    return Layout(without_header.delimiter, names, n_blank + 1)


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
    # newline="" leaves line ends to the csv module, which handles line ends inside quotes.
    with path.open(encoding="utf-8-sig", newline="") as file:
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
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"{path} has more than one column called {', '.join(twice)}: rename one")
