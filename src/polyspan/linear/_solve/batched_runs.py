"""Algorithm 1 for many problems of one shape at once: every run to its end, then the best one.

Every iteration fetches one number per run, the objective. Runs end at different times, and a run
that is over but still in the product would be multiplied for nothing: such slots of the product
are given up from time to time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from polyspan.base.arrays import (
    Array,
    item_bytes,
    moved_to,
    namespace,
    one_hot,
    to_numpy,
    zeros,
)
from polyspan.geometry.bases import near_copies
from polyspan.linear._solve.alternation import Rules, Solution, refill_empty
from polyspan.linear._solve.batched import Batch, nearest
from polyspan.linear._solve.shape import join

# Moving data costs about a tenth of an iteration, and more launches: it pays once this fraction of
# the problems has nothing to do.
IDLE_FRACTION = 0.2
# From this fraction on every run that is left gets a copy of the data of its problem. Then none
# waits for the slowest start of its problem, but products are thinner.
IDLE_FRACTION_APART = 0.5


@dataclass(frozen=True)
class Runs:
    """Where runs ended, one after the other; the starts of a problem stand side by side."""

    frames: Array
    """Frames as rows: (n_runs, n_subspaces, n_columns, n_features)."""
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    counts: Array
    """Samples per subspace: (n_runs, n_subspaces)."""

    def take(self, which: np.ndarray) -> Runs:
        """Return some of the runs."""
        fields = vars(self).values()
        return Runs(*(namespace(a).take(a, moved_to(which, a), axis=0) for a in fields))

    @classmethod
    def joined(cls, parts: list[Runs]) -> Runs:
        """Return the runs of all parts as one."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(namespace(column[0]).concat(column, axis=0) for column in columns))

    def empty(self) -> np.ndarray:
        """Tell which subspaces have no samples, (n_runs, n_subspaces)."""
        return np.asarray(to_numpy(self.counts) == 0)


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
    xp, n_starts, rounding = namespace(frames), frames.shape[1], batch.rounding()
    # The run in every slot of a grid of problems and starts; -1 where it is over.
    runs = np.arange(math.prod(frames.shape[:2])).reshape(frames.shape[:2])
    previous = np.full(runs.shape, np.inf)
    ended, order = [], []
    for iteration in range(rules.max_iter + 1):
        labels, energy, projections = nearest(batch, frames)
        values = to_numpy(batch.objective(frames, energy))
        own = rounding[np.maximum(runs, 0) // n_starts]
        smallest = np.maximum(rules.tol * np.abs(values), own)
        settled = (previous - values <= smallest) & (iteration > 0)
        over = (runs >= 0) & (settled | (iteration == rules.max_iter))
        if over.any():
            which = moved_to(np.flatnonzero(over), labels)
            theirs = xp.take(xp.reshape(labels, (-1, labels.shape[2])), which, axis=0)
            counts = xp.sum(one_hot(theirs, frames.shape[2], xp.int64), axis=1)
            n_iter = np.full(int(over.sum()), iteration)
            kept = _of_slots(frames, which)
            ended.append(Runs(kept, values[over], n_iter, settled[over], counts))
            order.append(runs[over])
            runs[over] = -1
        if (runs < 0).all():
            break
        frames, previous = batch.hard_step(frames, projections, labels), values
        slots = _slots_to_keep(runs >= 0, batch, max_bytes)
        if slots is not None:
            batch = batch.take(slots[:, 0] // runs.shape[1])
            runs, previous = runs.ravel()[slots], values.ravel()[slots]
            chosen = _of_slots(frames, moved_to(slots.ravel(), frames))
            frames = xp.reshape(chosen, (*slots.shape, *frames.shape[2:]))
    return Runs.joined(ended).take(np.argsort(np.concatenate(order)))


def _slots_to_keep(busy: np.ndarray, batch: Batch, max_bytes: int) -> np.ndarray | None:
    """Return the slots that are left where it pays to give up idle ones, or None.

    The slots are numbered row by row; those in one row of the result belong to one problem.
    """
    data = int(busy.sum()) * math.prod(batch.X.shape[1:]) * item_bytes(batch.X)
    apart = busy.shape[1] > 1 and data <= max_bytes
    if apart and busy.mean() <= 1.0 - IDLE_FRACTION_APART:
        return np.flatnonzero(busy)[:, None]
    if busy.any(axis=1).mean() <= 1.0 - IDLE_FRACTION:
        return np.arange(busy.size).reshape(busy.shape)[busy.any(axis=1)]
    return None


def _of_slots(frames: Array, which: Array) -> Array:
    """Return the frames of some slots of the grid, (n, n_subspaces, n_columns, n_features)."""
    xp = namespace(frames)
    return xp.take(xp.reshape(frames, (-1, *frames.shape[2:])), which, axis=0)


def _refilled(batch: Batch, runs: Runs, rules: Rules) -> Runs:
    """Refill empty subspaces, run by run: few have any."""
    empty = np.flatnonzero(runs.empty().any(axis=1) & runs.converged)
    n_starts = len(runs.objective) // batch.X.shape[0]
    if len(empty):
        runs = replace(runs, frames=namespace(batch.X).asarray(runs.frames, copy=True))
    for k in empty.tolist():
        p, value = k // n_starts, float(runs.objective[k])
        labels = nearest(batch.take(np.array([p])), runs.frames[k : k + 1, None, ...])[0]
        reached = Solution(
            frames=runs.frames[k, ...].mT,
            labels=labels[0, 0, :],
            counts=runs.counts[k, :],
            objective=value,
            criterion=value,
            history=(value,),
            n_iter=int(runs.n_iter[k]),
            stopped="converged",
        )
        found = refill_empty(batch.problem(p), reached, rules)
        runs.frames[k, ...], runs.counts[k, :] = found.frames.mT, found.counts
        runs.objective[k], runs.n_iter[k] = found.objective, found.n_iter
        runs.converged[k] = found.stopped == "converged"
    return runs


def best_of(runs: Runs, n_starts: int) -> Runs:
    """Return the lowest run of every problem; of runs that met in one optimum the first."""
    values = runs.objective.reshape(-1, n_starts)
    lowest = values.min(axis=1, keepdims=True)
    chosen = (values <= lowest + 1e-9 * np.abs(lowest)).argmax(axis=1)
    return runs.take(np.arange(len(chosen)) * n_starts + chosen)


def restart_from_pooled(
    batch: Batch, best: Runs, pooled: Array, residual: np.ndarray, rules: Rules, max_bytes: int
) -> Runs:
    """Go on from copies of the pooled subspace in problems where no run ended below it.

    Parameters
    ----------
    best : Runs
        One run per problem.
    pooled, residual
        What `fit_pooled` found; the residuals as a NumPy array.
    """
    value = residual * (1.0 if math.isinf(batch.lam) else batch.lam)
    if batch.dims is not None and not math.isinf(batch.lam):
        # Where each contains all smaller ones, ½‖P_l - P_p‖² is ½|s_l - s_p|.
        value = value + sum(abs(a - b) for a in batch.dims for b in batch.dims) / 2
    above = np.flatnonzero(~(best.objective <= value * (1 + 1e-9)))
    if not len(above):
        return best
    bases = namespace(pooled).take(pooled, moved_to(above, pooled), axis=0).mT
    copies = near_copies(bases, best.frames.shape[1], batch.dims)
    if batch.affine:
        copies = join(copies, zeros(copies.shape[:-1], copies))
    found = learn(batch.take(above), copies.mT[:, None, ...], rules, max_bytes)
    order = np.arange(len(value))
    order[above] = len(value) + np.arange(len(above))
    return Runs.joined([best, found]).take(order)
