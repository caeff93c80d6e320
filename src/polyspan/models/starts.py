"""Where a fit starts from: bases that the user gives, samples that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from polyspan._sklearn import plain_settings
from polyspan.arrays import Array, Rows, float64_sum, moved_to, namespace, to_numpy
from polyspan.geometry import is_orthonormal, orthonormalise
from polyspan.models.messages import warn_user
from polyspan.solvers.affine import join, split

# Enough to draw a handful of points from; more would cost more than an iteration.
MOST_CANDIDATES = 4096


def given_start(init: Any, X: Array, n_subspaces: int, subspace_dim: int, *, affine: bool) -> Array:
    """Check an init array; orthonormalise its bases where needed, and say so.

    For affine subspaces the last column is a point, which is returned relative to the mean.
    """
    columns = "subspace_dim + 1" if affine else "subspace_dim"
    shape = (n_subspaces, X.shape[1], subspace_dim + affine)
    xp = namespace(X)
    start = to_numpy(init)
    if start.dtype.kind not in "fiu":
        raise ValueError(f"init has the type {start.dtype}: give real orthonormal bases")
    if start.shape != shape:
        raise ValueError(
            f"init has the shape {start.shape}, but (n_subspaces, n_features, {columns}) is {shape}"
        )
    if not np.isfinite(start).all():
        raise ValueError("init contains NaN or infinity: give finite orthonormal bases")
    placed = moved_to(start, X, X.dtype)
    if not affine:
        return _orthonormal(placed)
    bases, _ = split(placed)
    anchors = moved_to(start[..., -1], X, xp.float64)
    points = anchors - float64_sum(X, axis=0) / X.shape[0]
    return join(_orthonormal(bases), xp.astype(points, X.dtype))


def _orthonormal(bases: Array) -> Array:
    if not bases.shape[-1]:
        return bases
    if not is_orthonormal(bases):
        warn_user("the bases in init are not orthonormal: the nearest orthonormal ones are used")
    return orthonormalise(bases)


def draw_points(rows: Rows, shape: tuple[int, ...], rng: np.random.RandomState) -> Array:
    """Draw samples far from each other, as points for affine subspaces to start from.

    With points drawn evenly two flats often begin in one cluster and never part again.
    """
    n_starts, n_subspaces = shape
    n = rows.shape[0]
    points = []
    for _ in range(n_starts):
        some = np.arange(n) if n <= MOST_CANDIDATES else rng.choice(n, MOST_CANDIDATES)
        candidates = namespace(rows.X).take(rows.X, moved_to(some, rows.X), axis=0)
        if rows.mean is not None:
            candidates = candidates - rows.mean
        candidates = to_numpy(candidates)
        with plain_settings():
            points.append(kmeans_plusplus(candidates, n_subspaces, random_state=rng)[0])
    return moved_to(np.stack(points), rows.X)
