"""Projections of rows on many bases at once, and their energies."""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, namespace


@dataclass(frozen=True)
class Stacked:
    """Bases of all starts side by side, ready for one product with a chunk of rows.

    Small next to the data, it is all that a worker needs to know about the model.
    """

    matrix: Array
    """Shape (n_features, n_starts * n_subspaces * subspace_dim)."""
    shift: Array | None
    """Projections of the offset of the rows, or None where they have none."""
    shape: tuple[int, int, int, int]
    """(n_starts, n_subspaces, n_features, subspace_dim)."""

    @classmethod
    def of(cls, bases: Array, offset: Array | None = None) -> Stacked:
        """Stack bases for rows from which `offset` is still to be subtracted."""
        xp = namespace(bases)
        matrix = xp.reshape(xp.permute_dims(bases, (2, 0, 1, 3)), (bases.shape[2], -1))
        return cls(matrix, None if offset is None else offset @ matrix, tuple(bases.shape))


def project(chunk: Array, stacked: Stacked) -> Array:
    """Return D_lᵀy of every row with every basis, (n, n_starts, n_subspaces, subspace_dim)."""
    starts, n_subspaces, _, s = stacked.shape
    projections = chunk @ stacked.matrix
    if stacked.shift is not None:
        projections -= stacked.shift
    return namespace(chunk).reshape(projections, (chunk.shape[0], starts, n_subspaces, s))


def energies(projections: Array) -> Array:
    """Return ‖D_lᵀy‖², (n, n_starts, n_subspaces).

    Sums of `subspace_dim` neighbours as a product with a block indicator: a reduction over so
    short an axis costs several times as much.
    """
    xp = namespace(projections)
    n, starts, n_subspaces, s = projections.shape
    blocks = xp.eye(n_subspaces, dtype=projections.dtype)
    blocks = xp.reshape(
        xp.broadcast_to(blocks[:, None, :], (n_subspaces, s, n_subspaces)), (-1, n_subspaces)
    )
    squares = xp.reshape(projections * projections, (n * starts, n_subspaces * s))
    return xp.reshape(squares @ blocks, (n, starts, n_subspaces))
