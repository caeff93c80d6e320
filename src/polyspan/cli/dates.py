"""Dates in cells of text: read where they have ISO form, written in the form of their column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: Date; then perhaps a time with a zone.
PATTERN = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:([T ])([0-9]{2}:[0-9]{2})(:[0-9]{2})?(?:\.([0-9]{1,6}))?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
#: What four digits can write.
FIRST, LAST = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")


@dataclass(frozen=True)
class DateForm:
    """How the dates of a column are written."""

    separator: str = ""
    """Between date and time; empty where there is no time."""
    seconds: bool = False
    digits: int = 0
    """Of the fraction of a second."""
    zone: str = ""
    """The same in all cells."""

    def write(self, moments: np.ndarray) -> list[str]:
        """Return moments (datetime64) as text."""
        moments = np.clip(moments.astype("datetime64[us]"), FIRST, LAST)
        texts = np.datetime_as_string(moments, unit="us").tolist()
        if not self.separator:
            return [text[:10] for text in texts]
        end = 19 if self.seconds else 16
        fractions = [f".{text[20 : 20 + self.digits]}" if self.digits else "" for text in texts]
        return [
            f"{text[:10]}{self.separator}{text[11:end]}{fraction}{self.zone}"
            for text, fraction in zip(texts, fractions, strict=True)
        ]


def form_for(moments: np.ndarray) -> DateForm:
    """Return a form for a column of which no cell shows one: with the time where there is one."""
    days = moments.astype("datetime64[D]").astype(moments.dtype)
    return DateForm() if (days == moments).all() else DateForm("T", seconds=True)


def read_dates(cells: Any) -> tuple[np.ndarray, DateForm] | None:
    """Return the moments of a column of text, NaT where missing, and their form.

    None where a cell is no date in ISO form, or has another form than the others.
    """
    cells = cells.str.strip()
    # The first cell settles most columns of text.
    if first_other(cells.dropna().head(1)) is not None or first_other(cells) is not None:
        return None
    seen = cells.dropna()
    forms, digits = _forms(seen)
    separator, seconds, zone = forms[0]
    moments = np.full(len(cells), np.datetime64("NaT"), dtype="datetime64[us]")
    moments[cells.notna().to_numpy()] = [_moment(cell, zone) for cell in seen]
    return moments, DateForm(separator, seconds, max(digits), zone)


def first_other(cells: Any) -> int | None:
    """Return the row of the first cell for which a column is not read as dates; None if it is."""
    cells = cells.str.strip()
    rows = np.flatnonzero(cells.notna().to_numpy())
    seen = cells.iloc[rows]
    dates = seen.str.fullmatch(PATTERN).to_numpy(dtype=bool)
    if not dates.all():
        return int(rows[np.argmin(dates)])
    forms, digits = _forms(seen)
    for row, cell, form, n_digits in zip(rows, seen, forms, digits, strict=True):
        if form != forms[0] or (n_digits and not form[1]) or _moment(cell, form[2]) is None:
            return int(row)
    return None


def _forms(seen: Any) -> tuple[list[tuple[str, bool, str]], list[int]]:
    """Return separator, seconds or not, and zone of every date; and the digits of fractions."""
    parts = seen.str.extract(PATTERN).astype(object)
    parts = parts.where(parts.notna(), "")
    forms = list(zip(parts[1], parts[3] != "", parts[5], strict=True))
    return forms, [len(fraction) for fraction in parts[4]]


def _moment(cell: str, zone: str) -> np.datetime64 | None:
    """Return the moment of a date, without its zone; None for the 30th of February."""
    try:
        return np.datetime64(cell.removesuffix(zone), "us")
    except ValueError:
        return None
