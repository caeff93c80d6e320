"""Checked training data: an array in memory, or rows of a file or dask array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, float64_sum, namespace, to_numpy
from polyspan.base.checks import (
    check_columns_observed,
    check_extent,
    check_header,
    refuse_missing,
    validate_samples,
    warn_left_out,
)
from polyspan.data.missing import Holes
from polyspan.data.rows import Source
from polyspan.data.sliced import mapped_rows, row_source
from polyspan.data.weights import check_weights, keep_without_weight, source_weights
from polyspan.data.working import Extent, Working, measure_block
from polyspan.geometry.bases import Dims
from polyspan.linear._solve.problem import Problem, prepare, prepare_source
from polyspan.linear._solve.trimming import far_samples, nearest_to_mean
from polyspan.linear.linear_union import LinearUnion


@dataclass(frozen=True)
class Data:
    """Checked training data: an array in memory, or rows of a file or dask array."""

    X: Any
    """The array, or what the rows come from."""
    n_features: int
    n_learned: int
    """Samples with enough observed entries and a weight; a weight of 2 is no second direction."""
    learned: Array | None = None
    """Which samples of an array have enough observed entries and a weight; None: all."""
    holes: bool = False
    """Whether entries are missing."""
    too_few: int = 0
    """Samples with at most this many observed entries are not learned from."""
    source: Source | None = None
    extent: Extent | None = None
    weights: Any = None
    """Weights of all samples; None: 1 for each."""
    trim: float = 0.0
    """Fraction, by weight, of the samples learned from that takes no part in updates."""
    far: Array | None = None
    """Which samples are trimmed from the start, and not learned from; None: none. See `trimmed`."""

    def problem(
        self, lam: float | None, *, center: bool, affine: bool, start: Array | None,
        dims: Dims = None, prior: float = 0.0, masked: bool = False, counted: Array | None = None,
    ) -> tuple[Problem, Working]:  # fmt: skip
        """Return the problem in working coordinates; `masked` uses masks for complete data too.

        Without λ the problem has that of `lam="auto"`.
        `counted` holds weights for the mean of the samples that are learned from. Without them,
        if samples are trimmed, it is the mean of those nearest to it.
        """
        if self.source is not None:
            assert self.extent is not None
            problem, working = prepare_source(
                self.source, self.extent, 1.0 if lam is None else lam,
                dtype=self.source.working_type, center=center, affine=affine,
                holes=self.holes, too_few=self.too_few, prior=prior, weights=self.weights,
            )  # fmt: skip
            problem = problem.with_dims(dims)
            return problem.with_auto_lam() if lam is None else problem, working
        X, weights = self.learned_rows()
        if self.trim and center and counted is None:
            counted = nearest_to_mean(X, weights, self.trim)[0]
        problem, working = prepare(
            X, 1.0 if lam is None else lam, center=center, affine=affine, start=start,
            holes=self.holes or masked, prior=prior, weights=weights, counted=counted,
        )  # fmt: skip
        problem = problem.with_dims(dims).trimmed(self.trim)
        return problem.with_auto_lam() if lam is None else problem, working

    def learned_rows(self) -> tuple[Array, Array | None]:
        """Return the samples to learn from, and their weights."""
        if self.learned is None:
            return self.X, self.weights
        xp = namespace(self.X)
        rows = xp.nonzero(self.learned)[0]
        weights = None if self.weights is None else xp.take(self.weights, rows)
        return xp.take(self.X, rows, axis=0), weights

    def trimmed(self, trim: float, *, center: bool) -> Data:
        """Return the same samples, of which the fraction `trim` takes no part in updates.

        Those that can only be trimmed are left out here: beside them all others are rounded away.
        """
        if not trim:
            return self
        X, weights = self.learned_rows()
        far = far_samples(X, weights, trim, center=center)
        xp = namespace(X)
        if not bool(xp.any(far)):
            return replace(self, trim=trim)
        own = xp.ones_like(X[:, 0]) if weights is None else weights
        total, lost = float(float64_sum(own)), float(float64_sum(xp.where(far, own, 0.0)))
        left = 1.0 - (1.0 - trim) * total / (total - lost)
        if self.holes:
            near = xp.nonzero(~far)[0]
            check_columns_observed(Holes.of(X).take(near).missing, trim=trim)
        far = self.expand(far, False)
        learned = ~far if self.learned is None else self.learned & ~far
        # Below the rounding of the sums nothing is left to trim.
        left = left if left > 1e-12 else 0.0
        return replace(self, trim=left, far=far, learned=learned)

    def expand(self, values: Array, otherwise: Any) -> Array:
        """Return values of all samples, `otherwise` for those that were not learned from."""
        if self.learned is None:
            return values
        xp = namespace(values)
        position = xp.cumulative_sum(xp.astype(self.learned, xp.int64)) - 1
        return xp.where(self.learned, xp.take(values, xp.clip(position, 0, None)), otherwise)

    def weighted(self, sample_weight: Any) -> Data:
        """Return the same samples with weights; samples of weight 0 are not learned from."""
        weights = check_weights(sample_weight, self.X)
        if weights is None:
            return self
        xp = namespace(weights)
        used = weights > 0
        learned = used if self.learned is None else self.learned & used
        n = int(xp.sum(xp.astype(learned, xp.int64)))
        _check_any(n)
        holes = self.holes
        if holes:
            missing = Holes.of(self.X).take(xp.nonzero(learned)[0]).missing
            check_columns_observed(missing, weighted=True)
            holes = bool(xp.any(missing))
        return replace(
            self,
            n_learned=n,
            learned=None if n == self.X.shape[0] else learned,
            holes=holes,
            weights=weights,
        )


def _check_any(n_learned: int) -> None:
    """Raise an error where no sample with a weight can be learned from."""
    if not n_learned:
        raise ValueError(
            "sample_weight is 0 for every sample with enough observed entries: give weights "
            "above 0 to samples to learn from"
        )


def read(
    model: LinearUnion,
    X: Any,
    dim: int,
    sample_weight: Any = None,
    most_features: float = 0,
) -> Data:
    """Check training data.

    Parameters
    ----------
    model : LinearUnion
        Gets the number and the names of the features. An array in memory is copied for one that
        takes missing entries, so that a large mapped file is better read in slices.
    dim : int
        Dimension of a subspace: samples with no more observed entries are not learned from.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.
    most_features : float, default=0
        Of rows in blocks, by the solver: a mapped file with more is an array.
    """
    keep_without_weight(model, sample_weight)
    source = None
    if not isinstance(X, np.ndarray):
        source = row_source(X)
    elif isinstance(X, np.memmap) and (mapped := mapped_rows(X)) is not None:
        sliced = mapped.n_features <= most_features
        if sliced and (model._takes_missing or mapped.dtype not in (np.float32, np.float64)):
            source = mapped
    if source is not None:
        check_header(model, source)
        too_few = min(dim, source.n_features - 1)
        weights = None if sample_weight is None else source_weights(sample_weight, source)
        extent, _ = source.reduce(measure_block, source.working_type, too_few, None, weights)
        check_extent(model, source, extent, allow_nan=model._takes_missing)
        n, n_learned = extent.n_rows, extent.n_rows - extent.n_too_few
        if weights is not None:
            _check_any(extent.n_learned)
        if extent.n_missing:
            weighted = weights is not None
            check_columns_observed((extent.observed == 0)[None, :], too_few, weighted=weighted)
        data = Data(
            X, source.n_features, extent.n_learned,
            holes=extent.n_missing > 0, too_few=too_few, source=source, extent=extent,
            weights=weights,
        )  # fmt: skip
        left_out: Any = n - n_learned
    else:
        X = validate_samples(model, X, reset=True, method="fit", fitted="bases_")
        n, m = X.shape
        if not model._takes_missing:
            refuse_missing(model, X)
            return Data(X, m, n).weighted(sample_weight)
        xp, holes = namespace(X), Holes.of(X)
        check_columns_observed(holes.missing)
        too_few = min(dim, m - 1)
        learned = holes.n_observed > too_few
        n_learned = int(xp.sum(xp.astype(learned, xp.int64)))
        if 0 < n_learned < n:
            check_columns_observed(holes.take(xp.nonzero(learned)[0]).missing, too_few)
        data = Data(
            X, m, n_learned, None if n_learned == n else learned, bool(xp.any(holes.missing))
        ).weighted(sample_weight)
        left_out = np.flatnonzero(~to_numpy(learned))
    if n_learned < n:
        warn_left_out(left_out, n, too_few)
    return data
