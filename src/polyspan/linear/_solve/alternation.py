"""Algorithm 1 (MiCUSaL): assign ⇄ update until the objective settles, for many starts at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.data.rows import ArrayRows, columns_of
from polyspan.linear._solve.problem import Monitor, Problem
from polyspan.linear._solve.sums import Sums

# Iterations without a better assignment after which leave-one-out residuals are given up.
PATIENCE = 10
# Up to this many features workers send a dense scatter matrix of every subspace.
DENSE_FEATURES = 1024


@dataclass(frozen=True)
class Needs:
    """What a solver needs of the rows and of the subspaces."""

    all_samples: bool = False
    """All samples in memory, as an array."""
    max_features_out_of_core: float = float("inf")
    """Largest number of features if the rows are not all in memory."""
    streams: bool = True
    """Whether sums over past samples are enough."""
    linear_only: bool = False
    """Linear subspaces and plain residuals."""
    equal_samples: bool = False
    """Every sample counts once: no weights, and none trimmed."""
    one_dimension: bool = False
    """Subspaces that all have the same dimension."""


#: Needs of each solver. Exact updates of rows that are not all in memory use dense scatters.
NEEDS = {
    "power": Needs(),
    "exact": Needs(max_features_out_of_core=DENSE_FEATURES, streams=False),
    "grouse": Needs(
        all_samples=True, streams=False, linear_only=True, equal_samples=True, one_dimension=True
    ),
}


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
    """Why: "converged", "max_iter" or "callback"."""
    anneal_history: tuple[float, ...] = ()
    """Free energy after every step of the annealed phase."""


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
    from polyspan.linear._solve.exact import MemberMoments, MemberRows, exact_step, moments_block

    rows, shape = problem.rows, problem.shape
    bases, points = shape.split(frames)
    if isinstance(rows, ArrayRows):
        own = labels[:, start]
        complete, weights = problem.counted_block(frames).completed(bases, points, own)
        members: Any = MemberRows(complete, weights, own)
    else:
        moments, _ = rows.reduce(moments_block, frames, shape, labels, start)
        members = MemberMoments(moments, points)
    return exact_step(members, frames, shape, problem.weights)
