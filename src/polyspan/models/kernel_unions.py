"""Fitted unions of subspaces of a feature space: what prediction and pre-images need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan._sklearn import plain_settings
from polyspan.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    members_of,
    moved_to,
    namespace,
    row_slices,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.kernels import Kernel, estimate_kernel
from polyspan.kernels.low_rank import NystromMap
from polyspan.kernels.preimages import Expansion
from polyspan.models.messages import warn_user
from polyspan.solvers.kernel_subspaces import KernelSubspaces


@dataclass(frozen=True)
class Position:
    """Where samples are in the feature space, seen from the subspaces."""

    energies: Array
    """‖D_lᵀφ̃(z)‖²: (n, n_subspaces)."""
    norms: Array
    """κ̃(z, z): (n,)."""

    def distances(self) -> Array:
        """Return ‖φ̃(z) - P_lφ̃(z)‖, not squared."""
        xp = namespace(self.norms)
        return xp.sqrt(xp.clip(self.norms[:, None] - self.energies, 0.0, None))


@dataclass(frozen=True)
class ExactUnion:
    """Subspaces spanned by training samples: Algorithm 5."""

    kernel: Kernel | None
    """None where kernel values are given."""
    X: Array
    """Training samples, or the diagonal of the given kernel matrix."""
    centerer: KernelCenterer
    subspaces: KernelSubspaces
    incomplete: bool = False
    """Whether values are estimated from the entries that two samples share."""
    gram: Array | None = None
    """The kernel matrix that was learned from, where it cannot be computed again."""
    signs: Array | None = None
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
        return int(self.X.shape[0])

    def positions(self, X: Array) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk."""
        for which, K in self._values(X):
            means = namespace(K).mean(K, axis=1)
            norms = self._diagonal(X[which, ...]) - 2.0 * means + self.centerer.K_fit_all_
            yield which, Position(self.subspaces.energies(centred_by(self.centerer, K)), norms)

    def nearest(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Return the nearest subspace of samples, chunk by chunk; κ(z, z) is not needed."""
        for which, K in self._values(X):
            energies = self.subspaces.energies(centred_by(self.centerer, K))
            yield which, namespace(K).argmax(energies, axis=1)

    def expansions(self, X: Array) -> Iterator[tuple[Array, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""
        xp = namespace(X)
        G = self.training_values()
        for which, K in self._values(X):
            centred = centred_by(self.centerer, K)
            projections = self.subspaces.projections(centred)
            energies = xp.stack([xp.vecdot(p, p) for p in projections], axis=1)
            members = members_of(xp.argmax(energies, axis=1), self.n_subspaces)
            for p, own in enumerate(members):
                if not own.shape[0]:
                    continue
                # ζ on the members; what centring took away is spread over all samples.
                E = self.subspaces.coefs[p]
                zeta = xp.take(projections[p], own, axis=0) @ transpose(E)
                spread = (1.0 - xp.sum(zeta, axis=1, keepdims=True)) / G.shape[0]
                weights = spread + _over_all(zeta, self.subspaces.members[p], G.shape[0])
                yield own + which.start, Expansion.of(weights, G)

    def training_values(self) -> Array:
        """Return the kernel matrix of the training samples, not centred."""
        if self.gram is not None:
            return self.gram
        assert self.kernel is not None
        return self.kernel(self.X)

    def _values(self, X: Array) -> Iterator[tuple[slice, Array]]:
        bound = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
        size = max(1, bound // (4 * self.n_samples * item_bytes(X)))
        for which in row_slices(X.shape[0], size):
            rows = X[which, :]
            if self.kernel is None:
                yield which, rows
            elif self.incomplete:
                yield which, self._estimated(rows)
            else:
                yield which, self.kernel(rows, self.X)

    def _estimated(self, X: Array) -> Array:
        """Estimate values of samples with holes, and treat them as the training samples' were."""
        assert self.kernel is not None
        found = estimate_kernel(self.kernel, X, self.X, fill=self.fill)
        if found.n_unrelated:
            warn_user(
                f"{found.n_unrelated} of {found.values.size} pairs of new and training samples "
                "have no common observed entry: their kernel values are a mean"
            )
        return found.values if self.signs is None else np.asarray(found.values @ self.signs)

    def _diagonal(self, X: Array) -> Array:
        if self.kernel is None:
            xp = namespace(self.X)
            spread = float(xp.max(self.X) - xp.min(self.X))
            if spread > 1e-12 * float(xp.max(xp.abs(self.X))):
                raise ValueError(
                    "kernel='precomputed' does not hold κ(z, z) of new samples, which distances "
                    "need where it differs from sample to sample: pass the samples and a kernel"
                )
            return zeros((X.shape[0],), X) + self.X[0]
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
    mean: Array
    bases: Array
    """(n_subspaces, rank, subspace_dim)."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return int(self.bases.shape[0])

    @property
    def kernel(self) -> Kernel:
        """The kernel of the map."""
        return self.map.kernel

    def positions(self, X: Array) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk; what the landmarks do not span counts as residual."""
        xp = namespace(X)
        for which, Z in self._coordinates(X):
            energies = xp.stack([xp.vecdot(p, p) for p in self._projections(Z)], axis=1)
            lost = self.map.lost(X[which, :], Z + self.mean)
            yield which, Position(energies, xp.vecdot(Z, Z) + lost)

    def nearest(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Return the nearest subspace of samples, chunk by chunk."""
        for which, position in self.positions(X):
            yield which, namespace(X).argmax(position.energies, axis=1)

    def expansions(self, X: Array) -> Iterator[tuple[Array, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""
        xp = namespace(X)
        G = self.training_values()
        for which, Z in self._coordinates(X):
            projections = self._projections(Z)
            energies = xp.stack([xp.vecdot(p, p) for p in projections], axis=1)
            members = members_of(xp.argmax(energies, axis=1), self.n_subspaces)
            for p, own in enumerate(members):
                if own.shape[0]:
                    theirs = xp.take(projections[p], own, axis=0)
                    points = theirs @ transpose(self.bases[p, ...]) + self.mean
                    weights = points @ transpose(self.map.whitener)
                    yield own + which.start, Expansion.of(weights, G)

    def _projections(self, Z: Array) -> list[Array]:
        return [Z @ self.bases[p, ...] for p in range(self.n_subspaces)]

    def training_values(self) -> Array:
        """Return the kernel matrix of the landmarks."""
        return self.map.kernel(self.map.landmarks)

    def _coordinates(self, X: Array) -> Iterator[tuple[slice, Array]]:
        bound = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
        size = max(1, bound // (8 * self.map.landmarks.shape[0] * item_bytes(X)))
        for which in row_slices(X.shape[0], size):
            yield which, self.map(X[which, :]) - self.mean


def centred_by(centerer: KernelCenterer, K: Array) -> Array:
    """Return kernel values with the training samples, relative to the mean of these samples."""
    with plain_settings(K):
        return centerer.transform(K)


def _over_all(values: Array, columns: Array, n: int) -> Array:
    """Return (k, n) values that are zero but in some columns."""
    xp = namespace(values)
    place = np.full(n, values.shape[1])
    place[to_numpy(columns)] = np.arange(values.shape[1])
    padded = xp.concat([values, zeros((values.shape[0], 1), values)], axis=1)
    return xp.take(padded, moved_to(place, values), axis=1)
