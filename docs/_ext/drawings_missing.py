"""Drawings of missing entries: a table and its fill, what an entry leaves open, two updates."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from drawings_style import (
    BLUE,
    GREEN,
    GREY,
    GROUPS,
    INK,
    MARKERS,
    ORANGE,
    arrow,
    canvas,
    frame,
    line,
    note,
    unit,
    window,
)
from drawings_toy import samples_near_lines
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Rectangle


def cells(
    ax: Axes, values: np.ndarray, missing: np.ndarray, corner: tuple[float, float] = (0.0, 0.0)
) -> None:
    """Draw a table as coloured cells of side 1; missing ones are white with a question mark."""
    shades = mpl.colormaps["cividis"]
    left, top = corner
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            gone = missing[i, j]
            place = (left + j, top - i - 1)
            face = "white" if gone else shades(0.12 + 0.88 * float(value))
            ax.add_patch(Rectangle(place, 1, 1, fc=face, ec=GREY if gone else "white", lw=1.2))
            if gone:
                note(ax, place[0] + 0.5, place[1] + 0.5, "?", GREY, fontsize=13)


def _two_groups() -> tuple[np.ndarray, np.ndarray]:
    """Return a small table whose rows are multiples of two patterns, between 0 and 1."""
    patterns = np.array([[0.15, 0.35, 0.6, 0.9, 1.0, 0.75], [1.0, 0.85, 0.45, 0.2, 0.1, 0.5]])
    labels = np.array([0, 0, 1, 0, 1, 1])
    sizes = np.array([1.0, 0.7, 0.95, 0.85, 0.65, 0.8])
    return sizes[:, None] * patterns[labels], labels


def draw_table() -> Figure:
    """Draw a table with missing entries and the same table filled by its subspaces."""
    figure, (ax,) = canvas(3.15)
    window(ax, -1.3, 16.6, -6.35, 1.3)
    values, labels = _two_groups()
    missing = np.zeros(values.shape, dtype=bool)
    for i, columns in enumerate(((1, 4), (0, 3), (2,), (2, 5), (0, 4), (3,))):
        missing[i, list(columns)] = True
    cells(ax, values, missing)
    cells(ax, values, np.zeros_like(missing), (10.0, 0.0))
    for i, j in np.argwhere(missing):
        edge = Rectangle((10.08 + j, -i - 0.92), 0.84, 0.84, fill=False, ec=INK, lw=2.0)
        ax.add_patch(edge)
    for i, label in enumerate(labels):
        ax.scatter(
            9.35, -i - 0.5, s=60, color=GROUPS[label], marker=MARKERS[label], clip_on=False
        )  # fmt: skip
    arrow(ax, (6.5, -3.0), (8.6, -3.0), INK)
    note(ax, 3.0, 0.65, "observed")
    note(ax, 13.0, 0.65, "filled")
    return figure


def draw_line() -> Figure:
    """Draw what one observed entry leaves open, and what a second one decides."""
    figure, (left, right) = canvas(3.35, columns=2)
    known = 0.62
    for ax, title in ((left, "1 of 2 observed"), (right, "2 of 3 observed")):
        window(ax, -0.2, 1.25, -0.28, 1.15)
        ax.set_title(title)
    for angle, colour in ((25, BLUE), (55, ORANGE)):
        line(left, angle, colour, 1.2)
        left.scatter(
            known, known * np.tan(np.deg2rad(angle)), s=110, fc="white", ec=colour, lw=3, zorder=5
        )  # fmt: skip
    left.plot([known, known], [-0.1, 1.1], color=INK, lw=2, ls=(0, (2, 1.5)))
    note(left, known, -0.2, "known")
    note(left, 0.98, 0.82, "fits both", INK)
    _plane_with_lines(right)
    return figure


def _plane_with_lines(ax: Axes) -> None:
    """Draw the floor of the observed entries, the shadows of two lines, and a sample near one."""
    for angle, colour in ((18, BLUE), (58, ORANGE)):
        line(ax, angle, colour, 1.2, alpha=0.85)
    sample = np.array([0.9, 0.38])
    foot = unit(18) * (unit(18) @ sample)
    other = unit(58) * (unit(58) @ sample)
    ax.plot(*np.array([sample, foot]).T, color=INK, lw=2.4)
    ax.plot(*np.array([sample, other]).T, color=INK, lw=2.0, ls=":")
    ax.scatter(*sample, s=100, color=INK, zorder=6)
    ax.scatter(*foot, s=100, fc="white", ec=BLUE, lw=3, zorder=5)
    note(ax, 0.86, 0.05, "nearest", BLUE)


def draw_updates() -> Figure:
    """Draw a step of GROUSE, for one sample, beside one for all samples at once."""
    figure, (left, right) = canvas(3.3, columns=2)
    points, _ = samples_near_lines((42,), 12, 0.09, 8)
    for ax, title in (
        (left, "GROUSE:\none sample, one turn"),
        (right, "polyspan:\nfill all, one step"),
    ):
        window(ax, -1.2, 1.2, -1.15, 1.15)
        frame(ax)
        ax.set_title(title)
        line(ax, 12, GREY, 1.15, lw=2.2, ls="--")
    sample = np.array([0.62, 0.72])
    left.scatter(*points.T, s=30, color=GREY, alpha=0.4)
    left.scatter(*sample, s=90, color=INK, zorder=6)
    foot = unit(12) * (unit(12) @ sample)
    arrow(left, foot, sample - 0.1 * (sample - foot), INK)
    line(left, 21, BLUE, 1.15)
    left.add_patch(Arc((0, 0), 1.9, 1.9, theta1=12, theta2=21, color=BLUE, lw=2.5))
    for point in points:
        foot = unit(12) * (unit(12) @ point)
        right.plot(*np.array([point, foot]).T, color=GREY, lw=1.4, zorder=1)
    right.scatter(*points.T, s=40, color=INK, zorder=6)
    line(right, 39, GREEN, 1.15)
    right.add_patch(Arc((0, 0), 1.9, 1.9, theta1=12, theta2=39, color=GREEN, lw=2.5))
    return figure


DRAWINGS = {
    "missing-table": draw_table,
    "missing-line": draw_line,
    "missing-updates": draw_updates,
}
