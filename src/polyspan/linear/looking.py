"""Looking at samples through a linear model: their coordinates, memberships, and the noise.

`coordinates` and `memberships` are methods of `LinearUnion`. They are here because one file of
prediction is long enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import (
    Array,
    float64_sum,
    members_of,
    moved_to,
    namespace,
    one_hot,
    restore_order,
    row_slices,
    rows_at_once,
    to_numpy,
    zeros,
)
from polyspan.data.missing import Holes
from polyspan.data.prediction import by_blocks, light
from polyspan.data.rows import Source
from polyspan.geometry.bases import subspace_dims

if TYPE_CHECKING:
    from polyspan.linear.linear_union import LinearUnion


@by_blocks
def coordinates(self: LinearUnion, X: Any) -> Array:
    """Return the coefficients of every sample in the basis of its own (nearest) subspace.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries where the model takes them.

    Returns
    -------
    ndarray of shape (n_samples, subspace_dim)
        Coordinates D_τᵀ(x - mean), with τ the nearest subspace; for affine subspaces
        `anchors_[τ]` replaces the mean. For samples with missing entries they are the coefficients
        that fit the observed entries best, as in `reconstruct`. Where dimensions differ,
        `subspace_dim` is the largest, and columns beyond the dimension of a subspace are 0, so
        that ``mean_ + bases_[τ] @ coordinates`` is what `reconstruct` returns.
    """
    return own_coefficients(self, self._validate(X, reset=False, method="coordinates"))


@by_blocks
def memberships(self: LinearUnion, X: Any) -> Array:
    r"""Return how probable every subspace is for every sample.

    These are the posterior probabilities of a simple model: every subspace is equally probable,
    and a sample is a point of its subspace plus white noise of variance σ²,

    .. math:: w_l = e^{-r_l / (2 \sigma^2)} \Big/ \sum_p e^{-r_p / (2 \sigma^2)}

    with r_l the squared distance to subspace l, over observed entries, and σ² the
    `noise_variance_` of the fit. They say which samples lie between two subspaces. They do not
    say whether a sample fits any subspace at all (see `score_samples`), know nothing of how
    samples spread within a subspace or how large the subspaces are (`SubspaceMixture` learns
    both), and are too sure where the noise is not white. With unequal dimensions they favour the
    larger subspaces, which are nearer to any point: take `SubspaceMixture` for probabilities.
    With `trim`, σ² is that of the samples that took part: it is too small, and memberships are
    too sure, where fewer samples are outliers than were trimmed.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries where the model takes them.

    Returns
    -------
    ndarray of shape (n_samples, n_subspaces)
        Memberships, whose rows sum to 1. The largest is that of `predict(X)`; where two distances
        are equal up to rounding it may be the other. All are equal for samples with too few
        observed entries to be judged.
    """
    return self._memberships(self._validate(X, reset=False, method="memberships"))


def memberships_by_residuals(model: LinearUnion, X: Array) -> Array:
    """Return the memberships of checked samples."""
    variance = fitted_variance(model)
    xp = namespace(X)
    halves = half_residuals(model, X)
    if variance == 0:
        found = one_hot(xp.argmin(halves, axis=1), halves.shape[1], halves.dtype)
    else:
        with np.errstate(over="ignore"):
            weights = xp.exp(-(halves / variance))
        found = weights / xp.sum(weights, axis=1, keepdims=True)
    if not model._takes_missing:
        return found
    judged = Holes.of(X).n_observed > model.bases_.shape[2]
    return xp.where(judged[:, None], found, 1.0 / halves.shape[1])


def fitted_variance(model: LinearUnion) -> float:
    """Return `noise_variance_`, or raise an error that says why there is none."""
    check_is_fitted(model)
    found = getattr(model, "noise_variance_", None)
    if found is None:
        raise ValueError(
            f"this {type(model).__name__} has no noise_variance_, which memberships need: it was "
            "fitted by an earlier release; fit it again"
        )
    if not math.isfinite(found):
        raise ValueError(
            f"noise_variance_ is {found}: residuals are too large to be squared; scale X and fit "
            "again"
        )
    return float(found)


def half_residuals(model: LinearUnion, X: Array) -> Array:
    """Return (r_l - min_p r_p)/2 of checked samples, r_l over observed entries alone."""
    xp = namespace(X)
    with np.errstate(over="ignore"):
        if not model._takes_missing:
            distances = model._distances(X)
            least = xp.min(distances, axis=1, keepdims=True)
            # Not the difference of two squares, which cancels.
            return 0.5 * (distances - least) * (distances + least)

        def of_fit(fit: Any, scale: float) -> Array:
            # What `predict` compares: the prior of filled-in entries is part of it.
            gains = fit.gains[0, ...].mT
            lost = xp.max(gains, axis=1, keepdims=True) - gains
            return 0.5 * lost / fit.weights[:, None] / scale / scale

        return model._by_rows(X, of_fit)


def own_coefficients(model: LinearUnion, X: Array) -> Array:
    """Return the coefficients of checked samples in their nearest subspaces."""
    xp, bases = namespace(X), model.bases_
    n_subspaces, _, s = bases.shape
    if s == 0:
        return zeros((X.shape[0], s), bases)
    if model._takes_missing or model._points() is None:

        def of_fit(fit: Any, scale: float) -> Array:
            own = xp.argmax(fit.gains[0, ...], axis=0)[None, None, :]
            found = xp.take_along_axis(fit.coefficients[0, ...], own, axis=0)[0, ...]
            return found.mT / scale

        return model._by_rows(X, of_fit)
    members = members_of(model._nearest(X), n_subspaces)
    X = xp.astype(X, bases.dtype, copy=False)
    parts = [
        (xp.take(X, own, axis=0) - model.anchors_[p, :]) @ bases[p, ...]
        for p, own in enumerate(members)
    ]
    return restore_order(members, parts)


def noise_variance(
    model: LinearUnion, X: Any, source: Source | None = None, sample_weight: Any = None
) -> float:
    """Return the variance of the noise: the mean squared residual per remaining dimension.

    That is Σ r_i / Σ (|Ω_i| - s_i), over samples with more observed entries |Ω_i| than dimensions
    s_i of their subspace, and with r_i their squared residual over these entries.

    Parameters
    ----------
    model : LinearUnion
        With its bases.
    X : array of shape (n_samples, n_features)
        The checked training samples.
    source : Source, default=None
        Where the rows are, if not in memory: they are read once more, and X is not looked at.
    sample_weight : array of shape (n_samples,) or PerRow, default=None
        How often every sample counts; those of a source are where its rows are.
    """
    if source is not None:
        sums, _ = source.reduce(_block_residuals, light(model), sample_weight)
    else:
        sums, size = np.zeros(2), rows_at_once(X, model.bases_.shape[0] * model.bases_.shape[2])
        for which in row_slices(X.shape[0], size):
            own = None if sample_weight is None else sample_weight[which]
            sums += _residual_sums(model, X[which, :], own)
    residual, freedom = sums.tolist()
    return residual / freedom if freedom > 0 else 0.0


def _block_residuals(rows: Any, model: Any, weights: Any) -> tuple[np.ndarray, None]:
    """Return the sums over a block of rows out of memory."""
    dtype = to_numpy(model.bases_).dtype
    rows = np.asarray(rows).astype(dtype, copy=False)
    return _residual_sums(model, rows, weights), None


def _residual_sums(model: LinearUnion, X: Array, sample_weight: Any) -> np.ndarray:
    """Return Σ r_i and Σ (|Ω_i| - s_i) of some samples."""
    xp, dims = namespace(X), to_numpy(subspace_dims(model.bases_))
    if sample_weight is not None:
        # Rows that do not count must not set the scale of those that do.
        rows = xp.nonzero(sample_weight)[0]
        X = xp.take(X, rows, axis=0)
    if not X.shape[0]:
        return np.zeros(2)
    observed = ~xp.isnan(X)
    residual = xp.where(observed, X - xp.astype(model._reconstructed(X), X.dtype, copy=False), 0.0)
    own: Any = int(dims[0])
    if (dims != dims[0]).any():
        labels = to_numpy(model._nearest(X))
        own = moved_to(dims[labels], X, xp.int64)
    # dims.max(): what `predict` asks for.
    n_observed = xp.count_nonzero(observed, axis=1)
    judged = n_observed > int(dims.max())
    weights = xp.astype(judged, xp.float64)
    if sample_weight is not None:
        weights = weights * xp.astype(xp.take(sample_weight, rows), xp.float64)
    largest = float(xp.max(xp.abs(residual)))
    if largest == 0.0:
        squares = zeros((X.shape[0],), X, xp.float64)
    else:
        squares = float64_sum((residual / largest) ** 2, axis=1)
    freedom = float(xp.sum(weights * xp.astype(n_observed - own, xp.float64)))
    return np.array([float(xp.sum(weights * squares)) * largest * largest, freedom])
