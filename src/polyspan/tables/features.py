"""What the columns of a table are: numbers, categories, dates, or nothing that can be filled."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.tables.columns import (
    NO_TYPE,
    ColumnType,
    Entries,
    Values,
    is_hashable,
    of_objects,
    plain,
    shared_type,
    values_of,
)

#: Text with at most so many values is a category; each must occur twice on average.
MOST_TEXT_LEVELS = 50
#: Levels of a category that are predicted: the most frequent ones.
MOST_LEVELS = 30
#: Whole numbers that are all different, and fill their range, are row numbers from so many on.
LEAST_IDENTIFIERS = 20

#: A day, an hour, a minute, a second, a thousandth of it, and a microsecond, in microseconds.
TIME_UNITS = (86_400e6, 3_600e6, 60e6, 1e6, 1e3, 1.0)

TIMES = ("date", "duration")
NUMBERS = ("number", "integer", *TIMES)
DISCRETE = ("boolean", "category", "ordered")
#: What `feature_types` may say of a column.
TYPES = (*NUMBERS, *DISCRETE, "skip")
#: What it may say, besides "skip", of one whose entries are these.
TYPES_OF = {
    "boolean": DISCRETE,
    "integer": ("number", "integer", *DISCRETE),
    "number": ("number", "integer", *DISCRETE),
    "date": ("date",),
    "duration": ("duration",),
    "text": DISCRETE,
    "category": DISCRETE,
    "ordered category": DISCRETE,
    "other": ("category",),
}
#: Names of row numbers, such as "id", "order_nr", "PassengerId", and what pandas calls an index
#: without a name when it reads a file.
IDENTIFIER = re.compile(
    r"(?:.*[\W_])?(?:id|ids|uid|uuid|idx|index|key|nr|no|num|number|row)|unnamed: 0", re.IGNORECASE
)
CAMEL_IDENTIFIER = re.compile(r".*[a-z](?:Id|ID|Nr|No|Key|Index|Number)")
#: Why a column is skipped that the user wants skipped.
AS_ASKED = "as feature_types says"
#: Decimals with more digits after the point are filled with as many as a float has.
MOST_DECIMALS = 12


@dataclass(frozen=True)
class Feature:
    """One column, as it was in `fit`."""

    name: Any
    kind: str
    """One of `TYPES`; or "constant" or "empty"."""
    levels: tuple[Any, ...] = ()
    """Values of a discrete column, in their order."""
    reason: str = ""
    """Why a column is skipped."""
    step: float = 0.0
    """Numbers are filled with multiples of this; 0: with any."""
    entries: str = ""
    """What the entries of the column are: one of `TYPES`, also where it is constant, or "text"."""
    type: ColumnType = NO_TYPE
    """The type of the column of a frame."""
    bounds: tuple[int, ...] = ()
    """Least and largest of whole numbers: floats beyond 2**53 would leave their range."""

    @property
    def is_used(self) -> bool:
        """Whether the column is filled, and helps to fill others."""
        return self.kind in NUMBERS or self.kind in DISCRETE

    def numbers(self, entries: Entries) -> np.ndarray:
        """Return the column as numbers, NaN where missing or not seen in `fit`.

        Levels of discrete columns become 0, 1, ….
        """
        out = np.full(len(entries.missing), np.nan)
        if self.kind in DISCRETE:
            codes = {level: code for code, level in enumerate(self.levels)}
            values = map(plain, entries.values())
            found = [codes.get(one, np.nan) if is_hashable(one) else np.nan for one in values]
            out[~entries.missing] = found
        elif len(entries.observed):
            measured = values_of(entries)
            fitting = (self.kind,) if self.kind in TIMES else ("number", "integer", "boolean")
            if measured.kind not in fitting:
                before = f"{fitting[0]}s"
                raise ValueError(
                    f"column {self.name!r} had {before} in fit and now "
                    f"{_unfitting(entries, measured.kind, fitting)}: give {before}, or fit again"
                )
            out[~entries.missing] = measured.numbers
        if np.isinf(out).any():
            raise ValueError(
                f"column {self.name!r} contains infinity: replace it, by NaN where unknown"
            )
        return out

    def objects(self, values: np.ndarray) -> list[Any]:
        """Return what numbers stand for: levels, numbers, or times in microseconds."""
        if self.kind in DISCRETE:
            return [self.levels[int(code)] for code in values]
        if self.kind == "constant":
            return [self.levels[0]] * len(values)
        found = (np.rint(values / self.step) * self.step if self.step else values).tolist()
        if self.bounds:
            least, most = self.bounds
            return [min(max(int(one), least), most) for one in found]
        return [int(one) for one in found] if self.kind in TIMES else list(found)


def feature_of(entries: Entries, wanted: str | None = None) -> Feature:
    """Say what a column is; `wanted` is one of `TYPES`, or None where its values decide."""
    name = entries.name
    if entries.missing.all():
        return Feature(name, "empty", type=entries.type)
    if wanted == "skip":
        return Feature(name, "skip", reason=AS_ASKED)
    measured = values_of(entries)
    kind, reason = (wanted, "") if wanted else _automatic(entries, measured)
    if kind == "skip":
        return Feature(name, "skip", reason=reason)
    _check_wanted(entries, measured, kind)
    if measured.n_distinct == 1:
        level = plain(entries.values()[0])
        if measured.kind in TIMES:  # the type of the column makes them one again
            level = int(measured.numbers[0])
        held = "text" if isinstance(level, str | bytes) else kind
        return Feature(name, "constant", (level,), entries=held, type=entries.type)
    if kind in DISCRETE:
        return Feature(name, kind, _levels(entries, kind), entries=kind, type=entries.type)
    if len(np.unique(measured.numbers)) == 1:
        return Feature(name, "skip", reason="whole numbers beyond 2**53")
    step = _step(kind, measured.numbers, entries)
    bounds: tuple[int, ...] = ()
    if kind == "integer" and measured.kind == "integer" and np.isfinite(measured.numbers).all():
        whole = [int(value) for value in entries.values()]
        bounds = (min(whole), max(whole))
    return Feature(name, kind, step=step, entries=kind, type=entries.type, bounds=bounds)


def _check_wanted(entries: Entries, measured: Values, kind: str) -> None:
    """Raise an error where entries cannot be what feature_types says of them."""
    may_be, is_other = TYPES_OF[measured.kind], measured.kind == "other"
    if is_other and not all(map(_is_category, entries.values())):
        may_be = ()
    if "boolean" in may_be and measured.n_distinct > 2:
        may_be = tuple(one for one in may_be if one != "boolean")
    if kind not in may_be:
        held = _described(entries.values()) if is_other else measured.kind
        values = f" with {measured.n_distinct} values" if kind == "boolean" else ""
        raise ValueError(
            f"feature_types says {kind!r} of column {entries.name!r}, whose entries are {held}"
            f"{values}: it may be {', '.join((*may_be, 'skip'))}"
        )


def _is_category(value: Any) -> bool:
    """Tell whether a value of no known kind can be told from others, and can be filled in."""
    return is_hashable(value) and not isinstance(value, complex | np.complexfloating)


def _described(values: list[Any]) -> str:
    name = shared_type(values)
    return f"values of type {name}" if name else "values of several types"


def _unfitting(entries: Entries, kind: str, fitting: tuple[str, ...]) -> str:
    """Say what in a column does not fit: where one entry is text, the numbers beside it do."""
    if entries.kind is not None:
        return f"is a column of the type {kind}"
    values = entries.values()
    wrong = [value for value in values if of_objects([value])[0] not in fitting] or values
    # A file with one word in a column of numbers is read as text as a whole.
    worst = [value for value in wrong if isinstance(value, str) and not _reads_as_number(value)]
    shown = (worst if "number" in fitting else []) or wrong
    return f"holds {shown[0]!r} ({len(shown)} of {len(values)} entries)"


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _automatic(entries: Entries, measured: Values) -> tuple[str, str]:
    """Return the type of a column, and a reason where it is skipped."""
    kind, n_distinct, n = measured.kind, measured.n_distinct, len(measured.numbers)
    if kind == "ordered category":
        return "ordered", ""
    if kind in ("number", "category", "boolean", "date", "duration"):
        return kind, ""
    if kind == "text":
        few = n_distinct <= MOST_TEXT_LEVELS and 2 * n_distinct <= n
        return ("category", "") if few or n_distinct == 1 else ("skip", "free text")
    if kind == "integer":
        return ("skip", "identifier") if _is_identifier(entries, measured) else ("integer", "")
    return "skip", _described(entries.values())


def _is_identifier(entries: Entries, measured: Values) -> bool:
    """Tell row numbers, which are all different and close, from whole numbers such as years.

    Row numbers are not missing, unless their name says what they are.
    """
    n = len(measured.numbers)
    span = float(measured.numbers.max() - measured.numbers.min())
    together = measured.n_distinct == n >= LEAST_IDENTIFIERS and span < 1.5 * len(entries.missing)
    name = str(entries.name)
    named = IDENTIFIER.fullmatch(name) or CAMEL_IDENTIFIER.fullmatch(name)
    return together and (not entries.missing.any() or named is not None)


def _levels(entries: Entries, kind: str) -> tuple[Any, ...]:
    """Return the values of a discrete column; of a category the most frequent ones."""
    values = [plain(value) for value in entries.values()]
    seen = set(values)
    if entries.levels is not None:  # those of the type, in its order, that occur
        levels = [level for level in map(plain, entries.levels) if level in seen]
    else:
        levels = _sorted(seen)
    if kind == "ordered" or len(levels) <= MOST_LEVELS:
        return tuple(levels)
    counts = Counter(values)
    often = set(sorted(levels, key=lambda level: -counts[level])[:MOST_LEVELS])
    return tuple(level for level in levels if level in often)


def _sorted(values: set[Any]) -> list[Any]:
    try:
        return sorted(values, key=lambda value: (str(type(value)), value))
    except TypeError:  # values without an order
        return sorted(values, key=repr)


def _step(kind: str, numbers: np.ndarray, entries: Entries) -> float:
    """Return the unit of whole numbers, and the coarsest unit of times that all of them have."""
    if kind == "number":
        if entries.type.holds != "Decimal":
            return 0.0
        places = max(-int(value.as_tuple().exponent) for value in entries.values())
        return 10.0 ** -max(places, 0) if places <= MOST_DECIMALS else 0.0
    if kind == "integer":
        return 1.0
    return next((unit for unit in TIME_UNITS if (numbers % unit == 0).all()), 1.0)
