"""Subspaces of a partition: one basis for each cluster, of its own dimension."""

from __future__ import annotations

import numpy as np

from polyspan.clustering.coordinates import Coordinates, scaled_samples

#: A subspace holds this fraction of the energy of its cluster.
ENERGY = 0.9


def bases_of(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bases side by side, filled up with zero columns, and their dimensions."""
    found = [_leading(X[labels == c]) for c in range(n_clusters)]
    dims = np.array([basis.shape[1] for basis in found], dtype=np.int64)
    bases = np.zeros((n_clusters, X.shape[1], int(dims.max())), dtype=X.dtype)
    for basis, c in zip(found, range(n_clusters), strict=True):
        bases[c, :, : basis.shape[1]] = basis
    return bases, dims


def _leading(members: np.ndarray) -> np.ndarray:
    """Return the leading directions of the members of a cluster; one if all of them are zero."""
    if not len(members) or not np.any(members):
        return np.eye(members.shape[1], 1, dtype=members.dtype)
    found = Coordinates.of(scaled_samples(members))
    dim = min(found.rank_at(ENERGY), max(1, len(members) - 1))
    return np.ascontiguousarray(found.V[:, :dim].astype(members.dtype))
