"""Projections of rows on many bases at once, and their energies."""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, is_host, item_bytes, namespace, transpose, unfilled


@dataclass(frozen=True)
class Stacked:
    """Bases of all starts side by side, ready for one product with a chunk of rows.

    Small next to the data, it is all that a worker needs to know about the model.
    """

    matrix: Array
    """D_lᵀ of all starts below each other, (n_starts * n_subspaces * subspace_dim, n_features).

    Rows, not columns, as projections have the samples along their last axis: products with a
    long last axis are a fifth faster, and sums over a subspace run along it.
    """
    shift: Array | None
    """Projections of the offset of the rows, or None where they have none."""
    shape: tuple[int, int, int, int]
    """(n_starts, n_subspaces, n_features, subspace_dim)."""
    anchors: Array | None = None
    """2c_l of affine subspaces, (n_starts * n_subspaces, n_features), or None."""
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
        matrix = xp.reshape(transpose(bases), (starts * n_subspaces * s, m))
        shift = None if offset is None else matrix @ offset
        shape = (starts, n_subspaces, m, s)
        if anchors is None:
            return cls(matrix, shift, shape)
        own = xp.reshape(anchors[..., None, :] @ bases, (starts * n_subspaces * s,))
        points = 2.0 * xp.reshape(anchors, (starts * n_subspaces, m))
        lift = xp.reshape(xp.sum(anchors * anchors, axis=2), (starts * n_subspaces,))
        if offset is not None:
            shift, lift = shift + own, lift + points @ offset
        return cls(matrix, own if offset is None else shift, shape, points, lift)


def project(chunk: Array, stacked: Stacked) -> Array:
    """Return D_lᵀy of every row with every basis, (n_starts, n_subspaces, subspace_dim, n)."""
    starts, n_subspaces, _, s = stacked.shape
    if is_host(chunk) and item_bytes(chunk) == 4:
        # In single precision a CPU multiplies the other way round a sixth to a third faster,
        # which is more than turning the result costs.
        projections = unfilled((stacked.matrix.shape[0], chunk.shape[0]), chunk)
        projections[...] = transpose(chunk @ transpose(stacked.matrix))
    else:
        projections = stacked.matrix @ transpose(chunk)
    if stacked.shift is not None:
        projections -= stacked.shift[:, None]
    return namespace(chunk).reshape(projections, (starts, n_subspaces, s, chunk.shape[0]))


def energies(projections: Array) -> Array:
    """Return ‖D_lᵀy‖², (n_starts, n_subspaces, n).

    An accelerator waits for memory, and a norm reads the projections once, where the squares
    would be written and read again.
    """
    xp = namespace(projections)
    if is_host(projections):
        return xp.sum(projections * projections, axis=2)
    norms = xp.linalg.vector_norm(projections, axis=2)
    return norms * norms


def gains(chunk: Array, projections: Array, stacked: Stacked) -> Array:
    """Return ‖y‖² minus the squared residual to every subspace, (n_starts, n_subspaces, n).

    The energy for linear subspaces; for affine ones ‖D_lᵀ(y - c_l)‖² + 2c_lᵀy - ‖c_l‖².
    """
    energy = energies(projections)
    if stacked.anchors is None or stacked.lift is None:
        return energy
    lifted = stacked.anchors @ transpose(chunk) - stacked.lift[:, None]
    return energy + namespace(chunk).reshape(lifted, energy.shape)
