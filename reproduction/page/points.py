"""Points of curves: checks, their text, and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from reproduction.page.formats import MISSING, counted, short
from reproduction.sections import Curve, Panel


class Point(NamedTuple):
    """One point of a curve; the error is NaN where there is none."""

    x: float
    y: float
    error: float

    @property
    def text(self) -> str:
        """The y value with its standard error."""
        known = math.isfinite(self.y) and not math.isnan(self.error)
        return short(self.y) + (f" ± {self.error:.2g}" if known else "")

    def fits(self, panel: Panel) -> bool:
        """Return whether the point can be drawn: finite, and positive on logarithmic axes."""
        axes = ((self.x, panel.x_log), (self.y, panel.y_log))
        return all(math.isfinite(value) and (value > 0 or not log) for value, log in axes)


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


def panel_table(panel: Panel) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of all points: one row per x, one column per curve."""
    # The keys are texts, because NaN is not equal to itself.
    table: dict[str, list[list[str]]] = {}
    for column, curve in enumerate(panel.curves):
        for point in points(curve):
            cells = table.setdefault(repr(point.x), [[] for _ in panel.curves])
            cells[column].append(point.text)
    order = sorted(table, key=lambda x: (x == "nan", float(x)))
    body = [[short(float(x)), *("; ".join(texts) or MISSING for texts in table[x])] for x in order]
    return [panel.x_label or "x", *(curve.label for curve in panel.curves)], body


def remarks(panel: Panel) -> str:
    """Explain the error bars, and say how many points could not be drawn."""
    every = [point for curve in panel.curves for point in points(curve)]
    away = sum(not point.fits(panel) for point in every)
    texts = ["Bars: one standard error."] if any(point.error > 0 for point in every) else []
    if away:
        texts.append(f"{counted(away, 'point')} could not be drawn; see the table.")
    return " ".join(texts)
