"""Where fits of the linear models start: bases that the user gives, or that are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from polyspan._sklearn import plain_settings
from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.checks import warn_user
from polyspan.data.working import Working
from polyspan.geometry.bases import Dims, draw_bases, is_orthonormal, orthonormalise, zero_padded
from polyspan.inputs import as_dispatched
from polyspan.union._solve.problem import Problem
from polyspan.union._solve.shape import join, with_columns
from polyspan.union.plan import Plan
from polyspan.union.reading import Data

# Samples from which points are drawn; more would cost more than an iteration.
MOST_CANDIDATES = 4096


def draw_starts(
    plan: Plan, problem: Problem, working: Working, given: Array | None, rng: Any
) -> tuple[Array, Array]:
    """Return the starts of the pooled subspace, (m, s), and of all runs, (R, L, m, columns).

    NumPy draws them and they are moved to the device of the rows, so that a seed gives the same
    start on every device.
    """
    like = problem.rows.like
    m, s = like.shape[1], plan.subspace_dim
    pooled = moved_to(draw_bases((m, s), rng), like, like.dtype)
    if given is not None:
        given = relative_to_mean(given, working.mean, plan.affine)
        return pooled, working.to_working(given)[None, ...]
    shape = (plan.n_starts, plan.n_subspaces, m, s)
    starts = moved_to(draw_bases(shape, rng), like, like.dtype)
    # Annealing begins with one dimension for all, the largest among others.
    starts = starts if plan.annealed else zero_padded(starts, plan.dims)
    if plan.affine:
        starts = join(starts, draw_points(problem, shape[:2], rng))
    return pooled, starts


def draw_points(problem: Problem, shape: tuple[int, int], rng: np.random.RandomState) -> Array:
    """Draw samples far from each other, as points for affine subspaces to start from.

    With uniformly drawn points two subspaces often start in one cluster and stay there.
    """
    n_starts, n_subspaces = shape
    n, points, chances = problem.rows.n_rows, [], None
    some, weights = np.arange(n), problem.rows.weights_of(np.arange(n))
    weights = None if weights is None else to_numpy(weights).astype(np.float64)
    if n > MOST_CANDIDATES and weights is not None:
        chances, weights = weights / weights.sum(), None  # those drawn often are there often
    for _ in range(n_starts):
        if n > MOST_CANDIDATES:
            some = np.sort(rng.choice(n, MOST_CANDIDATES, p=chances))
        candidates = problem.rows.take(some)
        with plain_settings():
            found, _ = kmeans_plusplus(
                to_numpy(candidates), n_subspaces, sample_weight=weights, random_state=rng
            )
        points.append(found)
    return moved_to(np.stack(points), problem.rows.like)


def given_start(init: Any, data: Data, plan: Plan) -> Array | None:
    """Check an init array; orthonormalise its bases where needed, and say so.

    For affine subspaces the last column is a point, in the coordinates of the data.
    """
    if isinstance(init, str):
        return None
    like = data.X
    if data.source is not None:
        like = np.empty((0, data.n_features), dtype=data.source.working_type)
    start, shape = (
        to_numpy(as_dispatched(init, "init")),
        (plan.n_subspaces, data.n_features, plan.subspace_dim),
    )
    shape = (*shape[:2], shape[2] + plan.affine)
    return checked_start(start, shape, like, affine=plan.affine, dims=plan.dims)


def checked_start(
    start: np.ndarray, shape: tuple[int, ...], like: Array, *, affine: bool, dims: Dims = None
) -> Array:
    """Return given frames of the shape asked for, beside `like`, with orthonormal bases."""
    names = "n_problems, n_subspaces" if len(shape) == 4 else "n_subspaces"
    columns = "subspace_dim" if dims is None else "max(subspace_dim)"
    columns = f"{columns} + 1" if affine else columns
    if start.dtype.kind not in "fiu":
        raise ValueError(f"init has the type {start.dtype}: give real orthonormal bases")
    if start.shape != shape:
        raise ValueError(
            f"init has the shape {start.shape}, but ({names}, n_features, {columns}) is {shape}"
        )
    if not np.isfinite(start).all():
        raise ValueError("init contains NaN or infinity: give finite orthonormal bases")
    frames = moved_to(start, like, like.dtype)
    bases, points = (frames[..., :-1], frames[..., -1]) if affine else (frames, None)
    if dims is None:
        return join(_nearest_orthonormal([bases])[0], points)
    parts = _nearest_orthonormal(_own_columns(bases, dims))
    padded = [with_columns(part, bases.shape[-1]) for part in parts]
    return join(namespace(bases).stack(padded, axis=-3), points)


def _own_columns(bases: Array, dims: tuple[int, ...]) -> list[Array]:
    """Return the first columns of every given basis; those beyond its dimension must be zero."""
    beyond = [bool(namespace(bases).any(bases[..., p, :, s:] != 0)) for p, s in enumerate(dims)]
    if any(beyond):
        p = beyond.index(True)
        raise ValueError(
            f"init has numbers beyond the first {dims[p]} columns of subspace {p}: these columns "
            f"must be zero, or the subspaces are not in the order of subspace_dim={dims}"
        )
    return [bases[..., p, :, :s] for p, s in enumerate(dims)]


def _nearest_orthonormal(stacks: list[Array]) -> list[Array]:
    """Return given bases with orthonormal columns; warn where they had others."""
    if not all(is_orthonormal(bases) for bases in stacks if bases.shape[-1]):
        warn_user("the bases in init are not orthonormal: the nearest orthonormal ones are used")
    return [_polar_factors(bases) if bases.shape[-1] else bases for bases in stacks]


def _polar_factors(bases: Array) -> Array:
    flat = namespace(bases).reshape(bases, (-1, *bases.shape[-2:]))
    return namespace(bases).reshape(orthonormalise(flat), bases.shape)


def relative_to_mean(frames: Array, mean: Array, affine: bool) -> Array:
    """Return frames whose points are relative to the mean."""
    if not affine:
        return frames
    xp = namespace(frames)
    points = xp.astype(frames[..., -1], xp.float64) - xp.astype(mean, xp.float64)
    return join(frames[..., :-1], xp.astype(points, frames.dtype))
