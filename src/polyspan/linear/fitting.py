"""The fit of the linear models: run starts, store the best, warn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.arrays import (
    Array,
    moved_to,
    namespace,
)
from polyspan.base.checks import (
    warn_empty,
    warn_unconverged,
    warn_user,
)
from polyspan.base.progress import FitProgress
from polyspan.data.prediction import map_rows
from polyspan.data.working import Working
from polyspan.geometry.distances import closeness
from polyspan.linear._solve.alternation import Learn, Solution
from polyspan.linear._solve.alternation import learn as learn_by_alternation
from polyspan.linear._solve.problem import Problem
from polyspan.linear._solve.shape import join
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.looking import noise_variance
from polyspan.linear.options import Plan
from polyspan.linear.reading import Data
from polyspan.linear.starts import (
    draw_starts,
    fitted_attributes,
    given_start,
    relative_to_mean,
    run_starts,
)


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
    lam = None if isinstance(parameters.lam, str) else float(parameters.lam)
    make = partial(data.problem, center=plan.center, affine=plan.affine, dims=plan.dims, **kind)
    problem, working = make(lam=lam, start=given)
    if lam is None:
        lam = problem.lam * working.scale * working.scale
    rng = check_random_state(parameters.random_state)
    starts = draw_starts(plan, problem, working, given, rng)
    progress = FitProgress(model, data.X, y, plan.n_runs, plan.max_steps)
    best = run_starts(problem, working, starts, plan, progress, rng=rng, learn=learn, choose=choose)
    if plan.rules.trim and plan.center:
        if problem.trim:
            make = partial(make, lam=lam)
            problem, working, best = _centred_on_kept(make, problem, working, plan, best, progress)
        progress.end_start(plan.n_starts)
    store(model, data, problem, working, plan, best)
    model.lam_ = lam
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
    before = {name: getattr(best, name) for name in ("anneal_history", "merges", "dimensions")}
    return problem, working, replace(found, **before)


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
    labels = best.labels if data.learned is None else data.expand(best.labels, -1)
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
    from polyspan.linear._solve.exact import residual_block

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
    warn_empty(best.counts)
    if not plan.affine:
        _warn_if_coinciding(best.frames, lam, plan.dims)
    if best.stopped == "max_iter":
        warn_unconverged(
            f"the alternation did not converge to tol={plan.rules.tol} in max_iter="
            f"{plan.rules.max_iter} iterations: raise max_iter or tol"
        )


def _warn_if_coinciding(bases: Array, lam: float, dims: tuple[int, ...] | None = None) -> None:
    """Warn where all subspaces nearly coincide (within 1 %) because λ is small for the data.

    Subspaces of different dimension coincide where each contains all smaller ones: then the sum
    of ½‖P_l - P_p‖² is that of ½|s_l - s_p|.
    """
    n_subspaces, _, s = bases.shape
    each = (s,) * n_subspaces if dims is None else dims
    least = sum(abs(a - b) for a in each for b in each) / 2
    shared = sum(min(a, b) for a in each for b in each) - sum(each)
    if math.isinf(lam) or not shared:
        return
    if float(closeness(bases[None, ...], dims)[0]) - least < 1e-4 * shared:
        how = "coincide" if dims is None else "contain each other"
        warn_user(
            f"all {n_subspaces} subspaces {how}: lam={lam:g} is small for samples of this size "
            "(raise lam, or scale X so that samples have norm about 1), or one subspace is enough"
        )
