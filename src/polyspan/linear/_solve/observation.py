"""What a row is: complete, or with entries missing.

For every chunk of its rows a block returns how well all subspaces of all starts fit them (`fits`).
Such a fit can compute the sums that an update needs. This file is about complete
rows, `masked` about rows with missing entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    chunk_rows,
    is_host,
    item_bytes,
    keep_freed_memory,
    moved_to,
    namespace,
    row_slices,
    rows_at_once,
    unfilled,
)
from polyspan.data.working import RowMap
from polyspan.linear._solve.sums import (
    member_mask,
    member_sums,
    totals_of,
    weighted,
    weighted_sums,
)


@dataclass(frozen=True)
class Observation:
    """How raw rows become a block to work on, in units that all blocks share."""

    dtype: Any
    mean: Array | None = None
    """In working units."""
    center_first: bool = False
    """Whether rows are centred before products, not after."""
    scale: float = 1.0
    holes: bool = False
    """Whether entries may be missing."""
    too_few: int = 0
    """With missing entries: rows with at most this many observed ones are left out."""
    prior: float = 0.0
    """ρ, the weight of filled-in entries."""
    row_map: RowMap | None = None

    def block(self, raw: Array, weights: np.ndarray | None = None) -> Any:
        """Return a block, or None where it has no rows to learn from.

        `weights` are those of the rows, (n_rows,); None: 1 for each. Rows of weight 0 are left
        out: they have no part in the working scale, and could overflow in it.
        """
        keep_freed_memory()
        X = np.asarray(raw, dtype=self.dtype)
        if weights is not None and not (weights > 0).all():
            X, weights = X[weights > 0], weights[weights > 0]
        if not len(X):
            return None
        if self.row_map is not None:
            X = self.row_map(X)
        if self.holes:
            from polyspan.linear._solve.masked import MaskedBlock

            mean = None if self.mean is None else self.mean / self.scale
            return MaskedBlock.of(X, mean, self.scale, self.prior, self.too_few, weights)
        if self.scale != 1.0:
            X = X * self.scale
        size = chunk_rows(X.shape[1], item_bytes(X))
        offset = None if self.center_first else self.mean
        return CompleteBlock(X, self.mean, size, offset, sample_weights=as_row(weights, X))

    def learned(self, raw: Array, weights: np.ndarray | None = None) -> np.ndarray:
        """Tell which rows have enough observed entries, and a weight, to be learned from."""
        observed: np.ndarray = (~np.isnan(np.asarray(raw, dtype=self.dtype))).sum(axis=1)
        enough = observed > self.too_few
        return enough if weights is None else enough & (weights > 0)


def as_row(weights: Array | None, like: Array) -> Array | None:
    """Return weights of samples as a row of the type of their rows, (1, n), or None."""
    return None if weights is None else moved_to(weights, like, like.dtype)[None, :]


def project(chunk: Array, matrix: Array, shift: Array | None) -> Array:
    """Return the products of rows with bases, D_lᵀ of all below each other, minus a shift."""
    if is_host(chunk) and item_bytes(chunk) == 4:
        # In single precision a CPU multiplies the other way round a sixth to a third faster,
        # which is more than turning the result costs.
        projections = unfilled((matrix.shape[0], chunk.shape[0]), chunk)
        projections[...] = (chunk @ matrix.mT).mT
    else:
        projections = matrix @ chunk.mT
    if shift is not None:
        projections -= shift[:, None]
    return projections


def energies(projections: Array) -> Array:
    """Return ‖D_lᵀy‖², (..., n_subspaces, n), of projections (..., n_subspaces, s, n).

    An accelerator waits for memory, and a norm reads the projections once, where the squares
    would be written and read again.
    """
    xp = namespace(projections)
    if is_host(projections):
        return xp.sum(projections * projections, axis=-2)
    norms = xp.linalg.vector_norm(projections, axis=-2)
    return norms * norms


@dataclass(frozen=True)
class CompleteBlock:
    """Samples as rows of X minus `mean`, visited chunk by chunk, without a copy of X.

    Subtracting the mean after a product with thin bases costs nothing, but where it outweighs the
    spread it costs digits: there (no `offset`) the chunks themselves are centred.
    """

    X: Array
    mean: Array | None
    size: int
    offset: Array | None = None
    """The mean where it is still to be subtracted from the rows of a chunk, else None."""
    norms: Array | None = None
    """Squared norms of the centred samples, where they are known."""
    sample_weights: Array | None = None
    """Weights of the samples, (1, n); None: 1 for each."""

    def fits(self, bases: Array, points: Array | None) -> Iterator[CompleteFit]:
        """Yield how all subspaces fit each chunk.

        Parameters
        ----------
        bases : array of shape (n_starts, n_subspaces, n_features, subspace_dim)
        points : array of shape (n_starts, n_subspaces, n_features) or None
        """
        xp, offset = namespace(bases), self.offset
        starts, n_subspaces, m, s = bases.shape
        # Rows, not columns, as projections have the samples along their last axis: products with a
        # long last axis are a fifth faster, and sums over a subspace run along it.
        matrix = xp.reshape(bases.mT, (starts * n_subspaces * s, m))
        shift = None if offset is None else matrix @ offset
        if points is not None:
            own = xp.reshape(points[..., None, :] @ bases, (starts * n_subspaces * s,))
            shift = own if shift is None else shift + own
            double = 2.0 * xp.reshape(points, (starts * n_subspaces, m))
            lift = xp.reshape(xp.sum(points * points, axis=2), (starts * n_subspaces,))
            lift = lift if offset is None else lift + double @ offset
        columns = starts * n_subspaces * (s + (points is not None))
        size = min(self.size, rows_at_once(self.X, columns))
        for which in row_slices(self.X.shape[0], size):
            chunk = self.X[which, :]
            if self.mean is not None and offset is None:
                chunk = chunk - self.mean
            projections = project(chunk, matrix, shift)
            coefficients = xp.reshape(projections, (starts, n_subspaces, s, chunk.shape[0]))
            gains = energies(coefficients)
            if points is not None:
                lifted = double @ chunk.mT - lift[:, None]
                gains = gains + xp.reshape(lifted, gains.shape)
            yield CompleteFit(self, which, chunk, coefficients, gains, points is not None)

    def squared_norms(self) -> Array:
        """Return ‖y‖² of every sample."""
        if self.norms is not None:
            return self.norms
        xp = namespace(self.X)
        slices = row_slices(self.X.shape[0], self.size)
        parts = [xp.sum(c * c, axis=1) for c in (self.centred(which) for which in slices)]
        return xp.concat(parts, axis=0)

    def centred(self, which: slice) -> Array:
        """Return some rows with the mean subtracted."""
        chunk = self.X[which, :]
        return chunk if self.mean is None else chunk - self.mean

    def take(self, rows: Array) -> Array:
        """Return some samples, centred."""
        chosen = namespace(self.X).take(self.X, rows, axis=0)
        return chosen if self.mean is None else chosen - self.mean

    def some(self, rows: Array) -> CompleteBlock:
        """Return the block of some samples."""
        X, own = self.take(rows), self.sample_weights
        own = None if own is None else namespace(X).take(own, rows, axis=1)
        return CompleteBlock(X, None, rows_at_once(X), sample_weights=own)

    def assigned_coefficients(self, bases: Array, labels: Array) -> Array:
        """Return D_lᵀy of every sample with the basis that it is assigned to."""
        xp, parts = namespace(bases), []
        for fit in self.fits(bases[None, ...], None):
            own = labels[fit.which][None, None, :]
            parts.append(xp.take_along_axis(fit.coefficients[0, ...], own, axis=0)[0, ...])
        return xp.concat(parts, axis=1).mT

    def completed(
        self, bases: Array, points: Array | None, labels: Array
    ) -> tuple[CompleteBlock, Array | None]:
        """Return the samples to update from, and their weights; None: 1 for each."""
        return self, None if self.sample_weights is None else self.sample_weights[0, :]


@dataclass(frozen=True)
class CompleteFit:
    """A chunk of complete rows against all subspaces of all starts."""

    block: CompleteBlock
    which: slice
    chunk: Array
    """The rows, from which `block.offset` is still to be subtracted."""
    coefficients: Array
    """D_lᵀ(y - c_l): (n_starts, n_subspaces, subspace_dim, n)."""
    gains: Array
    """‖y‖² minus the squared residual: (n_starts, n_subspaces, n).

    The energy for linear subspaces; for affine ones ‖D_lᵀ(y - c_l)‖² + 2c_lᵀy - ‖c_l‖².
    """
    affine: bool

    weights = None
    """No entries are missing, so that none stand for others."""

    @property
    def sample_weights(self) -> Array | None:
        """Weights of the rows, (1, n); None: 1 for each."""
        every = self.block.sample_weights
        return None if every is None else every[:, self.which]

    def norms(self) -> Array:
        """Return ‖y‖² of the rows."""
        known = self.block.norms
        if known is not None:
            return known[self.which]
        rows = self.block.centred(self.which)
        return namespace(rows).vecdot(rows, rows)

    def member_sums(self, labels: Array, weights: Array | None = None) -> dict[str, Array]:
        """Return what a power step needs of the members, with weights (n_starts or 1, n)."""
        coefficients, products = member_sums(self.chunk, self.coefficients, labels, weights)
        found = {"coefficients": coefficients, "products": products}
        if self.affine:
            members = member_mask(labels, self.coefficients.shape[1], self.chunk.dtype)
            found["totals"] = totals_of(self.chunk, weighted(members, weights, axis=1))
        return found

    def weighted_sums(self, weights: Array) -> dict[str, Array]:
        """Return the same with responsibilities, (n_starts, n_subspaces, n)."""
        coefficients, products = weighted_sums(self.chunk, self.coefficients, weights)
        found = {"coefficients": coefficients, "products": products}
        if self.affine:
            found["totals"] = totals_of(self.chunk, weights)
        return found
