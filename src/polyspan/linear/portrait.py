"""What summaries and figures look at: subspaces and samples of a fitted model, in NumPy.

How near the subspaces are to each other, by directions and positions, and how samples lie in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.base.checks import first_ten
from polyspan.geometry.distances import principal_angles

#: A sample is unsure where no subspace has this membership; in kernel models, which have none,
#: where the squared distances to its two nearest subspaces have at least this ratio.
SURE = 0.9


def dimensions_of(model: Any) -> np.ndarray:
    """Return the dimension of every subspace of a fitted model of any kind."""
    check_is_fitted(model)
    if hasattr(model, "coefs_"):
        return np.array([int(coefs.shape[1]) for coefs in model.coefs_])
    if not hasattr(model, "subspace_dims_"):
        raise TypeError(
            f"a {type(model).__name__} has no subspaces to look at: give a linear model, a "
            "mixture or a kernel model of polyspan"
        )
    return np.asarray(to_numpy(model.subspace_dims_))


def centres_of(model: Any) -> np.ndarray:
    """Return the point of every subspace that coordinates are relative to, (n_subspaces, m)."""
    for name in ("means_", "anchors_"):
        if hasattr(model, name):
            return to_numpy(getattr(model, name))
    mean = to_numpy(model.mean_)
    return np.broadcast_to(mean, (int(model.bases_.shape[0]), len(mean)))


def extreme_angles(model: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the smallest and the largest principal angle of all pairs, in degrees.

    NaN where a subspace is a point. None for kernel models, which keep no bases.
    """
    if not hasattr(model, "bases_"):
        return None
    bases, dims = to_numpy(model.bases_).astype(np.float64), dimensions_of(model)
    n = len(bases)
    smallest, largest = np.zeros((n, n)), np.zeros((n, n))
    for a in range(n):
        for b in range(a):
            angles = np.degrees(principal_angles(bases[a][:, : dims[a]], bases[b][:, : dims[b]]))
            ends = (angles[0], angles[-1]) if len(angles) else (np.nan, np.nan)
            smallest[a, b] = smallest[b, a] = ends[0]
            largest[a, b] = largest[b, a] = ends[1]
    return smallest, largest


@dataclass(frozen=True)
class Portrait:
    """Samples as a model sees them. Rows that cannot be judged are left out."""

    rows: np.ndarray
    """Indices of the samples that can be judged."""
    labels: np.ndarray
    coordinates: np.ndarray
    """(n, most dimensions), relative to the centre of the own subspace."""
    residuals: np.ndarray
    """Squared distances to the own subspace, over observed entries."""
    totals: np.ndarray
    """Squared distances to the centre of the own subspace, over observed entries."""
    n_left_out: int
    """Number of samples that cannot be judged."""

    @classmethod
    def of(cls, model: Any, X: Any) -> Portrait:
        """Look at samples."""
        X = in_memory(X)
        labels = to_numpy(model.predict(X))
        coordinates = to_numpy(model.coordinates(X)).astype(np.float64)
        if hasattr(model, "bases_"):
            values = to_numpy(model._validate(X, reset=False, method="predict"))
            residuals, totals = _residuals(model, values, labels, coordinates)
        else:
            residuals = to_numpy(model.transform(X)).min(axis=1).astype(np.float64) ** 2
            totals = residuals + (coordinates**2).sum(axis=1)
        rows = np.flatnonzero(labels >= 0)
        kept = (labels[rows], coordinates[rows], residuals[rows], totals[rows])
        return cls(rows, *kept, len(labels) - len(rows))


def _residuals(
    model: Any, X: np.ndarray, labels: np.ndarray, coordinates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances of samples to their subspaces and to the centres of these."""
    bases, centres = to_numpy(model.bases_), centres_of(model)
    residuals, totals = np.zeros(len(X)), np.zeros(len(X))
    for p in range(len(bases)):
        own = np.flatnonzero(labels == p)
        about = X[own].astype(np.float64) - centres[p]
        totals[own] = np.nansum(about**2, axis=1)
        residuals[own] = np.nansum((about - coordinates[own] @ bases[p].T) ** 2, axis=1)
    return residuals, totals


def in_memory(X: Any) -> Any:
    """Return the samples of a dask array or frame in memory, and all others unchanged."""
    return X.compute() if hasattr(X, "__dask_graph__") else X


def unsure_samples(model: Any, X: Any) -> np.ndarray:
    """Return which samples are unsure."""
    X = in_memory(X)
    if hasattr(model, "memberships"):
        return np.asarray(to_numpy(model.memberships(X)).max(axis=1) < SURE)
    squares = np.sort(to_numpy(model.transform(X)) ** 2, axis=1)
    if squares.shape[1] == 1:
        return np.zeros(len(squares), dtype=bool)
    return np.asarray(squares[:, 0] >= SURE * squares[:, 1])


@dataclass(frozen=True)
class Axes:
    """Bases turned to the principal axes of the samples, so that directions have an order."""

    bases: np.ndarray | None
    """(n_subspaces, n_features, most dimensions), with fixed signs; None for kernel models."""
    energies: np.ndarray | None
    """Mean squared coordinate along every direction; NaN beyond the own dimension."""
    turns: np.ndarray
    """Rotations of coordinates: (n_subspaces, most dimensions, most dimensions)."""
    turned: bool
    """Whether the axes are those of samples or of a fit, so that their order means something."""


def principal_axes(model: Any, portrait: Portrait | None = None) -> Axes:
    """Turn the bases to the principal axes of the coordinates of samples.

    Without samples the bases stay as they are: those of linear models are defined up to a
    rotation. The directions of a mixture have an order, that of `variances_`.
    """
    dims = dimensions_of(model)
    n, most = len(dims), int(dims.max(initial=0))
    turns = np.broadcast_to(np.eye(most), (n, most, most)).copy()
    energies, ordered = None, False
    if hasattr(model, "variances_"):
        energies, ordered = to_numpy(model.variances_).astype(np.float64), True
    elif portrait is not None:
        energies, ordered = np.zeros((n, most)), True
        for p, s in enumerate(dims):
            own = portrait.coordinates[portrait.labels == p][:, :s]
            values, vectors = np.linalg.eigh(own.T @ own / max(len(own), 1))
            energies[p, :s] = np.maximum(values[::-1], 0.0)
            turns[p, :s, :s] = vectors[:, ::-1]
    if energies is not None:
        energies = np.where(np.arange(most) < dims[:, None], energies[:, :most], np.nan)
    bases = None
    if hasattr(model, "bases_"):
        bases = to_numpy(model.bases_).astype(np.float64)[:, :, :most] @ turns
        if most:
            # The largest loading of every direction is positive, as in scikit-learn's `svd_flip`.
            largest = np.take_along_axis(bases, np.abs(bases).argmax(axis=1)[:, None, :], axis=1)
            signs = np.where(largest < 0, -1.0, 1.0)
            bases, turns = bases * signs, turns * signs
    return Axes(bases, energies, turns, ordered)


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
        same, apart = self._same_directions(), self._positions() > 0.0
        if equal := self._pairs(same & ~apart):
            much = "equal" if self.apart is None else "equal up to the noise"
            return f"{_named(equal)} are {much}."
        flats = (self.dims > 0)[:, None] & (self.dims > 0)
        if parallel := self._pairs(same & flats & apart):
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
    mixture = hasattr(model, "variances_")
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
