"""Fitted attributes of mixtures as Gaussians and back, and what follows from them for samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.base.arrays import Array, members_of, moved_to, namespace, restore_order
from polyspan.data.prediction import by_blocks
from polyspan.mixture._solve.complete import outlier_posterior
from polyspan.mixture._solve.gaussians import (
    ExtendedGaussians,
    Gaussians,
    Posterior,
    per_row,
    soft_assign,
)
from polyspan.mixture.problem import uniform_density

#: Fitted attributes of options, which a fit without them does not have.
LEARNED_BESIDES = (
    "outlier_weight_", "outlier_ranges_", "noise_factors_", "noise_groups_", "candidates_",
)  # fmt: skip


def gaussians_of(model: Any) -> Gaussians:
    """Return the components of a fitted mixture, relative to the mean of its training data."""
    with np.errstate(divide="ignore"):
        log_weights = namespace(model.weights_).log(model.weights_)
    means = model.means_ - model.mean_
    return Gaussians(log_weights, means, model.bases_, model.variances_, model.noise_variances_)


def fitted_attributes(gaussians: Gaussians, mean: Array) -> dict[str, Array]:
    """Return the fitted attributes of components about a mean: the inverse of `gaussians_of`."""
    xp = namespace(mean)
    besides: dict[str, Any] = {}
    if isinstance(gaussians, ExtendedGaussians):
        if gaussians.outlier_share:
            besides["outlier_weight_"] = gaussians.outlier_share
        if gaussians.noise_factors is not None:
            besides["noise_factors_"] = gaussians.noise_factors
    return {
        "weights_": xp.exp(gaussians.log_weights),
        "means_": gaussians.means + mean,
        # A copy: some columns of all eigenvectors, in reverse, would keep the others in memory,
        # and give other last digits than the array that a file holds.
        "bases_": xp.asarray(gaussians.bases, copy=True),
        "variances_": gaussians.variances,
        "noise_variances_": gaussians.noise,
        "mean_": mean,
        **besides,
    }


def outlier_logs(model: Any, X: Array, logs: Array) -> tuple[Array, Array]:
    """Return the probability that samples are outliers, and their log-densities with outliers."""
    xp = namespace(X)
    log_ranges = xp.log(model.outlier_ranges_)
    uniform = uniform_density(log_ranges, xp.astype(X, log_ranges.dtype), ~xp.isnan(X))
    return outlier_posterior(logs, uniform, model.outlier_weight_)


def by_noise_group(model: Any, X: Array, groups: np.ndarray, method: str) -> Array:
    """Return what a method says of samples, each with the noise of its group, by its number."""
    xp = namespace(X)
    rows, found = [], []
    for g, label in enumerate(model.noise_groups_):
        rows.append(moved_to(np.flatnonzero(groups == g), X, xp.int64))
        found.append(getattr(model.for_noise_group(label), method)(xp.take(X, rows[-1], axis=0)))
    return restore_order(rows, found)


@by_blocks
def coordinates(self: Any, X: Any) -> Array:
    """Return the expected coefficients of every sample in its most probable subspace.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries.

    Returns
    -------
    ndarray of shape (n_samples, subspace_dim)
        Posterior means of D_τᵀ(x - μ_τ) for the sample without its noise, with τ the most probable
        subspace: D_τᵀ(x - μ_τ) shrunk by v/(v + σ²) in each direction, where nothing is missing.
        ``means_[τ] + bases_[τ] @ coordinates`` is the expected clean sample if τ is its subspace.
        Where dimensions differ, `subspace_dim` is the largest, and columns beyond the dimension of
        a subspace are 0.
    """
    X = self._validate(X, reset=False, method="coordinates")

    def own_factors(posterior: Posterior) -> Array:
        xp = namespace(posterior.joint)
        members = members_of(xp.argmax(posterior.joint, axis=1), posterior.joint.shape[1])
        parts = [xp.take(posterior.factors[p, ...], own, axis=0) for p, own in enumerate(members)]
        return restore_order(members, parts)

    return self._per_row(X, own_factors)


def posterior_means(
    X: Array, mean: Array, gaussians: Gaussians, noise: float | None = None
) -> tuple[Array, Array]:
    """Return the posterior mean of every clean sample, and how certain it is.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        NaN where missing.
    mean : array of shape (n_features,)
        The means of the Gaussians are relative to this mean.
    noise : float or None
        As in `MixturePrediction.reconstruct`.

    Returns
    -------
    means : array of shape (n_samples, n_features)
    certainty : array of shape (n_samples,)
        1/(½ + degrees of freedom): the variance of a posterior mean grows with the number of
        directions in which it was not shrunk.
    """
    extra = 0.0 if noise is None else float(noise) ** 2
    certainties = 1.0 / (0.5 + gaussians.degrees_of_freedom(None if noise is None else extra))

    def expect(posterior: Posterior) -> tuple[Array, Array]:
        responsibilities = soft_assign(posterior.joint)[0]
        total = responsibilities @ gaussians.means
        for p in range(gaussians.bases.shape[0]):
            own = responsibilities[:, p : p + 1]
            total += (own * posterior.factors[p, ...]) @ gaussians.bases[p, ...].mT
            if noise is not None:
                total += own * _kept_noise(posterior, gaussians, p, extra)
        return total + mean, responsibilities @ certainties

    means, certainty = per_row(X, mean, gaussians.with_noise(extra), expect)
    return means, certainty


def _kept_noise(posterior: Posterior, gaussians: Gaussians, p: int, extra: float) -> Array:
    """Return the fraction of the residuals that is learned noise σ_p², not added noise `extra`."""
    fitted = posterior.factors[p, ...] @ gaussians.bases[p, ...].mT
    residuals = posterior.values - gaussians.means[p, :] - fitted
    if posterior.group is not None:
        residuals = residuals * posterior.group.observed
    learned = gaussians.noise[p]
    return learned / (learned + extra) * residuals
