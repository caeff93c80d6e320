"""A group of problems that are worked on together: centre, draw starts, run, return the best."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.arrays import (
    Array,
    float64_sum,
    machine_epsilon,
    moved_to,
    namespace,
    to_numpy,
)
from polyspan.base.checks import directions_used
from polyspan.data.working import Working, span_of
from polyspan.geometry.bases import draw_bases, zero_padded
from polyspan.linear._solve.annealing import annealed_starts, temperatures
from polyspan.linear._solve.batched import Batch, affine_labels, anneal_batch, fit_pooled, nearest
from polyspan.linear._solve.batched_runs import Runs, best_of, learn, restart_from_pooled
from polyspan.linear._solve.shape import join
from polyspan.linear.options import Plan
from polyspan.linear.starts import (
    checked_start,
    draw_points,
    level_schedules,
    relative_to_mean,
)


@dataclass(frozen=True)
class BatchFit:
    """What was learned about every problem; all arrays are on the device of X.

    Parameters
    ----------
    bases : array of shape (n_problems, n_subspaces, n_features, subspace_dim)
        Orthonormal bases of the subspaces.
    labels : array of shape (n_problems, n_samples)
        Subspace of every sample.
    means : array of shape (n_problems, n_features)
        Means that were subtracted; zero without centring.
    objective : array of shape (n_problems,)
        F1 at these labels and bases, in double precision.
    n_iter : array of shape (n_problems,)
        Iterations of the alternation of the start that was kept.
    converged : array of shape (n_problems,)
        Whether the alternation ended by `tol`.
    anchors : array of shape (n_problems, n_subspaces, n_features) or None, default=None
        Points of affine subspaces; None for linear ones. As `anchors_` of `MiCUSaL`: of each
        subspace the point nearest to the mean of its samples.
    """

    bases: Array
    labels: Array
    means: Array
    objective: Array
    n_iter: Array
    converged: Array
    anchors: Array | None = None


class Starts:
    """Starts of the runs of every problem: given by the user, or drawn by NumPy and moved."""

    def __init__(self, plan: Plan, X: Array, init: Any, random_state: Any) -> None:
        self._plan, self._like = plan, X
        self.init_frames = None if isinstance(init, str) else self._checked(to_numpy(init))
        """Given frames, in the coordinates of the data: (P, L, m, columns), or None."""
        several = hasattr(random_state, "__len__")
        seeds = list(random_state) if several else [random_state]
        if several and len(seeds) != X.shape[0]:
            raise ValueError(
                f"random_state has {len(seeds)} seeds for {X.shape[0]} problems: give one for each"
            )
        self._generators = [check_random_state(seed) for seed in seeds]
        self._several = several
        self._shared: list[tuple[np.ndarray, np.ndarray | None]] = []

    def _checked(self, init: np.ndarray) -> Array:
        X, plan = self._like, self._plan
        shape = (X.shape[0], plan.n_subspaces, X.shape[2], plan.subspace_dim + plan.affine)
        needed = shape if init.ndim == 4 else shape[1:]
        frames = checked_start(init, needed, X, affine=plan.affine, dims=plan.dims)
        return namespace(X).broadcast_to(frames, shape)

    def init_relative_to(self, means: Array, which: slice) -> Array | None:
        """Return given frames of some problems, points relative to means (P, 1, m), or None."""
        if self.init_frames is None:
            return None
        return relative_to_mean(self.init_frames[which, ...], means, self._plan.affine)

    def draw(self, batch: Batch, working: Working, which: slice) -> tuple[Array, Array]:
        """Return starts of the pooled subspace, (P, m, s), and of the runs, (P, R, L, m, columns).

        Drawn in the order in which `MiCUSaL` draws them. Where all problems have one generator,
        they share the bases, and the points of each are drawn by a copy of that generator.
        """
        m = batch.X.shape[2]
        if self._several:
            drawn = [self._draw_bases(m, generator) for generator in self._generators[which]]
        else:
            drawn = self._shared = self._shared or [self._draw_bases(m, self._generators[0])]
        pooled = _moved([first for first, _ in drawn], batch)
        given = self.init_relative_to(working.mean, which)
        if given is not None:
            return pooled, working.to_working(given)[:, None, ...]
        runs = _moved([second for _, second in drawn], batch)
        return pooled, join(runs, self._draw_points(batch, which)) if self._plan.affine else runs

    def _draw_bases(self, m: int, rng: Any) -> tuple[np.ndarray, np.ndarray | None]:
        plan = self._plan
        pooled = draw_bases((m, plan.subspace_dim), rng)
        if self.init_frames is not None:
            return pooled, None
        runs = draw_bases((plan.n_starts, plan.n_subspaces, m, plan.subspace_dim), rng)
        return pooled, runs if plan.annealed else zero_padded(runs, plan.dims)

    def _draw_points(self, batch: Batch, which: slice) -> Array:
        host = replace(batch, X=to_numpy(batch.X), total=to_numpy(batch.total))
        shape = (self._plan.n_starts, self._plan.n_subspaces)
        if self._several:
            generators = self._generators[which]
        else:
            generators = [deepcopy(self._generators[0]) for _ in range(host.X.shape[0])]
        points = [draw_points(host.problem(k), shape, rng) for k, rng in enumerate(generators)]
        return moved_to(np.stack(points), batch.X)


def _moved(drawn: list[Any], batch: Batch) -> Array:
    """Return drawn arrays beside the data, one for each problem or one for all."""
    a = moved_to(np.stack(drawn), batch.X, batch.X.dtype)
    return namespace(a).broadcast_to(a, (batch.X.shape[0], *a.shape[1:]))


def fit_group(
    plan: Plan, lam: float, X: Array, starts: Starts, which: slice, max_bytes: int
) -> tuple[BatchFit, int, int]:
    """Fit some of the problems: centre, draw, run all starts, keep the best of every problem.

    Also count the problems whose samples span fewer directions than a subspace has, and those
    that have subspaces without samples.
    """
    batch, working = _prepare(plan, lam, X[which, ...], starts, which)
    xp, n = namespace(X), X.shape[1]
    pooled_start, frames = starts.draw(batch, working, which)
    frames = xp.asarray(frames.mT, copy=True)
    pooled, residual, ritz = fit_pooled(batch, pooled_start.mT)
    if plan.annealed:
        # As for a single problem: no temperature of 0 where all samples lie in one subspace.
        smallest = 1e4 * float(xp.finfo(frames.dtype).smallest_normal)
        rounding = machine_epsilon(frames) * batch.total / n
        units = xp.clip(xp.maximum(residual / n, rounding), smallest, None)
        if plan.dims is None:
            schedule = temperatures(1.0, *plan.anneal_range, plan.anneal_steps)
            frames = anneal_batch(batch, frames, units, schedule)
        else:
            least = to_numpy(xp.clip(rounding, smallest, None))
            starts_of = [
                annealed_starts(
                    batch.problem(k), frames[k, ...].mT,
                    level_schedules(plan, float(residual[k]) / n, ritz[k, :], n, float(least[k])),
                )[0]
                for k in range(frames.shape[0])
            ]  # fmt: skip
            frames = xp.asarray(xp.stack(starts_of).mT, copy=True)
    best = best_of(learn(batch, frames, plan.rules, max_bytes), frames.shape[1])
    best = restart_from_pooled(batch, best, pooled, to_numpy(residual), plan.rules, max_bytes)
    used = directions_used(ritz, max(batch.X.shape[1:]))
    n_narrow = int((used < plan.subspace_dim).sum())
    return _outward(batch, working, best), n_narrow, int(best.empty().any(axis=1).sum())


def _prepare(
    plan: Plan, lam: float, X: Array, starts: Starts, which: slice
) -> tuple[Batch, Working]:
    """Return centred problems, in the spans of their samples where these are few."""
    xp = namespace(X)
    means = xp.zeros_like(X[:, :1, :])  # with an axis for the subspaces of a problem
    if plan.center:
        means = xp.astype(float64_sum(X, axis=1) / X.shape[1], X.dtype)[:, None, :]
        X = X - means
    span = span_of(X, starts.init_relative_to(means, which))
    if span is not None:
        X = X @ span
        span = span[:, None, ...]
    return Batch.of(X, lam, plan.affine, plan.dims), Working(means, 1.0, span, int(plan.affine))


def _outward(batch: Batch, working: Working, best: Runs) -> BatchFit:
    """Return the best runs in the coordinates of the data."""
    frames, means = best.frames[:, None, ...], working.mean[:, 0, :]
    found = working.to_data(best.frames.mT)
    n_iter, converged = moved_to(best.n_iter, frames), moved_to(best.converged, frames)
    if batch.affine:
        labels, objective = affine_labels(batch, frames)
        bases, anchors = found[..., :-1], found[..., -1] + working.mean
        return BatchFit(bases, labels, means, objective, n_iter, converged, anchors)
    labels = nearest(batch, frames)[0][:, 0, :]
    objective = moved_to(best.objective, frames)
    return BatchFit(found, labels, means, objective, n_iter, converged)
