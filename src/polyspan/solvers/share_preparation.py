"""From blocks of rows to a problem: two passes, one to measure and one for the squared norms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from polyspan.arrays import Array, chunk_rows, machine_epsilon, power_of_two_scale
from polyspan.solvers.preparation import HEAVY_MEAN, Prepared, working_weight
from polyspan.solvers.shares import Blocks, PartedRows, Recipe, RowMap, SharedProblem

#: What is said of sparse blocks, which NumPy would take for single objects.
DENSE_ONLY = (
    "the chunks of X are sparse matrices, which are not worked on: make them dense, with "
    "X.map_blocks(lambda block: block.toarray())"
)


@dataclass(frozen=True)
class Extent:
    """What a first pass finds out about the rows."""

    n_rows: int
    n_learned: int
    """Rows with more observed entries than asked for."""
    n_missing: int
    n_infinite: int
    largest: float
    """Of the absolute values."""
    observed: Array
    """Observed entries of every feature, over the rows to learn from."""
    sums: Array
    """Their sums, in double precision, times `scale`."""
    scale: float
    """A power of two that keeps the sums finite."""

    def __add__(self, other: Extent) -> Extent:
        # Powers of two: no digit is lost in bringing both sums to the smaller scale.
        scale = min(self.scale, other.scale)
        return Extent(
            self.n_rows + other.n_rows,
            self.n_learned + other.n_learned,
            self.n_missing + other.n_missing,
            self.n_infinite + other.n_infinite,
            max(self.largest, other.largest),
            self.observed + other.observed,
            self.sums * (scale / self.scale) + other.sums * (scale / other.scale),
            scale,
        )


def measure_block(block: Array, dtype: Any, least: int, row_map: RowMap | None) -> Extent | None:
    """Measure a block, a few rows at a time."""
    if scipy.sparse.issparse(block):
        raise ValueError(DENSE_ONLY)
    X = np.asarray(block, dtype=dtype)
    if not len(X):
        return None
    if row_map is not None:
        X = row_map(X)
    size = chunk_rows(X.shape[1], X.itemsize)
    parts = [_measure(X[k : k + size], least) for k in range(0, len(X), size)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _measure(X: np.ndarray, least: int) -> Extent:
    total = X.sum(dtype=np.float64)
    n_infinite, missing = 0, None
    if not math.isfinite(total):
        n_infinite = int(np.isinf(X).sum())
        missing = np.isnan(X)
    n, m = X.shape
    if missing is None or not missing.any():
        largest = float(max(-X.min(), X.max()))
        n_missing, learned = 0, np.ones(n, dtype=bool)
        values, observed = X, np.full(m, n)
    else:
        n_missing = int(missing.sum())
        learned = m - missing.sum(axis=1) > least
        values = np.where(missing, 0, X)
        largest = float(np.abs(values).max())
        values, observed = values[learned], (~missing[learned]).sum(axis=0)
    scale = 1.0 if n_infinite else power_of_two_scale(largest, machine_epsilon(X))
    with np.errstate(invalid="ignore"):
        scaled = values if scale == 1.0 else values * scale
        sums = scaled.sum(axis=0, dtype=np.float64)
    return Extent(n, int(learned.sum()), n_missing, n_infinite, largest, observed, sums, scale)


def sum_of_norms(block: Array, recipe: Recipe) -> float | None:
    """Return the sum of the squared norms of the samples of a block."""
    problem = recipe.problem(block, with_norms=True)
    return None if problem is None else problem.total


def prepare_shares(
    blocks: Blocks,
    extent: Extent,
    lam: float,
    *,
    dtype: Any,
    center: bool,
    holes: bool = False,
    least: int = 0,
    prior: float = 0.0,
    row_map: RowMap | None = None,
) -> Prepared:
    """Return the problem of all blocks.

    Unlike `prepare` there is no reduction to the span of few samples: it would gather them.
    """
    working = np.empty((0, len(extent.sums)), dtype=dtype)
    scale = power_of_two_scale(extent.largest, machine_epsilon(working))
    mean = None
    if center:
        mean = extent.sums * (scale / extent.scale) / np.maximum(extent.observed, 1)
        mean = mean.astype(working.dtype)
    recipe = Recipe(
        working_weight(lam, scale), dtype, mean,
        scale=scale, holes=holes, least=least, prior=prior, row_map=row_map,
    )  # fmt: skip
    total = float(blocks.total(sum_of_norms, recipe))
    if mean is not None and not holes:
        heavy = float(np.sum(mean * mean)) > HEAVY_MEAN * total / extent.n_learned
        recipe = replace(recipe, explicit=heavy)
    rows = PartedRows(
        working, mean, chunk_rows(working.shape[1], working.itemsize), n_rows=extent.n_learned
    )
    problem = SharedProblem(
        rows, np.empty(0, dtype=dtype), total, recipe.lam, blocks=blocks, recipe=recipe
    )
    found = np.zeros(working.shape[1], dtype=dtype) if mean is None else mean / scale
    return Prepared(problem, found.astype(dtype, copy=False), scale)
