"""What summaries and figures look at: subspaces and samples of a fitted model, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
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
