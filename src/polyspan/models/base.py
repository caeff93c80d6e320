"""What every fitted union of subspaces can do: assign, measure, reconstruct and score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import (
    Array,
    limit_threads,
    machine_epsilon,
    members_of,
    moved_to,
    namespace,
    pass_work,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    to_numpy,
    transpose,
    unsorted,
    zeros,
)
from polyspan.geometry import pairwise_subspace_distances
from polyspan.models.prediction import UnionPrediction
from polyspan.models.shared_rows import by_blocks
from polyspan.models.validation import count_missing, validated
from polyspan.solvers.projections import Stacked, energies, project


class UnionOfSubspacesBase(UnionPrediction):
    """Prediction for models with `bases_` (n_subspaces, n_features, subspace_dim) and `mean_`."""

    bases_: Array
    mean_: Array
    anchors_: Array
    """Points of affine subspaces, (n_subspaces, n_features); not there for linear ones."""

    @property
    def _n_features_out(self) -> int:
        return int(self.bases_.shape[0])

    @property
    def subspace_distances_(self) -> Array:
        """Matrix of d_u between the learned subspaces; its maximum is the ε of Definition 1."""
        check_is_fitted(self)
        return pairwise_subspace_distances(self.bases_)

    def _points(self) -> Array | None:
        """Return the points of affine subspaces relative to the mean, or None."""
        anchors = getattr(self, "anchors_", None)
        return None if anchors is None else anchors - self.mean_

    def _nearest(self, X: Array) -> Array:
        xp = namespace(X)
        if self._points() is not None:
            return xp.argmin(self._distances(X), axis=1)
        labels = zeros((X.shape[0],), X, xp.int64)
        with self._limit_threads(X):
            stacked = Stacked.of(self.bases_[None, ...])
            for which, chunk, _ in self._chunks(X):
                projections = project(chunk, stacked)
                labels[which] = xp.argmax(energies(projections)[0, ...], axis=0)
        return labels

    def _distances(self, X: Array) -> Array:
        xp = namespace(X)
        n_subspaces = self.bases_.shape[0]
        distances = zeros((X.shape[0], n_subspaces), self.bases_)
        points = self._points()
        with self._limit_threads(X):
            for which, chunk, scale in self._chunks(X):
                for p in range(n_subspaces):
                    basis = self.bases_[p, ...]
                    # The residual itself, not ‖y‖² - ‖Dᵀy‖²: a sample in the subspace gets 0,
                    # not the root of a rounding error.
                    about = chunk if points is None else chunk - _scaled(points[p, :], scale)
                    residual = about - (about @ basis) @ transpose(basis)
                    norms = xp.linalg.vector_norm(residual, axis=1)
                    distances[which, p] = norms if scale is None else norms / scale[:, 0]
        return distances

    @by_blocks
    def reconstruct(self, X: Any) -> Array:
        """Return the projection of every sample on its nearest subspace, which denoises it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_reconstructed : ndarray of shape (n_samples, n_features)
            D_τD_τᵀ(x - mean) + mean, with τ the nearest subspace; for affine subspaces a point
            of it takes the place of the mean.
        """
        X = self._validate(X, reset=False, method="reconstruct")
        xp = namespace(X)
        n_subspaces = self.bases_.shape[0]
        if self._points() is not None:
            members = members_of(self._nearest(X), n_subspaces)
            parts = [self._on_affine(xp.take(X, own, axis=0), p) for p, own in enumerate(members)]
            return unsorted(members, parts)
        out = zeros(X.shape, self.bases_)
        with self._limit_threads(X):
            stacked = Stacked.of(self.bases_[None, ...])
            for which, chunk, scale in self._chunks(X):
                projections = project(chunk, stacked)
                members = members_of(xp.argmax(energies(projections)[0, ...], axis=0), n_subspaces)
                parts = []
                for p, own in enumerate(members):
                    theirs = xp.take(projections[0, p, ...], own, axis=1)
                    projected = transpose(theirs) @ transpose(self.bases_[p, ...])
                    if scale is not None:
                        projected = projected / xp.take(scale, own, axis=0)
                    parts.append(projected + self.mean_)
                out[which, :] = unsorted(members, parts)
        return out

    def _on_affine(self, X: Array, p: int) -> Array:
        basis, point = self.bases_[p, ...], self.anchors_[p, :]
        return ((X - point) @ basis) @ transpose(basis) + point

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        """Check the data; the message for NaN names the model that takes it."""
        X = validated(self, X, reset=reset, method=method, fitted="bases_")
        missing = count_missing(X)
        if missing:
            raise ValueError(
                f"Input X contains NaN: {missing} of {X.shape[0] * X.shape[1]} entries are "
                f"missing. {type(self).__name__} needs complete data; use polyspan.RobustMiCUSaL, "
                "which learns from the observed entries, or impute them first."
            )
        return X

    def _chunks(self, X: Array) -> Iterator[tuple[slice, Array, Array | None]]:
        """Yield centred rows, times powers of two where their squares would leave the range."""
        xp = namespace(X)
        n_subspaces, _, s = self.bases_.shape
        size = rows_at_once(X, n_subspaces * s)
        points = self._points()
        farthest = 0.0 if points is None else float(xp.max(xp.abs(points)))
        for which in row_slices(X.shape[0], size):
            chunk = X[which, :] - self.mean_
            scale = _row_scales(chunk, machine_epsilon(self.bases_), farthest)
            if scale is not None:
                chunk = chunk * scale
            yield which, xp.astype(chunk, self.bases_.dtype, copy=False), scale

    def _limit_threads(self, X: Array) -> Any:
        n_subspaces, m, s = self.bases_.shape
        return limit_threads(pass_work(X.shape[0], m, n_subspaces * s))


def _scaled(point: Array, scale: Array | None) -> Array:
    return point if scale is None else scale * point


def _row_scales(chunk: Array, eps: float, farthest: float) -> Array | None:
    """Return a power of two for each row, or None where no row needs one."""
    xp = namespace(chunk)
    largest = xp.clip(xp.max(xp.abs(chunk), axis=1), farthest, None)
    smallest = xp.min(xp.where(largest > 0, largest, xp.ones_like(largest)))
    if all(power_of_two_scale(float(v), eps) == 1.0 for v in (xp.max(largest), smallest)):
        return None
    scales = [[power_of_two_scale(value, eps)] for value in to_numpy(largest).tolist()]
    return moved_to(scales, chunk, xp.float64)
