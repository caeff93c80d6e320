"""Algorithm 1 (MiCUSaL): assign ⇄ update until the objective settles, for many starts at once.

Subspaces that are empty at the end get the worst represented samples, and the alternation goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.base.progress import Monitor
from polyspan.data.rows import ArrayRows, columns_of
from polyspan.linear._solve.problem import Problem
from polyspan.linear._solve.sums import Sums
from polyspan.linear._solve.trimming import kept_weights

#: Runs the hard phase from every start of a group: (problem, frames, monitor=…).
Learn = Callable[..., list["Solution"]]

# A start is given up if so many iterations like its last one would leave it above the lowest.
HOPELESS = 20
# Iterations without a better assignment after which leave-one-out residuals are given up.
PATIENCE = 10


@dataclass(frozen=True)
class Rules:
    """How to update and when to stop."""

    solver: str = "power"
    """"power" or "exact"."""
    max_iter: int = 300
    tol: float = 1e-6
    """Stop when an iteration lowers the objective by no more than this fraction of it."""
    leave_one_out: bool = False
    trim: float = 0.0
    """Fraction of the samples, by weight, that takes no part in updates."""
    rival: float | None = None
    """An objective that another start reached. A start that can hardly get below it, or below the
    others of its group, is given up; None: all go on to the end."""


@dataclass(frozen=True)
class Solution:
    """Where one start ended."""

    frames: Array
    """Shape (n_subspaces, n_features, n_columns)."""
    labels: Any
    """Label of every sample; None if the rows are not all in memory and no step needs labels."""
    counts: Array
    """Samples per subspace, or their weights."""
    objective: float
    """F at these labels and frames."""
    criterion: float
    """What to compare starts by: the objective, or the sum of leave-one-out residuals."""
    history: tuple[float, ...]
    """F of the start and after every iteration of the hard phase."""
    n_iter: int
    stopped: str
    """Why: "converged", "max_iter", "callback", or "behind" another start."""
    anneal_history: tuple[float, ...] = ()
    """Free energy after every step of the annealed phase."""
    merges: tuple[Any, ...] = ()
    """The `Merge`s of Algorithm 2."""
    dimensions: tuple[float, ...] = ()
    """Dimension of every subspace that Algorithm 2 estimated, before trimming."""


def alternate(
    problem: Problem, frames: Array, rules: Rules, *, monitor: Monitor | None = None
) -> list[Solution]:
    """Run Algorithm 1 from every start; a start that has stopped leaves the common product.

    The objective is taken after each assignment, so the first entry of a history belongs to the
    start itself and the last one to the labels and frames that are returned.

    Parameters
    ----------
    frames : array of shape (n_starts, n_subspaces, n_features, n_columns)
    """
    xp, exact = namespace(frames), rules.solver == "exact"
    # Labels of rows that are not all in memory are kept only if the next step needs them.
    keep = problem.rows.in_memory or exact or rules.leave_one_out
    runs = [_Run(problem, rules) for _ in range(frames.shape[0])]
    active = list(range(len(runs)))
    labels: Any = None
    for iteration in range(rules.max_iter + 1):
        before = labels if rules.leave_one_out else None
        labels, sums = problem.assign(frames, with_products=not exact, before=before, keep=keep)
        values = to_numpy(problem.objective(frames, sums.energy, sums.squares)).tolist()
        still = []
        for k, start in enumerate(active):
            run = runs[start]
            run.record(frames[k, ...], (labels, k), sums, values[k])
            if monitor is not None and monitor(start, iteration, values[k], frames[k, ...]):
                run.stopped = run.stopped or "callback"
            if rules.rival is not None and run.hopeless(min(rules.rival, *values)):
                run.stopped = run.stopped or "behind"
            if not run.stopped:
                still.append(k)
        if not still or iteration == rules.max_iter:
            break
        if len(still) < len(active):
            active = [active[k] for k in still]
            which = moved_to(still, frames)
            frames, sums = xp.take(frames, which, axis=0), sums.of_starts(which)
            if labels is not None:
                labels = problem.rows.reduce(columns_of, labels, which, keep=True)[1]
        if exact:
            starts = range(frames.shape[0])
            frames = xp.stack([update_exactly(problem, frames[k, ...], labels, k) for k in starts])
        else:
            frames = problem.shape.step(frames, sums, problem.weights)
    return [run.solution() for run in runs]


class _Run:
    """The run of one start: its history, the iterate that is kept, and why it stopped."""

    def __init__(self, problem: Problem, rules: Rules) -> None:
        self._problem, self._rules, self._rounding = problem, rules, problem.rounding
        self._history: list[float] = []
        self._kept: Solution | None = None
        self.stopped = ""

    def record(self, frames: Array, labels: tuple[Any, int], sums: Sums, objective: float) -> None:
        """Store one iterate; stop if converged."""
        k = labels[1]
        self._history.append(objective)
        here = Solution(
            frames=frames,
            labels=labels,
            counts=sums.counts[k, :],
            objective=objective,
            criterion=objective if sums.score is None else float(sums.score[k]),
            history=(),
            n_iter=len(self._history) - 1,
            stopped="",
        )
        settled = False
        if here.n_iter:
            change = self._history[-2] - objective
            change = abs(change) if self._rules.leave_one_out else change
            settled = change <= max(self._rules.tol * abs(objective), self._rounding)
        if not self._rules.leave_one_out:
            self._kept = here
            self.stopped = "converged" if settled else ""
            return
        # Leave-one-out residuals descend on no objective, and labels can go round in circles:
        # the best assignment is kept, and the run is over when none better comes for a while.
        same = sums.changed is not None and int(sums.changed[k]) == 0
        kept = self._kept
        if kept is None or kept.n_iter == 0 or here.criterion < kept.criterion:
            self._kept = kept = here
        stale = here.n_iter - kept.n_iter >= PATIENCE
        self.stopped = "converged" if stale or (same and settled) else ""

    def hopeless(self, lowest: float) -> bool:
        """Tell whether the objective falls too slowly to reach the lowest of all starts."""
        if len(self._history) < 2:
            return False
        before, now = self._history[-2:]
        return now - HOPELESS * (before - now) > lowest

    def solution(self) -> Solution:
        """Return where the run ended."""
        assert self._kept is not None
        labels, k = self._kept.labels
        labels = None if labels is None else self._problem.rows.gather(labels, k)
        return replace(
            self._kept,
            labels=labels,
            history=tuple(self._history),
            n_iter=len(self._history) - 1,
            stopped=self.stopped or "max_iter",
        )


def update_exactly(problem: Problem, frames: Array, labels: Any, start: int) -> Array:
    """Replace every basis of one start by leading eigenvectors; see `exact`."""
    from polyspan.linear._solve.exact import MemberRows, exact_step, moments_block

    rows, shape = problem.rows, problem.shape
    bases, points = shape.split(frames)
    if isinstance(rows, ArrayRows):
        own = labels[:, start]
        complete, weights = problem.counted_block(frames).completed(bases, points, own)
        members: Any = MemberRows(complete, weights, own)
    else:
        members, _ = rows.reduce(moments_block, frames, shape, labels, start)
    return exact_step(members, frames, shape, problem.weights)


# A subspace that is re-seeded starts from no more samples than this, where they are gathered.
MOST_GATHERED = 1000


def learn(
    problem: Problem, frames: Array, rules: Rules, *, monitor: Monitor | None = None
) -> list[Solution]:
    """Run Algorithm 1 from every start, and give empty subspaces another chance."""
    solutions = alternate(problem, frames, rules, monitor=monitor)
    for k, solution in enumerate(solutions):
        if bool(namespace(frames).any(solution.counts == 0)):
            own_monitor = monitor and monitor_of_start(monitor, k)
            solutions[k] = refill_empty(problem, solution, rules, monitor=own_monitor)
    return solutions


def one_by_one(learn_one: Callable[..., Solution]) -> Learn:
    """Return a hard phase that takes one start after the other."""

    def learn_all(
        problem: Problem, frames: Array, *, monitor: Monitor | None = None
    ) -> list[Solution]:
        return [
            learn_one(problem, start, monitor=monitor and monitor_of_start(monitor, k))
            for k, start in enumerate(frames)
        ]

    return learn_all


def monitor_of_start(monitor: Monitor, by: int) -> Monitor:
    """Return a monitor that adds `by` to the number of the start that it reports."""
    return lambda start, iteration, objective, frames: monitor(
        start + by, iteration, objective, frames
    )


def refill_empty(
    problem: Problem, solution: Solution, rules: Rules, *, monitor: Monitor | None = None
) -> Solution:
    """Give empty subspaces the worst represented samples and go on; keep what is better.

    Algorithm 1 can converge with a subspace that no sample chose. The run that goes on from new
    frames is kept only if it ends lower, so the objective never rises.
    """
    xp, rows = namespace(solution.frames), problem.rows
    for _ in range(solution.frames.shape[0]):
        empty = np.flatnonzero(to_numpy(solution.counts) == 0).tolist()
        left = rules.max_iter - solution.n_iter
        if not empty or solution.stopped != "converged" or left < 1:
            break
        bases, _ = problem.shape.split(solution.frames)
        weighted = problem.weight_sum is not None or problem.trim
        n_each = max(bases.shape[2], int(problem.n_samples) // (2 * bases.shape[0]))
        most = rows.n_rows if weighted else n_each * len(empty)
        most = most if rows.in_memory else min(most, MOST_GATHERED)
        worst, _ = rows.reduce(worst_block, solution.frames, problem.shape, most, problem.trim)
        n, piece = n_each * len(empty), worst.piece()
        n = n if rows.in_memory else min(n, MOST_GATHERED)
        frames = xp.asarray(solution.frames, copy=True)
        for k, p in enumerate(empty):
            members, weights = worst.part(k, len(empty), n, piece)
            if members.shape[0]:
                frames[p, ...] = problem.shape.fit_basis(members, solution.frames, p, weights)
        (resumed,) = alternate(
            problem, frames[None, ...], replace(rules, max_iter=left), monitor=monitor
        )
        if not resumed.criterion < solution.criterion:
            break
        # As long as the new run is above the old objective, the history repeats the old one.
        reached = [min(value, solution.objective) for value in resumed.history[1:]]
        solution = replace(
            resumed,
            history=(*solution.history, *reached),
            n_iter=solution.n_iter + resumed.n_iter,
        )
    return solution


@dataclass(frozen=True)
class Worst:
    """The worst represented samples so far: squared residuals, descending, and the samples."""

    residuals: Array
    samples: Array
    most: int
    weights: Array | None = None
    """Of the samples; None: 1 for each."""

    def piece(self) -> float:
        """Return the length of the pieces in which weights are dealt out: 1, or their mean."""
        if self.weights is None:
            return 1.0
        xp = namespace(self.weights)
        n_used = int(xp.sum(xp.astype(self.weights > 0, xp.int64)))
        return min(1.0, float(xp.sum(self.weights)) / max(n_used, 1))

    def part(self, k: int, n_parts: int, n: int, piece: float) -> tuple[Array, Array | None]:
        """Return every `n_parts`-th of the first n samples from the k-th on, and their weights.

        A sample of weight 2 counts as two that follow each other: all samples are laid in a row,
        each as long as its weight, and the row is dealt out in pieces of one length.
        """
        if self.weights is None:
            return self.samples[:n, :][k::n_parts, :], None
        xp = namespace(self.weights)
        ends = xp.cumulative_sum(xp.astype(self.weights, xp.float64)) / piece
        ends = xp.clip(ends, None, float(n))
        rounds = xp.floor(ends / n_parts)
        dealt = rounds + xp.clip(ends - n_parts * rounds - k, 0.0, 1.0)
        before = xp.concat([xp.zeros_like(dealt[:1]), dealt[:-1]], axis=0)
        own = xp.astype(dealt - before, self.weights.dtype)
        rows = xp.nonzero(own > 0)[0]
        return xp.take(self.samples, rows, axis=0), xp.take(own, rows)

    def __add__(self, other: Worst) -> Worst:
        xp = namespace(self.residuals)
        residuals = xp.concat([self.residuals, other.residuals], axis=0)
        samples = xp.concat([self.samples, other.samples], axis=0)
        order = xp.argsort(residuals, descending=True)[: self.most]
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = xp.take(xp.concat([self.weights, other.weights], axis=0), order)
        samples = xp.take(samples, order, axis=0)
        return Worst(xp.take(residuals, order), samples, self.most, weights)


def worst_block(
    block: Any, frames: Array, shape: Any, most: int, trim: float = 0.0
) -> tuple[Worst, None]:
    """Return the worst represented samples of a block for one start. A task.

    Samples of weight 0, and the fraction that is trimmed, come last.
    """
    xp = namespace(frames)
    bases, points = shape.split(frames[None, ...])
    best_gains = [xp.max(fit.gains[0, ...], axis=0) for fit in block.fits(bases, points)]
    residuals, weights = block.squared_norms() - xp.concat(best_gains, axis=0), None
    if trim or block.sample_weights is not None:
        weights = block.sample_weights
        weights = (kept_weights(residuals[None, :], weights, trim) if trim else weights)[0, :]
        residuals = xp.where(weights > 0, residuals, xp.full_like(residuals, -xp.inf))
    order = xp.argsort(residuals, descending=True)[:most]
    weights = None if weights is None else xp.take(weights, order)
    return Worst(xp.take(residuals, order), block.take(order), most, weights), None
