"""Methods of fitted mixtures: soft-assign, measure, denoise, fill, score and draw samples."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import (
    Array,
    float64_sum,
    moved_to,
    namespace,
    to_numpy,
)
from polyspan.base.checks import validate_samples
from polyspan.base.private_sklearn import Interval, check_parameters
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.prediction import UnionPrediction
from polyspan.mixture._solve.gaussians import Posterior, per_row, soft_assign
from polyspan.mixture.fitted import coordinates, outlier_logs
from polyspan.mixture.fitted import gaussians_of as gaussians_of
from polyspan.mixture.fitted import posterior_means as posterior_means
from polyspan.mixture.problem import free_parameters


def has_outliers(model: MixturePrediction) -> bool:
    """Return True if a mixture has a uniform component; else raise an error that says why not."""
    if model.outliers is False:
        raise AttributeError("a mixture without outliers has no outlier_probability: set outliers")
    return True


class MixturePrediction(UnionPrediction):
    """Methods of models whose fitted attributes are those of `fitted_attributes`."""

    _takes_missing = _any_namespace = True
    subspace_dims_ = LinearUnion.subspace_dims_
    subspace_distances_ = LinearUnion.subspace_distances_

    @property
    def _n_features_out(self) -> int:
        return int(self.weights_.shape[0])

    @by_blocks
    def predict_proba(self, X: Any) -> Array:
        """Return the posterior probability of every subspace for every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            Probabilities, whose rows sum to 1.
        """
        X = self._validate(X, reset=False, method="predict_proba")
        return self._per_row(X, lambda posterior: soft_assign(posterior.joint)[0])

    coordinates = coordinates
    memberships = predict_proba

    def _per_row(self, X: Array, compute: Callable[[Posterior], Array], power: int = 0) -> Array:
        """Compute one value or vector per row from the posteriors of all rows.

        Rows so far away that their squares overflow are brought nearer: which subspace is the most
        probable stays the same, and what grows with a power of the distance is scaled back.
        """
        xp = namespace(X)
        sizes = xp.max(xp.where(xp.isnan(X), xp.zeros_like(X), xp.abs(X)), axis=1)
        limit = float(xp.finfo(X.dtype).max) ** 0.375
        far = bool(xp.any(sizes > limit))
        shrunk = limit / xp.clip(sizes, limit, None) if far else None
        near = X if shrunk is None else X * shrunk[:, None]
        (found,) = per_row(
            near, self.mean_, gaussians_of(self), lambda posterior: (compute(posterior),)
        )
        if shrunk is None or not power:
            return found
        factors = xp.reshape(shrunk, (-1,) + (1,) * (found.ndim - 1))
        with np.errstate(over="ignore"):  # an infinite result is right
            for _ in range(power):
                found = found / factors
        return found

    def _nearest(self, X: Array) -> Array:
        return self._per_row(X, lambda posterior: namespace(X).argmax(posterior.joint, axis=1))

    def _distances(self, X: Array) -> Array:
        xp = namespace(X)
        distances = self._per_row(X, lambda posterior: xp.sqrt(posterior.squares), power=1)
        n_observed = xp.count_nonzero(~xp.isnan(X), axis=1)
        scale = X.shape[1] / xp.astype(xp.clip(n_observed, 1, None), xp.float64)
        return distances * xp.astype(xp.sqrt(scale), distances.dtype)[:, None]

    def transform(self, X: Any) -> Array:
        """Return the Mahalanobis distance of every sample to every component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            Distances √((x - μ_l)ᵀ C_l⁻¹ (x - μ_l)) over the observed entries, times √(m/o) for o
            observed entries of m.
        """
        return super().transform(X)

    @by_blocks
    def score_samples(self, X: Any) -> Array:
        """Return the log-density of the observed entries of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithm of the density of the mixture.
        """
        X = self._validate(X, reset=False, method="score_samples")
        xp = namespace(X)
        logs = self._per_row(X, lambda posterior: soft_assign(posterior.joint)[1], power=2)
        if hasattr(self, "outlier_weight_"):
            logs = outlier_logs(self, X, logs)[1]
        return xp.astype(logs, xp.float64, copy=False)

    @available_if(has_outliers)  # type: ignore[untyped-decorator]
    @by_blocks
    def outlier_probability(self, X: Any) -> Array:
        """Return the probability that samples belong to the uniform component; with `outliers`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries. The uniform density is the same outside the box
            of the training samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Posterior probability of the uniform component, between 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from polyspan import SubspaceMixture
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((60, 1)) @ np.ones((1, 4)) + 0.1 * rng.standard_normal((60, 4))
        >>> X[0] = [2, -2, 2, -2]
        >>> model = SubspaceMixture(1, 1, outliers=True).fit(X)
        >>> model.outlier_probability(X[:3]).round(2).tolist()
        [1.0, 0.0, 0.0]
        """
        X = self._validate(X, reset=False, method="outlier_probability")
        logs = self._per_row(X, lambda posterior: soft_assign(posterior.joint)[1], power=2)
        return outlier_logs(self, X, logs)[0]

    def for_noise_group(self, group: Any) -> Self:
        """Return this mixture for samples of one group of `noise_groups`.

        Its `noise_variances_` are those of the group, so that all its methods take samples as ones
        of this group. The mixture itself takes new samples as ones of average noise.

        Parameters
        ----------
        group : label
            One of `noise_groups_`.

        Returns
        -------
        SubspaceMixture
            A copy of the mixture, without groups.

        Examples
        --------
        >>> import numpy as np
        >>> from polyspan import SubspaceMixture
        >>> rng = np.random.default_rng(0)
        >>> noise = np.repeat([0.1, 1.0], 100)
        >>> X = rng.standard_normal((200, 1)) @ np.ones((1, 20))
        >>> X += noise[:, None] * rng.standard_normal(X.shape)
        >>> model = SubspaceMixture(1, 1).fit(X, noise_groups=np.repeat(["a", "b"], 100))
        >>> noisy = model.for_noise_group("b")
        >>> np.sqrt(noisy.noise_variances_).round(1).tolist()
        [1.0]
        """
        check_is_fitted(self)
        known = getattr(self, "noise_groups_", None)
        if known is None:
            raise ValueError("there are no groups of noise: pass noise_groups to fit")
        which = np.flatnonzero(known == group)
        if not len(which):
            raise ValueError(f"noise group {group!r} is unknown; there are {known.tolist()}")
        found = copy.copy(self)
        found.noise_variances_ = self.noise_variances_ * self.noise_factors_[int(which[0])]
        del found.noise_groups_, found.noise_factors_
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-density; the higher the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts in the mean; None: once.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return super().score(X, y, sample_weight)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion; the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries, such as those of the fit.

        Returns
        -------
        float
            The number of free parameters times log(n_samples), minus twice the log-likelihood.
        """
        scores = self.score_samples(X)
        dims = [int(dim) for dim in self.subspace_dims_]
        n_groups = len(getattr(self, "noise_factors_", [0]))
        free = free_parameters(self, dims, self.bases_.shape[1], n_groups)
        return float(-2.0 * float(float64_sum(scores)) + free * np.log(scores.shape[0]))

    @as_samples
    def reconstruct(self, X: Any, noise: float | None = None) -> Array:
        """Return the expected clean sample: shrunk towards the subspaces, missing entries filled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, with NaN for missing entries.
        noise : float, default=None
            Noise to remove. None: X is like the samples of `fit`, and their noise σ_l is removed.
            A number: X is like the samples of `fit` plus white noise of this standard deviation,
            and only this added noise is removed (for a model learned from clean data).

        Returns
        -------
        ndarray or frame of shape (n_samples, n_features)
            Posterior means: the means of all subspaces, weighted by their responsibilities. A frame
            where `set_output` asks for one.
        """
        check_parameters(
            "reconstruct",
            noise=(noise, [Interval(Real, 0, None, closed="left"), None]),
        )
        X = self._validate(X, reset=False, method="reconstruct")
        return posterior_means(X, self.mean_, gaussians_of(self), noise)[0]

    def _filled(self, X: Array) -> Array:
        if not bool(namespace(X).any(namespace(X).isnan(X))):
            return X
        return posterior_means(X, self.mean_, gaussians_of(self))[0]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw samples with noise, and return also the component of each.

        NumPy draws them, and they are moved to the device of the fitted arrays.

        Parameters
        ----------
        n_samples : int, default=1
            Number of samples to draw.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Drawn samples.
        labels : ndarray of shape (n_samples,)
            Component that each of them was drawn from.
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
        tags.estimator_type = "density_estimator"
        return tags
