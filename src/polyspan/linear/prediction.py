"""Labels, distances and scores: the same for subspaces of any space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from polyspan.base.arrays import (
    Array,
    float64_sum,
    namespace,
)
from polyspan.base.private_sklearn import CallbackSupportMixin, available_if, html_with_summary
from polyspan.data.prediction import as_samples, by_blocks
from polyspan.data.weights import weighted_mean
from polyspan.linear.summary import short_summary, summary


def can_impute(model: UnionPrediction) -> bool:
    """Return True if a model has `impute`; else raise an error that says why not."""
    if not model._takes_missing:
        raise AttributeError(
            f"{type(model).__name__} takes complete data only, so it has no impute: polyspan's "
            "RobustMiCUSaL, RobustMCKUSaL and SubspaceImputer fill missing entries"
        )
    return True


def _has_memberships(model: UnionPrediction) -> bool:
    """Raise an error that says why a model has no memberships."""
    raise AttributeError(
        f"the memberships of a {type(model).__name__} are not known, since the dimension of its "
        "feature space is not, and so neither is the noise: transform gives the distances"
    )


class UnionPrediction(
    CallbackSupportMixin,  # type: ignore[misc]
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Predictions from the distances to all subspaces, in the ambient or a feature space.

    Subclasses check data in `_validate`. Of checked samples, `_nearest` returns the index of the
    nearest subspace, `_distances` the distances to all, and `_filled` what `impute` fills in.
    """

    _takes_missing = False
    """Whether NaN marks missing entries, in training and in new data."""
    _any_namespace = False
    """Whether arrays of any namespace are worked on where they are."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        tags.array_api_support = self._any_namespace
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # Lazy labels hold a dask graph that leads to all training samples.
        state: dict[str, Any] = super().__getstate__()
        if hasattr(state.get("labels_"), "__dask_graph__"):
            state = {name: value for name, value in state.items() if name != "labels_"}
        return state

    @by_blocks
    def predict(self, X: Any) -> Array:
        """Return the index of the nearest subspace of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With NaN for missing entries where the model takes them. For `kernel="precomputed"`
            the kernel values with the training samples, (n_samples, n_training).

        Returns
        -------
        ndarray of shape (n_samples,)
            Index of the nearest subspace; -1 for samples with at most `subspace_dim` observed
            entries.
        """
        return self._nearest(self._validate(X, reset=False, method="predict"))

    @by_blocks
    def transform(self, X: Any) -> Array:
        """Return the distance of every sample to every subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as for `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            Distances ‖(x - mean) - P_l(x - mean)‖, not squared. Distances of kernel models are
            in the feature space. With missing entries it is the distance of the observed
            entries, times √(m/o) for o observed entries of m.
        """
        return self._distances(self._validate(X, reset=False, method="transform"))

    @by_blocks
    def score_samples(self, X: Any) -> Array:
        """Return minus the squared distance of every sample to its nearest subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as for `predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores, of which 0 is the best; NaN for samples with at most `subspace_dim` observed
            entries, -inf where the square leaves the range of the numbers.
        """
        return self._scores(self._validate(X, reset=False, method="score_samples"))

    def _scores(self, X: Array) -> Array:
        distances = self._distances(X)
        nearest = namespace(distances).min(distances, axis=1)
        with np.errstate(over="ignore"):  # -inf: beyond 1e154 squares leave the range
            return -nearest * nearest

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
        return xp.where(xp.isnan(X), xp.astype(self._filled(X), X.dtype, copy=False), X)

    summary = summary
    _short_summary = short_summary
    _html_repr = html_with_summary  # of scikit-learn, for notebooks

    @available_if(_has_memberships)
    def memberships(self, X: Any) -> Array:
        """Return how probable every subspace is; linear models and mixtures have their own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as for `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_subspaces)
            Memberships, whose rows sum to 1. Kernel models have none and raise an
            AttributeError.
        """
        raise NotImplementedError

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean squared distance to the nearest subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as for `predict`.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts in the mean; None: once.

        Returns
        -------
        float
            Mean of `score_samples`, of which 0 is the best. The mean is over samples that can be
            judged; NaN where none can.
        """
        scores = self.score_samples(X)
        if sample_weight is not None:
            return weighted_mean(scores, sample_weight)
        if math.isnan(scores.shape[0]):  # a dask array that has not counted its rows yet
            return float(scores[~namespace(scores).isnan(scores)].mean())
        xp = namespace(scores)
        unknown = xp.isnan(scores)
        n_judged = scores.shape[0] - int(xp.sum(xp.astype(unknown, xp.int64)))
        total = float(float64_sum(xp.where(unknown, 0.0, scores)))
        return total / n_judged if n_judged else float("nan")
