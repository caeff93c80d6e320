"""Drawings of the kernel models: feature map, greedy start, incomplete pairs, pre-image."""

from __future__ import annotations

import numpy as np
from drawings_missing import cells
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
    note,
    unit,
    window,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

# Curves y = a x² become lines through the origin by the map (x, y) → (x², y).
STEEP, FLAT = 1.0, 0.25


def _axes_cross(ax: Axes, across: str, up: str) -> None:
    """Draw coordinate axes through the origin, with names."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    arrow(ax, (left, 0), (right, 0), GREY, lw=1.4, mutation_scale=11, zorder=1)
    arrow(ax, (0, bottom / 2), (0, top), GREY, lw=1.4, mutation_scale=11, zorder=1)
    note(ax, right, -0.08 * (top - bottom), across, GREY, ha="right")
    note(ax, 0.05 * (right - left), 0.94 * top, up, GREY, ha="left")


def _curve_samples() -> tuple[np.ndarray, np.ndarray]:
    """Return samples near two parabolas, and their labels."""
    rng = np.random.default_rng(2)
    x = np.concatenate([np.linspace(-1, 1, 15), np.linspace(-1.05, 1.05, 15)])
    labels = np.repeat([0, 1], 15)
    y = np.where(labels == 0, STEEP, FLAT) * x**2 + 0.015 * rng.standard_normal(30)
    return np.stack([x, y], axis=1), labels


def draw_map() -> Figure:
    """Draw two curves, and the lines that a feature map makes of them."""
    figure, (left, right) = canvas(3.1, columns=2)
    points, labels = _curve_samples()
    window(left, -1.2, 1.2, -0.22, 1.35)
    window(right, -0.2, 1.25, -0.22, 1.35)
    for ax in (left, right):
        ax.set_aspect("auto")
    _axes_cross(left, "x", "y")
    _axes_cross(right, r"$x^2$", "y")
    x = np.linspace(-1.08, 1.08, 100)
    for factor, colour in ((STEEP, BLUE), (FLAT, ORANGE)):
        left.plot(x, factor * x**2, color=colour, lw=2)
        right.plot([0, 1.15], [0, factor * 1.15], color=colour, lw=2)
    dots(left, points, labels, s=46)
    dots(right, np.stack([points[:, 0] ** 2, points[:, 1]], axis=1), labels, s=46)
    left.set_title("your data: curves")
    right.set_title("features: lines")
    return figure


def draw_gathering() -> Figure:
    """Draw GKIOP: a seed, the samples that it gathers in turn, and the next seed."""
    figure, axes = canvas(2.5, columns=3)
    rng = np.random.default_rng(6)
    lengths = rng.uniform(0.3, 1.15, 20)
    points = np.concatenate([lengths[:10, None] * unit(15), lengths[10:, None] * unit(100)])
    points = points + 0.06 * rng.standard_normal(points.shape) - 0.35
    products = (points + 0.35) @ (points + 0.35).T
    free = np.ones(len(points), dtype=bool)
    gathered: list[list[int]] = []
    for seed in (4, 13):
        chosen = [seed]
        free[seed] = False
        while len(chosen) < 4:
            sums = np.where(free, products[chosen].sum(axis=0), -np.inf)
            chosen.append(int(np.argmax(sums)))
            free[chosen[-1]] = False
        gathered.append(chosen)
    titles = ("a seed", "gather 3 more", "the next seed")
    shown = ([gathered[0][:1]], gathered[:1], gathered)
    for ax, title, groups in zip(axes, titles, shown, strict=True):
        window(ax, -0.85, 1.05, -0.75, 1.15)
        frame(ax)
        ax.set_title(title, fontsize=13)
        dots(ax, points, s=30)
        for group, colour in zip(groups, GROUPS, strict=False):
            ax.scatter(*points[group[0]], s=190, marker="*", color=colour, zorder=6)
            ax.scatter(*points[group[1:]].T, s=54, color=colour, zorder=5)
    return figure


def draw_pairs() -> Figure:
    """Draw two rows with missing entries, and the columns that both have."""
    figure, (ax,) = canvas(2.45)
    window(ax, -2.4, 9.4, -4.3, 0.3)
    first = np.array([[0.2, 0.5, 0.9, 0.7, 0.3, 0.1, 0.6, 0.8]])
    second = np.array([[0.3, 0.4, 0.8, 0.9, 0.5, 0.2, 0.4, 0.6]])
    gone = np.zeros((2, 8), dtype=bool)
    gone[0, [1, 4]] = gone[1, [4, 6, 0]] = True
    cells(ax, first, gone[:1])
    cells(ax, second, gone[1:], (0.0, -1.35))
    common = ~gone.any(axis=0)
    for j in np.flatnonzero(common):
        ax.add_patch(Rectangle((j + 0.03, -2.47), 0.94, 2.59, fill=False, ec=ORANGE, lw=2.6))
    note(ax, -0.3, -0.5, "row i", ha="right")
    note(ax, -0.3, -1.85, "row j", ha="right")
    n = int(common.sum())
    note(ax, 4.0, -3.1, f"{n} of 8 columns in common", ORANGE)
    note(ax, 4.0, -3.85, f"estimate = sum over these × 8/{n}")
    return figure


def draw_mending() -> Figure:
    """Draw eigenvalues before and after mending: negative ones change their sign."""
    figure, (left, right) = canvas(2.3, columns=2)
    values = np.array([1.0, 0.7, 0.5, 0.3, 0.16, 0.0, -0.12, -0.26])
    for ax, heights, title in (
        (left, values, "estimated"),
        (right, np.where(values == 0, 0.03, np.abs(values)), "mended"),
    ):
        ax.set_aspect("auto")
        window(ax, -0.7, 7.7, -0.35, 1.05)
        colours = [ORANGE if v < 0 else GREEN if v == 0 else BLUE for v in values]
        ax.bar(np.arange(8), heights, color=colours, width=0.7)
        ax.axhline(0, color=INK, lw=1.4)
        ax.set_title(title)
    return figure


def draw_preimage() -> Figure:
    """Draw the way of a noisy sample: into the features, on the subspace, and back."""
    figure, (left, right) = canvas(3.5, columns=2)
    window(left, -0.25, 1.35, -0.2, 1.4)
    window(right, -0.25, 1.35, -0.2, 1.4)
    for ax in (left, right):
        ax.set_aspect("auto")
    _axes_cross(left, "x", "y")
    _axes_cross(right, r"$x^2$", "y")
    x = np.linspace(0.05, 1.1, 13)
    samples = np.stack([x, x**2], axis=1)
    features = np.stack([x**2, x**2], axis=1)
    noisy = np.array([0.62, 0.78])
    mapped = np.array([noisy[0] ** 2, noisy[1]])
    foot = np.full(2, mapped.mean())
    weights = np.exp(-np.sum((features - foot) ** 2, axis=1) / 0.03)
    found = weights @ samples / weights.sum()
    sizes = 24 + 150 * weights
    for ax, points in ((left, samples), (right, features)):
        ax.plot(*points.T, color=BLUE, lw=1.6, zorder=2)
        ax.scatter(*points.T, s=sizes, color=BLUE, ec="white", lw=0.8, zorder=3)
    left.scatter(*noisy, s=110, color=INK, zorder=6)
    right.scatter(*mapped, s=110, color=INK, zorder=6)
    right.plot(*np.array([mapped, foot]).T, color=INK, lw=2.4, zorder=4)
    right.scatter(*foot, s=130, color=ORANGE, marker="D", zorder=7, ec="white")
    left.scatter(*found, s=130, color=ORANGE, marker="D", zorder=7, ec="white")
    note(left, 0.5, 0.93, "noisy sample")
    note(left, 0.97, 0.5, "pre-image", ORANGE, ha="left")
    note(right, 0.66, 0.5, "projection", ORANGE, ha="left")
    left.set_title("your data")
    right.set_title("features")
    return figure


DRAWINGS = {
    "kernel-map": draw_map,
    "kernel-gathering": draw_gathering,
    "kernel-pairs": draw_pairs,
    "kernel-mending": draw_mending,
    "kernel-preimage": draw_preimage,
}
