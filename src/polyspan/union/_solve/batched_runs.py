"""Algorithm 1 for many problems of one shape at once: every run to its end, then the best one.

Every iteration fetches one number per run, the objective. Runs end at different times, and a run
that is over but still in the product would be multiplied for nothing: such slots of the product
are given up from time to time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from polyspan.arrays import (
    Array,
    item_bytes,
    moved_to,
    namespace,
    one_hot,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.geometry import near_copies
from polyspan.union._solve.alternation import Rules, Solution, refill_empty
from polyspan.union._solve.batched import Batch, nearest
from polyspan.union._solve.shape import join

# Moving data costs about a tenth of an iteration, and more launches: it pays once this fraction of
# the problems has nothing to do.
IDLE_FRACTION = 0.2
# From this fraction on every run that is left gets a copy of the data of its problem. Then none
# waits for the slowest start of its problem, but products are thinner.
IDLE_FRACTION_APART = 0.5


@dataclass(frozen=True)
class Runs:
    """Where all runs ended; NumPy arrays but for the frames."""

    frames: Array
    """Frames as rows: (n_problems, n_starts, n_subspaces, n_columns, n_features)."""
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    counts: np.ndarray
    """Samples per subspace: (n_problems, n_starts, n_subspaces)."""


def learn(batch: Batch, frames: Array, rules: Rules, max_bytes: int) -> Runs:
    """Run Algorithm 1 from every start of every problem, and refill subspaces that are empty.

    Parameters
    ----------
    frames : array of shape (n_problems, n_starts, n_subspaces, n_columns, n_features)
    max_bytes : int
        Most that the copies of the data may take, where runs have copies of their own.
    """
    return _refilled(batch, _alternate(batch, frames, rules, max_bytes), rules)


def _alternate(batch: Batch, frames: Array, rules: Rules, max_bytes: int) -> Runs:
    """Assign and step until every run is over; such runs leave the products."""
    finished, rounding = _Finished(frames), batch.rounding()
    n_starts = frames.shape[1]
    active = _Active(batch, frames, np.arange(math.prod(frames.shape[:2])))
    previous = np.full(active.runs.shape, np.inf)
    for iteration in range(rules.max_iter + 1):
        here = active.batch
        labels, energy, projections = nearest(here, active.frames)
        gram = here.gram(active.frames)
        values = to_numpy(here.objective(active.frames, energy, gram))
        own = rounding[np.maximum(active.runs, 0) // n_starts]
        smallest = np.maximum(rules.tol * np.abs(values), own)
        settled = (previous - values <= smallest) & (iteration > 0)
        over = active.busy & (settled | (iteration == rules.max_iter))
        if over.any():
            finished.record(active, over, labels, values, settled, iteration)
            active.runs[over] = -1
        if not active.busy.any():
            break
        active.frames = here.hard_step(active.frames, projections, labels, gram)
        previous = active.compact(values, max_bytes)
    return finished.runs()


class _Active:
    """The runs that are under way, in a grid of problems and of slots for their starts."""

    def __init__(self, batch: Batch, frames: Array, runs: np.ndarray) -> None:
        self.batch, self.frames = batch, frames
        self.runs = runs.reshape(frames.shape[:2])
        """Number of the run in every slot; -1 where it is over."""

    @property
    def busy(self) -> np.ndarray:
        return np.asarray(self.runs >= 0)

    def compact(self, values: np.ndarray, max_bytes: int) -> np.ndarray:
        """Give up idle slots where that pays; return the values of those that are left."""
        xp = namespace(self.frames)
        busy = self.busy
        data = int(busy.sum()) * math.prod(self.batch.X.shape[1:]) * item_bytes(self.batch.X)
        apart = busy.shape[1] > 1 and data <= max_bytes
        if apart and busy.mean() <= 1.0 - IDLE_FRACTION_APART:
            problems, _ = np.nonzero(busy)
            which = moved_to(np.flatnonzero(busy), self.frames)
            self.frames = xp.take(_in_one_row(self.frames), which, axis=0)[:, None, ...]
            self.runs, values = self.runs[busy][:, None], values[busy][:, None]
        elif busy.any(axis=1).mean() <= 1.0 - IDLE_FRACTION:
            problems = np.flatnonzero(busy.any(axis=1))
            self.frames = xp.take(self.frames, moved_to(problems, self.frames), axis=0)
            self.runs, values = self.runs[problems], values[problems]
        else:
            return values
        self.batch = self.batch.take(problems)
        return values


def _in_one_row(frames: Array) -> Array:
    """Return the frames of all slots along one axis: (n_slots, n_subspaces, c, n_features)."""
    return namespace(frames).reshape(frames, (-1, *frames.shape[2:]))


@dataclass
class _Finished:
    """What is known about the runs that are over."""

    like: Array
    """Frames of all runs, for their shape."""
    frames: list[Array] = field(default_factory=list)
    counts: list[Array] = field(default_factory=list)
    order: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shape = tuple(self.like.shape[:2])
        n = self.shape[0] * self.shape[1]
        self.objective = np.empty(n)
        self.n_iter = np.empty(n, dtype=np.int64)
        self.converged = np.empty(n, dtype=bool)

    def record(
        self,
        active: _Active,
        over: np.ndarray,
        labels: Array,
        values: np.ndarray,
        settled: np.ndarray,
        iteration: int,
    ) -> None:
        """Store the runs that are over."""
        xp = namespace(labels)
        runs, which = active.runs[over], moved_to(np.flatnonzero(over), labels)
        self.objective[runs], self.converged[runs] = values[over], settled[over]
        self.n_iter[runs] = iteration
        own = xp.take(xp.reshape(labels, (-1, labels.shape[2])), which, axis=0)
        self.counts.append(xp.sum(one_hot(own, self.like.shape[2], xp.int64), axis=1))
        self.frames.append(xp.take(_in_one_row(active.frames), which, axis=0))
        self.order.append(runs)

    def runs(self) -> Runs:
        """Return all runs in their order."""
        xp = namespace(self.like)
        back = np.argsort(np.concatenate(self.order))
        frames = xp.concat(self.frames, axis=0)
        frames = xp.take(frames, moved_to(back, frames), axis=0)
        return Runs(
            xp.reshape(frames, self.like.shape),
            self.objective.reshape(self.shape),
            self.n_iter.reshape(self.shape),
            self.converged.reshape(self.shape),
            to_numpy(xp.concat(self.counts, axis=0))[back].reshape(*self.shape, -1),
        )


def _refilled(batch: Batch, runs: Runs, rules: Rules) -> Runs:
    """Refill empty subspaces, run by run: few have any."""
    empty = np.argwhere((runs.counts == 0).any(axis=2) & runs.converged)
    if len(empty):
        runs = replace(runs, frames=namespace(batch.X).asarray(runs.frames, copy=True))
    for p, r in empty.tolist():
        problem, value = batch.problem(p), float(runs.objective[p, r])
        labels = nearest(batch.take(np.array([p])), runs.frames[p : p + 1, r : r + 1, ...])[0]
        reached = Solution(
            frames=transpose(runs.frames[p, r, ...]),
            labels=labels[0, 0, :],
            counts=moved_to(runs.counts[p, r], batch.X),
            objective=value,
            criterion=value,
            history=(value,),
            n_iter=int(runs.n_iter[p, r]),
            stopped="converged",
        )
        found = refill_empty(problem, reached, rules)
        if found is reached:
            continue
        runs.frames[p, r, ...] = transpose(found.frames)
        runs.objective[p, r], runs.n_iter[p, r] = found.objective, found.n_iter
        runs.converged[p, r] = found.stopped == "converged"
        runs.counts[p, r] = to_numpy(found.counts)
    return runs


def best_of(runs: Runs) -> Runs:
    """Return the lowest run of every problem; of runs that met in one optimum the first."""
    xp = namespace(runs.frames)
    lowest = runs.objective.min(axis=1, keepdims=True)
    chosen = (runs.objective <= lowest + 1e-9 * np.abs(lowest)).argmax(axis=1)
    problems = np.arange(len(chosen))
    at = moved_to(problems * runs.objective.shape[1] + chosen, runs.frames)
    frames = xp.take(_in_one_row(runs.frames), at, axis=0)[:, None, ...]
    fields = (runs.objective, runs.n_iter, runs.converged, runs.counts)
    return Runs(frames, *(f[problems, chosen][:, None] for f in fields))


def or_pooled(
    batch: Batch, best: Runs, pooled: Array, residual: np.ndarray, rules: Rules, max_bytes: int
) -> Runs:
    """Go on from copies of the pooled subspace in problems where no run ended below it.

    Parameters
    ----------
    best : Runs
        One run per problem.
    pooled, residual
        What `pool` found; the residuals as a NumPy array.
    """
    xp = namespace(best.frames)
    value = residual * (1.0 if math.isinf(batch.lam) else batch.lam)
    above = np.flatnonzero(~(best.objective[:, 0] <= value * (1 + 1e-9)))
    if not len(above):
        return best
    bases = transpose(xp.take(pooled, moved_to(above, pooled), axis=0))
    copies = near_copies(bases, best.frames.shape[2])
    if batch.affine:
        copies = join(copies, zeros(copies.shape[:-1], copies))
    some = batch.take(above)
    found = learn(some, transpose(copies)[:, None, ...], rules, max_bytes)
    order = np.arange(len(value))
    order[above] = len(value) + np.arange(len(above))
    frames = xp.concat([best.frames, found.frames], axis=0)
    pairs = [
        (best.objective, found.objective),
        (best.n_iter, found.n_iter),
        (best.converged, found.converged),
        (best.counts, found.counts),
    ]
    fields = (np.concatenate(pair)[order] for pair in pairs)
    return Runs(xp.take(frames, moved_to(order, frames), axis=0), *fields)
