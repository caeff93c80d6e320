"""What every fitted union of subspaces can do: assign, measure, reconstruct and score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.arrays import (
    Array,
    chunk_rows,
    item_bytes,
    limit_threads,
    machine_epsilon,
    pass_work,
    power_of_two_scale,
)
from polyspan.geometry import pairwise_subspace_distances
from polyspan.models.prediction import UnionPrediction
from polyspan.models.shared_rows import by_blocks
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

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        if self._points() is not None:
            return np.asarray(self._distances(X).argmin(axis=1))
        labels = np.empty(X.shape[0], dtype=np.int64)
        with self._limit_threads(X):
            stacked = Stacked.of(self.bases_[None, ...])
            for which, chunk, _ in self._chunks(X):
                projections = project(chunk, stacked)
                labels[which] = energies(projections)[:, 0, :].argmax(axis=1)
        return labels

    def _distances(self, X: np.ndarray) -> np.ndarray:
        distances = np.empty((X.shape[0], len(self.bases_)), dtype=self.bases_.dtype)
        points = self._points()
        with self._limit_threads(X):
            for which, chunk, scale in self._chunks(X):
                for p, basis in enumerate(self.bases_):
                    # The residual itself, not ‖y‖² - ‖Dᵀy‖²: a sample in the subspace gets 0,
                    # not the root of a rounding error.
                    about = chunk if points is None else chunk - _scaled(points[p], scale)
                    residual = about - (about @ basis) @ basis.T
                    norms = np.linalg.norm(residual, axis=1)
                    distances[which, p] = norms if scale is None else norms / scale[:, 0]
        return distances

    @by_blocks
    def reconstruct(self, X: Any) -> np.ndarray:
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
        X = self._validate(X, reset=False)
        out = np.empty(X.shape, dtype=self.bases_.dtype)
        if self._points() is not None:
            labels = self._nearest(X)
            for p, (basis, point) in enumerate(zip(self.bases_, self.anchors_, strict=True)):
                own = np.flatnonzero(labels == p)
                out[own] = ((X[own] - point) @ basis) @ basis.T + point
            return out
        with self._limit_threads(X):
            stacked = Stacked.of(self.bases_[None, ...])
            for which, chunk, scale in self._chunks(X):
                projections = project(chunk, stacked)
                labels = energies(projections)[:, 0, :].argmax(axis=1)
                part = out[which]
                for p, basis in enumerate(self.bases_):
                    own = np.flatnonzero(labels == p)
                    projected = projections[own, 0, p, :] @ basis.T
                    if scale is not None:
                        projected = projected / scale[own]
                    part[own] = projected + self.mean_
        return out

    def _validate(self, X: Any, *, reset: bool) -> np.ndarray:
        """Check the data; the message for NaN names the model that takes it."""
        if not reset:
            check_is_fitted(self)
        X = validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        size = chunk_rows(X.shape[1], item_bytes(X))
        chunks = range(0, X.shape[0], size)
        missing = sum(int(np.isnan(X[k : k + size]).sum()) for k in chunks)
        if missing:
            raise ValueError(
                f"Input X contains NaN: {missing} of {X.size} entries are missing. "
                f"{type(self).__name__} needs complete data; use polyspan.RobustMiCUSaL, which "
                "learns from the observed entries, or impute them first."
            )
        return np.asarray(X)

    def _chunks(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        """Yield centred rows, times powers of two where their squares would leave the range."""
        n_subspaces, m, s = self.bases_.shape
        size = chunk_rows(m, item_bytes(X), n_subspaces * s)
        points = self._points()
        farthest = 0.0 if points is None else float(np.abs(points).max())
        for start in range(0, X.shape[0], size):
            which = slice(start, start + size)
            chunk = X[which] - self.mean_
            scale = _row_scales(chunk, machine_epsilon(self.bases_), farthest)
            if scale is not None:
                chunk = chunk * scale
            yield which, chunk.astype(self.bases_.dtype, copy=False), scale

    def _limit_threads(self, X: np.ndarray) -> Any:
        n_subspaces, m, s = self.bases_.shape
        return limit_threads(pass_work(X.shape[0], m, n_subspaces * s))


def _scaled(point: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    return point if scale is None else scale * point


def _row_scales(chunk: np.ndarray, eps: float, farthest: float) -> np.ndarray | None:
    """Return a power of two for each row, or None where no row needs one."""
    largest = np.maximum(np.abs(chunk).max(axis=1), farthest)
    extremes = (float(largest.max()), float(largest.min(where=largest > 0, initial=1.0)))
    if all(power_of_two_scale(value, eps) == 1.0 for value in extremes):
        return None
    return np.array([[power_of_two_scale(float(value), eps)] for value in largest])
