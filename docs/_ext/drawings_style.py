"""Colours, sizes and small helpers that all drawings share.

A drawing is 6 inches wide. On a phone it is shown at about 360 pixels, so that text of 14 points
is still about 12 pixels high there. Colours are those of Okabe and Ito, which readers who do not
see red and green tell apart too; groups also differ by their markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

WIDTH = 6.0
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#8E5AA8"
YELLOW, GREY, LIGHT, INK = "#E69F00", "#8a8a8a", "#dddddd", "#222222"
GROUPS = (BLUE, ORANGE, GREEN, PURPLE)
MARKERS = ("o", "s", "^", "D")
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "polyspan",
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 14,
    "axes.titlesize": 14.5,
    "axes.titlepad": 6,
    "text.color": INK,
    "axes.titlecolor": INK,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
}


def canvas(height: float, columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of the common width, and bare axes with equal scales."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.06, wspace=0.03, hspace=0.03)  # type: ignore[union-attr, call-arg]
    grid = np.ravel(figure.subplots(rows, columns, squeeze=False)).tolist()
    for ax in grid:
        ax.set_axis_off()
        ax.set_aspect("equal")
    return figure, grid


def window(ax: Axes, left: float, right: float, bottom: float, top: float) -> None:
    """Fix what an axis shows."""
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)


def frame(ax: Axes) -> None:
    """Draw a thin frame around a panel."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    edge = Rectangle(
        (left, bottom), right - left, top - bottom, fill=False, ec=LIGHT, lw=1.5, clip_on=False
    )
    ax.add_patch(edge)


def unit(degrees: float) -> np.ndarray:
    """Return the direction of an angle in the plane."""
    radians = np.deg2rad(degrees)
    return np.array([np.cos(radians), np.sin(radians)])


def line(ax: Axes, degrees: float, colour: str, length: float = 1.0, **style: Any) -> None:
    """Draw a line through the origin: a subspace of dimension 1."""
    end = length * unit(degrees)
    given = {"lw": 3.0, "zorder": 2, **style}
    ax.plot([-end[0], end[0]], [-end[1], end[1]], color=colour, **given)


def arrow(
    ax: Axes, start: Sequence[float], end: Sequence[float], colour: str = INK, **style: Any
) -> None:
    """Draw an arrow between two points."""
    given = {"arrowstyle": "-|>", "mutation_scale": 16, "lw": 2.2, "zorder": 5, **style}
    patch = FancyArrowPatch(
        tuple(start), tuple(end), color=colour, shrinkA=0, shrinkB=0, **given
    )  # fmt: skip
    patch.set_clip_on(False)
    ax.add_patch(patch)


def dots(ax: Axes, points: np.ndarray, labels: np.ndarray | None = None, **style: Any) -> None:
    """Draw samples, each group with its colour and marker; without labels all in grey."""
    given = {"s": 34, "edgecolors": "white", "linewidths": 0.7, "zorder": 3, **style}
    if labels is None:
        ax.scatter(points[:, 0], points[:, 1], color=GREY, **given)
        return
    for label in np.unique(labels):
        own = points[labels == label]
        ax.scatter(own[:, 0], own[:, 1], color=GROUPS[label], marker=MARKERS[label], **given)


def note(ax: Axes, x: float, y: float, text: str, colour: str = INK, **style: Any) -> None:
    """Write a few words, centred at a point unless `style` says otherwise."""
    given = {"ha": "center", "va": "center", "zorder": 8, **style}
    ax.text(x, y, text, color=colour, **given)


def pale(colour: str, strength: float = 0.25) -> tuple[float, ...]:
    """Return a light shade of a colour."""
    return tuple(1.0 - strength * (1.0 - part) for part in to_rgb(colour))
