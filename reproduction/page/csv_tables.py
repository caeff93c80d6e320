"""All numbers as CSV, in full precision."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from reproduction.page.about import About
from reproduction.page.points import points
from reproduction.page.summary import better_by
from reproduction.sections import Section, Value

RESULTS = (
    "section where name published measured measured_error measured_n improved improved_error "
    "improved_n improved_by better_by verdict note stand_in command commit"
)


def results_csv(sections: Sequence[Section], about: About) -> str:
    """Return every row of every section, with the command and commit that produced it."""
    lines = (
        [
            *(section.id, section.where, row.name),
            row.published_as or _number(row.published),
            *_value(row.measured),
            *_value(row.improved),
            *(row.improved_by, _number(better_by(row)), row.verdict, row.note),
            *(_yes(section.stand_in), about.rerun(section.id), about.commit),
        ]
        for section in sections
        for row in section.rows
    )
    return _table(RESULTS, lines)


def curves_csv(sections: Sequence[Section]) -> str:
    """Return every point of every curve."""
    lines = (
        [section.id, panel.title, panel.x_label, panel.y_label, curve.label, _yes(curve.ours)]
        + [_number(number) for number in point]
        for section in sections
        for panel in section.panels
        for curve in panel.curves
        for point in points(curve)
    )
    return _table("section panel x_label y_label curve ours x y error", lines)


def claims_csv(sections: Sequence[Section]) -> str:
    """Return every claim with its verdict."""
    lines = (
        [section.id, section.where, claim.text, claim.verdict, claim.evidence]
        for section in sections
        for claim in section.claims
    )
    return _table("section where claim verdict evidence", lines)


def _table(head: str, lines: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head.split(), *lines])
    return text.getvalue()


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _number(number: float | None) -> str:
    """Print all digits, or an empty text for None and NaN."""
    return "" if number is None or math.isnan(number) else repr(float(number))


def _value(value: Value | None) -> list[str]:
    return [_number(value.mean), _number(value.error), str(value.n)] if value else [""] * 3
