"""Empty subspaces: they get the worst represented samples, and the alternation goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, namespace, to_numpy
from polyspan.linear._solve.alternation import Rules, Solution, alternate
from polyspan.linear._solve.problem import Monitor, Problem
from polyspan.linear._solve.trimming import kept_weights

# A subspace that is re-seeded starts from no more samples than this, where they are gathered.
MOST_GATHERED = 1000


def learn(
    problem: Problem, frames: Array, rules: Rules, *, monitor: Monitor | None = None
) -> list[Solution]:
    """Run Algorithm 1 from every start, and give empty subspaces another chance."""
    solutions = alternate(problem, frames, rules, monitor=monitor)
    for k, solution in enumerate(solutions):
        if bool(namespace(frames).any(solution.counts == 0)):
            own_monitor = None if monitor is None else monitor_of_start(monitor, k)
            solutions[k] = refill_empty(problem, solution, rules, monitor=own_monitor)
    return solutions


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
