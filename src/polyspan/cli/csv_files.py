"""CSV files as they come: with or without a header, separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyspan.cli.failures import Code, CommandError, say

#: Cells that mean "missing", as pandas reads them by default; compared without regard to case.
MISSING = frozenset(
    ("", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a", "#na", "#n/a n/a", "1.#ind")
)


@dataclass(frozen=True)
class Layout:
    """How a CSV file is written."""

    delimiter: str
    names: tuple[str, ...] | None
    """None where the file has no header."""


def read_csv(path: Path, header: str) -> tuple[Any, Layout]:
    """Return a data frame with numbers where a column holds numbers, and the layout.

    Parameters
    ----------
    path : Path
    header : {"auto", "yes", "no"}
        "auto": the first line is a header where one of its cells is no number.
    """
    layout = _find_layout(path, header)
    return _parse(path, layout, **_exact_numbers()), layout


def read_text(path: Path, layout: Layout) -> Any:
    """Return the same cells as they are written."""
    return _parse(path, layout, dtype=str, keep_default_na=False, na_filter=False)


def write_csv(frame: Any, path: Path, layout: Layout) -> None:
    """Write a data frame; numbers in the shortest form that reads back to the same bits."""
    frame.to_csv(path, index=False, header=layout.names is not None, sep=layout.delimiter)


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _exact_numbers() -> dict[str, str]:
    """Return what makes pandas read every number to the nearest double."""
    import pandas as pd

    # From 3.1 it is the default, and asking for it is deprecated.
    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _parse(path: Path, layout: Layout, **options: Any) -> Any:
    import pandas as pd

    frame = pd.read_csv(
        path,
        sep=layout.delimiter,
        header=None,
        skiprows=0 if layout.names is None else 1,
        encoding="utf-8-sig",
        skipinitialspace=True,
        low_memory=False,
        **options,
    )
    if layout.names is not None:
        frame.columns = list(layout.names)
    return frame


def _find_layout(path: Path, header: str) -> Layout:
    """Read the file once, to find the header and to see that all rows are of one length."""
    # newline="" leaves line ends to the csv module, which knows about those inside quotes.
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            line = file.readline()
            delimiter = max(",;\t", key=line.count)
            file.seek(0)
            rows = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
            first = next((row for row in rows if row), None)
            if first is None:
                raise CommandError(f"{path} is empty", Code.UNREADABLE)
            n_rows = 1
            for row in rows:
                n_rows += bool(row)
                if row and len(row) != len(first):
                    raise CommandError(
                        f"{path}, line {rows.line_num}: {len(row)} cells, but {len(first)} in the "
                        "first line: mend the file",
                        Code.UNREADABLE,
                    )
        except (UnicodeDecodeError, csv.Error) as error:
            raise CommandError(
                f"{path} is not a CSV file in UTF-8: {error}", Code.UNREADABLE
            ) from error
    cells = [cell.strip() for cell in first]
    named = any(not is_number(cell) and cell.lower() not in MISSING for cell in cells)
    if header == "no" or (header == "auto" and not named):
        return Layout(delimiter, None)
    if n_rows == 1:
        raise CommandError(f"{path} has a header but no samples")
    return Layout(delimiter, _names(path, cells))


def _names(path: Path, cells: list[str]) -> tuple[str, ...]:
    """Check the names of the columns; one without a name gets one."""
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
    """Raise an error where two columns have one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"{path} has more than one column called {', '.join(twice)}: rename one")
