"""All numbers as CSV, in full precision."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from reproduction.page.about import About
from reproduction.page.cells import points
from reproduction.page.summary import better_by
from reproduction.sections import Section, Value


def results_csv(sections: Sequence[Section], about: About) -> str:
    """Return every row of every section, with the command and commit that made it."""
    head = (
        "section where name published measured measured_error measured_n improved improved_error "
        "improved_n improved_by better_by verdict note stand_in command commit"
    )
    return _table(
        head.split(),
        (
            [
                section.id,
                section.where,
                row.name,
                _number(row.published),
                *_value(row.measured),
                *_value(row.improved),
                row.improved_by,
                _number(better_by(row)),
                row.verdict,
                row.note,
                "yes" if section.stand_in else "no",
                about.rerun(section.id),
                about.commit,
            ]
            for section in sections
            for row in section.rows
        ),
    )


def curves_csv(sections: Sequence[Section]) -> str:
    """Return every point of every curve."""
    return _table(
        ["section", "panel", "x_label", "y_label", "curve", "ours", "x", "y", "error"],
        (
            [
                section.id,
                panel.title,
                panel.x_label,
                panel.y_label,
                curve.label,
                "yes" if curve.ours else "no",
                *map(_number, (point.x, point.y, point.error)),
            ]
            for section in sections
            for panel in section.panels
            for curve in panel.curves
            for point in points(curve)
        ),
    )


def claims_csv(sections: Sequence[Section]) -> str:
    """Return every claim with its verdict."""
    return _table(
        ["section", "where", "claim", "verdict", "evidence"],
        (
            [section.id, section.where, claim.text, claim.verdict, claim.evidence]
            for section in sections
            for claim in section.claims
        ),
    )


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(body)
    return text.getvalue()


def _number(number: float | None) -> str:
    """Print all digits; nothing where there is no number."""
    return "" if number is None or math.isnan(number) else repr(float(number))


def _value(value: Value | None) -> list[str]:
    if value is None:
        return ["", "", ""]
    return [_number(value.mean), _number(value.error), str(value.n)]
