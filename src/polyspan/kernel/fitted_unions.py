"""Fitted subspaces of a feature space, and what is needed to compare new samples with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan.base.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    members_of,
    moved_to,
    namespace,
    restore_order,
    row_slices,
    to_numpy,
    zeros,
)
from polyspan.base.checks import warn_user
from polyspan.kernel._solve.subspaces import KernelSubspaces, energies
from polyspan.kernel.functions import Kernel, centred_by, check_values
from polyspan.kernel.incomplete import estimate_kernel, estimate_squared_norms
from polyspan.kernel.preimages import Expansion

if TYPE_CHECKING:
    from polyspan.kernel.nystrom import NystromMap


class FittedUnion:
    """Subspaces of a feature space, and what is needed to compare new samples with them.

    `ExactUnion` describes samples by their kernel values with the training samples, `LowRankUnion`
    by their Nyström coordinates. In these methods a chunk is this description of a slice of the
    samples.
    """

    chunks: Callable[[Array], Iterator[tuple[slice, Array]]]
    """Yields (slice of the rows, their chunk) for all samples."""
    projections: Callable[[Array], list[Array]]
    """Returns D_lᵀφ̃(z), (n, subspace_dim), for every subspace."""
    squared_norms: Callable[[Array, Array], Array]
    """Returns κ̃(z, z) of the samples X, which belong to the chunk."""
    expansion_weights: Callable[[Array, int], Array]
    """Returns the weights over the training samples that give projections on subspace p."""
    training_values: Callable[[], Array]
    """Returns the kernel matrix of the training samples, not centred."""

    def training_distances(self, X: Array) -> Array:
        """Return the distances of the training samples."""
        return self.distances(X)

    def nearest(self, X: Array) -> Array:
        """Return the nearest subspace of every sample, for which κ̃(z, z) is not needed."""
        xp = namespace(X)
        captured = (energies(self.projections(chunk)) for _, chunk in self.chunks(X))
        return xp.concat([xp.argmax(energy, axis=1) for energy in captured])

    def distances(self, X: Array) -> Array:
        """Return the distances of samples to all subspaces."""
        parts = [
            residual_norms(
                self.squared_norms(X[which, ...], chunk), energies(self.projections(chunk))
            )
            for which, chunk in self.chunks(X)
        ]
        return namespace(X).concat(parts, axis=0)

    def expansions(self, X: Array) -> Iterator[tuple[Array, Expansion]]:
        """Yield (indices of rows, projections of these rows on their nearest subspace)."""
        xp = namespace(X)
        G = self.training_values()
        for which, chunk in self.chunks(X):
            projections = self.projections(chunk)
            nearest = xp.argmax(energies(projections), axis=1)
            for p, own in enumerate(members_of(nearest, len(projections))):
                if own.shape[0]:
                    weights = self.expansion_weights(xp.take(projections[p], own, axis=0), p)
                    yield own + which.start, Expansion.of(weights, G)


def residual_norms(squared_norms: Array, energies: Array) -> Array:
    """Return ‖φ̃(z) - P_lφ̃(z)‖, not squared, from κ̃(z, z) and ‖D_lᵀφ̃(z)‖²."""
    xp = namespace(energies)
    return xp.sqrt(xp.clip(squared_norms[:, None] - energies, 0.0, None))


def slices_of(X: Array, n_numbers: int) -> list[slice]:
    """Return slices of rows that fit in memory where every row takes `n_numbers` numbers."""
    bound = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
    return row_slices(X.shape[0], max(1, bound // (n_numbers * item_bytes(X))))


@dataclass(frozen=True)
class ExactUnion(FittedUnion):
    """Subspaces spanned by training samples: Algorithm 5."""

    kernel: Kernel | None
    """None for a precomputed kernel."""
    X: Array
    """Training samples, or the diagonal of a precomputed kernel matrix."""
    centerer: KernelCenterer
    subspaces: KernelSubspaces
    incomplete: bool = False
    """Whether values are estimated from the entries that two samples have in common."""
    gram: Array | None = None
    """The kernel matrix of the training samples, where it cannot be computed again from X."""
    signs: Array | None = None
    """S of `Mended`: kernel values of new samples are multiplied by it. None: not mended."""
    fill: float | None = None
    """Squared distance or inner product of pairs of samples without a common entry."""
    shares: Array | None = None
    """Weights of the training samples, with the sum 1; None: all count the same."""
    kept: Array | None = None
    """Places of these samples among those that `fit` got, some of weight 0; None: all."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return len(self.subspaces.members)

    def chunks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield kernel values of samples with the training samples, not centred."""
        for which in slices_of(X, 4 * self.X.shape[0]):
            rows = X[which, :]
            if self.kernel is None:
                yield which, self._kept_columns(rows)
            elif self.incomplete:
                yield which, self._estimated(rows)
            else:
                yield which, self._checked(self.kernel(rows, self.X))

    def _checked(self, chunk: Array) -> Array:
        """Return kernel values of new samples, whose squares are summed; Gaussian ones are ≤ 1."""
        assert self.kernel is not None
        return chunk if self.kernel.name == "rbf" else check_values(chunk, power=2)

    def projections(self, chunk: Array) -> list[Array]:
        """Return D_lᵀφ̃(z) for every subspace."""
        return self.subspaces.projections(self.centred(chunk))

    def centred(self, K: Array) -> Array:
        """Centre kernel values with the training samples."""
        return centred_by(self.centerer, K, self.shares)

    def _kept_columns(self, K: Array) -> Array:
        """Return a precomputed matrix without the columns of samples of weight 0."""
        return K if self.kept is None else namespace(K).take(K, self.kept, axis=1)

    def squared_norms(self, X: Array, chunk: Array) -> Array:
        """Return κ̃(z, z) = κ(z, z) - 2 Σ_i κ(z, y_i)/N + Σ_ij κ(y_i, y_j)/N²."""
        return self._centred_squares(self._diagonal(X), chunk)

    def _centred_squares(self, diagonal: Array, K: Array) -> Array:
        means = namespace(K).mean(K, axis=1) if self.shares is None else K @ self.shares
        return diagonal - 2.0 * means + self.centerer.K_fit_all_

    def expansion_weights(self, projections: Array, p: int) -> Array:
        """Return ζ over all training samples; the mean that centring removed is added again."""
        xp, n = namespace(projections), self.X.shape[0]
        zeta = projections @ self.subspaces.coefs[p].mT
        rest = 1.0 - xp.sum(zeta, axis=1, keepdims=True)
        spread = rest / n if self.shares is None else rest * self.shares
        # Samples that are not members take the last column, which is zero.
        column = np.full(n, zeta.shape[1])
        column[to_numpy(self.subspaces.members[p])] = np.arange(zeta.shape[1])
        padded = xp.concat([zeta, zeros((zeta.shape[0], 1), zeta)], axis=1)
        return spread + xp.take(padded, moved_to(column, zeta), axis=1)

    def training_samples(self) -> tuple[Array, Array | None]:
        """Return the training samples, 0 where entries are missing, and the mask of the others."""
        if not self.incomplete:
            return self.X, None
        observed = ~np.isnan(self.X)
        return np.where(observed, self.X, 0.0), observed

    def training_distances(self, X: Array) -> Array:
        """Return the distances of the training samples.

        For a precomputed or mended kernel matrix, κ(z, z) is its diagonal. A precomputed matrix
        is X.
        """
        if self.kernel is not None and self.gram is None:
            return self.distances(X)
        xp = namespace(X)
        if self.kept is not None and self.gram is None:
            K = self._kept_columns(X)
            norms = self._centred_squares(xp.linalg.diagonal(X), K)
            return residual_norms(norms, self.subspaces.energies(self.centred(K)))
        G = self.centred(X if self.gram is None else self.gram)
        distances = residual_norms(xp.linalg.diagonal(G), self.subspaces.energies(G))
        if self.kept is None:
            return distances
        others = np.setdiff1d(np.arange(len(X)), self.kept)
        return restore_order([self.kept, others], [distances, self.distances(X[others])])

    def training_values(self) -> Array:
        """Return the kernel matrix of the training samples, not centred."""
        if self.gram is not None:
            return self.gram
        assert self.kernel is not None
        return self.kernel(self.X)

    def _estimated(self, X: Array) -> Array:
        """Estimate kernel values of incomplete samples, and mend them as those of the training."""
        assert self.kernel is not None
        found = estimate_kernel(self.kernel, X, self.X, fill=self.fill)
        self._checked(found.values)
        if found.n_unrelated:
            warn_user(
                f"{found.n_unrelated} of {found.values.size} pairs of new and training samples "
                "have no common observed entry: their kernel values are set by the mean of the "
                "pairs of training samples"
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
        if not self.incomplete or self.kernel.name == "rbf":
            return self.kernel.diagonal(X)
        return self.kernel.of_products(estimate_squared_norms(X), X.shape[1])


@dataclass(frozen=True)
class LowRankUnion(FittedUnion):
    """Subspaces in the coordinates of a Nyström map."""

    shares = None  # the landmarks are complete, and of their number alone nothing depends
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

    def chunks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield coordinates of samples, minus the mean of the training samples."""
        for which in slices_of(X, 8 * self.map.landmarks.shape[0]):
            yield which, self.map(X[which, :]) - self.mean

    def projections(self, chunk: Array) -> list[Array]:
        """Return D_lᵀφ̃(z) for every subspace."""
        return [chunk @ self.bases[p, ...] for p in range(self.n_subspaces)]

    def squared_norms(self, X: Array, chunk: Array) -> Array:
        """Return κ̃(z, z), including the part that the landmarks do not span."""
        return namespace(X).vecdot(chunk, chunk) + self.map.residuals(X, chunk + self.mean)

    def expansion_weights(self, projections: Array, p: int) -> Array:
        """Return weights over the landmarks."""
        points = projections @ self.bases[p, ...].mT + self.mean
        return points @ self.map.whitener.mT

    def training_samples(self) -> tuple[Array, None]:
        """Return the landmarks, which are complete."""
        return self.map.landmarks, None

    def training_values(self) -> Array:
        """Return the kernel matrix of the landmarks."""
        return self.map.kernel(self.map.landmarks)
