"""Centring with outliers: after a trimmed fit, about the mean of the samples that take part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from polyspan.arrays import Array, namespace
from polyspan.data.working import Working
from polyspan.progress import FitProgress
from polyspan.union._solve.alternation import Solution
from polyspan.union._solve.problem import Problem
from polyspan.union._solve.refilling import learn
from polyspan.union._solve.shape import join
from polyspan.union.fitting import fitted_attributes
from polyspan.union.plan import MOST_ROUNDS, Plan
from polyspan.union.starts import relative_to_mean

#: Makes the problem about the mean of samples with the weights `counted`: (start=…, counted=…).
MakeProblem = Callable[..., tuple[Problem, Working]]


def recentred(
    make: MakeProblem,
    problem: Problem,
    working: Working,
    plan: Plan,
    best: Solution,
    progress: FitProgress,
) -> tuple[Problem, Working, Solution]:
    """Centre about the mean of the samples that are not trimmed, and alternate on from there.

    The mean of all samples is drawn towards outliers. Repeat until the same samples are trimmed,
    in at most `max_iter` iterations altogether. Callbacks see them as one more start.
    The history that is kept is that of the last problem, in which the objective never rises.
    """
    if plan.n_runs == plan.n_starts:
        return problem, working, best
    left = plan.rules.max_iter
    for _ in range(MOST_ROUNDS if problem.trim else 0):
        kept = problem.counted_block(best.frames).sample_weights[0, :]
        start = _in_data(problem, working, best.frames)
        problem, working = make(start=start, counted=kept)
        frames = working.to_working(relative_to_mean(start, working.mean, plan.affine))
        monitor = progress.monitor(plan.n_starts, partial(fitted_attributes, problem, working))
        rules = replace(plan.rules, max_iter=left)
        (found,) = learn(problem, frames[None, ...], rules, monitor=monitor)
        left -= found.n_iter
        # A solution of Algorithm 2 keeps its merges.
        best = replace(best, **{**vars(found), "anneal_history": best.anneal_history})
        now = problem.counted_block(best.frames).sample_weights[0, :]
        if left < 1 or found.stopped == "callback" or bool(namespace(now).all(now == kept)):
            break
    progress.end_start(plan.n_starts)
    return problem, working, best


def _in_data(problem: Problem, working: Working, frames: Array) -> Array:
    """Return frames in the coordinates of the data; their points are not relative to the mean."""
    found = fitted_attributes(problem, working, frames)
    return join(found["bases_"], found.get("anchors_"))
