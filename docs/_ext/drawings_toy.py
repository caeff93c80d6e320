"""Small data in the plane, and the algorithms of the paper in a few lines, for the drawings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawings_style import unit


def samples_near_lines(
    angles: Sequence[float], n_each: int, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy samples of lines through the origin, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(angles)), n_each)
    along = rng.uniform(0.25, 1.0, len(labels)) * rng.choice([-1.0, 1.0], len(labels))
    directions = np.array([unit(angle) for angle in angles])
    points = along[:, None] * directions[labels]
    return points + noise * rng.standard_normal(points.shape), labels


def squared_distances(points: np.ndarray, angles: Sequence[float]) -> np.ndarray:
    """Return the squared distance of every sample to every line."""
    bases = np.array([unit(angle) for angle in angles])
    return np.sum(points**2, axis=1)[:, None] - (points @ bases.T) ** 2


def updated_angles(
    points: np.ndarray, weights: np.ndarray, angles: Sequence[float], lam: float = np.inf
) -> list[float]:
    """Return new lines for given memberships, one after the other (Algorithm 1, steps 7 to 13)."""
    found = list(angles)
    for k in range(len(found)):
        scatter = (points * weights[:, k : k + 1]).T @ points
        if np.isfinite(lam):
            others = [np.outer(unit(a), unit(a)) for p, a in enumerate(found) if p != k]
            scatter = lam / 2 * scatter + sum(others)
        direction = np.linalg.eigh(scatter)[1][:, -1]
        found[k] = float(np.rad2deg(np.arctan2(direction[1], direction[0])) % 180)
    return found


def hard(squares: np.ndarray) -> np.ndarray:
    """Return memberships of 0 and 1: every sample to its nearest line."""
    return np.eye(squares.shape[1])[np.argmin(squares, axis=1)]


def soft(squares: np.ndarray, temperature: float) -> np.ndarray:
    """Return memberships ∝ exp(-r/τ)."""
    weights = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)
