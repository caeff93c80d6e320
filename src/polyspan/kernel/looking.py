"""Coordinates of samples in the subspaces of a kernel model, a method of `KernelUnion`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyspan.arrays import Array, members_of, namespace, restore_order, zeros
from polyspan.data.prediction import by_blocks
from polyspan.kernel._solve.subspaces import energies

if TYPE_CHECKING:
    from polyspan.kernel.prediction import KernelUnion


@by_blocks
def coordinates(self: KernelUnion, X: Any) -> Array:
    """Return the coefficients of every sample in the basis of its own (nearest) subspace.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples; for `kernel="precomputed"` the kernel values with the training samples.

    Returns
    -------
    ndarray of shape (n_samples, subspace_dim)
        Coordinates D_τᵀφ̃(x), with τ the nearest subspace, D_τ its orthonormal basis in the
        feature space and φ̃ the centred feature map. Where dimensions differ, `subspace_dim` is
        the largest, and columns beyond the dimension of a subspace are 0.
    """
    X = self._validate(X, reset=False, method="coordinates")
    xp, parts = namespace(X), []
    for _, chunk in self._union.chunks(X):
        projections = self._union.projections(chunk)
        most = max(found.shape[1] for found in projections)
        members = members_of(xp.argmax(energies(projections), axis=1), len(projections))
        own = []
        for found, rows in zip(projections, members, strict=True):
            padding = zeros((rows.shape[0], most - found.shape[1]), found)
            own.append(xp.concat([xp.take(found, rows, axis=0), padding], axis=1))
        parts.append(restore_order(members, own))
    return xp.concat(parts, axis=0)
