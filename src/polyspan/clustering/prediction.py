"""What clusters say of samples: by the nearest subspace, or by the mixture where it speaks."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import Array, zeros
from polyspan.linear.linear_union import LinearUnion
from polyspan.mixture import SubspaceMixture


class ClusterPrediction(LinearUnion):
    """Prediction by linear subspaces, or by the affine ones of a mixture."""

    _mixture: SubspaceMixture
    """Learned from rows minus `mean_`, along `_axes`; not there where graphs speak."""
    _axes: Array

    @property
    def _by_mixture(self) -> bool:
        return hasattr(self, "_mixture")

    def _in_mixture(self, X: Array) -> Array:
        """Return samples in the coordinates of the mixture."""
        about = X - self.mean_
        return about @ self._axes if hasattr(self, "_axes") else about

    def _out_of_mixture(self, found: Array) -> Array:
        return found @ self._axes.mT if hasattr(self, "_axes") else found

    @property
    def means_(self) -> Array:
        """Means of the clusters where a mixture speaks, else 0: (n_clusters, n_features)."""
        check_is_fitted(self, "bases_")
        points = self._points()
        if points is None:
            return zeros(tuple(self.bases_.shape[:2]), self.bases_)
        return points + self.mean_

    @property
    def anchors_(self) -> Array:
        """Points of the affine subspaces of a mixture; not there for linear ones."""
        if not self._by_mixture:
            raise AttributeError("linear subspaces have no anchors_")
        return self.means_

    def _points(self) -> Array | None:
        return self._out_of_mixture(self._mixture.means_) if self._by_mixture else None

    def _nearest(self, X: Array) -> Array:
        if not self._by_mixture:
            return super()._nearest(X)
        return self._mixture._nearest(self._in_mixture(X))

    def _reconstructed(self, X: Array) -> Array:
        if not self._by_mixture:
            return super()._reconstructed(X)
        return self._out_of_mixture(self._mixture.reconstruct(self._in_mixture(X))) + self.mean_

    def _memberships(self, X: Array) -> Array:
        if not self._by_mixture:
            return super()._memberships(X)
        return self._mixture.predict_proba(self._in_mixture(X))
