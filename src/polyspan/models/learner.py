"""Fitting from several starts: what the linear models have in common."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from polyspan._sklearn import Interval, StrOptions
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
from polyspan.geometry import draw_bases, near_copies
from polyspan.models.base import UnionOfSubspacesBase
from polyspan.models.checks import check_subspace_dim, warn_where_together
from polyspan.models.messages import warn_user
from polyspan.models.progress import FitProgress
from polyspan.models.starts import draw_points, given_start
from polyspan.solvers.affine import join, split
from polyspan.solvers.annealing import anneal, pooled_residual, temperatures
from polyspan.solvers.micusal import Rules, learn_subspaces, refill_empty
from polyspan.solvers.preparation import Prepared
from polyspan.solvers.problem import Monitor, Problem, Solution

# Starts share one product while all their projections fit in this many bytes.
GROUP_BYTES = 8 << 20


class SubspaceLearner(UnionOfSubspacesBase):
    """Starts, restarts, progress and warnings around a pure solver."""

    n_subspaces: int
    subspace_dim: int
    init: Any
    n_init: int | str
    center: bool
    anneal_steps: int
    anneal_range: tuple[float, float]
    max_iter: int
    tol: float
    n_jobs: int | None
    affine: bool = False

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left")],
        "subspace_dim": [Interval(Integral, 0, None, closed="left")],
        "lam": [Interval(Real, 0, None, closed="right")],
        "init": [StrOptions({"anneal", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "center": ["boolean"],
        "anneal_steps": [Interval(Integral, 1, None, closed="left")],
        "anneal_range": [tuple, list],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def _sizes(self, n_features: int) -> tuple[int, int]:
        """Return the number and the dimension of the subspaces to start with."""
        return self.n_subspaces, self.subspace_dim

    def _rules(self) -> Rules:
        """Return how the hard phase updates and when it stops."""
        raise NotImplementedError

    def _learn(self, problem: Problem, bases: Array, monitor: Monitor | None) -> list[Solution]:
        """Run the hard phase from every start of a group."""
        rules = self._rules()
        solutions = learn_subspaces(problem, bases, rules, monitor=monitor)
        return [
            refill_empty(problem, solution, rules, monitor=shifted(monitor, k))
            for k, solution in enumerate(solutions)
        ]

    def _best_solution(
        self,
        prepared: Prepared,
        given: Array | None,
        n_starts: int,
        rng: np.random.RandomState,
        progress: FitProgress,
    ) -> Solution:
        """Run all starts, in groups that share their products, and return the lowest."""
        n, m = prepared.problem.rows.shape
        X = prepared.problem.rows.X
        n_subspaces, s = self._sizes(prepared.mean.shape[0])
        n_columns = n_subspaces * (s + self.affine)
        # Drawn by NumPy and moved: so a seed means the same start wherever X lies.
        pooled_start = moved_to(draw_bases((m, s), rng), X, X.dtype)
        if given is not None:
            starts = prepared.inward(given)[None, ...]
        else:
            starts = moved_to(draw_bases((n_starts, n_subspaces, m, s), rng), X, X.dtype)
            if self.affine:
                starts = join(starts, draw_points(prepared.problem.rows, starts.shape[:2], rng))
        together = prepared.problem.rows.rows_together
        group = GROUP_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
        size = max(1, min(n_starts, group // (together * n_columns * item_bytes(starts))))
        firsts = range(0, n_starts, size)
        work = pass_work(n, m, n_columns * size)
        rows = prepared.problem.rows.with_columns(n_columns * size)
        prepared = replace(prepared, problem=replace(prepared.problem, rows=rows))

        with limit_threads(work, len(firsts)):
            unit, ritz, pooled = pooled_residual(prepared.problem, pooled_start)
            self._warn_about_rank(ritz, s, max(n, m))
            solve = delayed(self._solve_group)
            groups = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                solve(prepared, starts[first : first + size, ...], unit, first, progress)
                for first in firsts
            )
            best = self._choose([solution for group in groups for solution in group])
            return self._or_pooled(prepared.problem, best, pooled)

    def _or_pooled(self, problem: Problem, best: Solution, pooled: Array) -> Solution:
        """Go on from copies of one pooled subspace where no start ended below that.

        It happens where λ is so small for the scale of the data that the subspaces have come
        together long before they have turned towards the data.
        """
        if self._rules().leave_one_out:
            return best
        near = near_copies(pooled, best.bases.shape[0])[None, ...]
        copies = namespace(pooled).broadcast_to(pooled, near.shape)
        if self.affine:
            points = zeros(near.shape[:-1], near)
            near, copies = join(near, points), join(copies, points)
        _, sums = problem.assign(copies, with_products=False)
        value = float(problem.objective(copies, sums.energy)[0])
        if best.objective <= value * (1 + 1e-9):
            return best
        together = self._learn(problem, near, None)[0]
        return replace(together, anneal_history=best.anneal_history)

    def _choose(self, solutions: list[Solution]) -> Solution:
        """Return the solution to keep."""
        return first_of_the_best(solutions)

    def _solve_group(
        self,
        prepared: Prepared,
        bases: Array,
        unit: float,
        first: int,
        progress: FitProgress,
    ) -> list[Solution]:
        """Anneal (if asked), alternate and refill empty subspaces, for starts in one product."""
        problem = prepared.problem
        monitor = progress.monitor(
            first,
            lambda current: self._fitted(prepared, current),
        )
        cooling = np.empty((0, bases.shape[0]))
        if isinstance(self.init, str) and self.init == "anneal":
            # A temperature of 0 divides 0 by 0 where all samples lie in one subspace.
            smallest = 1e4 * float(namespace(bases).finfo(bases.dtype).smallest_normal)
            mean = problem.total / problem.rows.shape[0]
            unit = max(unit, machine_epsilon(bases) * mean, smallest)
            schedule = temperatures(unit, *self.anneal_range, self.anneal_steps)
            loo = self._rules().leave_one_out
            bases, free = anneal(problem, bases, schedule, leave_one_out=loo, monitor=monitor)
            cooling = to_numpy(free)
        solutions = []
        for k, solution in enumerate(self._learn(problem, bases, monitor)):
            solutions.append(replace(solution, anneal_history=tuple(cooling[:, k].tolist())))
            progress.end_start(first + k)
        return solutions

    def _fitted(self, prepared: Prepared, bases: Array) -> dict[str, Any]:
        """Return the attributes that describe the subspaces a solver has reached."""
        bases = prepared.outward(bases)
        if not self.affine:
            return {"bases_": bases, "mean_": prepared.mean}
        bases, anchors = split(bases)
        anchors = anchors + prepared.mean
        return {"bases_": bases, "mean_": prepared.mean, "anchors_": anchors}

    def _store(self, prepared: Prepared, best: Solution) -> None:
        if hasattr(self, "anchors_"):
            del self.anchors_  # of a fit before, with affine=True
        for name, value in self._fitted(prepared, best.bases).items():
            setattr(self, name, value)
        xp = namespace(best.labels)
        self.labels_ = xp.astype(best.labels, xp.int64, copy=False)
        self.objective_ = prepared.objective(best.objective)
        for name, values in (("objective", best.history), ("anneal", best.anneal_history)):
            history = [prepared.objective(v) for v in values]
            setattr(self, f"{name}_history_", moved_to(history, best.bases, xp.float64))
        self.n_iter_ = best.n_iter
        self.converged_ = best.stopped == "converged"

    def _n_starts(self) -> int:
        if not isinstance(self.init, str):
            if self.n_init not in ("auto", 1):
                warn_user(
                    f"an init array is one start: n_init={self.n_init} is not used",
                    RuntimeWarning,
                )
            return 1
        if self.n_init == "auto":
            # Points of affine subspaces stay near where they start, whatever the temperature.
            return 8 if self.init == "random" or self.affine else 1
        return int(self.n_init)

    def _max_steps(self) -> int:
        annealed = isinstance(self.init, str) and self.init == "anneal"
        # Each refilling of empty subspaces evaluates its new start once more.
        return (self.anneal_steps if annealed else 0) + self.max_iter + 1 + self._sizes(1)[0]

    def _check_sizes(self, n_samples: int, n_features: int) -> None:
        check_subspace_dim(self.subspace_dim, n_features)
        if self.subspace_dim == 0 and not self.affine:
            raise ValueError(
                "subspace_dim=0 is a point, which needs affine=True: use subspace_dim=1 or more"
            )
        per_subspace = self.subspace_dim + self.affine
        needed = self.n_subspaces * per_subspace
        if n_samples < needed:
            size = "(subspace_dim + 1)" if self.affine else "subspace_dim"
            raise ValueError(
                f"n_samples={n_samples} is fewer than n_subspaces * {size} = "
                f"{self.n_subspaces} * {per_subspace} = {needed}: every sample could have a "
                "direction of its own; lower n_subspaces or subspace_dim, or give more samples"
            )
        self._check_schedule()

    def _check_schedule(self) -> None:
        hottest, coldest = _two_temperatures(self.anneal_range)
        if not 0 < coldest <= hottest < np.inf:
            raise ValueError(
                f"anneal_range={self.anneal_range} must be (first, last) temperature with "
                "0 < last <= first"
            )

    def _given_start(self, X: Array) -> Array | None:
        """Return the checked init array, or None where starts are drawn."""
        if isinstance(self.init, str):
            return None
        sizes = self.n_subspaces, self.subspace_dim
        return given_start(self.init, X, *sizes, affine=self.affine)

    def _warn_about_rank(self, ritz: Array, s: int, size: int) -> None:
        if not s:
            return
        values = np.sqrt(np.maximum(to_numpy(ritz), 0))
        # Millions of float32 samples would make the usual tolerance larger than the values.
        share = min(machine_epsilon(ritz) * size, 1e-3)
        used = int((values > values.max() * share).sum())
        if used < s:
            warn_user(
                f"the samples{' minus their mean' if self.center else ''} span only {used} "
                f"directions, fewer than subspace_dim={s}: the other directions of "
                "the bases mean nothing; lower subspace_dim",
            )

    def _warn_about(self, best: Solution) -> None:
        empty = np.flatnonzero(to_numpy(best.counts) == 0)
        if len(empty):
            warn_user(
                f"no sample is assigned to subspaces {empty.tolist()}: lower n_subspaces, or raise "
                "lam or n_init",
            )
        if not self.affine:
            warn_where_together(best.bases, float(self.lam))
        if best.stopped == "max_iter":
            warn_user(
                f"the alternation did not converge to tol={self.tol} in max_iter={self.max_iter} "
                "iterations: raise max_iter or tol",
                ConvergenceWarning,
            )


def first_of_the_best(solutions: list[Solution]) -> Solution:
    """Return the lowest; of starts that met in one optimum the first, whatever rounding says."""
    lowest = min(solution.criterion for solution in solutions)
    enough = lowest + 1e-9 * abs(lowest)
    return next(solution for solution in solutions if solution.criterion <= enough)


def _two_temperatures(values: Any) -> tuple[float, float]:
    if len(values) != 2 or not all(isinstance(v, Real) for v in values):
        raise ValueError(f"anneal_range={values} must hold two numbers")
    return float(values[0]), float(values[1])


def shifted(monitor: Monitor | None, by: int) -> Monitor | None:
    """Report a single start as the start that it is in its group."""
    if monitor is None:
        return None
    return lambda start, iteration, objective, bases: monitor(
        start + by, iteration, objective, bases
    )
