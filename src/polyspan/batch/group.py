"""Some problems that are worked on together, from centring to the result."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    machine_epsilon,
    moved_to,
    namespace,
    rows_at_once,
    to_numpy,
    transpose,
)
from polyspan.batch.starts import Starts
from polyspan.geometry import near_copies, orthonormal_columns
from polyspan.models.micusal import MiCUSaL
from polyspan.solvers.annealing import temperatures
from polyspan.solvers.batched import Batch, cool, nearest, pool
from polyspan.solvers.batched_runs import Runs, learn
from polyspan.solvers.micusal import Rules, refill_empty
from polyspan.solvers.problem import Problem, Solution


@dataclass(frozen=True)
class BatchFit:
    """What was learned about every problem; all arrays lie where X does."""

    bases: Array
    """Orthonormal bases: (n_problems, n_subspaces, n_features, subspace_dim)."""
    labels: Array
    """Subspace of every sample: (n_problems, n_samples)."""
    means: Array
    """Means that were subtracted; zero without centring: (n_problems, n_features)."""
    objective: Array
    """F1 at these labels and bases, in double precision: (n_problems,)."""
    n_iter: Array
    """Iterations of the alternation of the start that was kept: (n_problems,)."""
    converged: Array
    """Whether it ended by `tol`: (n_problems,)."""


class Group:
    """Some of the problems, from centring to the result."""

    def __init__(
        self, model: MiCUSaL, starts: Starts, X: Array, which: slice, max_bytes: int
    ) -> None:
        self._model, self._max_bytes = model, max_bytes
        self._rules = Rules("power", model.max_iter, float(model.tol))
        xp = namespace(X)
        X = X[which, ...]
        self._means = xp.zeros_like(X[:, 0, :])
        if model.center:
            self._means = xp.astype(float64_sum(X, axis=1) / X.shape[1], X.dtype)
            X = X - self._means[:, None, :]
        given = None if starts.given is None else starts.given[which, ...]
        self._span = _span(X, given)
        if self._span is not None:
            X = X @ self._span
        self._batch = Batch.of(X, float(model.lam))
        self._pooled, bases = starts.draw(which, X.shape[2])
        if given is not None and self._span is not None:
            bases = transpose(self._span)[:, None, None, ...] @ bases
        self._frames = xp.asarray(transpose(bases), copy=True)

    def fit(self) -> Group:
        """Run all starts and keep the best of every problem."""
        batch, frames, xp = self._batch, self._frames, namespace(self._frames)
        pooled, residual, ritz = pool(batch, transpose(self._pooled))
        self.n_narrow = _count_narrow(ritz, max(batch.X.shape[1:]))
        if isinstance(self._model.init, str) and self._model.init == "anneal":
            n = batch.X.shape[1]
            least = 1e4 * float(xp.finfo(frames.dtype).smallest_normal)
            rounding = machine_epsilon(frames) * batch.total / n
            units = xp.clip(xp.maximum(residual / n, rounding), least, None)
            steps = temperatures(1.0, *self._model.anneal_range, self._model.anneal_steps)
            frames = cool(batch, frames, units, steps)
        runs = self._refilled(batch, learn(batch, frames, self._rules, self._max_bytes))
        best = self._best(runs)
        self._keep(self._or_pooled(best, pooled, to_numpy(residual)))
        return self

    def _refilled(self, batch: Batch, runs: Runs) -> Runs:
        """Refill empty subspaces, run by run: few have any."""
        empty = np.argwhere((runs.counts == 0).any(axis=2) & runs.converged)
        if len(empty):
            runs = replace(runs, frames=namespace(batch.X).asarray(runs.frames, copy=True))
        for p, r in empty.tolist():
            rows = Rows(batch.X[p, ...], None, rows_at_once(batch.X[p, ...]))
            norms = namespace(rows.X).sum(rows.X * rows.X, axis=1)
            problem = Problem(rows, norms, float(batch.total[p]), batch.lam)
            value, n_iter = float(runs.objective[p, r]), int(runs.n_iter[p, r])
            labels = nearest(batch.take(np.array([p])), runs.frames[p : p + 1, r : r + 1, ...])[0]
            reached = Solution(
                transpose(runs.frames[p, r, ...]), labels[0, 0, :],
                moved_to(runs.counts[p, r], rows.X), value, value, (value,), n_iter, "converged",
            )  # fmt: skip
            found = refill_empty(problem, reached, self._rules)
            if found is reached:
                continue
            runs.frames[p, r, ...] = transpose(found.bases)
            runs.objective[p, r], runs.n_iter[p, r] = found.objective, found.n_iter
            runs.converged[p, r] = found.stopped == "converged"
            runs.counts[p, r] = to_numpy(found.counts)
        return runs

    def _best(self, runs: Runs) -> Runs:
        """Return the lowest run of every problem; of those that met the first, as `MiCUSaL`."""
        xp = namespace(runs.frames)
        lowest = runs.objective.min(axis=1, keepdims=True)
        chosen = (runs.objective <= lowest + 1e-9 * np.abs(lowest)).argmax(axis=1)
        problems = np.arange(len(chosen))
        at = moved_to(problems * runs.objective.shape[1] + chosen, runs.frames)
        flat = xp.reshape(runs.frames, (-1, 1, *runs.frames.shape[2:]))
        fields = (runs.objective, runs.n_iter, runs.converged, runs.counts)
        return Runs(xp.take(flat, at, axis=0), *(f[problems, chosen][:, None] for f in fields))

    def _or_pooled(self, best: Runs, pooled: Array, residual: np.ndarray) -> Runs:
        """Go on from copies of the pooled subspace where no run ended below it, as `MiCUSaL`."""
        xp, lam = namespace(best.frames), self._batch.lam
        value = residual * (1.0 if math.isinf(lam) else lam)
        above = np.flatnonzero(~(best.objective[:, 0] <= value * (1 + 1e-9)))
        if not len(above):
            return best
        some = self._batch.take(above)
        copies = transpose(xp.take(pooled, moved_to(above, pooled), axis=0))
        copies = transpose(near_copies(copies, best.frames.shape[2]))[:, None, ...]
        found = self._refilled(some, learn(some, copies, self._rules, self._max_bytes))
        order = np.arange(len(value))
        order[above] = len(value) + np.arange(len(above))
        joined = xp.concat([best.frames, found.frames], axis=0)
        pairs = [
            (best.objective, found.objective),
            (best.n_iter, found.n_iter),
            (best.converged, found.converged),
            (best.counts, found.counts),
        ]
        fields = (np.concatenate(pair)[order] for pair in pairs)
        return Runs(xp.take(joined, moved_to(order, joined), axis=0), *fields)

    def _keep(self, best: Runs) -> None:
        bases = transpose(best.frames[:, 0, ...])
        labels = nearest(self._batch, best.frames)[0][:, 0, :]
        if self._span is not None:
            bases = self._span[:, None, ...] @ bases
        values = (best.objective, best.n_iter, best.converged)
        self.n_empty = int((best.counts == 0).any(axis=(1, 2)).sum())
        self.result = BatchFit(
            bases, labels, self._means, *(moved_to(v[:, 0], bases) for v in values)
        )


def _span(X: Array, given: Array | None) -> Array | None:
    """Return bases of the samples (and starts) of every problem where these are few, or None."""
    xp = namespace(X)
    n_problems, _, m = X.shape
    columns = [transpose(X)]
    if given is not None:
        wide = xp.permute_dims(given, (0, 2, 1, 3))
        columns.append(xp.reshape(wide, (n_problems, m, -1)))
    if sum(c.shape[2] for c in columns) >= m:
        return None
    return orthonormal_columns(xp.concat(columns, axis=2))


def _count_narrow(ritz: Array, size: int) -> int:
    values = np.sqrt(np.maximum(to_numpy(ritz), 0))
    share = min(machine_epsilon(ritz) * size, 1e-3)  # as for a single problem
    used = values > values.max(axis=1, keepdims=True) * share
    return int((~used).any(axis=1).sum())
