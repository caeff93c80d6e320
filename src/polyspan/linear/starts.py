"""Where fits of the linear models start, bases given or drawn, and the runs from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import kmeans_plusplus

from polyspan.base.arrays import (
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    limit_threads,
    machine_epsilon,
    moved_to,
    namespace,
    pass_work,
    to_numpy,
    zeros,
)
from polyspan.base.checks import lowest_finite, warn_about_rank, warn_user
from polyspan.base.inputs import as_dispatched
from polyspan.base.private_sklearn import plain_settings
from polyspan.base.progress import FitProgress, Monitor
from polyspan.data.working import Working
from polyspan.geometry.bases import (
    Dims,
    draw_bases,
    is_orthonormal,
    near_copies,
    orthonormalise,
    zero_padded,
)
from polyspan.linear._solve.alternation import Learn, Solution, alternate
from polyspan.linear._solve.alternation import learn as learn_by_alternation
from polyspan.linear._solve.annealing import (
    anneal,
    annealed_starts,
    pooled_residual,
    temperatures,
    units_of_levels,
)
from polyspan.linear._solve.problem import Problem
from polyspan.linear._solve.shape import join, with_columns
from polyspan.linear.auto_starts import COARSE, best_of_all_starts
from polyspan.linear.options import Plan
from polyspan.linear.reading import Data

# Samples from which points are drawn; more would cost more than an iteration.
MOST_CANDIDATES = 4096
# Starts share one product while all their projections fit in this many bytes.
GROUP_BYTES = 8 << 20


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
    start = to_numpy(as_dispatched(init, "init"))
    shape = (plan.n_subspaces, data.n_features, plan.subspace_dim + plan.affine)
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


def run_starts(
    problem: Problem,
    working: Working,
    starts: tuple[Array, Array],
    plan: Plan,
    progress: FitProgress,
    *,
    rng: Any = None,
    learn: Learn | None = None,
    choose: Callable[[list[Solution]], list[Solution]] | None = None,
) -> Solution:
    """Run all starts, in groups that share their products, and return the one to keep.

    Parameters
    ----------
    starts : pair of arrays
        From `draw_starts`.
    rng : RandomState
        Draws the seeded starts.
    learn : callable, default=None
        Replaces Algorithm 1 as the hard phase. Only after Algorithm 1 a run from copies of one
        pooled subspace follows, if no start ended below the objective of these copies.
    choose : callable, default=None
        Returns the solutions of which the best is kept; None: all.
    """
    pooled_start, frames = starts
    try_pooled = learn is None and not plan.rules.leave_one_out
    learn = learn or partial(learn_by_alternation, rules=plan.rules)
    like, n_starts = problem.rows.like, frames.shape[0]
    n, m = problem.rows.n_rows, like.shape[1]
    fitted = partial(fitted_attributes, problem, working)
    # All starts share one pass over rows out of memory, because reading costs more than all else.
    together = n if problem.rows.in_memory else 1
    group = GROUP_BYTES if is_host(like) else DEVICE_CHUNK_BYTES
    size = max(1, min(n_starts, group // (together * plan.n_columns * item_bytes(frames))))
    firsts = range(0, n_starts, size)

    def run_group(first: int, problem: Problem = problem, learn: Learn = learn) -> list[Solution]:
        """Anneal (if asked), alternate and refill empty subspaces, for starts in one product."""
        own, monitor = frames[first : first + size, ...], progress.monitor(first, fitted)
        cooling = np.empty((0, own.shape[0]))
        if plan.annealed:
            cooled = progress.monitor(first, fitted, "free_energy")
            own, cooling = _annealed(problem, own, plan, unit, ritz, monitor, cooled)
        solutions = []
        for k, solution in enumerate(learn(problem, own, monitor=monitor)):
            reached = cooling[~np.isnan(cooling[:, k]), k]  # a callback may have stopped this start
            solutions.append(replace(solution, anneal_history=tuple(reached.tolist())))
            progress.end_start(first + k)
        return solutions

    with limit_threads(pass_work(n, m, plan.n_columns * size), len(firsts)):
        unit, ritz, pooled = pooled_residual(problem, pooled_start)
        warn_about_rank(ritz, plan.subspace_dim, max(n, m), centred=plan.center)
        if plan.n_seeded:
            compared = partial(alternate, rules=COARSE)
            solutions = best_of_all_starts(
                problem, plan, rng, lambda ground: run_group(0, ground, compared)[0],
                partial(learn, monitor=progress.monitor(1, fitted)),
            )  # fmt: skip
            for k in range(1, plan.n_runs):
                progress.end_start(k)
        else:
            run = delayed(run_group)
            groups = Parallel(n_jobs=plan.n_jobs, prefer="threads")(run(first) for first in firsts)
            solutions = [found for group in groups for found in group]
        best = best_solution(solutions if choose is None else choose(solutions))
        return _restart_from_pooled(problem, best, pooled, learn) if try_pooled else best


def _annealed(
    problem: Problem,
    frames: Array,
    plan: Plan,
    unit: float,
    ritz: Array,
    monitor: Monitor | None,
    cooled: Monitor | None,
) -> tuple[Array, np.ndarray]:
    """Return annealed starts, and the free energies on the way to them.

    `unit` is the mean residual to the pooled subspace, `ritz` its Ritz values.
    """
    # A temperature of 0 divides 0 by 0 where all samples lie in one subspace.
    smallest = 1e4 * float(namespace(frames).finfo(frames.dtype).smallest_normal)
    least = max(machine_epsilon(frames) * problem.total / problem.n_samples, smallest)
    if plan.dims is not None:
        schedules = level_schedules(plan, unit, ritz, problem.n_samples, least)
        return annealed_starts(problem, frames, schedules, monitor=monitor)
    schedule = temperatures(max(unit, least), *plan.anneal_range, plan.anneal_steps)
    loo = plan.rules.leave_one_out
    frames, free = anneal(problem, frames, schedule, leave_one_out=loo, monitor=cooled)
    return frames, to_numpy(free)


def level_schedules(
    plan: Plan, residual: float, ritz: Array, n: float, least: float
) -> dict[int, list[float]]:
    """Return temperatures for every common dimension; their unit is at least `least`."""
    units = units_of_levels(plan.dims or (), residual, ritz, n)
    return {
        dim: temperatures(max(unit, least), *plan.anneal_range, plan.anneal_steps)
        for dim, unit in units.items()
    }


def _restart_from_pooled(problem: Problem, best: Solution, pooled: Array, learn: Learn) -> Solution:
    """Run again from copies of one pooled subspace if no start has a lower objective than these.

    Copies of lower dimension have its leading directions.
    This happens if λ is so small for the scale of the data that the subspaces become equal
    before they fit the data.
    """
    if best.stopped == "callback":
        return best
    dims = problem.shape.dims
    near = near_copies(pooled, best.frames.shape[0], dims)[None, ...]
    copies = zero_padded(namespace(pooled).broadcast_to(pooled, near.shape), dims)
    if problem.shape.n_points:
        points = zeros(near.shape[:-1], near)
        near, copies = join(near, points), join(copies, points)
    _, sums = problem.assign(copies, with_products=False, keep=False)
    value = float(problem.objective(copies, sums.energy, sums.squares)[0])
    if best.objective <= value * (1 + 1e-9):
        return best
    together = learn(problem, near, monitor=None)[0]
    return replace(together, anneal_history=best.anneal_history)


def best_solution(solutions: list[Solution]) -> Solution:
    """Return the lowest; of starts that met in one optimum the first, whatever rounding says."""
    lowest = lowest_finite([solution.criterion for solution in solutions])
    enough = lowest + 1e-9 * abs(lowest)
    return next(solution for solution in solutions if solution.criterion <= enough)


def fitted_attributes(problem: Problem, working: Working, frames: Array) -> dict[str, Any]:
    """Return the attributes that describe the subspaces a solver has reached."""
    bases, points = problem.shape.split(working.to_data(frames))
    if points is None:
        return {"bases_": bases, "mean_": working.mean}
    # A copy, and not every column but the last of frames: products with an array that lies
    # otherwise in memory, as after saving and loading, are rounded otherwise.
    bases = namespace(bases).asarray(bases, copy=True)
    return {"bases_": bases, "mean_": working.mean, "anchors_": points + working.mean}
