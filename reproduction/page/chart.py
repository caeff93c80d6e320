"""Line charts as small SVG, coloured by style sheet so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from reproduction.page.axes import Axis, drawable, make_axis, spans
from reproduction.page.cells import Point, points
from reproduction.page.formats import counted, escape, short
from reproduction.sections import Panel

WIDTH, PLOT_HEIGHT = 400, 240
"""Narrow, so that on a phone the letters are not scaled down too far."""
TOP, RIGHT, BOTTOM = 12, 14, 50
LETTER = 7.6
"""Width of a letter at 13 px: the mean over the usual fonts, on the safe side."""
N_COLOURS = 8
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",  # circle
    "M-3.6-3.6h7.2v7.2h-7.2z",  # square
    "M0-4.6l4.4 7.6h-8.8z",  # triangle up
    "M0-5l4.4 5l-4.4 5l-4.4-5z",  # diamond
    "M0 4.6l4.4-7.6h-8.8z",  # triangle down
    "M-3.8-3.8l7.6 7.6m0-7.6l-7.6 7.6",  # cross
    "M-5 0h10m-5-5v10",  # plus
    "M0-5.2l1.3 3.5l3.7.1l-2.9 2.3l1 3.6l-3.1-2.1l-3.1 2.1l1-3.6l-2.9-2.3l3.7-.1z",  # star
)
DENSE = 25
"""From this many points on, only some get a marker: the line alone is clearer."""
MAX_HOVER = 200
"""Points of one curve that answer to the pointer; the table below the figure has all."""

Styles = Mapping[tuple[str, bool], int]


@dataclass(frozen=True)
class _Frame:
    """Where the plot lies in the drawing."""

    x: Axis
    y: Axis
    left: float

    def column(self, x: float) -> float:
        """Return how far from the left a value of x is drawn."""
        return self.left + self.x.place(x) * (WIDTH - RIGHT - self.left)

    def line(self, y: float) -> float:
        """Return how far from the top a value of y is drawn."""
        return TOP + (1 - self.y.place(y)) * PLOT_HEIGHT


def curve_styles(panels: Sequence[Panel]) -> dict[tuple[str, bool], int]:
    """Give each curve a number that stands for colour and marker.

    A method looks the same in all panels of a section, and two methods that meet in a panel
    differ. Ours count apart: they share the accent colour and differ in marker and dashes.
    """
    drawn = [{(curve.label, curve.ours): None for curve in panel.curves} for panel in panels]
    styles: dict[tuple[str, bool], int] = {}
    for key in (key for keys in drawn for key in keys):
        beside = {other for keys in drawn if key in keys for other in keys if other[1] == key[1]}
        taken = {styles[other] for other in beside if other in styles}
        styles.setdefault(key, next(n for n in range(len(taken) + 1) if n not in taken))
    return styles


def chart(panel: Panel, styles: Styles, standalone: bool = False) -> str:
    """Draw the curves of a panel.

    Parameters
    ----------
    panel : Panel
        With at least one curve.
    styles : mapping
        From `curve_styles`.
    standalone : bool, default=False
        Whether the SVG is a file of its own, with style sheet and background, rather than a
        part of the page.
    """
    curves = [[p if _fits(p, panel) else None for p in points(c)] for c in panel.curves]
    together = [p for curve in curves for p in curve if p is not None]
    y_axis = make_axis(spans([p.y for p in together], [p.error for p in together]), panel.y_log)
    widest = max((len(text) for _, text in y_axis.ticks), default=1)
    x_axis = make_axis([p.x for p in together], panel.x_log, at_values=True)
    frame = _Frame(x_axis, y_axis, 34 + LETTER * widest)
    parts = _grid(frame, panel)
    # Ours last, on top of the others.
    for index in sorted(range(len(curves)), key=lambda k: panel.curves[k].ours):
        label, ours = panel.curves[index].label, panel.curves[index].ours
        parts += _curve(frame, curves[index], label, styles[label, ours], ours)
    legend, bottom = _legend(panel, styles)
    body = "".join([*parts, *legend])
    view = f'viewBox="0 0 {WIDTH} {bottom:.0f}"'
    name = f'role="img" aria-label="{escape(_description(panel))}"'
    if not standalone:
        return f'<svg class="chart" {view} {name}>{body}</svg>'
    size = f'width="{WIDTH}" height="{bottom:.0f}"'
    sheet = files("reproduction.templates").joinpath("chart.css").read_text(encoding="utf-8")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" {view} {size} {name}>'
        f'<style>{sheet}</style><rect class="back" width="100%" height="100%"/>{body}</svg>\n'
    )


def remarks(panel: Panel) -> str:
    """Say what the drawing does not show by itself: error bars, and points that have no place."""
    every = [p for curve in panel.curves for p in points(curve)]
    away = sum(not _fits(p, panel) for p in every)
    texts = ["Bars: one standard error."] if any(p.error > 0 for p in every) else []
    if away:
        texts.append(f"{counted(away, 'point')} without a finite place not drawn; see the table.")
    return " ".join(texts)


def _fits(point: Point, panel: Panel) -> bool:
    return drawable(point.x, panel.x_log) and drawable(point.y, panel.y_log)


def _description(panel: Panel) -> str:
    names = ", ".join(curve.label for curve in panel.curves)
    return f"{panel.title}: {panel.y_label or 'y'} over {panel.x_label or 'x'} for {names}"


def _grid(frame: _Frame, panel: Panel) -> list[str]:
    """Draw grid, tick labels and axis labels."""
    right, bottom = WIDTH - RIGHT, TOP + PLOT_HEIGHT
    parts = []
    for value, text in frame.y.ticks:
        y = frame.line(value)
        parts.append(f'<path class="grid" d="M{frame.left:.1f} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{frame.left - 7:.1f}" y="{y + 4:.1f}" class="end">{text}</text>')
    for value, text in frame.x.ticks:
        x = frame.column(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" class="mid">{text}</text>')
    parts.append(f'<path class="axis" d="M{frame.left:.1f} {TOP}V{bottom}H{right}"/>')
    middle = (frame.left + right) / 2
    label = escape(_cut(panel.x_label, right - frame.left))
    parts.append(f'<text x="{middle:.1f}" y="{bottom + 40}" class="mid name">{label}</text>')
    turn = f"translate(15 {TOP + PLOT_HEIGHT / 2:.0f}) rotate(-90)"
    label = escape(_cut(panel.y_label, PLOT_HEIGHT))
    parts.append(f'<text transform="{turn}" class="mid name">{label}</text>')
    return parts


def _classes(style: int, ours: bool) -> str:
    """Return the class names of a curve: its colour, and dashes where colours come again."""
    turn = style % 3 if ours else style // N_COLOURS
    colour = "ours" if ours else f"c{style % N_COLOURS}"
    return f"{colour} dash{min(turn, 2)}" if turn else colour


def _line(frame: _Frame, curve: Sequence[Point | None]) -> str:
    """Return the path through all points; a point that has no place leaves a gap."""
    path, pen = "", "M"
    for p in curve:
        path += f"{pen}{frame.column(p.x):.1f} {frame.line(p.y):.1f}" if p else ""
        pen = "L" if p else "M"
    return path


def _bars(frame: _Frame, kept: Sequence[Point]) -> str:
    """Return the path of the error bars."""
    ends = [
        (frame.column(p.x), frame.line(p.y + p.error), frame.line(p.y - p.error))
        for p in kept
        if p.error > 0 and math.isfinite(p.error)
    ]
    return "".join(f"M{x - 3:.1f} {top:.1f}h6m-3 0V{end:.1f}m-3 0h6" for x, top, end in ends)


def _curve(
    frame: _Frame, curve: Sequence[Point | None], label: str, style: int, ours: bool
) -> list[str]:
    """Draw one curve: line, error bars, then markers with the numbers to hover on."""
    kept = [p for p in curve if p is not None]
    line = _line(frame, curve)
    parts = [f'<g class="curve {_classes(style, ours)}"><path class="line" d="{line}"/>']
    if bars := _bars(frame, kept):
        parts.append(f'<path class="bar" d="{bars}"/>')
    marked = math.ceil(len(kept) / 12) if len(kept) > DENSE else 1
    hover = math.ceil(len(kept) / MAX_HOVER)
    # Curves that run together do not hide each other's markers when each begins elsewhere.
    first = style % marked
    marker = MARKERS[style % len(MARKERS)]
    for index, p in enumerate(kept):
        if index % hover and index % marked != first:
            continue
        mark = f'<path d="{marker}"/>' if index % marked == first else ""
        tip = escape(f"{label}: {p.text} at {short(p.x)}")
        parts.append(
            f'<g class="pt" transform="translate({frame.column(p.x):.1f} {frame.line(p.y):.1f})">'
            f"<title>{tip}</title>"
            f'<circle class="hit" r="9"/>{mark}</g>'
        )
    return [*parts, "</g>"]


def _legend(panel: Panel, styles: Styles) -> tuple[list[str], float]:
    """Draw the legend below the plot; return it and where the drawing ends."""
    parts = []
    x, y = 16.0, float(TOP + PLOT_HEIGHT + BOTTOM + 16)
    for curve in panel.curves:
        text = _cut(curve.label, WIDTH - 70)
        width = 34 + LETTER * len(text) + 16
        if x > 16 and x + width > WIDTH:
            x, y = 16.0, y + 22
        style = styles[curve.label, curve.ours]
        classes = _classes(style, curve.ours)
        parts.append(
            f'<g class="curve {classes}" transform="translate({x:.1f} {y:.1f})">'
            f'<path class="line" d="M0-4h26"/>'
            f'<path transform="translate(13 -4)" d="{MARKERS[style % len(MARKERS)]}"/>'
            f'<text x="33">{escape(text)}</text></g>'
        )
        x += width
    return parts, y + 10


def _cut(text: str, room: float) -> str:
    """Shorten a label to what fits; all of it is in the table."""
    most = int(room / LETTER)
    return text if len(text) <= most else text[: most - 1] + "…"
