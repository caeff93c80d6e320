"""Working coordinates: data that are centred, scaled if squares would overflow, and reduced.

Where there are fewer samples than features, the data are reduced to the span of the samples. Rows
that are not all in memory are measured first: how many, how large, what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.base.arrays import (
    Array,
    chunk_rows,
    float64_sum,
    machine_epsilon,
    namespace,
    power_of_two_scale,
    row_slices,
    zeros,
)
from polyspan.data.rows import Addable, sum_parts
from polyspan.geometry.bases import orthonormal_columns

# If the squared norm of the mean is more than this many times the variance, subtracting the mean
# after a product would lose more than two digits: then the chunks are centred before it.
HEAVY_MEAN = 100.0


@dataclass(frozen=True)
class Working:
    """Maps between working coordinates and the coordinates of the data."""

    mean: Array
    """Mean in the units of the data; zero without centring."""
    scale: float
    """The working data are the data times this power of two."""
    span: Array | None = None
    """Orthonormal basis of the working coordinates, (n_features, n_working), or None."""
    n_points: int = 0
    """Number of last columns of a frame that are points, not directions: 1 if affine, else 0."""

    def to_data(self, frames: Array) -> Array:
        """Map bases (or frames) from working coordinates to those of the data."""
        frames = frames if self.span is None else self.span @ frames
        return frames if self.scale == 1.0 else self._scaled(frames, 1.0 / self.scale)

    def to_working(self, frames: Array) -> Array:
        """Map bases (or frames) inside the span to working coordinates."""
        frames = frames if self.span is None else self.span.mT @ frames
        return frames if self.scale == 1.0 else self._scaled(frames, self.scale)

    def _scaled(self, frames: Array, factor: float) -> Array:
        """Multiply the points of affine subspaces by a factor; bases have no scale."""
        if not self.n_points:
            return frames
        bases, points = frames[..., :-1], frames[..., -1:]
        return namespace(frames).concat([bases, points * factor], axis=-1)

    def residual_unit(self, lam: float) -> float:
        """Return the number u such that an objective divided by u² is in the units of the data.

        It is 1 for finite λ: λ compensates the scale there.
        """
        return self.scale if math.isinf(lam) else 1.0


def working_lam(lam: float, scale: float) -> float:
    """Return λ for data times `scale`, kept finite and above 0 if λ is."""
    if math.isinf(lam):
        return lam
    # λ‖r‖² must not change: the working residuals are scale² times those of the data.
    return min(max((lam / scale) / scale, 1e-300), 1e300)


# λ of `lam="auto"` for samples of mean squared norm 1: the paper's setting.
UNIT_LAM = 4.0


def auto_lam(mean_square: float) -> float:
    """Return the λ that suits samples of this mean squared norm; it does not depend on a unit."""
    return min(UNIT_LAM / mean_square, 1e300) if mean_square > 0 else UNIT_LAM


def scale_and_mean(
    X: Array, slices: list[slice], *, center: bool, weights: Array | None = None
) -> tuple[float, Array]:
    """Return the working scale and the (weighted) mean times that scale; zero without centring."""
    xp = namespace(X)
    largest = max(float(xp.max(xp.abs(X[which, :]))) for which in slices)
    scale = power_of_two_scale(largest, machine_epsilon(X))
    mean = zeros((X.shape[1],), X)
    if center:
        scaled = (X[which, :] if scale == 1.0 else X[which, :] * scale for which in slices)
        if weights is not None:
            own = (weights[which, None] for which in slices)
            scaled = (part * w for part, w in zip(scaled, own, strict=True))
        totals = [float64_sum(part, axis=0) for part in scaled]
        count = X.shape[0] if weights is None else float(float64_sum(weights))
        mean = xp.astype(sum(totals[1:], totals[0]) / count, X.dtype)
    return scale, mean


def span_of(samples: Array, start: Array | None) -> Array | None:
    """Return a basis of the span of the samples (and of a given start), or None.

    None means that the span may have as many dimensions as the data have features. F1 is the same
    in the span: all subspaces that the iteration reaches lie in it.

    Parameters
    ----------
    samples : array of shape (..., n_samples, n_features)
    start : array of shape (..., n_subspaces, n_features, n_columns) or None
    """
    columns = [samples.mT]
    if start is not None:
        columns += [start[..., p, :, :] for p in range(start.shape[-3])]
    if sum(part.shape[-1] for part in columns) >= samples.shape[-1]:
        return None
    return orthonormal_columns(namespace(samples).concat(columns, axis=-1))


#: Maps raw rows to features, such as Nyström coordinates of a kernel; runs where the rows are.
RowMap = Callable[[Array], Array]

#: Error message for sparse chunks, which NumPy would turn into an array of objects.
DENSE_ONLY = (
    "the chunks of X are sparse matrices, which are not supported: make them dense, with "
    "X.map_blocks(lambda block: block.toarray())"
)


@dataclass(frozen=True)
class Extent(Addable):
    """What the first pass finds out about the rows; extents of blocks add up."""

    n_rows: int
    n_learned: int
    """Number of rows with enough observed entries, and a weight, to learn from."""
    n_missing: int
    n_infinite: int
    largest: float
    """The largest absolute value of rows that have a weight."""
    observed: Array
    """Number of observed entries of every feature, or their weights, over rows to learn from."""
    sums: Array
    """(Weighted) sums of these entries, in double precision, times `scale`."""
    scale: float
    """A power of two that keeps the sums finite."""
    weight_sum: float | None = None
    """Sum of the weights of the rows to learn from; None: each counts once."""
    n_too_few: int = 0
    """Number of rows with too few observed entries to learn from."""

    def __add__(self, other: Extent) -> Extent:
        # Scales are powers of two: bringing both sums to the smaller one loses no digit.
        scale = min(self.scale, other.scale)
        first, second = (replace(a, sums=a.sums * (scale / a.scale)) for a in (self, other))
        largest = max(self.largest, other.largest)
        return replace(Addable.__add__(first, second), largest=largest, scale=scale)


def measure_block(
    block: Array,
    dtype: Any,
    too_few: int,
    row_map: RowMap | None,
    weights: np.ndarray | None = None,
) -> tuple[Extent | None, None]:
    """Measure a block, one chunk of rows after the other. A task.

    Rows with at most `too_few` observed entries are not learned from. `weights` are those of the
    rows, (n_rows,); None: 1 for each.
    """
    if scipy.sparse.issparse(block):
        raise ValueError(DENSE_ONLY)
    X = np.asarray(block, dtype=dtype)
    if not len(X):
        return None, None
    if row_map is not None:
        # Rows of weight 0 are not measured, and could be too large to be mapped.
        used = None if weights is None else weights[:, None] > 0
        X = row_map(X if used is None else np.where(used, X, 0.0))
    parts = [
        _measure(X[which], too_few, None if weights is None else weights[which])
        for which in row_slices(len(X), chunk_rows(X.shape[1], X.itemsize))
    ]
    return sum_parts(parts), None


def _measure(X: np.ndarray, too_few: int, weights: np.ndarray | None) -> Extent:
    total = X.sum(dtype=np.float64)
    n_infinite, missing = 0, None
    if not math.isfinite(total):
        n_infinite = int(np.isinf(X).sum())
        missing = np.isnan(X)
    n, m = X.shape
    learned = used = np.ones(n, dtype=bool) if weights is None else weights > 0
    if missing is None or not missing.any():
        n_missing = n_too_few = 0
        values = X if used.all() else X[used]
        largest = float(max(-values.min(), values.max())) if len(values) else 0.0
        observed = np.full(m, len(values))
    else:
        n_missing = int(missing.sum())
        enough = m - missing.sum(axis=1) > too_few
        n_too_few, learned = n - int(enough.sum()), enough & used
        values = np.where(missing, 0, X)
        largest = float(np.abs(values if used.all() else values[used]).max(initial=0.0))
        values, observed = values[learned], (~missing[learned]).sum(axis=0)
    weight_sum = None
    if weights is not None:
        weights = weights[learned]
        weight_sum = float(weights.sum(dtype=np.float64))
        seen = np.ones((1, m)) if missing is None else ~missing[learned]
        observed = (seen * weights[:, None]).sum(axis=0, dtype=np.float64)
    scale = 1.0 if n_infinite else power_of_two_scale(largest, machine_epsilon(X))
    with np.errstate(invalid="ignore"):
        scaled = values if scale == 1.0 else values * scale
        scaled = scaled if weights is None else scaled * weights[:, None]
        sums = scaled.sum(axis=0, dtype=np.float64)
    return Extent(
        n, int(learned.sum()), n_missing, n_infinite, largest, observed, sums, scale, weight_sum,
        n_too_few,
    )  # fmt: skip
