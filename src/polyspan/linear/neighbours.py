"""How near the subspaces of a fitted model are to each other: their directions and positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.linear.portrait import centres_of, dimensions_of, extreme_angles

#: Two subspaces have the same directions below this distance per root of a dimension.
EQUAL = 1e-3


@dataclass(frozen=True)
class Neighbours:
    """Distances of all pairs of subspaces of one model, in NumPy."""

    dims: np.ndarray
    distances: np.ndarray
    """d_u, which compares directions alone."""
    angles: tuple[np.ndarray, np.ndarray] | None
    """Smallest and largest principal angles, in degrees; None for kernel models."""
    apart: np.ndarray | None
    """Distances of positions; None where all subspaces have one centre."""
    noise: float
    """Positions that are nearer than this cannot be told apart."""

    @classmethod
    def of(cls, model: Any) -> Neighbours:
        """Compare the subspaces of a fitted model."""
        distances = to_numpy(model.subspace_distances_).astype(np.float64)
        found = positions_apart(model)
        apart, noise = (None, 0.0) if found is None else found
        return cls(dimensions_of(model), distances, extreme_angles(model), apart, noise)

    def nearest(self) -> np.ndarray:
        """Return the nearest other subspace of every subspace, -1 if there is none.

        Where subspaces have positions, these come first; directions decide between those that the
        noise does not tell apart.
        """
        n = len(self.dims)
        if n == 1:
            return np.array([-1])
        far = np.where(np.eye(n, dtype=bool), np.inf, self._positions())
        tied = far == far.min(axis=1, keepdims=True)
        found: np.ndarray = np.where(tied, self.distances, np.inf).argmin(axis=1)
        return found

    def closest(self) -> tuple[int, int]:
        """Return the two subspaces, of several, that are nearest."""
        nearest = self.nearest()
        every = np.arange(len(nearest))
        keys = (self.distances[every, nearest], self._positions()[every, nearest])
        a = int(np.lexsort(keys)[0])
        return min(a, int(nearest[a])), max(a, int(nearest[a]))

    def equal_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs that have the same directions and, up to the noise, one position."""
        return self._pairs(self._same_directions() & (self._positions() == 0.0))

    def parallel_pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of flats with the same directions and other positions."""
        flats = (self.dims > 0)[:, None] & (self.dims > 0)
        return self._pairs(self._same_directions() & flats & (self._positions() > 0.0))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the nearest other subspace of every subspace, its distance and its angles."""
        nearest = self.nearest()
        if len(nearest) == 1:
            return {"nearest": nearest, "distance": np.array([np.nan])}
        every = np.arange(len(nearest))
        smallest, largest = (None, None) if self.angles is None else self.angles
        matrices = {
            "distance": self.distances,
            "smallest_angle": smallest,
            "largest_angle": largest,
            "apart": self.apart,
        }
        known = {name: found[every, nearest] for name, found in matrices.items()
                 if found is not None}  # fmt: skip
        return {"nearest": nearest, **known}

    def sentence(self) -> str:
        """Say which subspaces are equal, which are parallel, or how near the nearest are."""
        if len(self.dims) == 1:
            return ""
        if equal := self.equal_pairs():
            much = "equal" if self.apart is None else "equal up to the noise"
            return f"{_named(equal)} are {much}."
        if parallel := self.parallel_pairs():
            why = "their directions are equal, their positions are not"
            return f"{_named(parallel)} are parallel: {why}."
        a, b = self.closest()
        how = [] if self.apart is None else [f"they are {self.apart[a, b]:.3g} apart"]
        if self.angles is None:
            how.append(f"their distance is {self.distances[a, b]:.2f}")
        elif np.isfinite(self.angles[0][a, b]):
            low, high = (f"{angles[a, b]:.0f}°" for angles in self.angles)
            how.append(f"their angles are {low}" + (f" to {high}" if low != high else ""))
        return f"{_named([(a, b)])} are nearest: {', and '.join(how)}."

    def _positions(self) -> np.ndarray:
        """Return the distances of positions, 0 where the noise does not tell them apart."""
        if self.apart is None:
            return np.zeros_like(self.distances)
        return np.where(self.apart <= self.noise, 0.0, self.apart)

    def _same_directions(self) -> np.ndarray:
        close = self.distances <= EQUAL * np.sqrt(max(self.dims.max(initial=0), 1))
        return np.asarray(close & (self.dims[:, None] == self.dims))

    @staticmethod
    def _pairs(which: np.ndarray) -> list[tuple[int, int]]:
        return [(int(a), int(b)) for a, b in np.argwhere(np.triu(which, 1))]


def positions_apart(model: Any) -> tuple[np.ndarray, float] | None:
    """Return how far apart positions are, and the standard deviation of the noise.

    Of affine subspaces this is the distance of the centre of one to the other, the larger of both
    ways; of a mixture the distance of the means, since subspaces with other means are other
    clusters. None where all subspaces go through one point.
    """
    mixture = hasattr(model, "means_")
    if not mixture and not hasattr(model, "anchors_"):
        return None
    centres = centres_of(model).astype(np.float64)
    n = len(centres)
    apart = np.zeros((n, n))
    bases = to_numpy(model.bases_).astype(np.float64)
    for p in range(n):
        about = centres - centres[p]
        if not mixture:
            about = about - (about @ bases[p]) @ bases[p].T
        apart[:, p] = np.linalg.norm(about, axis=1)
    known = model.noise_variances_ if mixture else getattr(model, "noise_variance_", 0.0)
    variances = to_numpy(known)
    # Positions are rounded, also where there is no noise.
    rounding = 1e-9 * float(np.abs(centres).max(initial=0.0))
    noise = max(float(np.sqrt(np.max(variances, initial=0.0))), rounding)
    return np.maximum(apart, apart.T), noise


def _named(pairs: list[tuple[int, int]]) -> str:
    return "Subspaces " + first_ten([f"{a} and {b}" for a, b in pairs])
