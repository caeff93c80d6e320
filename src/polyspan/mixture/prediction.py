"""Methods of fitted mixtures: soft-assign, measure, denoise, fill, score and draw samples."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan._sklearn import Interval, check_parameters
from polyspan.arrays import Array, float64_sum, moved_to, namespace, to_numpy, transpose
from polyspan.checks import validate_samples
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.geometry import pairwise_subspace_distances
from polyspan.mixture._solve.gaussians import Gaussians, Posterior, per_row, soft_assign
from polyspan.union.prediction import UnionPrediction


class MixturePrediction(UnionPrediction):
    """Methods of models whose fitted attributes are those of `fitted_attributes`."""

    @property
    def _n_features_out(self) -> int:
        return int(self.weights_.shape[0])

    @property
    def subspace_distances_(self) -> Array:
        """Matrix of d_u between the learned subspaces."""
        check_is_fitted(self)
        return pairwise_subspace_distances(self.bases_)

    @by_blocks
    def predict_proba(self, X: Any) -> Array:
        """Return the posterior probability of every subspace for every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_subspaces)
        """
        X = self._validate(X, reset=False, method="predict_proba")
        return self._per_row(X, lambda posterior: soft_assign(posterior.joint)[0])

    def _per_row(self, X: Array, compute: Callable[[Posterior], Array]) -> Array:
        """Compute one value or vector per row from the posteriors of all rows."""
        return per_row(X, self.mean_, gaussians_of(self), lambda posterior: (compute(posterior),))[
            0
        ]

    def _nearest(self, X: Array) -> Array:
        return self._per_row(X, lambda posterior: namespace(X).argmax(posterior.joint, axis=1))

    def _distances(self, X: Array) -> Array:
        xp = namespace(X)
        distances = self._per_row(X, lambda posterior: xp.sqrt(posterior.squares))
        n_observed = xp.count_nonzero(~xp.isnan(X), axis=1)
        scale = X.shape[1] / xp.astype(xp.clip(n_observed, 1, None), xp.float64)
        return distances * xp.astype(xp.sqrt(scale), distances.dtype)[:, None]

    def transform(self, X: Any) -> Array:
        """Return the Mahalanobis distance of every sample to every component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_subspaces)
            √((x - μ_l)ᵀ C_l⁻¹ (x - μ_l)) over the observed entries, times √(m/|Ω|).
        """
        return super().transform(X)

    @by_blocks
    def score_samples(self, X: Any) -> Array:
        """Return the log-density of the observed entries of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        X = self._validate(X, reset=False, method="score_samples")
        xp = namespace(X)
        logs = self._per_row(X, lambda posterior: soft_assign(posterior.joint)[1])
        return xp.astype(logs, xp.float64, copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-density; the higher the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        """
        return super().score(X)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        scores = self.score_samples(X)
        n_subspaces, m, s = self.bases_.shape
        noise = {"subspace": n_subspaces, "shared": 1}.get(self.noise, 0)
        means = n_subspaces * m if self.affine else m * self.center
        free = n_subspaces - 1 + means + n_subspaces * (m * s - s * (s - 1) // 2) + noise
        return float(-2.0 * float(float64_sum(scores)) + free * np.log(scores.shape[0]))

    @as_samples
    def reconstruct(self, X: Any, noise: float | None = None) -> Array:
        """Return the expected clean sample: shrunk towards the subspaces, missing entries filled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.
        noise : float, default=None
            None: X is like the samples of `fit`, and their noise σ_l is removed. A number: X is
            like the samples of `fit` plus white noise of this standard deviation, and only this
            added noise is removed (for a model learned from clean data).

        Returns
        -------
        X_reconstructed : ndarray or frame of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
            The posterior mean: the means of all subspaces, weighted by their responsibilities.
        """
        check_parameters(
            "reconstruct",
            noise=(noise, [Interval(Real, 0, None, closed="left"), None]),
        )
        X = self._validate(X, reset=False, method="reconstruct")
        return posterior_means(X, self.mean_, gaussians_of(self), noise)[0]

    @as_samples
    @by_blocks
    def impute(self, X: Any) -> Array:
        """Fill missing entries with their expectation and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray or frame of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
        """
        X = self._validate(X, reset=False, method="impute")
        xp = namespace(X)
        missing = xp.isnan(X)
        if not bool(xp.any(missing)):
            return xp.asarray(X, copy=True)
        filled, _ = posterior_means(X, self.mean_, gaussians_of(self))
        return xp.where(missing, xp.astype(filled, X.dtype, copy=False), X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw samples with noise, and return also the component of each.

        NumPy draws them, and they are moved to the device of the fitted arrays.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        labels : ndarray of shape (n_samples,)
        """
        check_parameters(
            "sample",
            n_samples=(n_samples, [Interval(Integral, 1, None, closed="left")]),
            random_state=(random_state, ["random_state"]),
        )
        check_is_fitted(self)
        rng = check_random_state(random_state)
        weights = to_numpy(self.weights_).astype(np.float64)
        labels = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        means, bases = to_numpy(self.means_), to_numpy(self.bases_)
        variances, noise = to_numpy(self.variances_), to_numpy(self.noise_variances_)
        m, s = bases.shape[1:]
        X = np.empty((n_samples, m), dtype=bases.dtype)
        for p in range(len(weights)):
            own = np.flatnonzero(labels == p)
            z = rng.standard_normal((len(own), s)) * np.sqrt(variances[p])
            white = rng.standard_normal((len(own), m)) * np.sqrt(noise[p])
            X[own] = means[p] + z @ bases[p].T + white
        return moved_to(X, self.bases_), moved_to(labels, self.bases_)

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        return validate_samples(self, X, reset=reset, method=method, fitted="bases_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.estimator_type = "density_estimator"
        tags.array_api_support = True
        return tags


def gaussians_of(model: MixturePrediction) -> Gaussians:
    """Return the components of a fitted mixture, relative to the mean of its training data."""
    with np.errstate(divide="ignore"):
        log_weights = namespace(model.weights_).log(model.weights_)
    means = model.means_ - model.mean_
    return Gaussians(log_weights, means, model.bases_, model.variances_, model.noise_variances_)


def fitted_attributes(gaussians: Gaussians, mean: Array) -> dict[str, Array]:
    """Return the fitted attributes of components about a mean: the inverse of `gaussians_of`."""
    xp = namespace(mean)
    return {
        "weights_": xp.exp(gaussians.log_weights),
        "means_": gaussians.means + mean,
        # A copy: some columns of all eigenvectors, in reverse, would keep the others in memory,
        # and give other last digits than the array that a file holds.
        "bases_": xp.asarray(gaussians.bases, copy=True),
        "variances_": gaussians.variances,
        "noise_variances_": gaussians.noise,
        "mean_": mean,
    }


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
            total += (own * posterior.factors[p, ...]) @ transpose(gaussians.bases[p, ...])
            if noise is not None:
                total += own * _kept_noise(posterior, gaussians, p, extra)
        return total + mean, responsibilities @ certainties

    means, certainty = per_row(X, mean, gaussians.with_noise(extra), expect)
    return means, certainty


def _kept_noise(posterior: Posterior, gaussians: Gaussians, p: int, extra: float) -> Array:
    """Return the fraction of the residuals that is learned noise σ_p², not added noise `extra`."""
    fitted = posterior.factors[p, ...] @ transpose(gaussians.bases[p, ...])
    residuals = posterior.values - gaussians.means[p, :] - fitted
    if posterior.group is not None:
        residuals = residuals * posterior.group.observed
    learned = gaussians.noise[p]
    return learned / (learned + extra) * residuals
