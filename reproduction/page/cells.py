"""The tables of the report as plain text cells, for HTML and Markdown alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reproduction.page.formats import (
    MISSING,
    better_text,
    counted,
    duration,
    fixed,
    short,
    value_text,
)
from reproduction.page.summary import CLAIM_VERDICTS, ROW_VERDICTS, better_by, count
from reproduction.sections import Curve, Panel, Row, Section

SUMMARY_HEAD = (
    "In the paper",
    *(f"numbers: {verdict}" for verdict in ROW_VERDICTS),
    *(f"claims: {verdict}" for verdict in CLAIM_VERDICTS),
    "ours",
)


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    x: float
    y: float
    error: float
    """NaN where there is none."""

    @property
    def text(self) -> str:
        """The height, with its error."""
        error = (
            "" if math.isnan(self.error) or not math.isfinite(self.y) else f" ± {self.error:.2g}"
        )
        return f"{short(self.y)}{error}"


def points(curve: Curve) -> Iterator[Point]:
    """Iterate over a curve; its sequences must be equally long."""
    errors = curve.error if curve.error is not None else [math.nan] * len(curve.x)
    if not len(curve.x) == len(curve.y) == len(errors):
        raise ValueError(
            f"curve {curve.label!r} has {len(curve.x)} x, {len(curve.y)} y and "
            f"{len(errors)} errors: give as many of each"
        )
    for x, y, error in zip(curve.x, curve.y, errors, strict=True):
        yield Point(float(x), float(y), float(error))


def ours_text(row: Row) -> str:
    """Print our best value, by how much it is better, and of which method."""
    if row.improved is None:
        return ""
    extra = [text for text in (better_text(better_by(row)), row.improved_by) if text]
    return value_text(row.improved, row.digits) + (f"; {', '.join(extra)}" if extra else "")


def row_cells(row: Row) -> list[str]:
    """Return name, published, measured, ours, verdict and note."""
    return [
        row.name,
        fixed(row.published, row.digits),
        value_text(row.measured, row.digits),
        ours_text(row),
        row.verdict,
        row.note,
    ]


def counts_cells(sections: Sequence[Section]) -> list[str]:
    """Return the counts by verdict and by how much ours is better, as SUMMARY_HEAD orders them."""
    counts = count(sections)
    numbers = [counts.rows[verdict] for verdict in ROW_VERDICTS]
    numbers += [counts.claims[verdict] for verdict in CLAIM_VERDICTS]
    return [*(str(n) if n else MISSING for n in numbers), better_text(counts.better) or MISSING]


def panel_table(panel: Panel) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of all points: one row per x, one column per curve."""
    columns: list[dict[str, list[str]]] = []
    places: dict[str, float] = {}
    for curve in panel.curves:
        column: dict[str, list[str]] = {}
        for point in points(curve):
            # NaN is no key that can be found again; its text is.
            places[repr(point.x)] = point.x
            column.setdefault(repr(point.x), []).append(point.text)
        columns.append(column)
    order = sorted(places, key=lambda key: (math.isnan(places[key]), places[key]))
    body = [
        [short(places[key]), *("; ".join(column.get(key, [MISSING])) for column in columns)]
        for key in order
    ]
    return [panel.x_label or "x", *(curve.label for curve in panel.curves)], body


def trials_text(section: Section) -> str:
    """Say how many trials ran and how long they took."""
    if not section.n_trials:
        return "No trial has run at this scale."
    failed = f", {section.n_failed} failed" if section.n_failed else ""
    took = f", {duration(section.seconds)} of processor time" if section.seconds > 0 else ""
    return f"{counted(section.n_trials, 'trial')}{failed}{took}"


def overall_text(sections: Sequence[Section]) -> str:
    """Say in one sentence how ours compares, over all rows; nothing where none compares."""
    counts = count(sections)
    if not counts.n_compared:
        return ""
    return (
        f"Our best method has the smaller error in {counts.n_better} of "
        f"{counted(counts.n_compared, 'number')} where it was run beside the paper's; "
        f"in the median it is {better_text(counts.better)}."
    )
