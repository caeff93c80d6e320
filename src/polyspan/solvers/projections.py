"""Projections of rows on many bases at once, and their energies."""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, identity, is_host, namespace, transpose


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
    anchors: Array | None = None
    """2c_l of affine subspaces, (n_features, n_starts * n_subspaces), or None."""
    lift: Array | None = None
    """‖c_l‖² plus 2c_l times the offset of the rows."""

    @classmethod
    def of(cls, bases: Array, offset: Array | None = None, anchors: Array | None = None) -> Stacked:
        """Stack bases for rows from which `offset` is still to be subtracted.

        `anchors`, of shape (n_starts, n_subspaces, n_features), are points c_l of affine
        subspaces: projections are then D_lᵀ(y - c_l).
        """
        xp = namespace(bases)
        starts, n_subspaces, m, s = bases.shape
        matrix = xp.reshape(xp.permute_dims(bases, (2, 0, 1, 3)), (m, starts * n_subspaces * s))
        shift = None if offset is None else offset @ matrix
        shape = (starts, n_subspaces, m, s)
        if anchors is None:
            return cls(matrix, shift, shape)
        own = xp.reshape(anchors[..., None, :] @ bases, (starts * n_subspaces * s,))
        points = 2.0 * transpose(xp.reshape(anchors, (starts * n_subspaces, m)))
        lift = xp.reshape(xp.sum(anchors * anchors, axis=2), (starts * n_subspaces,))
        if offset is not None:
            shift, lift = shift + own, lift + offset @ points
        return cls(matrix, own if offset is None else shift, shape, points, lift)


def project(chunk: Array, stacked: Stacked) -> Array:
    """Return D_lᵀy of every row with every basis, (n, n_starts, n_subspaces, subspace_dim)."""
    starts, n_subspaces, _, s = stacked.shape
    projections = chunk @ stacked.matrix
    if stacked.shift is not None:
        projections -= stacked.shift
    return namespace(chunk).reshape(projections, (chunk.shape[0], starts, n_subspaces, s))


def energies(projections: Array) -> Array:
    """Return ‖D_lᵀy‖², (n, n_starts, n_subspaces).

    On a CPU sums of `subspace_dim` neighbours as a product with a block indicator: a reduction
    over so short an axis costs several times as much. An accelerator waits for memory, and a norm
    reads the projections once, where the squares would be written and read again.
    """
    xp = namespace(projections)
    n, starts, n_subspaces, s = projections.shape
    if not is_host(projections):
        norms = xp.linalg.vector_norm(projections, axis=-1)
        return norms * norms
    blocks = identity(n_subspaces, projections)
    blocks = xp.reshape(
        xp.broadcast_to(blocks[:, None, :], (n_subspaces, s, n_subspaces)), (-1, n_subspaces)
    )
    squares = xp.reshape(projections * projections, (n * starts, n_subspaces * s))
    return xp.reshape(squares @ blocks, (n, starts, n_subspaces))


def gains(chunk: Array, projections: Array, stacked: Stacked) -> Array:
    """Return ‖y‖² minus the squared residual to every subspace, (n, n_starts, n_subspaces).

    The energy for linear subspaces; for affine ones ‖D_lᵀ(y - c_l)‖² + 2c_lᵀy - ‖c_l‖².
    """
    energy = energies(projections)
    if stacked.anchors is None:
        return energy
    lifted = chunk @ stacked.anchors - stacked.lift
    return energy + namespace(chunk).reshape(lifted, energy.shape)
