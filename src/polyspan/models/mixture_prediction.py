"""What a fitted mixture can do: share out, measure, denoise, fill, score and draw samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.geometry import pairwise_subspace_distances
from polyspan.models.mixture_posterior import Part, degrees_of_freedom, posterior_parts
from polyspan.models.prediction import UnionPrediction
from polyspan.solvers.mixture import Gaussians, share_out


class MixturePrediction(UnionPrediction):
    """Methods of models with fitted components."""

    weights_: np.ndarray
    means_: np.ndarray
    bases_: np.ndarray
    variances_: np.ndarray
    noise_variances_: np.ndarray
    mean_: np.ndarray
    affine: bool
    noise: Any

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    @property
    def subspace_distances_(self) -> np.ndarray:
        """Matrix of d_u between the learned subspaces."""
        check_is_fitted(self)
        return np.asarray(pairwise_subspace_distances(self.bases_))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the posterior share of every subspace in every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_subspaces)
        """
        X = self._validate(X, reset=False)
        out = np.empty((len(X), len(self.weights_)), dtype=self.bases_.dtype)
        for part in self._parts(X):
            out[part.rows] = share_out(part.joint)[0]
        return out

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        labels = np.empty(len(X), dtype=np.int64)
        for part in self._parts(X):
            labels[part.rows] = part.joint.argmax(axis=1)
        return labels

    def _distances(self, X: np.ndarray) -> np.ndarray:
        out = np.empty((len(X), len(self.weights_)), dtype=self.bases_.dtype)
        for part in self._parts(X):
            out[part.rows] = np.sqrt(part.squares)
        n_observed = X.shape[1] - np.isnan(X).sum(axis=1)
        scale = np.sqrt(X.shape[1] / np.maximum(n_observed, 1)).astype(out.dtype)
        return np.asarray(out * scale[:, None])

    def transform(self, X: Any) -> np.ndarray:
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
        return np.asarray(super().transform(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of the observed entries of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        X = self._validate(X, reset=False)
        out = np.empty(len(X))
        for part in self._parts(X):
            out[part.rows] = share_out(part.joint)[1]
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-density; the higher the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        """
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        scores = self.score_samples(X)
        n_subspaces, m, s = self.bases_.shape
        noise = {"subspace": n_subspaces, "shared": 1}.get(self.noise, 0)
        means = n_subspaces * m if self.affine else m
        free = n_subspaces - 1 + means + n_subspaces * (m * s - s * (s - 1) // 2) + noise
        return float(-2.0 * scores.sum() + free * np.log(len(scores)))

    def reconstruct(self, X: Any, noise: float | None = None) -> np.ndarray:
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
        X = self._validate(X, reset=False)
        if noise is not None and not (np.isfinite(noise) and noise >= 0):
            raise ValueError(f"noise={noise} must be a standard deviation, 0 or more")
        return self._expected(X, noise)

    def impute(self, X: Any) -> np.ndarray:
        """Fill what is missing with its expectation and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
        """
        X = self._validate(X, reset=False)
        missing = np.isnan(X)
        if not missing.any():
            return np.array(X)
        filled = self._expected(X, None).astype(X.dtype, copy=False)
        return np.asarray(np.where(missing, filled, X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples, with noise, and say which component each comes from.

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
        share = self.weights_.astype(np.float64)
        labels = rng.choice(len(share), size=n_samples, p=share / share.sum())
        m, s = self.bases_.shape[1:]
        X = np.empty((n_samples, m), dtype=self.bases_.dtype)
        for p in range(len(share)):
            own = np.flatnonzero(labels == p)
            z = rng.standard_normal((len(own), s)) * np.sqrt(self.variances_[p])
            white = rng.standard_normal((len(own), m)) * np.sqrt(self.noise_variances_[p])
            X[own] = self.means_[p] + z @ self.bases_[p].T + white
        return X, labels

    def _expected(
        self, X: np.ndarray, noise: float | None, sureness: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the posterior mean of the clean samples.

        `sureness`, of shape (n_samples,), is filled with 1/(½ + degrees of freedom): the
        variance of a posterior mean goes with how many directions it was not shrunk in.
        """
        out = np.empty(X.shape, dtype=self.bases_.dtype)
        extra = 0.0 if noise is None else float(noise) ** 2
        gaussians = self._gaussians()
        free = degrees_of_freedom(gaussians, extra)
        for part in self._parts(X, extra):
            shares = share_out(part.joint)[0]
            total = shares @ gaussians.means
            for p, basis in enumerate(gaussians.bases):
                total += (shares[:, p : p + 1] * part.factors[p]) @ basis.T
            if extra:
                total += self._kept_noise(X[part.rows], part, shares, extra)
            out[part.rows] = total + self.mean_
            if sureness is not None:
                sureness[part.rows] = shares @ (1.0 / (0.5 + free))
        return out

    def _kept_noise(
        self, X: np.ndarray, part: Part, shares: np.ndarray, extra: float
    ) -> np.ndarray:
        """Return what the model's own noise explains of what is off the subspaces."""
        total = np.zeros_like(X)
        gaussians = self._gaussians()
        for p, (mean, basis) in enumerate(zip(gaussians.means, gaussians.bases, strict=True)):
            own = gaussians.noise[p]
            off = X - self.mean_ - mean - part.factors[p] @ basis.T
            off = np.where(np.isnan(off), 0, off)
            total += shares[:, p : p + 1] * (own / (own + extra)) * off
        return total

    def _gaussians(self) -> Gaussians:
        """Return the components about the mean of the training data."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_)
        return Gaussians(
            log_weights,
            self.means_ - self.mean_,
            self.bases_,
            self.variances_,
            self.noise_variances_,
        )

    def _parts(self, X: np.ndarray, extra: float = 0.0) -> Iterator[Part]:
        """Yield all rows, those with holes in groups of equal masks."""
        return posterior_parts(X, self.mean_, self._gaussians().with_noise(extra))

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> np.ndarray:
        if not reset:
            check_is_fitted(self)
        return np.asarray(
            validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.estimator_type = "density_estimator"
        return tags
