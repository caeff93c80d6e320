"""The cells of a CSV file as they are written, and what is filled in written like them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from polyspan.cli.errors import CommandError, counted, unreadable
from polyspan.tables.features import MOST_DECIMALS

Rows = list[list[str]]


def split_cells(path: Path, text: str, sep: str) -> Rows:
    """Return the cells of the lines that are not blank, with their quotes and blanks.

    The csv module and pandas take quotes away, which a copy of the file must keep.
    """
    if len(sep) != 1:
        raise CommandError(f"--sep {sep!r}: need one character")
    mark = re.escape(sep)
    cell = re.compile(rf'((?:"[^"]*(?:""[^"]*)*")?[^{mark}\r\n]*)({mark}|\r\n|\r|\n|\Z)')
    rows: Rows = []
    row: list[str] = []
    for found in cell.finditer(text):
        row.append(found[1])
        if found[2] == sep:
            continue
        if len(row) > 1 or row[0].strip():
            if rows and len(row) != len(rows[0]):
                line = text.count("\n", 0, found.start()) + 1
                raise unreadable(
                    f"{path}, line {line}: {counted(len(row), 'cell')}, but {len(rows[0])} in the "
                    "first line: mend the file, or say by --sep what separates cells"
                )
            rows.append(row)
        row = []
        if not found[2]:
            break
    return rows


def content_of(cell: str) -> str:
    """Return what a cell holds, without quotes around it."""
    whole = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if whole else cell


def quoted(text: str, sep: str) -> str:
    """Return a cell that holds a text."""
    if not any(sign in text for sign in (sep, '"', "\r", "\n")):
        return text
    return '"' + text.replace('"', '""') + '"'


def decimals_of(texts: list[str], decimal: str) -> int | None:
    """Return the most digits after the point that numbers have; None: as many as a float has."""
    found = [re.search(r"\d*$", text.strip().partition(decimal)[2]) for text in texts]
    if any("e" in text.lower() for text in texts):
        return None
    most = max((len(one[0]) for one in found if one), default=0)
    return most if most <= MOST_DECIMALS else None


def as_cells(values: Any, column: Any, texts: list[str], decimal: str, sep: str) -> list[str]:
    """Return what is filled into a column, written as its other cells are.

    Parameters
    ----------
    values : pandas series
        What is filled in.
    column, texts : pandas series and list of str
        The observed entries, and their cells as they are written.
    decimal, sep : str
        The decimal mark of numbers, and what separates cells.
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    known = dict(zip(reversed(column.to_list()), reversed(texts), strict=True))
    form = None
    if pd.api.types.is_datetime64_any_dtype(column.dtype) and texts:
        form = guess_datetime_format(content_of(texts[0]))
    digits = decimals_of([content_of(text) for text in texts], decimal)

    def written(value: Any) -> str:
        if value in known:
            return str(known[value])
        if form is not None:
            return quoted(value.strftime(form), sep)
        if isinstance(value, float):
            text = str(value) if digits is None else f"{value:.{digits}f}"
            return quoted(text.replace(".", decimal), sep)
        return quoted(str(value), sep)

    return [written(value) for value in values.to_list()]
