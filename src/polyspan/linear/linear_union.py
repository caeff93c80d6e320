"""Predictions of linear and affine unions: labels, distances, reconstruction, imputation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import (
    Array,
    limit_threads,
    machine_epsilon,
    members_of,
    moved_to,
    namespace,
    pass_work,
    power_of_two_scale,
    restore_order,
    row_slices,
    rows_at_once,
    to_numpy,
    zeros,
)
from polyspan.base.checks import refuse_missing, validate_samples
from polyspan.base.private_sklearn import available_if
from polyspan.data.missing import Holes
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.geometry.bases import subspace_dims
from polyspan.geometry.distances import distances_between
from polyspan.linear._solve.masked import MaskedBlock, MaskedFit
from polyspan.linear._solve.observation import Stacked, energies, project
from polyspan.linear.looking import coordinates, memberships, own_fits
from polyspan.linear.prediction import UnionPrediction, UnlikeRows, by_scale, can_impute


class LinearUnion(UnionPrediction):
    """Prediction for models with `bases_` (n_subspaces, n_features, subspace_dim) and `mean_`."""

    bases_: Array
    mean_: Array
    anchors_: Array
    """Points of affine subspaces, (n_subspaces, n_features); not there for linear ones."""
    noise_variance_: float
    """Variance of the noise around the subspaces: mean squared residual per remaining dimension."""

    def __sklearn_is_fitted__(self) -> bool:
        # A stream may have begun with too few samples to fit.
        return hasattr(self, "bases_")

    def _prior(self) -> float:
        """Return ρ, the weight of filled-in entries; Algorithm 3 fills none."""
        filled = getattr(self, "solver", "") != "grouse"
        return float(getattr(self, "fill_prior", 0.0)) if filled else 0.0

    @property
    def _n_features_out(self) -> int:
        return int(self.bases_.shape[0])

    @property
    def subspace_dims_(self) -> Array:
        """Dimension of every subspace, (n_subspaces,).

        Where they differ, the columns of `bases_` beyond a subspace's own dimension are zero.
        """
        check_is_fitted(self)
        return subspace_dims(self.bases_)

    @property
    def subspace_distances_(self) -> Array:
        """Matrix of d_u between the learned subspaces; its maximum is the ε of Definition 1."""
        check_is_fitted(self)
        return distances_between(self.bases_)

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        """Check the data; the message for NaN names the model that takes it."""
        X = validate_samples(self, X, reset=reset, method=method, fitted="bases_")
        if not self._takes_missing:
            refuse_missing(self, X)
        return X

    def _points(self) -> Array | None:
        """Return the points of affine subspaces relative to the mean, or None."""
        anchors = getattr(self, "anchors_", None)
        return None if anchors is None else anchors - self.mean_

    @by_scale
    def _nearest(self, X: Array) -> Array:
        xp = namespace(X)
        if self._takes_missing:
            labels = [xp.argmax(fit.gains[0, ...], axis=0) for fit, _ in self._masked_fits(X)]
            judged = Holes.of(X).n_observed > self.bases_.shape[2]
            return xp.where(judged, xp.concat(labels, axis=0), -1)
        if self._points() is not None:
            return xp.argmin(self._distances(X), axis=1)
        found = zeros((X.shape[0],), X, xp.int64)
        with self._limit_threads(X):
            stacked = Stacked.of(self.bases_[None, ...])
            for which, chunk, _ in self._chunks(X):
                projections = project(chunk, stacked)
                found[which] = xp.argmax(energies(projections)[0, ...], axis=0)
        return found

    @by_scale
    def _distances(self, X: Array) -> Array:
        xp = namespace(X)
        n_subspaces = self.bases_.shape[0]
        distances = zeros((X.shape[0], n_subspaces), self.bases_)
        if self._takes_missing:
            for fit, scale in self._masked_fits(X):
                roots = xp.sqrt(fit.weights)
                for p in range(n_subspaces):
                    residual = xp.where(fit.missing > 0, 0.0, fit.values - self._fitted(fit, p))
                    distances[fit.which, p] = _norms(residual) * roots / scale
            return distances
        points = self._points()
        with self._limit_threads(X):
            for which, chunk, scales in self._chunks(X):
                for p in range(n_subspaces):
                    basis = self.bases_[p, ...]
                    # The residual itself, not ‖y‖² - ‖Dᵀy‖²: a sample in the subspace gets 0,
                    # not the root of a rounding error.
                    about = chunk
                    if points is not None:
                        about = chunk - points[p, :] * (1.0 if scales is None else scales)
                    residual = about - (about @ basis) @ basis.mT
                    norms = xp.linalg.vector_norm(residual, axis=1)
                    distances[which, p] = norms if scales is None else norms / scales[:, 0]
        return distances

    def _scores(self, X: Array) -> Array:
        scores = super()._scores(X)
        if not self._takes_missing:
            return scores
        judged = Holes.of(X).n_observed > self.bases_.shape[2]
        return namespace(X).where(judged, scores, float("nan"))

    @as_samples
    @by_blocks
    def reconstruct(self, X: Any) -> Array:
        """Return the nearest point of the union for every sample: denoised, and without holes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries where the model takes them.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Reconstructed samples, as a frame where `set_output` asks for one. They are
            D_τD_τᵀ(x - mean) + mean, with τ the nearest subspace; for affine subspaces a point
            of the subspace replaces the mean. Samples with missing entries are fitted to their
            observed entries by least squares. A sample with at most `subspace_dim` observed
            entries is assigned to the subspace that explains it with the smallest coefficients;
            a sample without any becomes the mean.
        """
        return self._reconstructed(self._validate(X, reset=False, method="reconstruct"))

    @by_scale
    def _reconstructed(self, X: Array) -> Array:
        xp = namespace(X)
        n_subspaces = self.bases_.shape[0]
        if not self._takes_missing and self._points() is not None:
            members, parts = members_of(self._nearest(X), n_subspaces), []
            for p, own in enumerate(members):
                basis, point = self.bases_[p, ...], self.anchors_[p, :]
                about = xp.take(X, own, axis=0) - point
                parts.append((about @ basis) @ basis.mT + point)
            return restore_order(members, parts)
        out = zeros(X.shape, self.bases_)
        affine = self._points() is not None
        for which, labels, coefficients in own_fits(self, X):
            members, parts = members_of(labels, n_subspaces), []
            for p, own in enumerate(members):
                centre = self.anchors_[p, :] if affine else self.mean_
                parts.append(xp.take(coefficients, own, axis=0) @ self.bases_[p, ...].mT + centre)
            out[which, :] = restore_order(members, parts)
        return out

    coordinates = coordinates
    memberships = memberships

    @available_if(can_impute)
    @as_samples
    @by_blocks
    def impute(self, X: Any) -> Array:
        """Fill what is missing and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Samples whose missing entries come from `reconstruct`, as a frame where X is one of
            pandas or Polars, or where `set_output` asks for one.
        """
        X = self._validate(X, reset=False, method="impute")
        xp = namespace(X)
        return xp.where(xp.isnan(X), xp.astype(self._reconstructed(X), X.dtype, copy=False), X)

    def _masked_fits(self, X: Array) -> Iterator[tuple[MaskedFit, float]]:
        """Yield fits of rows with missing entries, and the scale that they are in."""
        xp = namespace(X)
        X = xp.astype(X, self.bases_.dtype, copy=False)
        sizes = xp.max(xp.where(xp.isnan(X), 0.0, xp.abs(X - self.mean_)), axis=1)
        eps = machine_epsilon(self.bases_)
        scale = power_of_two_scale(float(xp.max(sizes)), eps)
        if scale < 1.0:
            UnlikeRows.check(sizes, eps)
        block = MaskedBlock.of(X, self.mean_, scale, self._prior(), -1)
        points = self._points()
        points = None if points is None else scale * points[None, ...]
        assert block is not None
        with self._limit_threads(X):
            for fit in block.fits(self.bases_[None, ...], points):
                yield fit, scale

    def _fitted(self, fit: MaskedFit, p: int) -> Array:
        """Return c_p + D_pθ of all rows, relative to the mean."""
        found = fit.coefficients[0, p, ...].mT @ self.bases_[p, ...].mT
        return found if fit.points is None else found + fit.points[0, p, :]

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


def _row_scales(chunk: Array, eps: float, farthest: float) -> Array | None:
    """Return a power of two for each row, or None where no row needs one."""
    xp = namespace(chunk)
    largest = xp.clip(xp.max(xp.abs(chunk), axis=1), farthest, None)
    smallest = xp.min(xp.where(largest > 0, largest, xp.ones_like(largest)))
    if all(power_of_two_scale(float(v), eps) == 1.0 for v in (xp.max(largest), smallest)):
        return None
    scales = [[power_of_two_scale(value, eps)] for value in to_numpy(largest).tolist()]
    return moved_to(scales, chunk, xp.float64)


def _norms(residual: Array) -> Array:
    """Return row norms that neither overflow nor underflow."""
    xp = namespace(residual)
    largest = xp.max(xp.abs(residual), axis=1, keepdims=True)
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    return xp.linalg.vector_norm(residual / safe, axis=1) * safe[:, 0]
