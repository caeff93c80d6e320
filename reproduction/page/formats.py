"""Numbers and text as the page and the Markdown print them."""

from __future__ import annotations

import math
import re

from reproduction.sections import Row, Value

MISSING = "–"
# A single one of these characters in an error message would make the whole SVG invalid.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace characters that XML or UTF-8 cannot hold, such as control characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def fixed(number: float | None, digits: int) -> str:
    """Print with a fixed number of decimals, or two significant digits if these would all be zero.

    Examples
    --------
    >>> fixed(0.12345, 3), fixed(0.00004, 3), fixed(None, 3)
    ('0.123', '4e-05', '–')
    """
    if number is None or math.isnan(number):
        return MISSING
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    text = f"{number:.{digits}f}"
    if number != 0 and float(text) == 0:
        return f"{number:.2g}"
    return text


def short(number: float) -> str:
    """Print with four significant digits."""
    return f"{number:.4g}" if math.isfinite(number) else fixed(number, 0)


def value_text(value: Value | None, digits: int) -> str:
    """Print mean, standard error and number of trials.

    Examples
    --------
    >>> value_text(Value(0.5, 0.01, 8), 2), value_text(Value(0.5, float("nan"), 1), 2)
    ('0.50 ± 0.01 (8)', '0.50 (1)')
    """
    if value is None:
        return MISSING
    error = "" if math.isnan(value.error) else f" ± {fixed(value.error, digits)}"
    return f"{fixed(value.mean, digits)}{error} ({value.n})"


def published_text(row: Row) -> str:
    """Print what the paper says: a number, or a range of them."""
    return row.published_as or fixed(row.published, row.digits)


def percent(fraction: float) -> str:
    """Print the size of a fraction as a percentage of two digits.

    Examples
    --------
    >>> percent(0.254), percent(-0.031), percent(0.0999)
    ('25 %', '3.1 %', '10 %')
    """
    size = abs(100 * fraction)
    return f"{size:.1f} %" if size < 9.95 else f"{size:.0f} %"


def better_text(fraction: float | None) -> str:
    """Print how much smaller the error of our method is than that of the paper's method, run here.

    Examples
    --------
    >>> better_text(0.254), better_text(-0.031), better_text(0.0), better_text(None)
    ('better by 25 %', 'worse by 3.1 %', 'the same', '')
    """
    if fraction is None:
        return ""
    text = percent(fraction)
    if text == percent(0):
        return "the same"
    return f"{'better' if fraction > 0 else 'worse'} by {text}"


def better_kind(fraction: float) -> str:
    """Return "better", "worse" or "same", which sets the colour; it goes with `better_text`.

    Examples
    --------
    >>> better_kind(0.2), better_kind(-0.2), better_kind(-1e-6)
    ('better', 'worse', 'same')
    """
    if percent(fraction) == percent(0):
        return "same"
    return "better" if fraction > 0 else "worse"


def duration(seconds: float) -> str:
    """Print a time in the unit that suits it.

    Examples
    --------
    >>> duration(0.25), duration(200), duration(7300)
    ('0.25 s', '3.3 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def counted(n: int, what: str) -> str:
    """Print a count and the noun in its singular or plural."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
