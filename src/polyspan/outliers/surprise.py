"""How surprising samples are to a mixture of low-rank Gaussians, and by which columns."""

from __future__ import annotations

from functools import partial

import numpy as np

from polyspan.mixture._solve.gaussians import (
    Gaussians,
    Posterior,
    per_row,
    posterior_covariances,
    soft_assign,
)


def surprise(X: np.ndarray, gaussians: Gaussians) -> np.ndarray:
    """Return log(Σ_l π_l N(μ_l; l) / Σ_l π_l N(x; l)) of the observed entries of every row.

    It is 0 where the row is at the centre of every component, positive elsewhere, and for one
    Gaussian half the squared Mahalanobis distance.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        NaN where missing.

    Returns
    -------
    values : ndarray of shape (n,)
    """
    found = per_row(X, np.zeros(X.shape[1]), gaussians, lambda posterior: (_surprise(posterior),))
    return np.asarray(found[0])


def column_surprises(X: np.ndarray, gaussians: Gaussians) -> np.ndarray:
    """Return the surprise of every row, divided among its columns.

    A column's part is proportional to the squared error, in standard deviations, with which the
    other observed columns of the row predict it: of every component ((Λ(x - μ))_j)²/Λ_jj, with Λ
    the inverse covariance of the observed entries, weighted by the responsibilities.

    Returns
    -------
    values : ndarray of shape (n, n_features)
        Never negative; 0 where missing. The sum of a row is `surprise`.
    """
    return np.asarray(per_row(X, np.zeros(X.shape[1]), gaussians, partial(_columns, gaussians))[0])


def _surprise(posterior: Posterior) -> np.ndarray:
    top = soft_assign(posterior.joint + 0.5 * posterior.squares)[1]
    # Rounding can make it slightly negative.
    return np.asarray(np.maximum(top - soft_assign(posterior.joint)[1], 0.0))


def _columns(gaussians: Gaussians, posterior: Posterior) -> tuple[np.ndarray]:
    responsibilities = soft_assign(posterior.joint)[0]
    observed = np.ones_like(posterior.values)
    if posterior.group is not None:
        observed = np.broadcast_to(posterior.group.observed, observed.shape).astype(np.float64)
    errors = np.zeros_like(posterior.values)
    for p, basis in enumerate(gaussians.bases):
        fitted = posterior.factors[p] @ basis.T
        residuals = (posterior.values - gaussians.means[p] - fitted) * observed
        # Λ(x - μ) = residuals/σ² and Λ_jj = (1 - leverage_j)/σ².
        free = np.maximum(1.0 - _leverages(gaussians, posterior, p), 1e-12)
        errors += responsibilities[:, p : p + 1] * residuals**2 / (gaussians.noise[p] * free)
    total = errors.sum(axis=1, keepdims=True)
    equal = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1.0)
    shares = np.where(total > 0, errors / np.where(total > 0, total, 1.0), equal)
    return (_surprise(posterior)[:, None] * shares,)


def _leverages(gaussians: Gaussians, posterior: Posterior, p: int) -> np.ndarray:
    """Return the diagonal of W A⁻¹ Wᵀ/σ² of component p, with A = I + W_oᵀW_o/σ²."""
    basis, noise = gaussians.bases[p], gaussians.noise[p]
    if posterior.group is None:
        kept = gaussians.variances[p] / (gaussians.variances[p] + noise)
        return np.asarray((basis * basis * kept).sum(axis=1))[None, :]
    W = gaussians.factors[p]
    n_pairs = W.shape[1] ** 2
    pairs = (W[:, :, None] * W[:, None, :]).reshape(len(W), n_pairs)
    inverse = posterior_covariances(posterior.group, gaussians, p)
    return np.asarray((pairs @ inverse.reshape(n_pairs, inverse.shape[2])).T / noise)
