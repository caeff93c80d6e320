"""Subspaces of a partition: one basis for each cluster, of its own dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.clustering.coordinates import Coordinates, scaled_samples

#: A subspace holds such a fraction of the energy of its cluster: the smallest of these with which
#: nearly as many samples lie nearest to their own subspace as with any of them.
ENERGIES = (0.9, 0.95, 0.99, 0.999)
NEARLY = 0.01
#: So many samples are asked for their nearest subspace.
MOST_ASKED = 5000


@dataclass(frozen=True)
class Subspaces:
    """One basis for each cluster."""

    bases: np.ndarray
    """(n_clusters, n_features, largest dimension), filled up with zero columns."""
    dims: np.ndarray
    agreement: float
    """Fraction of the samples, zeros left out, that lie nearest to the subspace of their own
    cluster."""


def beyond_chance(agreement: float, n_clusters: int) -> float:
    """Return an agreement from 0, what any labels would have, to 1."""
    if n_clusters == 1:
        return 1.0
    return max(0.0, (agreement * n_clusters - 1.0) / (n_clusters - 1.0))


def subspaces_of(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> Subspaces:
    """Fit subspaces that lie nearest to the samples of their own cluster.

    Samples with a large common part need more dimensions than the energy alone would ask for: the
    leading direction of all clusters is then the same.
    """
    clusters = [_Cluster.of(X[labels == c]) for c in range(n_clusters)]
    some = np.flatnonzero(X.any(axis=1))
    some = some[:: max(1, len(some) // MOST_ASKED)]
    rows = scaled_samples(X[some])
    found = []
    for energy in ENERGIES:
        bases, dims = _side_by_side(clusters, energy, X.shape[1])
        agreement = 1.0
        if n_clusters > 1 and len(some):
            nearest = np.argmax(energies_in(rows, bases), axis=1)
            agreement = float(np.mean(nearest == labels[some]))
        found.append(Subspaces(bases.astype(X.dtype, copy=False), dims, agreement))
        if agreement >= 1.0 - NEARLY:
            break
    best = max(one.agreement for one in found)
    return next(one for one in found if one.agreement >= best - NEARLY)


def energies_in(rows: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Return how much of every row each subspace holds: squared lengths of its projections."""
    coefficients = rows @ np.concatenate(list(bases), axis=1)
    return np.asarray((coefficients.reshape(len(rows), len(bases), -1) ** 2).sum(axis=2))


@dataclass(frozen=True)
class _Cluster:
    """The directions of the samples of one cluster; None where all of them are zero."""

    n: int
    coordinates: Coordinates | None

    @classmethod
    def of(cls, members: np.ndarray) -> _Cluster:
        some = bool(np.any(members))
        return cls(len(members), Coordinates.of(scaled_samples(members)) if some else None)

    def basis(self, energy: float, n_features: int) -> np.ndarray:
        if self.coordinates is None:  # nothing lies nearest to such a subspace
            return np.zeros((n_features, 0))
        dim = min(self.coordinates.rank_at(energy), max(1, self.n - 1))
        return self.coordinates.V[:, :dim]


def _side_by_side(
    clusters: list[_Cluster], energy: float, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    found = [cluster.basis(energy, n_features) for cluster in clusters]
    dims = np.array([basis.shape[1] for basis in found], dtype=np.int64)
    bases = np.zeros((len(found), n_features, max(1, int(dims.max()))))
    for c, basis in enumerate(found):
        bases[c, :, : basis.shape[1]] = basis
    return bases, dims
