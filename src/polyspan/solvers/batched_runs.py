"""Algorithm 1 for many problems of one shape at once: every run until it is over.

Every iteration fetches one number per run, the objective. Runs end at different times, and places
of runs that are over would be multiplied for nothing: they are given up from time to time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from polyspan.arrays import (
    Array,
    item_bytes,
    moved_to,
    namespace,
    one_hot,
    to_numpy,
)
from polyspan.solvers.batched import Batch, nearest
from polyspan.solvers.micusal import Rules

# Moving data costs about a tenth of an iteration, and more launches: it pays once this share of
# the problems has nothing to do.
IDLE_SHARE = 0.2
# From this share on every run that is left gets the data of its problem for itself. Then none
# waits for the slowest start of its problem, but products are thinner.
IDLE_SHARE_APART = 0.5


@dataclass(frozen=True)
class Runs:
    """Where all runs ended; NumPy arrays but for the bases."""

    frames: Array
    """Bases as rows: (n_problems, n_starts, n_subspaces, subspace_dim, n_features)."""
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    counts: np.ndarray
    """Samples per subspace: (n_problems, n_starts, n_subspaces)."""


def learn(batch: Batch, frames: Array, rules: Rules, most_bytes: int) -> Runs:
    """Run Algorithm 1 from every start of every problem; runs that are over leave the products.

    Parameters
    ----------
    frames : array of shape (n_problems, n_starts, n_subspaces, subspace_dim, n_features)
    most_bytes : int
        Most that the data of runs on their own may take.
    """
    ledger, rounding = _Ledger(frames), batch.rounding()
    n_starts = frames.shape[1]
    places = _Places(batch, frames, np.arange(math.prod(frames.shape[:2])))
    previous = np.full(places.runs.shape, np.inf)
    for iteration in range(rules.max_iter + 1):
        here = places.batch
        labels, energy, projections = nearest(here, places.frames)
        gram = here.gram(places.frames)
        values = to_numpy(here.objective(places.frames, energy, gram))
        own = rounding[np.maximum(places.runs, 0) // n_starts]
        smallest = np.maximum(rules.tol * np.abs(values), own)
        settled = (previous - values <= smallest) & (iteration > 0)
        over = places.busy & (settled | (iteration == rules.max_iter))
        if over.any():
            ledger.close(places, over, labels, values, settled, iteration)
            places.runs[over] = -1
        if not places.busy.any():
            break
        places.frames = here.hard_step(places.frames, projections, labels, gram)
        previous = places.compact(values, most_bytes)
    return ledger.runs()


class _Places:
    """The runs that are under way, in a grid of problems and places beside each other."""

    def __init__(self, batch: Batch, frames: Array, runs: np.ndarray) -> None:
        self.batch, self.frames = batch, frames
        self.runs = runs.reshape(frames.shape[:2])
        """Number of the run in every place; -1 where it is over."""

    @property
    def busy(self) -> np.ndarray:
        return np.asarray(self.runs >= 0)

    def compact(self, values: np.ndarray, most_bytes: int) -> np.ndarray:
        """Give up idle places where that pays; return the values of those that are left."""
        xp = namespace(self.frames)
        busy = self.busy
        data = int(busy.sum()) * math.prod(self.batch.X.shape[1:]) * item_bytes(self.batch.X)
        apart = busy.shape[1] > 1 and data <= most_bytes
        if apart and busy.mean() <= 1.0 - IDLE_SHARE_APART:
            problems, _ = np.nonzero(busy)
            which = moved_to(np.flatnonzero(busy), self.frames)
            self.frames = xp.take(_beside(self.frames), which, axis=0)[:, None, ...]
            self.runs, values = self.runs[busy][:, None], values[busy][:, None]
        elif busy.any(axis=1).mean() <= 1.0 - IDLE_SHARE:
            problems = np.flatnonzero(busy.any(axis=1))
            self.frames = xp.take(self.frames, moved_to(problems, self.frames), axis=0)
            self.runs, values = self.runs[problems], values[problems]
        else:
            return values
        self.batch = self.batch.take(problems)
        return values


def _beside(frames: Array) -> Array:
    """Return the bases of all places in one row: (n_places, n_subspaces, s, n_features)."""
    return namespace(frames).reshape(frames, (-1, *frames.shape[2:]))


@dataclass
class _Ledger:
    """What is known about the runs that are over."""

    like: Array
    frames: list[Array] = field(default_factory=list)
    counts: list[Array] = field(default_factory=list)
    order: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shape = tuple(self.like.shape[:2])
        n = self.shape[0] * self.shape[1]
        self.objective = np.empty(n)
        self.n_iter = np.empty(n, dtype=np.int64)
        self.converged = np.empty(n, dtype=bool)

    def close(
        self,
        places: _Places,
        over: np.ndarray,
        labels: Array,
        values: np.ndarray,
        settled: np.ndarray,
        iteration: int,
    ) -> None:
        """Take down runs where they stand."""
        xp = namespace(labels)
        runs, which = places.runs[over], moved_to(np.flatnonzero(over), labels)
        self.objective[runs], self.converged[runs] = values[over], settled[over]
        self.n_iter[runs] = iteration
        own = xp.take(xp.reshape(labels, (-1, labels.shape[2])), which, axis=0)
        self.counts.append(xp.sum(one_hot(own, self.like.shape[2], xp.int64), axis=1))
        self.frames.append(xp.take(_beside(places.frames), which, axis=0))
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
