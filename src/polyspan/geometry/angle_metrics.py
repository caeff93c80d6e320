"""Metrics between subspaces as functions of the cosines and sines of their principal angles.

A sine has all its digits where an angle is small, a cosine where it is near π/2. Both are needed:
the arc cosine of a product of cosines is 0 below 1e-8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Cosines up to this many rounding units are those of right angles.
RIGHT_ANGLE = 10.0


@dataclass(frozen=True)
class Angles:
    """Principal angles of two subspaces, ascending, in double precision on the CPU."""

    cosines: np.ndarray
    sines: np.ndarray
    n_missing: int
    """Difference of the two dimensions."""
    epsilon: float
    """Rounding unit of the bases."""

    @property
    def radians(self) -> np.ndarray:
        """The angles, those that are missing as π/2."""
        small = self.cosines**2 >= 0.5
        found = np.where(small, np.arcsin(self.sines), np.arccos(self.cosines))
        return np.concatenate([found, np.full(self.n_missing, math.pi / 2)])

    def log_squared_cosines(self) -> float:
        """Return Σ log cos²θ_i; minus infinity where an angle is π/2."""
        if np.any(self.cosines <= RIGHT_ANGLE * self.epsilon):
            return -math.inf
        small = self.cosines**2 >= 0.5
        sines = np.where(small, self.sines, 0.0)
        return float(np.sum(np.where(small, np.log1p(-sines * sines), 2 * np.log(self.cosines))))


@dataclass(frozen=True)
class Metric:
    """A distance, its largest value, and whether dimensions may differ."""

    of: Callable[[Angles], float]
    largest: Callable[[int, int], float]
    """Of two dimensions."""
    takes_unequal: bool = True


def _chordal(angles: Angles) -> float:
    """Return ‖P_1 - P_2‖_F/√2."""
    return math.hypot(float(np.linalg.norm(angles.sines)), math.sqrt(angles.n_missing / 2))


def _projection(angles: Angles) -> float:
    return 1.0 if angles.n_missing else float(np.max(angles.sines, initial=0.0))


def _fubini_study(angles: Angles) -> float:
    logarithm = angles.log_squared_cosines()
    # 0.0: without angles the sum of logarithms is 0, and its negative -0.0.
    return math.atan2(math.sqrt(0.0 - math.expm1(logarithm)), math.exp(logarithm / 2))


METRICS = {
    "chordal": Metric(_chordal, lambda s, t: math.sqrt((s + t) / 2)),
    "geodesic": Metric(
        lambda angles: float(np.linalg.norm(angles.radians)),
        lambda s, t: math.pi / 2 * math.sqrt(max(s, t)),
    ),
    "projection": Metric(_projection, lambda s, t: 1.0),
    "procrustes": Metric(
        lambda angles: 2 * float(np.linalg.norm(np.sin(angles.radians / 2))),
        lambda s, t: math.sqrt(2 * max(s, t)),
    ),
    "fubini-study": Metric(_fubini_study, lambda s, t: math.pi / 2, takes_unequal=False),
    "martin": Metric(
        lambda angles: math.sqrt(0.0 - angles.log_squared_cosines()),
        lambda s, t: math.inf,
        takes_unequal=False,
    ),
}


def check_metric(metric: str, normalize: bool = False) -> None:
    """Raise an error for an unknown metric, or one that cannot be normalised."""
    names = ", ".join(repr(name) for name in METRICS)
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not known: give one of {names}")
    if normalize and math.isinf(METRICS[metric].largest(1, 1)):
        raise ValueError(
            f"metric={metric!r} has no largest value and cannot be normalised: pass "
            "normalize=False, or another metric"
        )
