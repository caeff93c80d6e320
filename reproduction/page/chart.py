"""Line charts: matplotlib draws them, a style sheet sets their colours in light and dark mode."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from reproduction.page.formats import printable, short
from reproduction.page.points import Point, points
from reproduction.sections import Curve, Panel

WIDTH, PLOT_HEIGHT, LEGEND_LINE = 400, 296, 17.5
"""In pixels. Narrow charts keep their letters readable on a phone."""
LETTER = 7.6
"""Assumed width of a letter at 13 px: slightly more than the mean over the usual fonts."""
DENSE = 25
"""Curves with more points than this have markers at only some of them."""
MAX_HOVER = 200
"""Most points of one curve that have a tooltip; the table below the figure has all points."""
N_COLOURS = 8
MARKERS = "os^Dv*Pp"
DASHES = ("-", (0, (4, 2)), (0, (1.5, 2)))

# matplotlib needs colours, but the page has CSS variables: `_embed` replaces each of these
# placeholder colours by its variable.
_NAMES = ("ink", "soft", "line", "panel", "accent", *(f"c{k}" for k in range(N_COLOURS)))
_COLOURS = {name: f"#0000{number:02x}" for number, name in enumerate(_NAMES, start=1)}
_VARIABLES = {colour: f"var(--{name})" for name, colour in _COLOURS.items()}
_SETTINGS = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 13,
    "text.color": _COLOURS["ink"],
    "figure.facecolor": _COLOURS["panel"],
    "axes.facecolor": _COLOURS["panel"],
    "axes.edgecolor": _COLOURS["soft"],
    "axes.labelcolor": _COLOURS["ink"],
    "axes.labelpad": 6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _COLOURS["line"],
    "figure.constrained_layout.h_pad": 0.1,
    "legend.frameon": False,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "legend.borderpad": 0,
}
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"

Styles = Mapping[tuple[str, bool], int]


def curve_styles(panels: Sequence[Panel]) -> dict[tuple[str, bool], int]:
    """Give each curve a number that stands for colour and marker.

    A method looks the same in all panels of a section, and two methods in the same panel look
    different. Our methods are numbered separately: they all have the accent colour and differ in
    marker and dashes.
    """
    drawn = [{(curve.label, curve.ours): None for curve in panel.curves} for panel in panels]
    styles: dict[tuple[str, bool], int] = {}
    for key in (key for keys in drawn for key in keys):
        beside = {other for keys in drawn if key in keys for other in keys if other[1] == key[1]}
        taken = {styles[other] for other in beside if other in styles}
        styles.setdefault(key, next(n for n in range(len(taken) + 1) if n not in taken))
    return styles


def chart(panel: Panel, styles: Styles, name: str) -> str:
    """Draw the curves of a panel as SVG that can be part of a page.

    Parameters
    ----------
    panel : Panel
        With at least one curve.
    styles : mapping
        From `curve_styles`.
    name : str
        Makes the ids in this drawing differ from those of other drawings on the page.
    """
    settings: dict[str, Any] = _SETTINGS | {"svg.hashsalt": name}
    with matplotlib.style.context(settings, after_reset=True), warnings.catch_warnings():
        # Letters that matplotlib's font lacks are measured wrongly; the reader's fonts have them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        labels = [_cut(curve.label, WIDTH - 60) for curve in panel.curves]
        columns = max(1, int((WIDTH + 16) / (52 + LETTER * max(map(len, labels)))))
        height = round(PLOT_HEIGHT + LEGEND_LINE * math.ceil(len(labels) / columns))
        figure = Figure((WIDTH / 72, height / 72), dpi=72, layout="constrained")
        axes = figure.subplots()
        _scale(axes, panel)
        handles = [
            _draw(axes, panel, curve, styles[curve.label, curve.ours]) for curve in panel.curves
        ]
        tips = _draw_tips(axes, panel)
        figure.legend(handles, labels, loc="outside lower left", ncols=columns)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg")
    root = ElementTree.fromstring(drawing.getvalue())
    _embed(root, tips)
    names = ", ".join(curve.label for curve in panel.curves)
    title = f"{panel.title}: {panel.y_label or 'y'} over {panel.x_label or 'x'} for {names}"
    root.attrib = {
        "class": "chart",
        "viewBox": f"0 0 {WIDTH} {height}",
        "role": "img",
        "aria-label": printable(title),
    }
    return ElementTree.tostring(root, encoding="unicode")


def standalone(drawing: str) -> str:
    """Turn a drawing into a separate file: add the name space, the size and the style sheet."""
    sheet = files("reproduction.templates").joinpath("chart.css").read_text(encoding="utf-8")
    head = f'<svg xmlns="{_SVG[1:-1]}" width="{WIDTH}" '
    body = drawing.removeprefix("<svg ").removesuffix("</svg>")
    return f"{head}{body}<style>{sheet}</style></svg>\n"


def _scale(axes: Axes, panel: Panel) -> None:
    """Label the axes and choose their scales."""
    axes.set(
        xlabel=_cut(panel.x_label, WIDTH - 80),
        ylabel=_cut(panel.y_label, PLOT_HEIGHT - 60),
        xscale="log" if panel.x_log else "linear",
        yscale="log" if panel.y_log else "linear",
    )
    axes.tick_params(which="both", length=0, pad=6, colors=_COLOURS["soft"])
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            # By default matplotlib writes powers of ten as formulas, but `text.parse_math` is off.
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(LogFormatter())


def _draw(axes: Axes, panel: Panel, curve: Curve, style: int) -> Line2D:
    """Draw line, markers and error bars; a point that cannot be drawn leaves a gap."""
    kept = [p if p.fits(panel) else Point(p.x, math.nan, math.nan) for p in points(curve)]
    every = math.ceil(len(kept) / 12) if len(kept) > DENSE else 1
    colour = "accent" if curve.ours else f"c{style % N_COLOURS}"
    turn = style if curve.ours else min(style // N_COLOURS, len(DASHES) - 1)
    errors = [p.error if 0 < p.error < math.inf else math.nan for p in kept]
    line: Line2D = axes.errorbar(
        [p.x for p in kept],
        [p.y for p in kept],
        None if all(map(math.isnan, errors)) else errors,
        color=_COLOURS[colour],
        linestyle=DASHES[turn % len(DASHES)],
        linewidth=3 if curve.ours else 1.6,
        elinewidth=1,
        marker=MARKERS[style % len(MARKERS)],
        markersize=7.5,
        markeredgewidth=1.5,
        markerfacecolor=_COLOURS[colour if curve.ours else "panel"],
        # Each curve has its first marker at another point, so overlapping curves show all markers.
        markevery=(style % every, every),
        gid=f"curve {colour}",
        zorder=3 if curve.ours else 2,
    ).lines[0]
    return line


def _draw_tips(axes: Axes, panel: Panel) -> list[str]:
    """Draw invisible points with tooltips over all curves; return the text of each tooltip."""
    drawn: list[Point] = []
    tips: list[str] = []
    for curve in panel.curves:
        kept = [point for point in points(curve) if point.fits(panel)]
        kept = kept[:: math.ceil(len(kept) / MAX_HOVER) or 1]
        drawn += kept
        tips += [f"{curve.label}: {point.text} at {short(point.x)}" for point in kept]
    # Wider than the markers, so that a finger can hit them.
    axes.plot(
        [point.x for point in drawn],
        [point.y for point in drawn],
        linestyle="",
        color=_COLOURS["soft"],
        marker="o",
        markersize=18,
        markeredgewidth=0,
        gid="points",
        zorder=4,
    )
    return tips


def _embed(root: ElementTree.Element, tips: Sequence[str]) -> None:
    """Turn matplotlib's SVG into an element of the page: CSS variables as colours, no fonts."""
    # Remove the metadata, and a style sheet that would apply to the whole page.
    while root[0].tag != f"{_SVG}g":
        root.remove(root[0])
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        node.tail = None
        if node.tag != "text":
            node.text = None
        node.attrib = {
            key.removeprefix(_XLINK): re.sub(r"(\.\d\d)\d+", r"\1", " ".join(value.split()))
            for key, value in node.attrib.items()
        }
        if style := node.get("style"):
            style = re.sub(r"font(-size|-family)?:[^;]*; ", "", style)
            node.set("style", re.sub(r"#\w{6}", lambda found: _VARIABLES[found[0]], style))
        if node.tag == "g":
            # matplotlib numbers its groups from 1 in every drawing, so their ids would clash.
            identity = node.attrib.pop("id", "")
            if identity.startswith(("curve", "points")):
                node.set("class", identity)
    for group in root.iter("g"):
        _set_on_group(group)
    for point, tip in zip(root.findall(".//g[@class='points']//use"), tips, strict=True):
        point.attrib.pop("style", None)  # the style sheet shows it only under the pointer
        point.set("class", "pt")
        ElementTree.SubElement(point, "title").text = printable(tip)


def _set_on_group(group: ElementTree.Element) -> None:
    """Move attributes that all children have in common to the group: halves the file."""
    for name in ("style", "clip-path"):
        values = {child.get(name) for child in group}
        if len(group) > 1 and len(values) == 1 and (value := values.pop()):
            group.set(name, value)
            for child in group:
                del child.attrib[name]


def _cut(text: str, room: float) -> str:
    """Shorten a label to one line; the table has the full label."""
    text, most = " ".join(printable(text).split()), int(room / LETTER)
    return text if len(text) <= most else text[: most - 1] + "…"
