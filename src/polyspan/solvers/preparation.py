"""From validated data to a problem to work on: centring, scaling, reduction to the span."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    keep_freed_memory,
    machine_epsilon,
    namespace,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    transpose,
    zeros,
)
from polyspan.geometry import orthonormal_columns
from polyspan.solvers.affine import AffineProblem, join, split
from polyspan.solvers.problem import Problem

# Where the squared mean outweighs the mean squared spread by more than this, subtracting it after
# the product would cost more than two digits: such chunks are centred before.
HEAVY_MEAN = 100.0


@dataclass(frozen=True)
class Prepared:
    """A problem in working coordinates and the way back."""

    problem: Problem
    mean: Array
    """In the units of the data; zero without centring."""
    scale: float
    """The working data are the data times this power of two."""
    span: Array | None = None
    """Orthonormal basis of the working coordinates, (n_features, n_working), or None."""

    def outward(self, bases: Array) -> Array:
        """Take bases (or frames) from working coordinates to those of the data."""
        bases = bases if self.span is None else self.span @ bases
        return self._scaled(bases, 1.0 / self.scale)

    def inward(self, bases: Array) -> Array:
        """Take bases (or frames) inside the span to working coordinates."""
        bases = bases if self.span is None else transpose(self.span) @ bases
        return self._scaled(bases, self.scale)

    def _scaled(self, frames: Array, factor: float) -> Array:
        """Points of affine subspaces have the scale of the data; bases have none."""
        if factor == 1.0 or not isinstance(self.problem, AffineProblem):
            return frames
        bases, anchors = split(frames)
        return join(bases, anchors * factor)

    def objective(self, value: float) -> float:
        """Take an objective to the units of the data (for finite λ it has none)."""
        return value if self.problem.pull else (value / self.scale) / self.scale


def prepare(
    X: Array, lam: float, *, center: bool, start: Array | None = None, affine: bool = False
) -> Prepared:
    """Centre, scale where squares would overflow, and reduce to the span where that is smaller.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Finite; neither changed nor, if it has many rows, copied.
    start : array of shape (n_subspaces, n_features, subspace_dim), default=None
        Bases that the user gives; they may leave the span of the data. For affine subspaces
        frames, with points relative to the mean.
    affine : bool, default=False
        Whether subspaces need not go through the mean.
    """
    keep_freed_memory()
    xp = namespace(X)
    n, m = X.shape
    size = rows_at_once(X)
    slices = row_slices(n, size)
    largest = max(float(xp.max(xp.abs(X[which, :]))) for which in slices)
    scale = power_of_two_scale(largest, machine_epsilon(X))
    if scale != 1.0:
        X = X * scale
    mean = zeros((m,), X)
    if center:
        totals = [float64_sum(X[which, :], axis=0) for which in slices]
        mean = xp.astype(sum(totals[1:], totals[0]) / n, X.dtype)
    rows = Rows(X, mean if center else None, size)
    norms = xp.concat([_squared_norms(rows.centred(which)) for which in slices], axis=0)
    total = float(float64_sum(norms))
    rows = _choose_centring(rows, total)
    # λ‖r‖² must not change: the working residuals are scale² times those of the data.
    kind = AffineProblem if affine else Problem
    problem = kind(rows, norms, total, working_weight(lam, scale))
    prepared = Prepared(problem, mean / scale, scale)
    return _reduce_to_span(prepared, start)


def working_weight(lam: float, scale: float) -> float:
    """Return λ for data times `scale`, kept finite and above 0 where λ is."""
    if math.isinf(lam):
        return lam
    return min(max((lam / scale) / scale, 1e-300), 1e300)


def _squared_norms(chunk: Array) -> Array:
    return namespace(chunk).sum(chunk * chunk, axis=1)


def _choose_centring(rows: Rows, total: float) -> Rows:
    if rows.mean is None:
        return rows
    xp = namespace(rows.mean)
    n = rows.shape[0]
    if n <= rows.size:
        return Rows(rows.centred(slice(0, n)), None, rows.size)
    heavy = float(xp.sum(rows.mean * rows.mean)) > HEAVY_MEAN * total / n
    return Rows(rows.X, rows.mean, rows.size, explicit=heavy)


def _reduce_to_span(prepared: Prepared, start: Array | None) -> Prepared:
    """Work in the span of the samples (and of a given start) when they are fewer than features.

    F1 does not change under it: all that the iteration makes lies in that span.
    """
    rows = prepared.problem.rows
    n, m = rows.shape
    n_working = n + (0 if start is None else start.shape[0] * start.shape[2])
    if n_working >= m:
        return prepared
    xp = namespace(rows.X)
    columns = [transpose(rows.centred(slice(0, n)))]
    if start is not None:
        columns += [start[p, ...] for p in range(start.shape[0])]
    span = orthonormal_columns(xp.concat(columns, axis=1))
    working = rows.centred(slice(0, n)) @ span
    reduced = Rows(working, None, rows_at_once(working))
    return replace(prepared, problem=replace(prepared.problem, rows=reduced), span=span)
