"""The fit of the linear models: run starts, store the best, warn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from polyspan.arrays import (
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
from polyspan.checks import (
    lowest_finite,
    warn_about_rank,
    warn_if_coinciding,
    warn_unconverged,
    warn_user,
)
from polyspan.data.prediction import map_rows
from polyspan.data.working import Working
from polyspan.geometry import near_copies, zero_padded
from polyspan.progress import FitProgress
from polyspan.union._solve.alternation import Solution
from polyspan.union._solve.annealing import anneal, pooled_residual, temperatures
from polyspan.union._solve.problem import Problem
from polyspan.union._solve.refilling import learn as learn_by_alternation
from polyspan.union._solve.shape import join
from polyspan.union._solve.unequal import annealed_starts, units_of_levels
from polyspan.union.linear import LinearUnion
from polyspan.union.looking import noise_variance
from polyspan.union.plan import Plan
from polyspan.union.reading import Data
from polyspan.union.starts import draw_starts, given_start, relative_to_mean

# Starts share one product while all their projections fit in this many bytes.
GROUP_BYTES = 8 << 20

#: Runs the hard phase from every start of a group: (problem, frames, monitor=…).
Learn = Callable[..., list[Solution]]


def learn_union(
    model: LinearUnion,
    data: Data,
    plan: Plan,
    y: Any = None,
    *,
    learn: Learn | None = None,
    choose: Callable[[list[Solution]], list[Solution]] | None = None,
    **kind: Any,
) -> tuple[Solution, FitProgress]:
    """Learn from checked data and store the result; `progress.end()` is left to the caller.

    Parameters
    ----------
    learn, choose
        See `run_starts`.
    **kind
        `prior` and `masked` of `Data.problem`.
    """
    parameters: Any = model
    given = given_start(parameters.init, data, plan)
    data = data.trimmed(plan.rules.trim, center=plan.center)
    make = partial(
        data.problem, float(parameters.lam), center=plan.center, affine=plan.affine,
        dims=plan.dims, **kind,
    )  # fmt: skip
    problem, working = make(start=given)
    rng = check_random_state(parameters.random_state)
    starts = draw_starts(plan, problem, working, given, rng)
    progress = FitProgress(model, data.X, y, plan.n_runs, plan.max_steps)
    best = run_starts(problem, working, starts, plan, progress, learn=learn, choose=choose)
    if plan.n_runs > plan.n_starts:
        if problem.trim:
            problem, working, best = _centred_on_kept(make, problem, working, plan, best, progress)
        progress.end_start(plan.n_starts)
    store(model, data, problem, working, plan, best)
    return best, progress


def _centred_on_kept(
    make: Callable[..., tuple[Problem, Working]],
    problem: Problem,
    working: Working,
    plan: Plan,
    best: Solution,
    progress: FitProgress,
) -> tuple[Problem, Working, Solution]:
    """Centre on the samples that are not trimmed, and alternate on from there.

    The first mean knows nothing of subspaces, and outliers that are not far away may move it.
    Callbacks see this as one more start. The history that is kept is that about the final mean.
    """
    kept = problem.counted_block(best.frames).sample_weights[0, :]
    reached = fitted_attributes(problem, working, best.frames)
    start = join(reached["bases_"], reached.get("anchors_"))
    problem, working = make(start=start, counted=kept)
    frames = working.to_working(relative_to_mean(start, working.mean, plan.affine))
    monitor = progress.monitor(plan.n_starts, partial(fitted_attributes, problem, working))
    (found,) = learn_by_alternation(problem, frames[None, ...], plan.rules, monitor=monitor)
    # A solution of Algorithm 2 keeps its merges.
    best = replace(best, **{**vars(found), "anneal_history": best.anneal_history})
    return problem, working, best


def run_starts(
    problem: Problem,
    working: Working,
    starts: tuple[Array, Array],
    plan: Plan,
    progress: FitProgress,
    *,
    learn: Learn | None = None,
    choose: Callable[[list[Solution]], list[Solution]] | None = None,
) -> Solution:
    """Run all starts, in groups that share their products, and return the one to keep.

    Parameters
    ----------
    starts : pair of arrays
        From `draw_starts`.
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
    with limit_threads(pass_work(n, m, plan.n_columns * size), len(firsts)):
        unit, ritz, pooled = pooled_residual(problem, pooled_start)
        warn_about_rank(ritz, plan.subspace_dim, max(n, m), centred=plan.center)
        run = delayed(_run_group)
        groups = Parallel(n_jobs=plan.n_jobs, prefer="threads")(
            run(
                problem, frames[first : first + size, ...], (unit, ritz), plan, learn, first,
                progress, fitted,
            )
            for first in firsts
        )  # fmt: skip
        solutions = [found for group in groups for found in group]
        solutions = solutions if choose is None else choose(solutions)
        best = best_solution(solutions)
        return _restart_from_pooled(problem, best, pooled, learn) if try_pooled else best


def _run_group(
    problem: Problem,
    frames: Array,
    pooled: tuple[float, Array],
    plan: Plan,
    learn: Learn,
    first: int,
    progress: FitProgress,
    fitted: Callable[[Array], dict[str, Any]],
) -> list[Solution]:
    """Anneal (if asked), alternate and refill empty subspaces, for starts in one product.

    `pooled` holds the mean residual to the pooled subspace, and its Ritz values.
    """
    unit, ritz = pooled
    monitor = progress.monitor(first, fitted)
    cooling = np.empty((0, frames.shape[0]))
    if plan.annealed:
        # A temperature of 0 divides 0 by 0 where all samples lie in one subspace.
        smallest = 1e4 * float(namespace(frames).finfo(frames.dtype).smallest_normal)
        mean = problem.total / problem.n_samples
        least = max(machine_epsilon(frames) * mean, smallest)
        if plan.dims is None:
            schedule = temperatures(max(unit, least), *plan.anneal_range, plan.anneal_steps)
            loo = plan.rules.leave_one_out
            cooled = progress.monitor(first, fitted, "free_energy")
            frames, free = anneal(problem, frames, schedule, leave_one_out=loo, monitor=cooled)
            cooling = to_numpy(free)
        else:
            schedules = level_schedules(plan, unit, ritz, problem.n_samples, least)
            frames, cooling = annealed_starts(problem, frames, schedules, monitor=monitor)
    solutions = []
    for k, solution in enumerate(learn(problem, frames, monitor=monitor)):
        reached = cooling[~np.isnan(cooling[:, k]), k]  # a callback may have stopped this start
        solutions.append(replace(solution, anneal_history=tuple(reached.tolist())))
        if monitor is not None:
            progress.end_start(first + k)
    return solutions


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


def store(
    model: LinearUnion, data: Data, problem: Problem, working: Working, plan: Plan, best: Solution
) -> None:
    """Store what was learned, and delete what a stream or an earlier fit has stored."""
    for name in ("anchors_", "_stream", "n_samples_seen_", "trimmed_"):
        model.__dict__.pop(name, None)
    for name, value in fitted_attributes(problem, working, best.frames).items():
        setattr(model, name, value)
    xp = namespace(best.frames)
    plain, unit = not plan.rules.leave_one_out, working.residual_unit(problem.lam)
    model.objective_ = best.objective / unit / unit
    for name, values in (("objective", best.history), ("anneal", best.anneal_history)):
        history = [value / unit / unit for value in values]
        setattr(model, f"{name}_history_", moved_to(history, best.frames, xp.float64))
    model.n_iter_ = best.n_iter
    model.converged_ = best.stopped == "converged"
    model.labels_ = _training_labels(model, data, problem, working, best, plain=plain)
    X, weights = data.X, data.weights
    if plan.rules.trim:
        X, weights = _store_trimmed(model, data, problem, best)
    if problem.shape.n_points and not data.holes and (plain or data.source is None):
        model.objective_ = _affine_objective(problem, best, None if plain else best.labels, unit)
    model.noise_variance_ = noise_variance(model, X, data.source, weights)


def _training_labels(
    model: LinearUnion, data: Data, problem: Problem, working: Working, best: Solution, *,
    plain: bool,
) -> Any:  # fmt: skip
    """Return the label of every sample; those of weight 0 have that of the nearest subspace."""
    if data.source is not None and plain:
        return map_rows(data.source, model, "predict")
    if data.source is not None:
        if data.weights is None:
            return best.labels.astype(np.int64)
        nearest = map_rows(data.source, model, "predict")
        return (best.labels + (best.labels < 0) * (nearest + 1)).astype(np.int64)
    if plain and not data.holes and (working.span is not None or problem.shape.n_points):
        # Exact ties may fall otherwise in the coordinates of the span, or about a point.
        return model._nearest(data.X)
    xp = namespace(best.frames)
    labels = best.labels if data.learned is None else data.expand_labels(best.labels)
    if (data.weights is not None or data.far is not None) and data.learned is not None:
        labels = xp.where(data.learned, labels, model._nearest(data.X))
    return xp.astype(labels, xp.int64, copy=False)


def _store_trimmed(
    model: LinearUnion, data: Data, problem: Problem, best: Solution
) -> tuple[Array, Array]:
    """Store which samples are trimmed; return the samples learned from, and what they weigh."""
    xp = namespace(best.frames)
    kept = problem.counted_block(best.frames).sample_weights
    X, _ = data.learned_rows()
    if kept is None:  # none is left to trim
        kept = xp.ones_like(X[:, 0])[None, :]
    trimmed = data.expand(kept[0, :] == 0, False)
    model.trimmed_ = trimmed if data.far is None else trimmed | data.far
    return X, kept[0, :]


def _affine_objective(problem: Problem, best: Solution, labels: Any, unit: float) -> float:
    """Return F1 from the residuals themselves."""
    from polyspan.union._solve.exact import residual_block

    if problem.trim:
        block = problem.counted_block(best.frames)
        residual, _ = residual_block(block, best.frames, problem.shape, labels)
    else:
        residual, _ = problem.rows.reduce(residual_block, best.frames, problem.shape, labels)
    if math.isinf(problem.lam):
        return float(residual / unit / unit)
    near = float(problem.shape.closeness(best.frames[None, ...])[0])
    return near + problem.lam * float(residual)


def warn_about(best: Solution, plan: Plan, lam: float) -> None:
    """Warn of empty subspaces, equal subspaces and missing convergence."""
    empty = np.flatnonzero(to_numpy(best.counts) == 0)
    if len(empty):
        warn_user(
            f"no sample is assigned to subspaces {empty.tolist()}: lower n_subspaces, or raise "
            "lam or n_init"
        )
    if not plan.affine:
        warn_if_coinciding(best.frames, lam, plan.dims)
    if best.stopped == "max_iter":
        warn_unconverged(
            f"the alternation did not converge to tol={plan.rules.tol} in max_iter="
            f"{plan.rules.max_iter} iterations: raise max_iter or tol"
        )
