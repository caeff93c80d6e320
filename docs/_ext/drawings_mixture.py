"""Drawings of the mixture: soft borders, the pull to the pooled shape, and a missing entry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawings_style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    canvas,
    dots,
    frame,
    note,
    unit,
    window,
)
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Polygon, Rectangle

MEANS = np.array([[-0.35, -0.1], [0.45, 0.15]])
ANGLES = (28.0, 112.0)
ALONG, NOISE = 0.2, 0.03
SHADES = LinearSegmentedColormap.from_list("sides", ["#bcd9ea", "#ffffff", "#f6d2b8"])


def _covariances(angles: Sequence[float] = ANGLES, noise: float = NOISE) -> np.ndarray:
    """Return the covariances of two low-rank Gaussians: a direction, and noise all around."""
    return np.array([ALONG * np.outer(unit(a), unit(a)) + noise * np.eye(2) for a in angles])


def _log_density(points: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the logarithm of a Gaussian density, up to a constant."""
    off = points - mean
    squares = np.sum(off @ np.linalg.inv(covariance) * off, axis=-1)
    return -0.5 * (squares + np.log(np.linalg.det(covariance)))


def _ellipse(ax: Axes, mean: Sequence[float], covariance: np.ndarray, colour: str) -> None:
    """Draw where most samples of a Gaussian lie."""
    values, vectors = np.linalg.eigh(covariance)
    turn = float(np.rad2deg(np.arctan2(vectors[1, 1], vectors[0, 1])))
    width, height = 3.4 * np.sqrt(values[1]), 3.4 * np.sqrt(values[0])
    shape = Ellipse(tuple(mean), width, height, angle=turn, fill=False, ec=colour, lw=2.6)
    shape.set_zorder(4)
    ax.add_patch(shape)


def _hard_borders(ax: Axes) -> None:
    """Shade the samples nearer to each of two lines: wedges about the point where they meet."""
    ax.add_patch(Rectangle((-1.3, -1.3), 2.6, 2.6, fc=SHADES(0.0), ec="none", zorder=0))
    lengths = np.linalg.solve(
        np.stack([unit(ANGLES[0]), -unit(ANGLES[1])], axis=1), MEANS[1] - MEANS[0]
    )
    meeting = MEANS[0] + lengths[0] * unit(ANGLES[0])
    middle = sum(ANGLES) / 2
    for sign in (5.0, -5.0):
        corners = [meeting, meeting + sign * unit(middle), meeting + sign * unit(middle + 90)]
        ax.add_patch(Polygon(corners, fc=SHADES(1.0), ec="none", zorder=0))


def draw_soft() -> Figure:
    """Draw hard borders between two subspaces, beside the soft ones of a mixture."""
    figure, (left, right) = canvas(3.3, columns=2)
    rng = np.random.default_rng(3)
    covariances = _covariances()
    points = np.concatenate(
        [rng.multivariate_normal(m, c, 24) for m, c in zip(MEANS, covariances, strict=True)]
    )
    titles = ("nearest subspace:\na label", "mixture:\na probability")
    for ax, title in zip((left, right), titles, strict=True):
        window(ax, -1.3, 1.3, -1.3, 1.3)
        dots(ax, points, np.repeat([0, 1], 24), s=26)
        frame(ax)
        ax.set_title(title)
    _hard_borders(left)
    grid = np.stack(np.meshgrid(*[np.linspace(-1.3, 1.3, 61)] * 2), axis=-1)
    logs = [_log_density(grid, m, c) for m, c in zip(MEANS, covariances, strict=True)]
    share = 1.0 / (1.0 + np.exp(logs[0] - logs[1]))
    levels = np.linspace(0, 1, 17)
    right.contourf(grid[..., 0], grid[..., 1], share, levels=levels, cmap=SHADES, zorder=0)
    for k, colour in enumerate((BLUE, ORANGE)):
        ends = np.array([MEANS[k] - 1.1 * unit(ANGLES[k]), MEANS[k] + 1.1 * unit(ANGLES[k])])
        left.plot(*ends.T, color=colour, lw=2.6)
        _ellipse(right, MEANS[k], covariances[k], colour)
    return figure


def draw_closeness() -> Figure:
    """Draw how closeness pulls the shapes of two subspaces to the pooled one."""
    figure, axes = canvas(2.45, columns=3)
    own = _covariances()
    pooled, n = own.mean(axis=0), 40.0
    cases = ((0.0, "κ = 0"), (40.0, "κ = 40"), (4000.0, "κ = 4000"))
    for ax, (kappa, title) in zip(axes, cases, strict=True):
        window(ax, -1.2, 1.2, -1.15, 1.15)
        _ellipse(ax, (0, 0), pooled, GREY)
        for covariance, colour in zip(own, (BLUE, ORANGE), strict=True):
            mixed = (n * covariance + kappa * pooled) / (n + kappa)
            _ellipse(ax, (0, 0), mixed, colour)
        frame(ax)
        ax.set_title(title)
    return figure


def draw_conditional() -> Figure:
    """Draw what a mixture says of a missing entry: two likely values, with their weights."""
    figure, (left, right) = canvas(3.0, columns=2)
    for ax in (left, right):
        window(ax, -1.3, 1.3, -1.3, 1.3)
    known, means = 0.32, np.array([[-0.1, -0.55], [0.05, 0.5]])
    covariances = _covariances((22.0, 152.0), 0.02)
    for mean, covariance, colour in zip(means, covariances, (BLUE, ORANGE), strict=True):
        _ellipse(left, mean, covariance, colour)
    left.plot([known, known], [-1.25, 1.25], color=INK, lw=2, ls=(0, (2, 1.5)))
    note(left, known + 0.08, -1.12, "known", ha="left")
    y = np.linspace(-1.25, 1.25, 300)
    points = np.stack([np.full(300, known), y], axis=1)
    parts = [np.exp(_log_density(points, m, c)) for m, c in zip(means, covariances, strict=True)]
    scale = 1.9 / max(float(part.max()) for part in parts)
    for part, colour in zip(parts, (BLUE, ORANGE), strict=True):
        right.fill_betweenx(y, -1.15, -1.15 + scale * part, color=colour, alpha=0.35)
        right.plot(-1.15 + scale * part, y, color=colour, lw=2.4)
    expected = float(np.sum(sum(parts) * y) / np.sum(sum(parts)))
    right.plot([-1.15, 1.1], [expected, expected], color=INK, lw=2)
    note(right, 0.55, expected + 0.14, "mean")
    for ax, title in ((left, "one entry known"), (right, "the other entry")):
        frame(ax)
        ax.set_title(title)
    return figure


DRAWINGS = {
    "mixture-soft": draw_soft,
    "mixture-closeness": draw_closeness,
    "mixture-conditional": draw_conditional,
}
