"""Numbers with decimal commas, thousands separators, True and False: how a column is written.

A column is read where all its cells agree on one reading. Where they fit several, such as 1,234, or
none in common, such as 1,5 and 2.5, its name is told, and the user says how to read the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

DECIMALS = (".", ",")
#: Thousands separators: what is typed, and what else it stands for in files.
THOUSANDS = {",": ",", ".": ".", " ": " \u00a0\u2009\u202f", "'": "'’"}


@dataclass(frozen=True)
class Marks:
    """The separators of a column of numbers."""

    decimal: str = "."
    thousands: str = ""
    """Empty where there is none."""

    @property
    def pattern(self) -> str:
        """Of a number that is written with these separators."""
        d, t, digit = f"[{self.decimal}]", f"[{self.thousands}]", "[0-9]"
        # A group that begins with 0 is no thousand: 0,125.
        groups = f"[1-9]{digit}{{0,2}}(?:{t}{digit}{{3}})+"
        whole = f"(?:{digit}+|{groups})" if self.thousands else f"{digit}+"
        number = f"(?:{whole}(?:{d}{digit}*)?|{d}{digit}+)(?:[eE][+-]?{digit}+)?"
        return f"[+-]?(?:{number}|(?i:inf(?:inity)?))"

    def fit(self, cells: Any) -> Any:
        """Tell of which cells this is a reading; missing ones fit everything."""
        return cells.str.fullmatch(self.pattern, na=True).astype(bool)

    def numbers(self, cells: Any) -> np.ndarray:
        """Return the numbers, NaN where missing, each to the nearest double."""
        plain = cells.str.replace(self.thousands, "", regex=False) if self.thousands else cells
        plain = plain.str.replace(self.decimal, ".", regex=False)
        return np.asarray(plain.astype("float64"))

    def write(self, value: float, whole: bool) -> str:
        """Write a number in this way; a whole one without a decimal separator where asked."""
        number = int(value) if whole and value == round(value) else value
        text = f"{number:,}" if self.thousands else str(number)
        return text.translate({ord(","): self.thousands, ord("."): self.decimal})


@dataclass
class Readings:
    """How the columns of a file are written."""

    marks: dict[int, Marks] = field(default_factory=dict)
    """Of columns whose cells show it; the decimal separator is empty where they do not."""
    unclear: dict[int, str] = field(default_factory=dict)
    """Why columns of numbers cannot be read."""

    def of(self, k: int) -> Marks:
        """Return how to write into a column: as in the others where its own cells do not show."""
        decimals = {m.decimal for m in self.marks.values() if m.decimal}
        usual = decimals.pop() if len(decimals) == 1 else "."
        own = self.marks.get(k, Marks(""))
        return own if own.decimal else replace(own, decimal=usual)


def allowed(decimal: str | None, thousands: str | None) -> list[Marks]:
    """Return the separators that the options allow, plain ones first; None allows all."""
    decimals = DECIMALS if decimal is None else (decimal,)
    groups = "".join(THOUSANDS.values()) if thousands is None else THOUSANDS.get(thousands, "")
    return [Marks(d, t) for t in ("", *groups) for d in decimals if d not in (t, thousands)]


def is_number(cell: str, marks: list[Marks]) -> bool:
    """Tell whether a cell is a number in any of these ways, or True or False."""
    cell = cell.strip()
    return cell.lower() in ("true", "false") or any(re.fullmatch(m.pattern, cell) for m in marks)


def read_columns(frame: Any, text_of: Callable[[int], Any], marks: list[Marks]) -> Readings:
    """Turn columns of a frame into numbers, in place, where their cells agree on a reading.

    Parameters
    ----------
    frame : DataFrame
        As pandas reads it: text where a cell is not a plain number.
    text_of : callable
        Gives the cells of a column of numbers as they are written, NaN where missing.
    marks : list of Marks
        What may be tried.
    """
    found = Readings()
    floats = [k for k, kind in enumerate(frame.dtypes) if kind.kind == "f"]
    for k in range(frame.shape[1]):
        if is_text(frame, k):
            _read_column(frame, k, frame.iloc[:, k].str.strip(), marks, found)
    # 1.234 is a number to pandas. In a file with decimal commas it may be a thousand.
    if any(m.decimal == "," for m in found.marks.values()) or Marks() not in marks:
        for k in floats:
            cells = text_of(k).str.strip()
            if _has(cells, "."):
                _read_column(frame, k, cells, marks, found)
    return found


def is_text(frame: Any, k: int) -> bool:
    """Tell whether a column holds strings, and perhaps missing cells."""
    import pandas as pd

    return bool(pd.api.types.infer_dtype(frame.iloc[:, k], skipna=True) == "string")


def first_text(frame: Any, k: int) -> tuple[int | None, bool]:
    """Return the row of the first cell that is no number, and whether any other cell is one.

    The row is None where the column holds no strings, or only numbers.
    """
    if not is_text(frame, k):
        return None, False
    cells = frame.iloc[:, k].str.strip()
    for some in (cells.head(1000), cells):  # the first rows settle most columns
        number = np.any([m.fit(some) for m in allowed(None, None)], axis=0)
        if not number.all():
            return int(np.argmin(number)), bool((number & some.notna()).any())
    return None, True


def mark_among_numbers(frame: Any, k: int) -> int | None:
    """Return the row of the first mark, such as - or ?, of a column of numbers and such marks."""
    row, some_numbers = first_text(frame, k)
    if row is None or not some_numbers:
        return None
    cells = frame.iloc[:, k].str.strip()
    number = np.any([m.fit(cells) for m in allowed(None, None)], axis=0)
    marks = cells[~number].unique()
    return None if any(char.isalnum() for mark in marks for char in mark) else row


def as_booleans(frame: Any) -> None:
    """Give columns of True, False and missing cells the type that holds all three, in place."""
    import pandas as pd

    for k in range(frame.shape[1]):
        column = frame.iloc[:, k]
        if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "boolean":
            frame.isetitem(k, column.astype("boolean"))


def _read_column(frame: Any, k: int, cells: Any, marks: list[Marks], found: Readings) -> None:
    """Read one column, or note why that cannot be done; text stays as it is."""
    seen = cells.dropna()
    every = [m for m in allowed(None, None) if not m.thousands or _has(seen, m.thousands)]
    # Its first cell settles most columns of text.
    for some in (seen.iloc[:1], seen):
        if not np.any([m.fit(some) for m in every], axis=0).all():
            return
    fitting = [m for m in every if m in marks and m.fit(seen).all()]
    if not fitting:
        found.unclear[k] = _why_none(seen, marks)
        return
    values = [m.numbers(cells) for m in fitting]
    for other, numbers in zip(fitting, values, strict=True):
        apart = np.flatnonzero((numbers != values[0]) & cells.notna())
        if len(apart):
            row = int(apart[0])
            found.unclear[k] = (
                f"can be read in two ways: {cells.iloc[row]!r} (row {row}) is "
                f"{values[0][row]:.10g} with {_option(fitting[0], cells.iloc[row])} and "
                f"{numbers[row]:.10g} with {_option(other, cells.iloc[row])}; say which"
            )
            return
    frame.isetitem(k, values[0])
    # All that fit give the same numbers, so that they differ in what no cell has.
    own = fitting[0]
    shown = own.thousands in DECIMALS or _has(seen, own.decimal)
    found.marks[k] = own if shown else replace(own, decimal="")


def _has(cells: Any, mark: str) -> bool:
    return bool(cells.str.contains(mark, regex=False, na=False).any())


def _option(marks: Marks, cell: str = "") -> str:
    """Return the option that asks for a reading of a cell."""
    if marks.thousands and marks.thousands in cell:
        typed = next(key for key, kinds in THOUSANDS.items() if marks.thousands in kinds)
        return f"--thousands {typed}" if typed in DECIMALS else f'--thousands "{typed}"'
    return f"--decimal {marks.decimal}"


def _why_none(seen: Any, marks: list[Marks]) -> str:
    """Name the cells for which no one reading of a column will do."""
    wrong = [(seen[~m.fit(seen)].iloc[0], m) for m in marks if not m.thousands]
    parts = [f"{cell!r} is no number with {_option(m)}" for cell, m in wrong]
    return f"cannot be read in one way: {', and '.join(parts)}; mend it, or leave it out"
