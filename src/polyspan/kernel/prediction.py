"""Methods of fitted kernel models: labels, distances, pre-images, filled missing entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import Array, namespace, restore_order, zeros
from polyspan.base.checks import first_ten, refuse_missing, validate_samples
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.data.sliced import row_source
from polyspan.kernel._solve.subspaces import energies
from polyspan.kernel.preimages import combination_weights, polish, preimages
from polyspan.linear.prediction import UnionPrediction

if TYPE_CHECKING:
    from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion

#: The model that takes missing entries.
MISSING_ADVICE = (
    "use polyspan.RobustMCKUSaL, which estimates kernel values from the observed entries, or "
    "impute them first"
)
PRECOMPUTED = "a precomputed kernel must be complete"


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

    @by_blocks
    def coordinates(self, X: Any) -> Array:
        """Return the coefficients of every sample in the basis of its own (nearest) subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; for `kernel="precomputed"` the kernel values with the training samples.

        Returns
        -------
        ndarray of shape (n_samples, subspace_dim)
            Coordinates D_τᵀφ̃(x), with τ the nearest subspace, D_τ its orthonormal basis in the
            feature space and φ̃ the centred feature map. Where dimensions differ, `subspace_dim` is
            the largest, and columns beyond the dimension of a subspace are 0.
        """
        X = self._validate(X, reset=False, method="coordinates")
        xp, parts = namespace(X), []
        for _, chunk in self._union.chunks(X):
            projections = self._union.projections(chunk)
            most = max(found.shape[1] for found in projections)
            padded = [
                xp.concat([found, zeros((found.shape[0], most - found.shape[1]), found)], axis=1)
                for found in projections
            ]
            nearest = xp.argmax(energies(projections), axis=1)[:, None, None]
            own = xp.take_along_axis(xp.stack(padded, axis=1), nearest, axis=1)
            parts.append(own[:, 0, :])
        return xp.concat(parts, axis=0)

    def _nearest(self, X: Array) -> Array:
        return self._union.nearest(X)

    def _distances(self, X: Array) -> Array:
        return self._union.distances(X)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and return the distance of every training sample to every subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, as for `fit`.
        y : Ignored
            Not used, present for API consistency by convention.
        **fit_params : dict
            Further arguments of `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            Distances in the feature space, not squared.
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
            Samples, with NaN for missing entries where the model takes them.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Pre-images, as a frame where `set_output` asks for one.
        """
        self._check_preimage()
        return self._filled(self._validate(X, reset=False, method="reconstruct"))

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

    def _filled(self, X: Array) -> Array:
        """Return the pre-images of the projections of checked samples."""
        kernel = self._union.kernel
        assert kernel is not None
        Y, observed = self._union.training_samples()
        diagonal = namespace(X).linalg.diagonal(self._union.training_values())
        members, parts = [], []
        for rows, point in self._union.expansions(X):
            e = combination_weights(kernel, point, diagonal)
            found = preimages(
                kernel, e, Y, observed,
                corrected=self.preimage != "paper", shares=self._union.shares,
            )  # fmt: skip
            if self.preimage == "fixed_point" and kernel.name == "rbf":
                found = polish(kernel, found, point.weights, Y)
            members.append(rows)
            parts.append(found)
        return restore_order(members, parts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _check_rows_observed(X: Array) -> None:
    empty = np.flatnonzero(np.isnan(X).all(axis=1))
    if len(empty):
        raise ValueError(
            f"{len(empty)} of {len(X)} samples have no observed entry (rows {first_ten(empty)}): "
            "nothing is known about them; leave them out"
        )
