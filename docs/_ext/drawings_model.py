"""Drawings of the model: a union of subspaces, its two terms, and the weight between them."""

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
    dots,
    frame,
    line,
    note,
    pale,
    unit,
    window,
)
from drawings_toy import hard, samples_near_lines, squared_distances, updated_angles
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Polygon

# The view of the three-dimensional drawing: turned about the upright axis, and seen from above.
TURN, TILT = np.deg2rad(28.0), np.deg2rad(24.0)


def _view(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of points on the paper, and how near they are to the viewer."""
    x, y, z = np.atleast_2d(points).T
    across, depth = np.cos(TURN) * x + np.sin(TURN) * y, -np.sin(TURN) * x + np.cos(TURN) * y
    up = np.cos(TILT) * z + np.sin(TILT) * depth
    return np.stack([across, up], axis=1), np.sin(TILT) * z - np.cos(TILT) * depth


def _half_plane(
    ax: Axes, spine: np.ndarray, side: np.ndarray, label: int, n: int, rng: np.random.Generator
) -> None:
    """Draw half of a plane, from the line that both planes share, with samples near it."""
    order = _view(side)[1][0]
    corners = np.array([-spine, spine, spine + side, side - spine])
    shape, _ = _view(corners)
    colour = GROUPS[label]
    ax.add_patch(
        Polygon(shape, fc=(*pale(colour, 0.35), 0.88), ec=colour, lw=1.4, zorder=5 + order)
    )
    places = rng.uniform(-0.85, 0.85, n)[:, None] * spine
    places = places + rng.uniform(0.12, 0.92, n)[:, None] * side
    places += 0.03 * rng.standard_normal(places.shape)
    dots(ax, _view(places)[0], np.full(n, label), zorder=5.01 + order)


def draw_union() -> Figure:
    """Draw two planes and a line in space, with the samples near them."""
    figure, (ax,) = canvas(4.05)
    window(ax, -1.95, 1.95, -1.32, 1.32)
    rng = np.random.default_rng(4)
    spine = np.array([0.0, 1.15, 0.0])
    flat, steep = np.array([1.5, 0.0, 0.12]), np.array([-0.5, 0.0, 0.82])
    for side, label in ((flat, 0), (-flat, 0), (steep, 1), (-steep, 1)):
        _half_plane(ax, spine, side, label, 16, rng)
    direction = np.array([-0.95, -0.9, 0.62])
    along = np.concatenate([np.linspace(-1, -0.12, 8), np.linspace(0.12, 1, 8)])[:, None]
    for sign in (1.0, -1.0):
        ends, near = _view(np.array([0.0 * direction, sign * 1.12 * direction]))
        ax.plot(*ends.T, color=GREEN, lw=3, zorder=5.5 + near[1] / 2)
        own = along[np.sign(along[:, 0]) == sign] * direction
        own = own + 0.03 * rng.standard_normal(own.shape)
        dots(ax, _view(own)[0], np.full(len(own), 2), zorder=5.6 + near[1] / 2)
    note(ax, -1.35, -0.6, "a plane", BLUE, weight="bold")
    note(ax, 1.1, 1.0, "another plane", ORANGE, weight="bold")
    note(ax, -1.5, 0.78, "a line", GREEN, weight="bold")
    return figure


def draw_terms() -> Figure:
    """Draw what the two terms of the objective measure."""
    figure, (left, right) = canvas(2.95, columns=2)
    for ax in (left, right):
        window(ax, -0.22, 1.4, -0.15, 1.12)
        line(ax, 22, BLUE, 1.2)
        line(ax, 58, ORANGE, 1.2)
    sample = np.array([0.93, 0.7])
    for angle, colour, style in ((22, BLUE, "-"), (58, ORANGE, ":")):
        foot = unit(angle) * (unit(angle) @ sample)
        left.plot(*np.array([sample, foot]).T, color=INK, lw=2.4, ls=style, zorder=4)
        left.scatter(*foot, s=36, color=colour, zorder=6)
    left.scatter(*sample, s=90, color=INK, zorder=7)
    note(left, 1.02, 0.68, "sample", ha="left")
    note(left, 0.86, 0.14, "projection", BLUE)
    left.set_title("distance to the\nnearest subspace")
    end, foot = unit(58), unit(22) * np.cos(np.deg2rad(36))
    arrow(right, (0, 0), end, ORANGE)
    arrow(right, (0, 0), unit(22), BLUE)
    right.plot(*np.array([end, foot]).T, color=INK, lw=2.4, zorder=4)
    right.add_patch(Arc((0, 0), 0.8, 0.8, theta1=22, theta2=58, color=INK, lw=1.8))
    note(right, 0.335, 0.285, r"$\theta$", fontsize=17)
    note(right, 0.76, 0.6, r"$\sin\,\theta$", ha="left")
    right.set_title("distance between\ntwo subspaces")
    return figure


def draw_weight() -> Figure:
    """Draw the learned lines for a small, a middle and an infinite weight of the data."""
    figure, axes = canvas(2.4, columns=3)
    points, labels = samples_near_lines((20, 62), 14, 0.13, 11)
    truth = (20.0, 62.0)
    cases = (
        (0.25, "λ small:\nclose together"),
        (1.6, "λ in between"),
        (np.inf, "λ = ∞:\ndata alone"),
    )
    for ax, (lam, title) in zip(axes, cases, strict=True):
        window(ax, -1.2, 1.2, -1.15, 1.15)
        angles = list(truth)
        for _ in range(60):
            weights = hard(squared_distances(points, angles))
            angles = updated_angles(points, weights, angles, lam)
        for angle, true, colour in zip(angles, truth, (BLUE, ORANGE), strict=True):
            line(ax, true, GREY, 1.15, lw=1.4, ls="--")
            line(ax, angle, colour, 1.15)
        dots(ax, points, labels, s=24)
        frame(ax)
        ax.set_title(title, fontsize=13)
    return figure


DRAWINGS = {
    "model-union": draw_union,
    "model-terms": draw_terms,
    "model-weight": draw_weight,
}
