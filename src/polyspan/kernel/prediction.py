"""Methods of fitted kernel models: labels, distances, pre-images, filled missing entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    restore_order,
    row_slices,
    transpose,
)
from polyspan.checks import first_ten, refuse_missing, validate_samples
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.data.sliced import row_source
from polyspan.kernel._solve.subspaces import energies
from polyspan.kernel.functions import Kernel
from polyspan.kernel.preimages import Expansion, combination_weights, polish, preimages
from polyspan.union.prediction import UnionPrediction, can_impute

if TYPE_CHECKING:
    from polyspan.kernel.gram import ExactUnion
    from polyspan.kernel.nystrom import NystromMap

#: The model that takes missing entries.
MISSING_ADVICE = (
    "use polyspan.RobustMCKUSaL, which estimates kernel values from the observed entries, or "
    "impute them first"
)
PRECOMPUTED = "a precomputed kernel must be complete"


class FittedUnion:
    """Subspaces of a feature space, and what is needed to compare new samples with them.

    `ExactUnion` describes samples by their kernel values with the training samples, `LowRankUnion`
    by their Nyström coordinates. In these methods a chunk is this description of a slice of the
    samples.
    """

    def chunks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield (slice of the rows, their chunk) for all samples."""
        raise NotImplementedError

    def projections(self, chunk: Array) -> list[Array]:
        """Return D_lᵀφ̃(z), (n, subspace_dim), for every subspace."""
        raise NotImplementedError

    def squared_norms(self, X: Array, chunk: Array) -> Array:
        """Return κ̃(z, z) of the samples X, which belong to the chunk."""
        raise NotImplementedError

    def expansion_weights(self, projections: Array, p: int) -> Array:
        """Return the weights over the training samples that give projections on subspace p."""
        raise NotImplementedError

    def training_values(self) -> Array:
        """Return the kernel matrix of the training samples, not centred."""
        raise NotImplementedError

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
class LowRankUnion(FittedUnion):
    """Subspaces in the coordinates of a Nyström map."""

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
        points = projections @ transpose(self.bases[p, ...]) + self.mean
        return points @ transpose(self.map.whitener)

    def training_samples(self) -> tuple[Array, None]:
        """Return the landmarks, which are complete."""
        return self.map.landmarks, None

    def training_values(self) -> Array:
        """Return the kernel matrix of the landmarks."""
        return self.map.kernel(self.map.landmarks)


class KernelUnion(UnionPrediction):
    """Labels, distances, pre-images and scores in a feature space."""

    kernel: Any
    preimage: str
    _union: ExactUnion | LowRankUnion

    @property
    def _n_features_out(self) -> int:
        return self._union.n_subspaces

    def __sklearn_is_fitted__(self) -> bool:
        # A fit that failed may have stored the number of features.
        return hasattr(self, "_union")

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        """Check the data; the error for NaN names the model that takes missing entries."""
        X = validate_samples(
            self, X, reset=reset, method=method, fitted="subspace_distances_", double=True
        )
        if self._takes_missing:
            _check_rows_observed(X)
        else:
            refuse_missing(self, X, PRECOMPUTED if self.kernel == "precomputed" else MISSING_ADVICE)
        return X

    def _nearest(self, X: Array) -> Array:
        return self._union.nearest(X)

    def _distances(self, X: Array) -> Array:
        return self._union.distances(X)

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
        return self._union.training_distances(self._validate(X, reset=False, method="transform"))

    @as_samples
    @by_blocks
    def reconstruct(self, X: Any) -> Array:
        """Return the pre-image of the projection on the nearest subspace, which denoises.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_reconstructed : ndarray or frame of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
        """
        self._check_preimage()
        return self._preimages(self._validate(X, reset=False, method="reconstruct"))

    def _check_preimage(self) -> None:
        """Raise an error where the kernel has no pre-images."""
        check_is_fitted(self)
        kernel = self._union.kernel  # the parameters may have been changed since the fit
        if kernel is None:
            raise ValueError(
                "kernel='precomputed' has no pre-image, since the samples are not known: "
                "pass them and a kernel"
            )
        kernel.check_preimage()

    def _preimages(self, X: Array) -> Array:
        """Return the pre-images of the projections of checked samples."""
        kernel = self._union.kernel
        assert kernel is not None
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
        return restore_order(members, parts)

    @available_if(can_impute)  # type: ignore[untyped-decorator]
    @as_samples
    def impute(self, X: Any) -> Array:
        """Fill the missing entries and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
        """
        self._check_preimage()
        X = self._validate(X, reset=False, method="impute")
        return np.where(np.isnan(X), self._preimages(X), X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.allow_nan = self._takes_missing
        return tags


def _check_rows_observed(X: Array) -> None:
    empty = np.flatnonzero(np.isnan(X).all(axis=1))
    if len(empty):
        raise ValueError(
            f"{len(empty)} of {len(X)} samples have no observed entry (rows {first_ten(empty)}): "
            "nothing is known about them; leave them out"
        )
