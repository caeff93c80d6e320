"""Drawings of what makes fits fast, and of what differs from the paper."""

from __future__ import annotations

import numpy as np
from drawings_style import (
    BLUE,
    GREEN,
    GREY,
    GROUPS,
    INK,
    ORANGE,
    arrow,
    canvas,
    note,
    pale,
    unit,
    window,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle


def _block(ax: Axes, left: float, bottom: float, width: float, height: float, colour: str) -> None:
    """Draw a matrix, or a part of one."""
    ax.add_patch(Rectangle((left, bottom), width, height, fc=pale(colour, 0.45), ec=colour, lw=2.0))


def draw_stacked() -> Figure:
    """Draw the product of a chunk of samples with all bases side by side."""
    figure, (ax,) = canvas(2.9)
    window(ax, -0.4, 13.4, -1.7, 4.6)
    ax.add_patch(Rectangle((0, -0.6), 4, 4.6, fc="white", ec=GREY, lw=1.6))
    _block(ax, 0, 1.4, 4, 1.2, GREY)
    note(ax, 2, 2.0, "a chunk")
    note(ax, 2, -1.25, "samples")
    note(ax, 4.75, 2.0, "×", fontsize=20)
    for k in range(3):
        _block(ax, 5.5 + 0.9 * k, 0.0, 0.9, 4.0, GROUPS[k])
        _block(ax, 10.0 + 0.9 * k, 1.4, 0.9, 1.2, GROUPS[k])
    note(ax, 6.85, -1.25, "all bases")
    note(ax, 9.1, 2.0, "=", fontsize=20)
    note(ax, 11.35, 0.35, "lengths →\nlabels", linespacing=1.3)
    return figure


def draw_power() -> Figure:
    """Draw power steps: every product turns the basis nearer to the widest direction."""
    figure, (ax,) = canvas(3.2)
    window(ax, -2.3, 2.3, -1.25, 1.35)
    wide = 24.0
    ax.add_patch(Ellipse((0, 0), 3.9, 1.8, angle=wide, fc=pale(GREY, 0.25), ec=GREY, lw=1.6))
    frame = np.stack([unit(wide), unit(wide + 90)])
    matrix = frame.T @ np.diag([1.0, 0.42]) @ frame
    ends = np.array([-1.95, 1.95])[:, None] * unit(wide)
    ax.plot(*ends.T, color=GREEN, lw=2.2, ls="--")
    direction = unit(98)
    for step, colour in enumerate((ORANGE, "#b06a3a", "#5a6f86", BLUE)):
        arrow(ax, (0, 0), 1.15 * direction, colour, lw=3, mutation_scale=20)
        note(ax, *(1.3 * direction), str(step), colour, weight="bold")
        moved = matrix @ direction
        direction = moved / np.linalg.norm(moved)
    note(ax, 1.5, -0.9, "widest\ndirection", GREEN)
    arrow(ax, (1.6, -0.62), (1.62, 0.62), GREEN, lw=1.4, mutation_scale=11)
    return figure


def _pairs(ax: Axes, pairs: tuple[tuple[int, int, str], ...], title: str, mean: str) -> None:
    """Draw learned and true subspaces with the pairs that are matched."""
    window(ax, -0.75, 2.75, -0.75, 1.55)
    for i in range(2):
        ax.scatter(0, 1 - i, s=330, color=BLUE, zorder=5)
        ax.scatter(2, 1 - i, s=330, color=ORANGE, marker="s", zorder=5)
        note(ax, 0, 1 - i, "AB"[i], "white", weight="bold")
        note(ax, 2, 1 - i, "12"[i], "white", weight="bold")
    for i, j, distance in pairs:
        ax.plot([0, 2], [1 - i, 1 - j], color=INK, lw=2.6, zorder=2)
        share = 0.3 if i != j else 0.5
        note(
            ax, 2 * share, 1 - i + share * (i - j) + (0.17 if i == j else 0.0), distance,
            bbox={"fc": "white", "ec": "none", "pad": 1.5},
        )  # fmt: skip
    note(ax, 1, -0.55, mean)
    ax.set_title(title)


def draw_matching() -> Figure:
    """Draw a greedy matching beside the best one."""
    figure, (left, right) = canvas(2.75, columns=2)
    _pairs(left, ((0, 0, ".10"), (1, 1, ".60")), "greedy, A first", "mean .35")
    _pairs(right, ((0, 1, ".20"), (1, 0, ".15")), "best one-to-one", "mean .175")
    return figure


DRAWINGS = {
    "speed-stacked": draw_stacked,
    "speed-power": draw_power,
    "differences-matching": draw_matching,
}
