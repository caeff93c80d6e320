"""Singular value decompositions of the samples: of all, which graphs are made of, and of clusters.

A cluster has a subspace of its own dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from polyspan.base.arrays import (
    Array,
    is_numpy,
    machine_epsilon,
    moved_to,
    namespace,
    power_of_two_scale,
    sum_of_squares,
    to_numpy,
    top_eigenvectors,
)
from polyspan.base.private_sklearn import plain_settings

#: Beyond this many samples only so many leading coordinates are kept.
LARGE = 5000
MOST_RANK = 300
#: Up to this side a Gram matrix is formed; beyond it the decomposition is randomised.
GRAM_SIDE = 3000
POWER_STEPS = 4
#: A subspace holds such a fraction of the energy of its cluster: the smallest of these with which
#: nearly as many samples lie nearest to their own subspace as with any of them.
ENERGIES = (0.9, 0.95, 0.99, 0.999)
NEARLY = 0.01
#: So many samples are asked for their nearest subspace.
MOST_ASKED = 5000
# Singular values below this fraction of the largest are rounding: their squares are computed.
LEAST = 1e-7


@dataclass(frozen=True)
class Coordinates:
    """A thin singular value decomposition of the samples, not centred: X = U S Vᵀ.

    In double precision. Of more than 5000 samples only the 300 leading coordinates are kept.
    """

    U: np.ndarray
    S: np.ndarray
    V: np.ndarray
    source: Array
    """U in the namespace and on the device of the samples, where products are made."""
    energy: float
    """Sum of all squared singular values, also of those that are not kept."""
    seed: int = 0
    """For searches among the coordinates."""

    @classmethod
    def of(cls, X: Array, seed: int = 0, like: Array | None = None) -> Coordinates:
        """Decompose the samples by the smaller of both Gram matrices, or at random.

        Products are made where `like` is.
        """
        like = X if like is None else like
        X = moved_to(X, like, namespace(like).float64)
        n, m = (int(size) for size in X.shape)
        most = min(n, m) if n <= LARGE else min(n, m, MOST_RANK)
        if min(n, m) > GRAM_SIDE:
            return cls._randomised(X, min(n, m, MOST_RANK), seed)
        xp = namespace(X)
        gram = X.mT @ X if n > m else X @ X.mT
        energy = float(xp.sum(xp.linalg.diagonal(gram)))
        values, vectors = top_eigenvectors(gram, most)
        S = xp.sqrt(xp.clip(values, 0.0, None))
        rank = int(xp.sum(xp.astype(LEAST * S[0] < S, xp.int64)))
        S, vectors = S[:rank], vectors[:, :rank]
        if n <= m:
            U, V = vectors, X.mT @ (vectors / S)
        else:
            U, V = X @ (vectors / S), vectors
        return cls(to_numpy(U), to_numpy(S), to_numpy(V), U, energy, seed)

    @classmethod
    def _randomised(cls, X: Array, rank: int, seed: int) -> Coordinates:
        """Decompose by random projections and power steps: no Gram matrix is formed."""
        with plain_settings(X):
            U, S, Vt = randomized_svd(X, rank, n_iter=POWER_STEPS, random_state=seed)
        S = to_numpy(S)
        keep = int((LEAST * S[0] < S).sum())
        U, V = U[:, :keep], to_numpy(Vt.T)[:, :keep]
        return cls(to_numpy(U), S[:keep], V, U, sum_of_squares(X), seed)

    @property
    def rank(self) -> int:
        """Number of singular values that are kept and are not rounding."""
        return len(self.S)

    def rank_at(self, energy: float) -> int:
        """Return how many singular values hold this fraction of the energy; all kept, if none."""
        part = np.cumsum(self.S**2) / (self.energy or 1.0)
        return min(int(np.searchsorted(part, energy)) + 1, self.rank)

    def scaled(self, rank: int, power: float = 1.0) -> Array:
        """Return leading columns of U times a power of their singular values, as `source`."""
        weights = self.S[:rank] ** power
        return self.source[:, :rank] * moved_to(weights, self.source, self.source.dtype)


def in_range(X: np.ndarray) -> np.ndarray:
    """Return samples as they are, or in float64 and scaled where squares would leave the range."""
    scale = power_of_two_scale(float(np.abs(X).max(initial=0.0)), machine_epsilon(X))
    return X if scale == 1.0 else X.astype(np.float64) * scale


def scaled_samples(X: np.ndarray) -> np.ndarray:
    """Return samples in float64, scaled where squares would leave its range."""
    return in_range(np.asarray(X, dtype=np.float64))


def move_attributes(model: Any, like: Array) -> None:
    """Move the arrays that a model has learned to the namespace and device of its samples."""
    if is_numpy(like):
        return
    for name, value in list(vars(model).items()):
        if (name.endswith("_") or name == "_axes") and is_numpy(value):
            setattr(model, name, moved_to(value, like))


def subspaces_of(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, float]:
    """Fit subspaces that lie nearest to the samples of their own cluster.

    Samples with a large common part need more dimensions than the energy alone would ask for: the
    leading direction of all clusters is then the same.

    Returns
    -------
    bases : array of shape (n_clusters, n_features, largest dimension)
        Filled up with zero columns.
    agreement : float
        Fraction of the samples, zeros left out, that lie nearest to the subspace of their cluster.
    """
    every = [X[labels == c] for c in range(n_clusters)]
    clusters = [Coordinates.of(scaled_samples(own)) if own.any() else None for own in every]
    some = np.flatnonzero(X.any(axis=1))
    some = some[:: max(1, len(some) // MOST_ASKED)]
    rows = scaled_samples(X[some])
    found = []
    for energy in ENERGIES:
        bases = _bases_at(clusters, energy, X.shape[1])
        agreement = 1.0
        if n_clusters > 1 and len(some):
            nearest = np.argmax(energies_in(rows, bases), axis=1)
            agreement = float(np.mean(nearest == labels[some]))
        found.append((bases.astype(X.dtype, copy=False), agreement))
        if agreement >= 1.0 - NEARLY:
            break
    best = max(agreement for _, agreement in found)
    return next(one for one in found if one[1] >= best - NEARLY)


def energies_in(rows: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """Return how much of every row each subspace holds: squared lengths of its projections."""
    coefficients = rows @ np.concatenate(list(bases), axis=1)
    return np.asarray((coefficients.reshape(len(rows), len(bases), -1) ** 2).sum(axis=2))


def _bases_at(clusters: Sequence[Coordinates | None], energy: float, n_features: int) -> np.ndarray:
    """Return the directions of every cluster that hold a part of its energy.

    None is a cluster of zeros: nothing lies nearest to its subspace.
    """
    dims = [
        0 if own is None else min(own.rank_at(energy), max(1, len(own.U) - 1)) for own in clusters
    ]
    bases = np.zeros((len(clusters), n_features, max(1, *dims)))
    for basis, own, dim in zip(bases, clusters, dims, strict=True):
        if own is not None:
            basis[:, :dim] = own.V[:, :dim]
    return bases


def beyond_chance(agreement: float, n_clusters: int) -> float:
    """Return an agreement from 0, what any labels would have, to 1."""
    if n_clusters == 1:
        return 1.0
    return max(0.0, (agreement * n_clusters - 1.0) / (n_clusters - 1.0))
