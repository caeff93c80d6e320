"""What a fitted mixture can do: share out, measure, denoise, fill, score and draw samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.arrays import Array, float64_sum, moved_to, namespace, to_numpy, transpose, unfilled
from polyspan.geometry import pairwise_subspace_distances
from polyspan.models.mixture_posterior import (
    Part,
    degrees_of_freedom,
    in_order,
    posterior_parts,
)
from polyspan.models.prediction import UnionPrediction
from polyspan.models.shared_rows import by_blocks
from polyspan.models.validation import validated
from polyspan.solvers.mixture import Gaussians, share_out


class MixturePrediction(UnionPrediction):
    """Methods of models with fitted components."""

    weights_: Array
    means_: Array
    bases_: Array
    variances_: Array
    noise_variances_: Array
    mean_: Array
    affine: bool
    noise: Any

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
        """Return the posterior share of every subspace in every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_subspaces)
        """
        X = self._validate(X, reset=False, method="predict_proba")
        out = unfilled((X.shape[0], self._n_features_out), self.bases_)
        for which, parts in self._parts(X):
            (out[which, :],) = in_order(parts, lambda part: (share_out(part.joint)[0],))
        return out

    def _nearest(self, X: Array) -> Array:
        xp = namespace(X)
        labels = unfilled((X.shape[0],), X, xp.int64)
        for which, parts in self._parts(X):
            (labels[which],) = in_order(parts, lambda part: (xp.argmax(part.joint, axis=1),))
        return labels

    def _distances(self, X: Array) -> Array:
        xp = namespace(X)
        out = unfilled((X.shape[0], self._n_features_out), self.bases_)
        for which, parts in self._parts(X):
            (out[which, :],) = in_order(parts, lambda part: (xp.sqrt(part.squares),))
        n_observed = xp.count_nonzero(~xp.isnan(X), axis=1)
        scale = X.shape[1] / xp.astype(xp.clip(n_observed, 1, None), xp.float64)
        return out * xp.astype(xp.sqrt(scale), out.dtype)[:, None]

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
        out = unfilled((X.shape[0],), X, xp.float64)
        for which, parts in self._parts(X):
            (found,) = in_order(parts, lambda part: (share_out(part.joint)[1],))
            out[which] = xp.astype(found, xp.float64, copy=False)
        return out

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

    def reconstruct(self, X: Any, noise: float | None = None) -> Array:
        """Return the expected clean sample: shrunk towards the subspaces, and without holes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.
        noise : float, default=None
            None: samples like those of `fit`, whose noise σ_l is taken away. A number: samples as
            those of `fit` would be with white noise of this standard deviation added to them, and
            only that is taken away (for a model learned from clean data).

        Returns
        -------
        X_reconstructed : ndarray of shape (n_samples, n_features)
            The posterior mean, Σ_l of the share of l times its own mean.
        """
        X = self._validate(X, reset=False, method="reconstruct")
        if noise is not None and not (np.isfinite(noise) and noise >= 0):
            raise ValueError(f"noise={noise} must be a standard deviation, 0 or more")
        return self._expected(X, noise)

    @by_blocks
    def impute(self, X: Any) -> Array:
        """Fill what is missing with its expectation and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
        """
        X = self._validate(X, reset=False, method="impute")
        xp = namespace(X)
        missing = xp.isnan(X)
        if not bool(xp.any(missing)):
            return xp.asarray(X, copy=True)
        filled = xp.astype(self._expected(X, None), X.dtype, copy=False)
        return xp.where(missing, filled, X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw samples, with noise, and say which component each comes from.

        NumPy draws them, and they are moved to where the fitted arrays lie.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples={n_samples} must be at least 1")
        rng = check_random_state(random_state)
        share = to_numpy(self.weights_).astype(np.float64)
        labels = rng.choice(len(share), size=n_samples, p=share / share.sum())
        means, bases = to_numpy(self.means_), to_numpy(self.bases_)
        variances, noise = to_numpy(self.variances_), to_numpy(self.noise_variances_)
        m, s = bases.shape[1:]
        X = np.empty((n_samples, m), dtype=bases.dtype)
        for p in range(len(share)):
            own = np.flatnonzero(labels == p)
            z = rng.standard_normal((len(own), s)) * np.sqrt(variances[p])
            white = rng.standard_normal((len(own), m)) * np.sqrt(noise[p])
            X[own] = means[p] + z @ bases[p].T + white
        return moved_to(X, self.bases_), moved_to(labels, self.bases_)

    def _expected(self, X: Array, noise: float | None, sureness: Array | None = None) -> Array:
        """Return the posterior mean of the clean samples.

        `sureness`, of shape (n_samples,), is filled with 1/(½ + degrees of freedom): the
        variance of a posterior mean goes with how many directions it was not shrunk in.
        """
        out = unfilled(X.shape, self.bases_)
        extra = 0.0 if noise is None else float(noise) ** 2
        gaussians = self._gaussians()
        sure = 1.0 / (0.5 + degrees_of_freedom(gaussians, None if noise is None else extra))

        def expect(part: Part) -> tuple[Array, ...]:
            shares = share_out(part.joint)[0]
            total = shares @ gaussians.means
            for p in range(self._n_features_out):
                own = shares[:, p : p + 1] * part.factors[p, ...]
                total += own @ transpose(gaussians.bases[p, ...])
            if noise is not None:
                total = total + self._kept_noise(part.rows_of(X[which, :]), part, shares, extra)
            # X may have another precision than the model.
            total = namespace(total).astype(total, out.dtype, copy=False) + self.mean_
            return (total,) if sureness is None else (total, shares @ sure)

        for which, parts in self._parts(X, extra):
            found = in_order(parts, expect)
            out[which, :] = found[0]
            if sureness is not None:
                sureness[which] = found[1]
        return out

    def _kept_noise(self, X: Array, part: Part, shares: Array, extra: float) -> Array:
        """Return what the model's own noise explains of what is off the subspaces."""
        xp = namespace(X)
        total = xp.zeros_like(X)
        gaussians = self._gaussians()
        for p in range(self._n_features_out):
            own, basis = gaussians.noise[p], gaussians.bases[p, ...]
            off = X - self.mean_ - gaussians.means[p, :] - part.factors[p, ...] @ transpose(basis)
            off = xp.where(xp.isnan(off), 0.0, off)
            kept = shares[:, p : p + 1] * (own / (own + extra)) * off
            total = xp.astype(total + kept, X.dtype, copy=False)
        return total

    def _gaussians(self) -> Gaussians:
        """Return the components about the mean of the training data."""
        with np.errstate(divide="ignore"):
            log_weights = namespace(self.weights_).log(self.weights_)
        return Gaussians(
            log_weights,
            self.means_ - self.mean_,
            self.bases_,
            self.variances_,
            self.noise_variances_,
        )

    def _parts(self, X: Array, extra: float = 0.0) -> Iterator[tuple[slice, Iterator[Part]]]:
        """Yield all rows in chunks, those with holes in groups of equal masks."""
        return posterior_parts(X, self.mean_, self._gaussians().with_noise(extra))

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        return validated(self, X, reset=reset, method=method, fitted="bases_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.estimator_type = "density_estimator"
        tags.array_api_support = True
        return tags
