"""Projections of rows on many bases at once, and their energies."""

from __future__ import annotations

from polyspan.arrays import Array, namespace


def project(chunk: Array, bases: Array, offset: Array | None) -> Array:
    """Return D_lᵀy of every row with every basis, (n, n_starts, n_subspaces, subspace_dim).

    One product with all bases side by side.
    """
    xp = namespace(chunk, bases)
    starts, n_subspaces, m, s = bases.shape
    stacked = xp.reshape(xp.permute_dims(bases, (2, 0, 1, 3)), (m, -1))
    projections = chunk @ stacked
    if offset is not None:
        projections = projections - offset @ stacked
    return xp.reshape(projections, (chunk.shape[0], starts, n_subspaces, s))


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
