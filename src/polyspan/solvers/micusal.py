"""Algorithm 1 (MiCUSaL): assign ⇄ update until the objective settles, for many starts at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, one_hot, to_numpy
from polyspan.solvers.assignment import Sums
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.problem import Monitor, Problem, Solution

# Iterations without a better assignment after which leave-one-out residuals are given up.
PATIENCE = 10


@dataclass(frozen=True)
class Rules:
    """How to update and when to stop."""

    solver: str = "power"
    """"power" or "exact"."""
    max_iter: int = 300
    tol: float = 1e-6
    """Stop when an iteration lowers the objective by no more than this share of it."""
    leave_one_out: bool = False


def learn_subspaces(
    problem: Problem, bases: Array, rules: Rules, *, monitor: Monitor | None = None
) -> list[Solution]:
    """Run Algorithm 1 from every start; a start that has stopped leaves the common product.

    The objective is taken after each assignment, so the first entry of a history belongs to the
    start itself and the last one to the labels and bases that are returned.

    Parameters
    ----------
    bases : array of shape (n_starts, n_subspaces, n_features, subspace_dim)
    """
    xp = namespace(bases)
    runs = [_Run(problem, rules) for _ in range(bases.shape[0])]
    active = list(range(len(runs)))
    labels: Array | None = None
    for iteration in range(rules.max_iter + 1):
        leverage = _leverage(problem, bases, labels, rules)
        labels, sums = problem.assign(
            bases, with_products=rules.solver == "power", leverage=leverage
        )
        values = to_numpy(problem.objective(bases, sums.energy)).tolist()
        keep = []
        for k, start in enumerate(active):
            criterion = values[k] if leverage is None else float(sums.score[k])
            run = runs[start]
            run.see(bases[k, ...], labels[:, k], sums.counts[k, :], values[k], criterion)
            if monitor is not None and monitor(start, iteration, values[k], bases[k, ...]):
                run.stopped = run.stopped or "callback"
            if not run.stopped:
                keep.append(k)
        if not keep or iteration == rules.max_iter:
            break
        if len(keep) < len(active):
            active = [active[k] for k in keep]
            which = moved_to(keep, bases)
            bases, labels = xp.take(bases, which, axis=0), xp.take(labels, which, axis=1)
            sums = sums.of_starts(which)
        bases = _update(problem, bases, labels, sums)
    return [run.solution() for run in runs]


class _Run:
    """What one start has been through: its history, where it stands, and why it stopped."""

    def __init__(self, problem: Problem, rules: Rules) -> None:
        self._problem, self._rules = problem, rules
        self._history: list[float] = []
        self._labels: Array | None = None
        self._kept: Solution | None = None
        self.stopped = ""

    def see(
        self, bases: Array, labels: Array, counts: Array, objective: float, criterion: float
    ) -> None:
        """Take note of an assignment and decide whether it was the last one."""
        self._history.append(objective)
        here = Solution(
            bases=bases,
            labels=labels,
            counts=counts,
            objective=objective,
            criterion=criterion,
            history=tuple(self._history),
            n_iter=len(self._history) - 1,
            stopped="",
        )
        if not self._rules.leave_one_out:
            self._kept = here
            self.stopped = "converged" if self._settled() else ""
            return
        # Leave-one-out residuals descend on no objective, and labels can go round in circles:
        # the best assignment is kept, and the run is over when none better comes for a while.
        same = self._labels is not None and bool(namespace(labels).all(labels == self._labels))
        self._labels = labels
        if self._kept is None or self._kept.n_iter == 0 or criterion < self._kept.criterion:
            self._kept = here
        stale = here.n_iter - self._kept.n_iter >= PATIENCE
        self.stopped = "converged" if stale or (same and self._settled()) else ""

    def _settled(self) -> bool:
        if len(self._history) < 2:
            return False
        change = self._history[-2] - self._history[-1]
        if self._rules.leave_one_out:
            change = abs(change)
        smallest = max(self._rules.tol * abs(self._history[-1]), self._problem.rounding)
        return change <= smallest

    def solution(self) -> Solution:
        assert self._kept is not None
        return replace(
            self._kept,
            history=tuple(self._history),
            n_iter=len(self._history) - 1,
            stopped=self.stopped or "max_iter",
        )


def _leverage(
    problem: Problem, bases: Array, labels: Array | None, rules: Rules
) -> Leverage | None:
    if not rules.leave_one_out or labels is None:
        return None
    return problem.leverage(bases, one_hot(labels, bases.shape[1], bases.dtype))


def _update(problem: Problem, bases: Array, labels: Array, sums: Sums) -> Array:
    if sums.products is not None:
        return problem.power_step(bases, sums)
    xp = namespace(bases)
    return xp.stack(
        [problem.exact_step(bases[k, ...], labels[:, k]) for k in range(bases.shape[0])]
    )


def refill_empty(
    problem: Problem, solution: Solution, rules: Rules, *, monitor: Monitor | None = None
) -> Solution:
    """Give empty subspaces the worst represented samples and go on; keep what is better.

    Algorithm 1 can converge with a subspace that no sample chose. The run that goes on from new
    bases is kept only if it ends lower, so the objective never rises.
    """
    xp = namespace(solution.bases)
    for _ in range(solution.bases.shape[0]):
        empty = np.flatnonzero(to_numpy(solution.counts) == 0).tolist()
        left = rules.max_iter - solution.n_iter
        if not empty or solution.stopped != "converged" or left < 1:
            break
        bases = xp.asarray(solution.bases, copy=True)
        for k, p in enumerate(empty):
            members = problem.worst_samples(solution.bases, k, len(empty))
            bases[p, ...] = problem.through(members, solution.bases[0, ...])
        (resumed,) = learn_subspaces(
            problem, bases[None, ...], replace(rules, max_iter=left), monitor=monitor
        )
        if not resumed.criterion < solution.criterion:
            break
        # While the new run is still above what was reached, what was reached stands.
        reached = [min(value, solution.objective) for value in resumed.history[1:]]
        solution = replace(
            resumed,
            history=(*solution.history, *reached),
            n_iter=solution.n_iter + resumed.n_iter,
        )
    return solution
