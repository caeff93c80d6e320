"""Fitted unions of subspaces of a feature space: what prediction and pre-images need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan.arrays import CHUNK_MAX_BYTES
from polyspan.kernels import Kernel, estimate_kernel
from polyspan.kernels.low_rank import NystromMap
from polyspan.kernels.preimages import Expansion
from polyspan.models.messages import warn_user
from polyspan.solvers.kernel_subspaces import KernelSubspaces


@dataclass(frozen=True)
class Position:
    """Where samples are in the feature space, seen from the subspaces."""

    energies: np.ndarray
    """‖D_lᵀφ̃(z)‖²: (n, n_subspaces)."""
    norms: np.ndarray
    """κ̃(z, z): (n,)."""

    def distances(self) -> np.ndarray:
        """Return ‖φ̃(z) - P_lφ̃(z)‖, not squared."""
        return np.asarray(np.sqrt(np.maximum(self.norms[:, None] - self.energies, 0.0)))


@dataclass(frozen=True)
class ExactUnion:
    """Subspaces spanned by training samples: Algorithm 5."""

    kernel: Kernel | None
    """None where kernel values are given."""
    X: np.ndarray
    """Training samples, or the diagonal of the given kernel matrix."""
    centerer: KernelCenterer
    subspaces: KernelSubspaces
    incomplete: bool = False
    """Whether values are estimated from the entries that two samples share."""
    gram: np.ndarray | None = None
    """The kernel matrix that was learned from, where it cannot be computed again."""
    signs: np.ndarray | None = None
    """What values of new samples are multiplied by where the matrix was mended."""
    fill: float | None = None
    """Estimate for pairs of samples without a common entry."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return len(self.subspaces.members)

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return len(self.X)

    def positions(self, X: np.ndarray) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk."""
        for which, K in self._values(X):
            norms = self._diagonal(X[which]) - 2.0 * K.mean(axis=1) + self.centerer.K_fit_all_
            yield which, Position(self.subspaces.energies(self.centerer.transform(K)), norms)

    def nearest(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Return the nearest subspace of samples, chunk by chunk; κ(z, z) is not needed."""
        for which, K in self._values(X):
            energies = self.subspaces.energies(self.centerer.transform(K))
            yield which, energies.argmax(axis=1)

    def expansions(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""
        G = self.training_values()
        for which, K in self._values(X):
            centred = self.centerer.transform(K)
            projections = self.subspaces.projections(centred)
            energies = np.stack([np.einsum("nk,nk->n", p, p) for p in projections], axis=1)
            labels = energies.argmax(axis=1)
            for p, (c, E) in enumerate(
                zip(self.subspaces.members, self.subspaces.coefs, strict=True)
            ):
                own = np.flatnonzero(labels == p)
                if not len(own):
                    continue
                # ζ on the members; what centring took away is spread over all samples.
                zeta = projections[p][own] @ E.T
                weights = np.repeat(
                    (1.0 - zeta.sum(axis=1, keepdims=True)) / len(G), len(G), axis=1
                )
                weights[:, c] += zeta
                yield own + which.start, Expansion.of(weights, G)

    def training_values(self) -> np.ndarray:
        """Return the kernel matrix of the training samples, not centred."""
        if self.gram is not None:
            return self.gram
        assert self.kernel is not None
        return self.kernel(self.X)

    def _values(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        size = max(1, CHUNK_MAX_BYTES // (4 * self.n_samples * X.itemsize))
        for start in range(0, len(X), size):
            which = slice(start, min(len(X), start + size))
            if self.kernel is None:
                yield which, X[which]
            elif self.incomplete:
                yield which, self._estimated(X[which])
            else:
                yield which, self.kernel(X[which], self.X)

    def _estimated(self, X: np.ndarray) -> np.ndarray:
        """Estimate values of samples with holes, and treat them as the training samples' were."""
        assert self.kernel is not None
        found = estimate_kernel(self.kernel, X, self.X, fill=self.fill)
        if found.n_unrelated:
            warn_user(
                f"{found.n_unrelated} of {found.values.size} pairs of new and training samples "
                "have no common observed entry: their kernel values are a mean"
            )
        return found.values if self.signs is None else np.asarray(found.values @ self.signs)

    def _diagonal(self, X: np.ndarray) -> np.ndarray:
        if self.kernel is None:
            if np.ptp(self.X) > 1e-12 * np.abs(self.X).max():
                raise ValueError(
                    "kernel='precomputed' does not hold κ(z, z) of new samples, which distances "
                    "need where it differs from sample to sample: pass the samples and a kernel"
                )
            return np.full(len(X), self.X[0])
        if not self.incomplete:
            return self.kernel.diagonal(X)
        if self.kernel.name == "rbf":
            return np.ones(len(X), dtype=X.dtype)
        observed = np.maximum((~np.isnan(X)).sum(axis=1), 1)
        squares = np.nansum(X * X, axis=1) * X.shape[1] / observed
        return self.kernel.of_products(squares, X.shape[1])


@dataclass(frozen=True)
class LowRankUnion:
    """Subspaces of the coordinates of a Nyström map."""

    map: NystromMap
    mean: np.ndarray
    bases: np.ndarray
    """(n_subspaces, rank, subspace_dim)."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return len(self.bases)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the map."""
        return self.map.kernel

    def positions(self, X: np.ndarray) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk; what the landmarks do not span counts as residual."""
        for which, Z in self._coordinates(X):
            energies = np.stack([np.sum((Z @ D) ** 2, axis=1) for D in self.bases], axis=1)
            lost = self.map.lost(X[which], Z + self.mean)
            yield which, Position(energies, np.einsum("nk,nk->n", Z, Z) + lost)

    def nearest(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Return the nearest subspace of samples, chunk by chunk."""
        for which, position in self.positions(X):
            yield which, position.energies.argmax(axis=1)

    def expansions(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""
        G = self.training_values()
        for which, Z in self._coordinates(X):
            projections = [Z @ D for D in self.bases]
            labels = np.stack([np.sum(p * p, axis=1) for p in projections], axis=1).argmax(axis=1)
            for p, D in enumerate(self.bases):
                own = np.flatnonzero(labels == p)
                if len(own):
                    points = projections[p][own] @ D.T + self.mean
                    yield own + which.start, Expansion.of(points @ self.map.whitener.T, G)

    def training_values(self) -> np.ndarray:
        """Return the kernel matrix of the landmarks."""
        return self.map.kernel(self.map.landmarks)

    def _coordinates(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        size = max(1, CHUNK_MAX_BYTES // (8 * len(self.map.landmarks) * X.itemsize))
        for start in range(0, len(X), size):
            which = slice(start, min(len(X), start + size))
            yield which, self.map(X[which]) - self.mean
