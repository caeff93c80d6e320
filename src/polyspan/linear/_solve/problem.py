"""A problem (rows, observed entries, shape of subspaces and λ), and how it is made from data.

.. math:: F = closeness(S_1, …, S_L) + λ Σ_i residual(y_i, S_{l_i})

For λ=∞ (K-subspaces) the first term is left out and λ counts as 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import (
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
from polyspan.data.rows import ArrayRows, BlockRows, PerRow, Rows, Source
from polyspan.data.working import (
    HEAVY_MEAN,
    Extent,
    RowMap,
    Working,
    auto_lam,
    scale_and_mean,
    span_of,
    working_lam,
)
from polyspan.geometry.bases import Dims
from polyspan.linear._solve.leave_one_out import Leverage, coefficient_scatter_block
from polyspan.linear._solve.observation import CompleteBlock, Observation, as_row
from polyspan.linear._solve.shape import ObjectiveWeights, Shape, join, shape_of
from polyspan.linear._solve.sums import Sums, assign_block, soft_assign_block
from polyspan.linear._solve.trimming import kept_weights, soft_minimum


@dataclass(frozen=True)
class Problem:
    """What a solver works on."""

    rows: Rows
    shape: Shape
    lam: float
    total: float
    """Σ ‖y‖² over the centred samples (times m/|Ω| with missing entries), in double precision.

    Where samples are trimmed, over those with the smallest norms: the size of what is kept."""
    past: Any = None
    """What a stream remembers of past samples: one more term of the sums."""
    weight_sum: float | None = None
    """Sum of the weights of the samples; None: each counts once."""
    trim: float = 0.0
    """Fraction of the samples, by weight, that takes no part: those with the largest residuals."""

    @property
    def n_samples(self) -> float:
        """Number of samples, each as often as its weight says."""
        return float(self.rows.n_rows) if self.weight_sum is None else self.weight_sum

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
            assign_block, frames, self.shape, with_products, leverage, before, self.trim, keep=keep
        )
        return labels, sums if self.past is None else sums + self.past.sums(frames, self.shape)

    def soft_assign(
        self, frames: Array, temperature: float, *, before: Any = None, keep: bool = False
    ) -> tuple[Any, Sums]:
        """Assign every sample to all subspaces with responsibilities; see `sums.soft_assign_block`.

        With responsibilities from `before` leave-one-out residuals are used.
        """
        leverage = None if before is None else self._leverage(frames, before)
        options = (temperature, leverage, before, keep, self.trim)
        sums, kept = self.rows.reduce(soft_assign_block, frames, self.shape, *options, keep=keep)
        return kept, sums

    def _leverage(self, frames: Array, membership: Any) -> Leverage:
        """Return what leave-one-out residuals need, given labels or responsibilities."""
        scatter, _ = self.rows.reduce(coefficient_scatter_block, frames, self.shape, membership)
        found: Leverage = scatter.leverage(affine=bool(self.shape.n_points))
        return found

    def objective(self, frames: Array, energy: Array, squares: Array | None = None) -> Array:
        """Return F of every start from Σ (‖y‖² - residual), in double precision.

        `squares` is Σ ‖y‖² over the samples that take part, where some do not.
        """
        xp = namespace(energy)
        total = self.total if squares is None else squares
        # The difference of two sums: where the fit is exact rounding may leave it below 0.
        residual = xp.maximum(total - energy, xp.zeros_like(energy))
        if math.isinf(self.lam):
            return residual
        return self.shape.closeness(frames) + self.lam * residual

    def counted_block(self, frames: Array) -> Any:
        """Return the block of all samples, those that are trimmed with the weight 0.

        Parameters
        ----------
        frames : array of shape (n_subspaces, n_features, n_columns)
            Of one start; residuals to them tell which samples are trimmed.
        """
        assert isinstance(self.rows, ArrayRows)
        block = self.rows.block
        if not self.trim:
            return block
        bases, points = self.shape.split(frames[None, ...])
        values = [soft_minimum(fit, 0.0) for fit in block.fits(bases, points)]
        residuals = namespace(frames).concat(values, axis=1)
        kept = kept_weights(residuals, block.sample_weights, self.trim)
        return replace(block, sample_weights=kept)

    def on_block(self, block: Any) -> Problem:
        """Return the same problem on other rows, which stand for all: λ is that for their number.

        The block is a sample of the rows, or the same rows with missing entries filled.
        """
        norms, own = block.squared_norms(), block.sample_weights
        own = None if own is None else own[0, :]
        total, weight_sum = _totals(norms, own, own)[0], _weight_sum(own)
        n = norms.shape[0]
        lam = self.lam * (self.n_samples / (n if weight_sum is None else weight_sum))
        rows = ArrayRows(block, n, self.rows.like)
        return Problem(rows, self.shape, lam, total, weight_sum=weight_sum)

    def with_auto_lam(self) -> Problem:
        """Return the same problem with λ by the mean squared norm of the samples that take part."""
        return replace(self, lam=auto_lam(self.total / ((1.0 - self.trim) * self.n_samples)))

    def with_dims(self, dims: Dims) -> Problem:
        """Return the same problem with subspaces of these dimensions, None: all equal."""
        return self if dims is None else replace(self, shape=replace(self.shape, dims=dims))

    def trimmed(self, trim: float) -> Problem:
        """Return the same problem without the fraction `trim` of largest residuals."""
        if not trim:
            return self
        assert isinstance(self.rows, ArrayRows)
        norms = self.rows.block.squared_norms()
        kept = kept_weights(norms[None, :], self.rows.block.sample_weights, trim)[0, :]
        # Outliers must not raise what counts as rounding.
        return replace(self, trim=trim, total=float(float64_sum(kept * norms)))

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
    weights: Array | None = None,
    counted: Array | None = None,
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
    weights : array of shape (n_samples,), default=None
        Weights of the samples, none of them 0; None: 1 for each.
    counted : array of shape (n_samples,), default=None
        Weights for the mean, and for the unit of affine subspaces; None: `weights`.
    """
    keep_freed_memory()
    counted = weights if counted is None else counted
    if holes:
        return _prepare_masked(X, lam, center, affine, prior, weights, counted)
    xp = namespace(X)
    n, size = X.shape[0], rows_at_once(X)
    slices = row_slices(n, size)
    scale, mean = scale_and_mean(X, slices, center=center, weights=counted)
    if scale != 1.0:
        X = X * scale
    block = CompleteBlock(X, mean if center else None, size)
    norms = block.squared_norms()
    total, mean_square = _totals(norms, weights, counted)
    if center and n <= size:
        block = CompleteBlock(block.centred(slice(0, n)), None, size)
    elif center:
        heavy = float(xp.sum(mean * mean)) > HEAVY_MEAN * mean_square
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
    block = replace(block, norms=norms, sample_weights=as_row(weights, block.X))
    rows = ArrayRows(block, n, block.X)
    shape = shape_of(affine, mean_square)
    problem = Problem(rows, shape, working_lam(lam, scale), total, weight_sum=_weight_sum(weights))
    return problem, Working(mean / scale, scale, span, shape.n_points)


def _totals(norms: Array, weights: Array | None, counted: Array | None) -> tuple[float, float]:
    """Return Σ w ‖y‖², and the mean of ‖y‖² over the samples that count."""
    total = float(float64_sum(norms if weights is None else weights * norms))
    if counted is None:
        return total, total / norms.shape[0]
    own = total if counted is weights else float(float64_sum(counted * norms))
    return total, own / float(float64_sum(counted))


def _weight_sum(weights: Array | None) -> float | None:
    return None if weights is None else float(float64_sum(weights))


def _prepare_masked(
    X: Array, lam: float, center: bool, affine: bool, prior: float, weights: Array | None,
    counted: Array | None,
) -> tuple[Problem, Working]:  # fmt: skip
    from polyspan.data.missing import observed_mean
    from polyspan.linear._solve.masked import MaskedBlock

    xp = namespace(X)
    missing = xp.isnan(X)
    mean = observed_mean(X, missing, counted) if center else zeros((X.shape[1],), X)
    largest = float(xp.max(xp.where(missing, 0.0, xp.abs(X - mean))))
    scale = power_of_two_scale(largest, machine_epsilon(X))
    block = MaskedBlock.of(X, mean if center else None, scale, prior, 0, weights)
    assert block is not None
    total, mean_square = _totals(block.norms, weights, counted)
    shape = shape_of(affine, mean_square)
    rows = ArrayRows(block, X.shape[0], block.values)
    problem = Problem(rows, shape, working_lam(lam, scale), total, weight_sum=_weight_sum(weights))
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
    weights: PerRow | None = None,
) -> tuple[Problem, Working]:
    """Return the problem of rows that are not all in memory.

    Unlike `prepare` there is no reduction to the span of few samples: it would gather them.
    """
    like = np.empty((0, len(extent.sums)), dtype=dtype)
    scale = power_of_two_scale(extent.largest, machine_epsilon(like))
    mean = None
    if center:
        observed = np.where(extent.observed > 0, extent.observed, 1)
        mean = extent.sums * (scale / extent.scale) / observed
        mean = mean.astype(like.dtype)
    observation = Observation(
        dtype, mean, scale=scale, holes=holes, too_few=too_few, prior=prior, row_map=row_map
    )
    n_rows = extent.n_learned
    rows = BlockRows(source, observation, n_rows, like, extent.n_rows - n_rows, weights)
    total = float(rows.reduce(norms_block)[0])
    n = n_rows if extent.weight_sum is None else extent.weight_sum
    if mean is not None and not holes:
        heavy = float(np.sum(mean * mean)) > HEAVY_MEAN * total / n
        rows = replace(rows, observation=replace(observation, center_first=heavy))
    shape = shape_of(affine, total / n)
    problem = Problem(rows, shape, working_lam(lam, scale), total, weight_sum=extent.weight_sum)
    found = np.zeros(like.shape[1], dtype=dtype) if mean is None else mean / scale
    return problem, Working(found.astype(dtype, copy=False), scale, None, shape.n_points)


def norms_block(block: Any) -> tuple[float, None]:
    """Return the sum of the (weighted) squared norms of the samples of a block. A task."""
    norms, weights = block.squared_norms(), block.sample_weights
    return float(float64_sum(norms if weights is None else weights * norms)), None


def batch_problem(block: Any, lam: float, affine: bool, past: Any) -> Problem:
    """Return the problem of one batch of a stream, with what is remembered of those before."""
    norms, weights = block.squared_norms(), block.sample_weights
    like = block.values if hasattr(block, "values") else block.X
    total = float(float64_sum(norms if weights is None else weights * norms)) + past.squares()
    rows = ArrayRows(block, norms.shape[0], like)
    n = rows.n_rows if weights is None else float(float64_sum(weights))
    shape = shape_of(affine, total / (n + float(past.memory.counts.sum())))
    return Problem(rows, shape, lam, total, past, None if weights is None else n)
