"""Where a fit starts from: bases that the user gives, samples that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from polyspan.arrays import Rows
from polyspan.geometry import is_orthonormal, orthonormalise
from polyspan.models.messages import warn_user
from polyspan.solvers.affine import join, split

# Enough to draw a handful of points from; more would cost more than an iteration.
MOST_CANDIDATES = 4096


def given_start(
    init: Any, X: np.ndarray, n_subspaces: int, subspace_dim: int, *, affine: bool
) -> np.ndarray:
    """Check an init array; orthonormalise its bases where needed, and say so.

    For affine subspaces the last column is a point, which is returned relative to the mean.
    """
    columns = "subspace_dim + 1" if affine else "subspace_dim"
    shape = (n_subspaces, X.shape[1], subspace_dim + affine)
    start = np.asarray(init)
    if start.dtype.kind not in "fiu":
        raise ValueError(f"init has the type {start.dtype}: give real orthonormal bases")
    if start.shape != shape:
        raise ValueError(
            f"init has the shape {start.shape}, but (n_subspaces, n_features, {columns}) is {shape}"
        )
    start = start.astype(X.dtype)
    if not np.isfinite(start).all():
        raise ValueError("init contains NaN or infinity: give finite orthonormal bases")
    if not affine:
        return _orthonormal(start)
    bases, anchors = split(start)
    points = anchors.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    return np.asarray(join(_orthonormal(bases), points.astype(X.dtype)))


def _orthonormal(bases: np.ndarray) -> np.ndarray:
    if not bases.shape[-1]:
        return bases
    if not is_orthonormal(bases):
        warn_user("the bases in init are not orthonormal: the nearest orthonormal ones are used")
    return np.asarray(orthonormalise(bases))


def draw_points(rows: Rows, shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Draw samples far from each other, as points for affine subspaces to start from.

    With points drawn evenly two flats often begin in one cluster and never part again.
    """
    n_starts, n_subspaces = shape
    n = rows.shape[0]
    points = []
    for _ in range(n_starts):
        some = np.arange(n) if n <= MOST_CANDIDATES else rng.choice(n, MOST_CANDIDATES)
        candidates = np.asarray(rows.X[some])
        if rows.mean is not None:
            candidates = candidates - rows.mean
        points.append(kmeans_plusplus(candidates, n_subspaces, random_state=rng)[0])
    return np.stack(points)
