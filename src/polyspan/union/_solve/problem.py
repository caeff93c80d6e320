"""A problem (rows, observed entries, shape of subspaces and λ), and how it is made from data.

.. math:: F = closeness(S_1, …, S_L) + λ Σ_i residual(y_i, S_{l_i})

For λ=∞ (K-subspaces) the first term is left out and λ counts as 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.arrays import (
    Array,
    float64_sum,
    keep_freed_memory,
    machine_epsilon,
    namespace,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    zeros,
)
from polyspan.data.measure import Extent, RowMap
from polyspan.data.rows import ArrayRows, BlockRows, Rows, Source
from polyspan.data.working import HEAVY_MEAN, Working, scale_and_mean, span_of, working_lam
from polyspan.union._solve.leave_one_out import Leverage, coefficient_scatter_block
from polyspan.union._solve.observation import CompleteBlock, Observation
from polyspan.union._solve.shape import ObjectiveWeights, Shape, join, shape_of
from polyspan.union._solve.sums import Sums, assign_block, soft_assign_block

#: Called after every iteration with (start, iteration, objective, frames of that start). Returning
#: True stops that start.
Monitor = Callable[[int, int, float, Array], bool]


@dataclass(frozen=True)
class Problem:
    """What a solver works on."""

    rows: Rows
    shape: Shape
    lam: float
    total: float
    """Σ ‖y‖² over the centred samples (times m/|Ω| with missing entries), in double precision."""
    past: Any = None
    """What a stream remembers of past samples: one more term of the sums."""

    @property
    def weights(self) -> ObjectiveWeights:
        """How a step weighs fit against closeness."""
        return ObjectiveWeights.of(self.lam)

    def assign(
        self, frames: Array, *, with_products: bool, before: Any = None, keep: bool = True
    ) -> tuple[Any, Sums]:
        """Assign every sample to its nearest subspace; see `sums.assign_block`.

        With labels from `before` leave-one-out residuals are used.
        """
        leverage = None if before is None else self._leverage(frames, before)
        sums, labels = self.rows.reduce(
            assign_block, frames, self.shape, with_products, leverage, before, keep=keep
        )
        return labels, sums if self.past is None else sums + self.past.sums(frames, self.shape)

    def soft_assign(
        self, frames: Array, temperature: float, *, before: Any = None, keep: bool = False
    ) -> tuple[Any, Sums]:
        """Assign every sample to all subspaces with responsibilities; see `sums.soft_assign_block`.

        With responsibilities from `before` leave-one-out residuals are used.
        """
        leverage = None if before is None else self._leverage(frames, before)
        options = (temperature, leverage, before, keep)
        sums, kept = self.rows.reduce(soft_assign_block, frames, self.shape, *options, keep=keep)
        return kept, sums

    def _leverage(self, frames: Array, membership: Any) -> Leverage:
        """Return what leave-one-out residuals need, given labels or responsibilities."""
        scatter, _ = self.rows.reduce(coefficient_scatter_block, frames, self.shape, membership)
        found: Leverage = scatter.leverage(affine=bool(self.shape.n_points))
        return found

    def objective(self, frames: Array, energy: Array) -> Array:
        """Return F of every start from Σ (‖y‖² - residual), in double precision."""
        xp = namespace(energy)
        # The difference of two sums: where the fit is exact rounding may leave it below 0.
        residual = xp.maximum(self.total - energy, xp.zeros_like(energy))
        if math.isinf(self.lam):
            return residual
        return self.shape.closeness(frames) + self.lam * residual

    @property
    def rounding(self) -> float:
        """Objective below which the data are fitted to rounding."""
        unit = 4.0 * machine_epsilon(self.rows.like) * self.total
        return unit if math.isinf(self.lam) else unit * self.lam


def prepare(
    X: Array,
    lam: float,
    *,
    center: bool,
    affine: bool = False,
    start: Array | None = None,
    holes: bool = False,
    prior: float = 0.0,
) -> tuple[Problem, Working]:
    """Return the problem of an array in memory.

    Centre, scale where squares would overflow, and reduce to the span where that is smaller.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Neither changed nor, if it is complete and has many rows, copied. NaN where entries are
        missing; each row then has at least one that is not.
    start : array of shape (n_subspaces, n_features, n_columns), default=None
        Frames that the user gives, in the coordinates of the data; they may leave the span of the
        data.
    holes : bool, default=False
        Whether to work on observed entries.
    prior : float, default=0.0
        ρ, the weight of filled-in entries.
    """
    keep_freed_memory()
    if holes:
        return _prepare_masked(X, lam, center, affine, prior)
    xp = namespace(X)
    n, size = X.shape[0], rows_at_once(X)
    slices = row_slices(n, size)
    scale, mean = scale_and_mean(X, slices, center=center)
    if scale != 1.0:
        X = X * scale
    block = CompleteBlock(X, mean if center else None, size)
    norms = block.squared_norms()
    total = float(float64_sum(norms))
    if center and n <= size:
        block = CompleteBlock(block.centred(slice(0, n)), None, size)
    elif center:
        heavy = float(xp.sum(mean * mean)) > HEAVY_MEAN * total / n
        block = replace(block, offset=None if heavy else mean)
    span = None
    if n < X.shape[1]:
        centred = block.centred(slice(0, n))
        if affine and start is not None:  # points in the coordinates of the data
            start = join(start[..., :-1], start[..., -1] * scale - mean)
        span = span_of(centred, start)
        if span is not None:
            working = centred @ span
            block = CompleteBlock(working, None, rows_at_once(working))
    block = replace(block, norms=norms)
    rows = ArrayRows(block, n, block.X)
    shape = shape_of(affine, total / n)
    problem = Problem(rows, shape, working_lam(lam, scale), total)
    return problem, Working(mean / scale, scale, span, shape.n_points)


def _prepare_masked(
    X: Array, lam: float, center: bool, affine: bool, prior: float
) -> tuple[Problem, Working]:
    from polyspan.data.missing import observed_mean
    from polyspan.union._solve.masked import MaskedBlock

    xp = namespace(X)
    missing = xp.isnan(X)
    mean = observed_mean(X, missing) if center else zeros((X.shape[1],), X)
    largest = float(xp.max(xp.where(missing, 0.0, xp.abs(X - mean))))
    scale = power_of_two_scale(largest, machine_epsilon(X))
    block = MaskedBlock.of(X, mean if center else None, scale, prior, 0)
    assert block is not None
    total, n = float(float64_sum(block.norms)), X.shape[0]
    shape = shape_of(affine, total / n)
    rows = ArrayRows(block, n, block.values)
    problem = Problem(rows, shape, working_lam(lam, scale), total)
    return problem, Working(mean, scale, None, shape.n_points)


def prepare_source(
    source: Source,
    extent: Extent,
    lam: float,
    *,
    dtype: Any,
    center: bool,
    affine: bool = False,
    holes: bool = False,
    too_few: int = 0,
    prior: float = 0.0,
    row_map: RowMap | None = None,
) -> tuple[Problem, Working]:
    """Return the problem of rows that are not all in memory.

    Unlike `prepare` there is no reduction to the span of few samples: it would gather them.
    """
    like = np.empty((0, len(extent.sums)), dtype=dtype)
    scale = power_of_two_scale(extent.largest, machine_epsilon(like))
    mean = None
    if center:
        mean = extent.sums * (scale / extent.scale) / np.maximum(extent.observed, 1)
        mean = mean.astype(like.dtype)
    observation = Observation(
        dtype, mean, scale=scale, holes=holes, too_few=too_few, prior=prior, row_map=row_map
    )
    n = extent.n_learned
    rows = BlockRows(source, observation, n, like, extent.n_rows - n)
    total = float(rows.reduce(norms_block)[0])
    if mean is not None and not holes:
        heavy = float(np.sum(mean * mean)) > HEAVY_MEAN * total / n
        rows = replace(rows, observation=replace(observation, center_first=heavy))
    shape = shape_of(affine, total / n)
    problem = Problem(rows, shape, working_lam(lam, scale), total)
    found = np.zeros(like.shape[1], dtype=dtype) if mean is None else mean / scale
    return problem, Working(found.astype(dtype, copy=False), scale, None, shape.n_points)


def norms_block(block: Any) -> tuple[float, None]:
    """Return the sum of the squared norms of the samples of a block. A task."""
    return float(float64_sum(block.squared_norms())), None


def batch_problem(block: Any, lam: float, affine: bool, past: Any) -> Problem:
    """Return the problem of one batch of a stream, with what is remembered of those before."""
    norms = block.squared_norms()
    like = block.values if hasattr(block, "values") else block.X
    total = float(float64_sum(norms)) + past.squares()
    n = norms.shape[0]
    shape = shape_of(affine, total / (n + float(past.memory.counts.sum())))
    return Problem(ArrayRows(block, n, like), shape, lam, total, past)
