"""Predictions of linear and affine unions: labels, distances, reconstruction, imputation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import (
    SAFE_EXPONENTS,
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
)
from polyspan.base.checks import refuse_missing, validate_samples
from polyspan.data.missing import Holes
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.geometry.bases import subspace_dims
from polyspan.geometry.distances import distances_between
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear.looking import coordinates, memberships, memberships_by_residuals
from polyspan.linear.prediction import UnionPrediction


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

    def _nearest(self, X: Array) -> Array:
        xp = namespace(X)
        if not self._takes_missing and self._points() is not None:
            return xp.argmin(self._distances(X), axis=1)
        labels = self._by_rows(X, lambda fit, _: xp.argmax(fit.gains[0, ...], axis=0))
        if not self._takes_missing:
            return labels
        return xp.where(Holes.of(X).n_observed > self.bases_.shape[2], labels, -1)

    def _distances(self, X: Array) -> Array:
        xp = namespace(X)

        def of_fit(fit: Any, scale: float) -> Array:
            # One residual after the other: each is as large as the rows.
            norm = partial(xp.linalg.vector_norm, axis=1) if fit.weights is None else _norms
            n_subspaces = self.bases_.shape[0]
            found = [norm(self._residual(fit, p, scale)) for p in range(n_subspaces)]
            norms = xp.stack(found, axis=1) / scale
            return norms if fit.weights is None else norms * xp.sqrt(fit.weights)[:, None]

        return self._by_rows(X, of_fit)

    def _residual(self, fit: Any, p: int, scale: float) -> Array:
        """Return the residuals of rows to subspace p, times their scale; 0 where missing."""
        basis, points = self.bases_[p, ...], self._points()
        if self._takes_missing:
            fitted = fit.coefficients[0, p, ...].mT @ basis.mT
            fitted = fitted if fit.points is None else fitted + fit.points[0, p, :]
            return namespace(basis).where(fit.missing > 0, 0.0, fit.values - fitted)
        # The residual itself, not ‖y‖² - ‖Dᵀy‖²: a sample in the subspace gets 0, not the root of
        # a rounding error.
        if points is None:
            return fit.chunk - fit.coefficients[0, p, ...].mT @ basis.mT
        about = fit.chunk - scale * points[p, :]
        return about - (about @ basis) @ basis.mT

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

    def _reconstructed(self, X: Array) -> Array:
        xp, affine = namespace(X), self._points() is not None
        n_subspaces = self.bases_.shape[0]
        if affine and not self._takes_missing:
            members, parts = members_of(self._nearest(X), n_subspaces), []
            for p, own in enumerate(members):
                basis, point = self.bases_[p, ...], self.anchors_[p, :]
                about = xp.take(X, own, axis=0) - point
                parts.append((about @ basis) @ basis.mT + point)
            return restore_order(members, parts)

        def of_fit(fit: Any, scale: float) -> Array:
            members, parts = members_of(xp.argmax(fit.gains[0, ...], axis=0), n_subspaces), []
            for p, own in enumerate(members):
                coefficients = xp.take(fit.coefficients[0, p, ...], own, axis=1).mT / scale
                centre = self.anchors_[p, :] if affine else self.mean_
                parts.append(coefficients @ self.bases_[p, ...].mT + centre)
            return restore_order(members, parts)

        return self._by_rows(X, of_fit)

    _filled = _reconstructed
    coordinates = coordinates
    memberships = memberships
    _memberships = memberships_by_residuals

    def _by_rows(self, X: Array, of_fit: Callable[[Any, float], Array]) -> Array:
        """Return what a function of a fit and its scale says of all rows, chunk by chunk."""
        xp = namespace(X)
        n_subspaces, m, s = self.bases_.shape
        size = X.shape[0] if self._takes_missing else rows_at_once(X, n_subspaces * s)

        def of_rows(rows: Array) -> Array:
            try:
                parts = [of_fit(*found) for found in self._fits(rows)]
                return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
            except UnlikeRows as unlike:
                parts = [of_rows(xp.take(rows, own, axis=0)) for own in unlike.groups]
                return restore_order(unlike.groups, parts)

        with limit_threads(pass_work(X.shape[0], m, n_subspaces * s)):
            parts = [of_rows(X[which, :]) for which in row_slices(X.shape[0], size)]
        return xp.concat(parts, axis=0)

    def _fits(self, X: Array) -> Iterator[tuple[Any, float]]:
        """Yield fits of rows, and the scale that they are in.

        Those of complete rows are to the directions of the subspaces alone.
        """
        xp, dtype, points = namespace(X), self.bases_.dtype, self._points()
        farthest = 0.0 if points is None else float(xp.max(xp.abs(points)))
        block: Any
        if self._takes_missing:
            X = xp.astype(X, dtype, copy=False)
            sizes = xp.max(xp.where(xp.isnan(X), 0.0, xp.abs(X - self.mean_)), axis=1)
            scale = UnlikeRows.common_scale(sizes, farthest, machine_epsilon(self.bases_))
            block = MaskedBlock.of(X, self.mean_, scale, self._prior(), -1)
            points = None if points is None else scale * points[None, ...]
        else:
            X, points = X - self.mean_, None
            sizes = xp.max(xp.abs(X), axis=1)
            scale = UnlikeRows.common_scale(sizes, farthest, machine_epsilon(self.bases_))
            X = xp.astype(X if scale == 1.0 else X * scale, dtype, copy=False)
            block = CompleteBlock(X, None, X.shape[0])
        for fit in block.fits(self.bases_[None, ...], points):
            yield fit, scale


class UnlikeRows(Exception):  # noqa: N818 - no error: `_by_rows` catches it
    """Some rows are so much larger or smaller than others that they need a scale of their own.

    In the scale of a row whose squares would overflow, ordinary rows would be rounded to 0. Raised
    where the largest entries are known anyway: another look at all rows would cost up to a third of
    a prediction.
    """

    def __init__(self, groups: list[Array]) -> None:
        self.groups = groups

    @classmethod
    def common_scale(cls, sizes: Array, least: float, eps: float) -> float:
        """Return a power of two for all rows, or raise it where their largest entries differ."""
        xp = namespace(sizes)
        sizes = xp.clip(sizes, least, None)
        largest = float(xp.max(sizes))
        smallest = float(xp.min(xp.where(sizes > 0, sizes, xp.ones_like(sizes))))
        scale = power_of_two_scale(largest, eps)
        if scale == 1.0 and power_of_two_scale(smallest, eps) == 1.0:
            return scale
        levels = np.trunc(np.frexp(to_numpy(sizes))[1] / SAFE_EXPONENTS[eps < 1e-10])
        each = np.unique(levels)
        if len(each) > 1:
            raise cls([moved_to(np.flatnonzero(levels == one), sizes) for one in each])
        return scale


def _norms(residual: Array) -> Array:
    """Return row norms that neither overflow nor underflow."""
    xp = namespace(residual)
    largest = xp.max(xp.abs(residual), axis=1, keepdims=True)
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    return xp.linalg.vector_norm(residual / safe, axis=1) * safe[:, 0]
