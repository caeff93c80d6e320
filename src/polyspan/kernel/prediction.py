"""What a fitted union of subspaces of a feature space can do: assign, measure, return, fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    members_of,
    namespace,
    row_slices,
    transpose,
    unsorted,
)
from polyspan.checks import listed, refuse_missing, validated
from polyspan.data.prediction import by_blocks
from polyspan.data.sliced import row_source
from polyspan.kernel.functions import Kernel, is_precomputed
from polyspan.kernel.preimages import Expansion, combination_weights, polish, preimages
from polyspan.union.prediction import UnionPrediction

if TYPE_CHECKING:
    from polyspan.kernel.nystrom import NystromMap

#: The model that takes missing entries.
INSTEAD = (
    "use polyspan.RobustMCKUSaL, which estimates kernel values from the observed entries, or "
    "impute them first"
)
PRECOMPUTED = "a precomputed kernel must be complete"


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


class FittedUnion(Protocol):
    """Subspaces of a feature space, and all that new samples are compared with."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""

    @property
    def kernel(self) -> Kernel | None:
        """The kernel; None where kernel values are given."""

    def positions(self, X: Array) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk."""

    def nearest(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Return the nearest subspace of samples, chunk by chunk."""

    def expansions(self, X: Array) -> Iterator[tuple[Array, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""

    def training_samples(self) -> tuple[Array, Array | None]:
        """Return the samples that pre-images are made of, and which entries were observed."""

    def training_values(self) -> Array:
        """Return the kernel matrix of these samples, not centred."""

    def training_position(self, X: Array) -> Position | None:
        """Measure the training samples where `positions` cannot; None where it can."""


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

    def training_samples(self) -> tuple[Array, None]:
        """Return the landmarks, which are complete."""
        return self.map.landmarks, None

    def training_position(self, X: Array) -> None:
        """Return None: training samples are measured as others are."""

    def training_values(self) -> Array:
        """Return the kernel matrix of the landmarks."""
        return self.map.kernel(self.map.landmarks)

    def _coordinates(self, X: Array) -> Iterator[tuple[slice, Array]]:
        bound = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
        size = max(1, bound // (8 * self.map.landmarks.shape[0] * item_bytes(X)))
        for which in row_slices(X.shape[0], size):
            yield which, self.map(X[which, :]) - self.mean


def _fills(model: KernelUnion) -> bool:
    if not model._takes_missing:
        raise AttributeError(f"{type(model).__name__} needs complete data: nothing is to be filled")
    return True


class KernelUnion(UnionPrediction):
    """Labels, distances, pre-images and scores in a feature space."""

    kernel: Any
    preimage: str
    _union: FittedUnion
    members_: list[Array]
    coefs_: list[Array]
    labels_: Any
    subspace_distances_: Array
    _takes_missing = False
    """Whether NaN marks missing entries, in training and in new data."""

    @property
    def _n_features_out(self) -> int:
        return self._union.n_subspaces

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        """Check the data; the message for NaN names the model that takes it."""
        X = validated(
            self, X, reset=reset, method=method, fitted="subspace_distances_", double=True
        )
        if self._takes_missing:
            _check_rows_observed(X)
        else:
            precomputed = is_precomputed(self.kernel)
            refuse_missing(self, X, PRECOMPUTED if precomputed else INSTEAD)
        return X

    def _nearest(self, X: Array) -> Array:
        return namespace(X).concat([nearest for _, nearest in self._union.nearest(X)])

    def _distances(self, X: Array) -> Array:
        parts = [position.distances() for _, position in self._union.positions(X)]
        return namespace(X).concat(parts, axis=0)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and return the distance of every training sample to every subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        distances : ndarray of shape (n_samples, n_subspaces)
        """
        self.fit(X, y, **fit_params)
        if row_source(X) is not None:
            return self.transform(X)
        X = self._validate(X, reset=False, method="transform")
        position = self._union.training_position(X)
        return self._distances(X) if position is None else position.distances()

    @by_blocks
    def reconstruct(self, X: Any) -> Array:
        """Return the pre-image of the projection on the nearest subspace, which denoises.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_reconstructed : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        kernel = self._union.kernel  # not that of the parameters, which may have been set anew
        if kernel is None:
            raise ValueError(
                "kernel='precomputed' has no pre-image, since the samples are not known: "
                "pass them and a kernel"
            )
        kernel.check_preimage()
        X = self._validate(X, reset=False, method="reconstruct")
        Y, observed = self._union.training_samples()
        diagonal = namespace(X).linalg.diagonal(self._union.training_values())
        members, parts = [], []
        for rows, point in self._union.expansions(X):
            e = combination_weights(kernel, point, diagonal)
            found = preimages(kernel, e, Y, observed, corrected=self.preimage != "paper")
            if self.preimage == "fixed_point" and kernel.name == "rbf":
                found = polish(kernel, found, point.weights, Y)
            members.append(rows)
            parts.append(found)
        return unsorted(members, parts)

    @available_if(_fills)  # type: ignore[untyped-decorator]
    def impute(self, X: Any) -> Array:
        """Fill what is missing and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
        """
        # What was given still has the names of its columns, which `reconstruct` checks.
        filled = self.reconstruct(X)
        X = self._validate(X, reset=False, method="impute")
        return np.where(np.isnan(X), filled, X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def _check_rows_observed(X: Array) -> None:
    blank = np.flatnonzero(np.isnan(X).all(axis=1))
    if len(blank):
        raise ValueError(
            f"{len(blank)} of {len(X)} samples have no observed entry (rows {listed(blank)}): "
            "nothing is known about them; leave them out"
        )
