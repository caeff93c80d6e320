"""Checked training data: an array in memory, or rows of a file or dask array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.arrays import Array, namespace, to_numpy
from polyspan.checks import (
    check_columns_observed,
    check_extent,
    check_header,
    refuse_missing,
    validate_samples,
    warn_left_out,
)
from polyspan.data.measure import Extent, measure_block
from polyspan.data.missing import Holes
from polyspan.data.rows import Source
from polyspan.data.sliced import mapped_rows, row_source
from polyspan.data.working import Working
from polyspan.union._solve.alternation import Needs
from polyspan.union._solve.problem import Problem, prepare, prepare_source
from polyspan.union.linear import LinearUnion


@dataclass(frozen=True)
class Data:
    """Checked training data: an array in memory, or rows of a file or dask array."""

    X: Any
    """The array, or what the rows come from."""
    n_features: int
    n_learned: int
    """Samples with enough observed entries."""
    learned: Array | None = None
    """Which samples of an array have enough observed entries; None: all."""
    holes: bool = False
    """Whether entries are missing."""
    too_few: int = 0
    """Samples with at most this many observed entries are not learned from."""
    source: Source | None = None
    extent: Extent | None = None

    def problem(
        self, lam: float, *, center: bool, affine: bool, start: Array | None, prior: float = 0.0,
        masked: bool = False,
    ) -> tuple[Problem, Working]:  # fmt: skip
        """Return the problem in working coordinates; `masked` uses masks for complete data too."""
        if self.source is not None:
            assert self.extent is not None
            return prepare_source(
                self.source, self.extent, lam, dtype=self.source.working_type, center=center,
                affine=affine, holes=self.holes, too_few=self.too_few, prior=prior,
            )  # fmt: skip
        X = self.X
        if self.learned is not None:
            xp = namespace(X)
            X = xp.take(X, xp.nonzero(self.learned)[0], axis=0)
        return prepare(
            X, lam, center=center, affine=affine, start=start, holes=self.holes or masked,
            prior=prior,
        )  # fmt: skip

    def expand_labels(self, labels: Array) -> Array:
        """Return labels of all samples, -1 for those that were not learned from."""
        xp = namespace(labels)
        position = xp.cumulative_sum(xp.astype(self.learned, xp.int64)) - 1
        return xp.where(self.learned, xp.take(labels, xp.clip(position, 0, None)), -1)


def read(model: LinearUnion, X: Any, dim: int, needs: Needs, *, copied: bool) -> Data:
    """Check training data.

    Parameters
    ----------
    model : LinearUnion
        Gets the number and the names of the features.
    dim : int
        Dimension of a subspace: samples with no more observed entries are not learned from.
    needs : Needs
        Of the solver: a mapped file is an array for one that does not work on slices.
    copied : bool
        Whether an array in memory would be copied anyway, so that a large mapped file is better
        read in slices.
    """
    source = None
    if not isinstance(X, np.ndarray):
        source = row_source(X)
    elif isinstance(X, np.memmap) and (mapped := mapped_rows(X)) is not None:
        sliced = not needs.all_samples and mapped.n_features <= needs.max_features_out_of_core
        if sliced and (copied or mapped.dtype not in (np.float32, np.float64)):
            source = mapped
    if source is not None:
        check_header(model, source)
        too_few = min(dim, source.n_features - 1)
        extent, _ = source.reduce(measure_block, source.working_type, too_few, None)
        check_extent(model, source, extent, allow_nan=model._takes_missing)
        n, n_learned = extent.n_rows, extent.n_learned
        if extent.n_missing:
            check_columns_observed((extent.observed == 0)[None, :], too_few)
        data = Data(
            X, source.n_features, n_learned, holes=extent.n_missing > 0, too_few=too_few,
            source=source, extent=extent,
        )  # fmt: skip
        left_out: Any = n - n_learned
    else:
        X = validate_samples(model, X, reset=True, method="fit", fitted="bases_")
        n, m = X.shape
        if not model._takes_missing:
            refuse_missing(model, X)
            return Data(X, m, n)
        xp, holes = namespace(X), Holes.of(X)
        check_columns_observed(holes.missing)
        too_few = min(dim, m - 1)
        learned = holes.n_observed > too_few
        n_learned = int(xp.sum(xp.astype(learned, xp.int64)))
        if 0 < n_learned < n:
            check_columns_observed(holes.take(xp.nonzero(learned)[0]).missing, too_few)
        data = Data(
            X, m, n_learned, None if n_learned == n else learned, bool(xp.any(holes.missing))
        )
        left_out = np.flatnonzero(~to_numpy(learned))
    if n_learned < n:
        warn_left_out(left_out, n, too_few)
    return data
