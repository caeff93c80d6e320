"""What every fitted union of subspaces of a feature space can do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.kernels.preimages import combination_weights, polish, preimages
from polyspan.models.kernel_unions import ExactUnion, LowRankUnion
from polyspan.models.prediction import UnionPrediction
from polyspan.models.shared_rows import by_blocks


class KernelUnionBase(UnionPrediction):
    """Prediction, distances, pre-images and scores in a feature space."""

    n_subspaces: int
    preimage: str
    _union: ExactUnion | LowRankUnion
    subspace_distances_: np.ndarray

    @property
    def _n_features_out(self) -> int:
        return self._union.n_subspaces

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        labels = np.empty(len(X), dtype=np.int64)
        for which, nearest in self._union.nearest(X):
            labels[which] = nearest
        return labels

    def _distances(self, X: np.ndarray) -> np.ndarray:
        distances = np.empty((len(X), self._union.n_subspaces), dtype=X.dtype)
        for which, position in self._union.positions(X):
            distances[which] = position.distances()
        return distances

    @by_blocks
    def reconstruct(self, X: Any) -> np.ndarray:
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
        X = self._validate(X, reset=False)
        Y, observed = self._training_samples()
        diagonal = np.diag(self._union.training_values())
        out = np.empty(X.shape, dtype=X.dtype)
        for rows, point in self._union.expansions(X):
            e = combination_weights(kernel, point, diagonal)
            found = preimages(kernel, e, Y, observed, corrected=self.preimage != "paper")
            if self.preimage == "fixed_point" and kernel.name == "rbf":
                found = polish(kernel, found, point.weights, Y)
            out[rows] = found
        return out

    def _training_samples(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the samples that pre-images are made of, and which entries were observed."""
        union = self._union
        if isinstance(union, LowRankUnion):
            return union.map.landmarks, None
        if not union.incomplete:
            return union.X, None
        observed = ~np.isnan(union.X)
        return np.where(observed, union.X, 0.0), observed
