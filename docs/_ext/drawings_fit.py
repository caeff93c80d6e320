"""Drawings of how a union is fitted: the alternation, annealing, pruning and merging."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawings_style import (
    BLUE,
    GREEN,
    GREY,
    GROUPS,
    INK,
    LIGHT,
    ORANGE,
    PURPLE,
    arrow,
    canvas,
    dots,
    frame,
    line,
    note,
    window,
)
from drawings_toy import hard, samples_near_lines, soft, squared_distances, updated_angles
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle


def _panel(ax: Axes, title: str) -> None:
    """Give a panel its window, frame and title."""
    window(ax, -1.2, 1.2, -1.2, 1.2)
    frame(ax)
    ax.set_title(title)


def draw_loop() -> Figure:
    """Draw Algorithm 1 on samples of three lines: start, assign, update, end."""
    figure, axes = canvas(6.4, columns=2, rows=2)
    points, _ = samples_near_lines((15, 75, 135), 13, 0.05, 3)
    angles: Sequence[float] = (32.0, 106.0, 160.0)
    labels = np.argmin(squared_distances(points, angles), axis=1)
    first = updated_angles(points, hard(squared_distances(points, angles)), angles)
    last = first
    for _ in range(10):
        last = updated_angles(points, hard(squared_distances(points, last)), last)
    settled = np.argmin(squared_distances(points, last), axis=1)
    panels: tuple[tuple[str, Sequence[float], np.ndarray | None], ...] = (
        ("1  start anywhere", angles, None),
        ("2  assign samples", angles, labels),
        ("3  turn subspaces", first, labels),
        ("4  repeat 2 and 3", last, settled),
    )
    for ax, (title, shown, own) in zip(axes, panels, strict=True):
        _panel(ax, title)
        for angle, colour in zip(shown, GROUPS, strict=False):
            line(ax, angle, colour, 1.13)
        dots(ax, points, own, s=42)
    return figure


def draw_memberships() -> Figure:
    """Draw lines and memberships at three temperatures of one annealed run."""
    figure, axes = canvas(2.45, columns=3)
    points, _ = samples_near_lines((15, 75, 135), 16, 0.05, 5)
    colours = np.array([to_rgb(colour) for colour in (BLUE, ORANGE, GREEN)])
    schedule = np.geomspace(0.6, 0.002, 60)
    shown = {1: "hot", 13: "cooler", 59: "cold"}
    angles: Sequence[float] = (50.0, 53.0, 57.0)
    panels = iter(axes)
    for step, temperature in enumerate(schedule):
        weights = soft(squared_distances(points, angles), float(temperature))
        angles = updated_angles(points, weights, angles)
        if step in shown:
            ax = next(panels)
            _panel(ax, shown[step])
            for angle, colour in zip(angles, (BLUE, ORANGE, GREEN), strict=True):
                line(ax, angle, colour, 1.13, lw=2.4, zorder=1)
            sure = (weights.max(axis=1, keepdims=True) - 1 / 3) * 1.5
            mixed = sure * (weights @ colours) + (1 - sure) * np.array(to_rgb(GREY))
            ax.scatter(*points.T, c=mixed, s=36, edgecolors="white", lw=0.6, zorder=3)
    return figure


def _landscape(x: np.ndarray, warmth: float) -> np.ndarray:
    """Return a curve with a wide valley and ripples, which warmth smooths away."""
    ripples = 0.34 * np.cos(9.0 * x) + 0.2 * np.sin(17.0 * x + 0.6)
    return 0.42 * (x - 0.65) ** 2 + (1.0 - warmth) * ripples


def draw_landscape() -> Figure:
    """Draw why cooling ends in a better valley than a start at random."""
    figure, (ax,) = canvas(4.5)
    ax.set_aspect("auto")
    window(ax, -2.9, 2.75, -0.75, 7.3)
    x = np.linspace(-1.9, 2.6, 700)
    place, shades = 0.65, ((1.0, 5.1, "hot"), (0.6, 2.85, "warm"), (0.0, 0.55, "cold"))
    for warmth, lift, word in shades:
        y = _landscape(x, warmth)
        ax.plot(x, y + lift, color=INK if not warmth else GREY, lw=2.6)
        near = np.abs(x - place) < (0.45 if warmth else 0.3)
        place = float(x[near][np.argmin(y[near])])
        height = float(_landscape(np.array(place), warmth)) + lift
        ax.scatter(place, height + 0.25, s=190, color=BLUE, zorder=5, ec="white")
        note(ax, -2.45, lift + 0.9, word, weight="bold")
    for top, bottom in ((5.0, 3.25), (2.75, 0.95)):
        arrow(ax, (place, top), (place, bottom), BLUE, lw=1.8)
    y = _landscape(x, 0.0)
    near = np.abs(x + 1.05) < 0.33
    stuck = float(x[near][np.argmin(y[near])])
    height = float(y[near].min()) + 0.8
    ax.scatter(stuck, height, s=190, color=ORANGE, marker="s", zorder=5, ec="white")
    note(ax, stuck, -0.5, "random start", ORANGE)
    note(ax, 0.75, -0.5, "annealed", BLUE)
    return figure


def draw_starts() -> Figure:
    """Draw the objectives that random starts and one annealed start reach on small data."""
    from polyspan import MiCUSaL
    from polyspan.datasets import make_union_of_subspaces

    data = make_union_of_subspaces(
        (60,) * 4, n_features=40, subspace_dim=4, spread=0.09, noise=0.08, random_state=3
    )
    sizes = {"n_subspaces": 4, "subspace_dim": 4}
    reached = []
    for seed in range(30):
        run = MiCUSaL(**sizes, init="random", n_init=1, random_state=seed).fit(data.X)
        reached.append(run.objective_)
    best = MiCUSaL(**sizes, random_state=0).fit(data.X).objective_
    figure, (ax,) = canvas(1.9)
    ax.set_aspect("auto")
    low, high = best, max(reached)
    window(ax, low - 0.12 * (high - low), high + 0.12 * (high - low), -0.75, 1.0)
    heights = np.random.default_rng(0).uniform(-0.16, 0.16, len(reached))
    ax.scatter(reached, heights, s=60, color=ORANGE, marker="s", alpha=0.75, ec="white")
    ax.scatter(best, 0.75, s=130, color=BLUE, ec="white", zorder=5)
    middle = (low + high) / 2
    note(ax, low + 0.05 * (high - low), 0.75, "one annealed start", BLUE, ha="left")
    note(ax, high, 0.36, "30 random starts", ORANGE, ha="right")
    arrow(ax, (low, -0.4), (high, -0.4), GREY, lw=1.6)
    note(ax, middle, -0.6, "objective (lower is better)", GREY)
    return figure


def draw_merging() -> Figure:
    """Draw Algorithm 2: too many lines, one dropped, two merged, the lines that are left."""
    figure, axes = canvas(6.4, columns=2, rows=2)
    points, truth = samples_near_lines((25, 105), 18, 0.07, 2)
    squares = squared_distances(points, (21, 105, 30))
    own = np.argmin(squares, axis=1)
    titles = ("1  too many", "2  drop the empty one", "3  merge close ones", "4  what is left")
    for ax, title in zip(axes, titles, strict=True):
        _panel(ax, title)
    four = ((21, BLUE), (105, ORANGE), (30, GREEN), (62, PURPLE))
    for angle, colour in four:
        line(axes[0], angle, colour, 1.13)
    dots(axes[0], points)
    for ax, length in ((axes[1], 1.13), (axes[2], 0.95)):
        for angle, colour in four[:3]:
            line(ax, angle, colour, length)
        dots(ax, points, own)
    line(axes[1], 62, PURPLE, 1.13, ls=(0, (2, 2)), alpha=0.45)
    note(axes[1], 0.78, 1.06, "no sample", PURPLE, fontsize=13)
    arrow(axes[2], (0.88, 0.86), (1.0, 0.52), INK, connectionstyle="arc3,rad=-0.25")
    arrow(axes[2], (1.0, 0.02), (1.02, 0.38), INK, connectionstyle="arc3,rad=0.25")
    for angle, colour in ((25, BLUE), (105, ORANGE)):
        line(axes[3], angle, colour, 1.13)
    dots(axes[3], points, truth)
    return figure


def draw_dimension() -> Figure:
    """Draw how the number of neighbours grows with the radius on a line and on a plane."""
    figure, (left, right) = canvas(3.5, columns=2)
    rng = np.random.default_rng(6)
    steps = np.arange(-8, 9) / 6.0
    on_line = np.stack([steps, 0.25 * steps], axis=1)[2:-2] * 1.05
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    grid = grid + 0.03 * rng.standard_normal(grid.shape)
    grid = grid[np.linalg.norm(grid, axis=1) < 1.02]
    grid = grid[np.linalg.norm(grid, axis=1) > 0.08]
    on_line = on_line[np.abs(on_line[:, 0]) > 0.05]
    for ax, points, title in ((left, on_line, "a line"), (right, grid, "a plane")):
        window(ax, -1.15, 1.15, -1.4, 1.05)
        distances = np.linalg.norm(points, axis=1)
        for radius, colour in ((0.82, BLUE), (0.41, ORANGE)):
            ax.add_patch(Circle((0, 0), radius, fill=False, ec=colour, lw=2.4))
        for low, high, colour in ((0, 0.41, ORANGE), (0.41, 0.82, BLUE), (0.82, 9, LIGHT)):
            inside = (distances >= low) & (distances < high)
            ax.scatter(*points[inside].T, s=38, color=colour, zorder=3)
        ax.scatter(0, 0, s=110, color=INK, marker="*", zorder=4)
        counts = [int(np.sum(distances < radius)) for radius in (0.41, 0.82)]
        note(ax, 0.0, -1.32, f"neighbours: {counts[0]} → {counts[1]}")
        ax.set_title(title)
    return figure


DRAWINGS = {
    "micusal-loop": draw_loop,
    "annealing-memberships": draw_memberships,
    "annealing-landscape": draw_landscape,
    "annealing-starts": draw_starts,
    "adaptive-merging": draw_merging,
    "adaptive-dimension": draw_dimension,
}
