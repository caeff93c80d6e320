"""What every fitted union of subspaces of a feature space can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import Array, namespace, unsorted
from polyspan.kernels.preimages import combination_weights, polish, preimages
from polyspan.models.kernel_unions import ExactUnion, LowRankUnion
from polyspan.models.prediction import UnionPrediction
from polyspan.models.shared_rows import by_blocks


class KernelUnionBase(UnionPrediction):
    """Prediction, distances, pre-images and scores in a feature space."""

    n_subspaces: int
    preimage: str
    _union: ExactUnion | LowRankUnion
    subspace_distances_: Array

    @property
    def _n_features_out(self) -> int:
        return self._union.n_subspaces

    def _nearest(self, X: Array) -> Array:
        return namespace(X).concat([nearest for _, nearest in self._union.nearest(X)])

    def _distances(self, X: Array) -> Array:
        parts = [position.distances() for _, position in self._union.positions(X)]
        return namespace(X).concat(parts, axis=0)

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
        Y, observed = self._training_samples()
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

    def _training_samples(self) -> tuple[Array, Array | None]:
        """Return the samples that pre-images are made of, and which entries were observed."""
        union = self._union
        if isinstance(union, LowRankUnion):
            return union.map.landmarks, None
        if not union.incomplete:
            return union.X, None
        observed = ~np.isnan(union.X)
        return np.where(observed, union.X, 0.0), observed
