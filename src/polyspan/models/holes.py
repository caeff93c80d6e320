"""Prediction for data with holes: assign, measure, fill and score from what was observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.models.checks import check_columns_observed, listed
from polyspan.models.learner import SubspaceLearner
from polyspan.models.messages import warn_user
from polyspan.models.progress import FitProgress
from polyspan.models.shared_rows import by_blocks
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.masked_preparation import Holes, observed_mean, prepare_masked
from polyspan.solvers.preparation import Prepared, prepare
from polyspan.solvers.problem import Solution


class UnionWithHoles(SubspaceLearner):
    """A union of subspaces for samples with NaN, in training and in new data."""

    lam: float
    random_state: Any
    labels_: np.ndarray

    def _prior(self) -> float:
        """Return ρ, the weight of filled-in entries."""
        raise NotImplementedError

    # Whether complete data are learned from by the solver for complete data.
    _complete_too = True

    def _fit_observed(self, X: np.ndarray, y: Any) -> Solution:
        """Learn from the observed entries and store what was learned."""
        holes = Holes.of(X)
        check_columns_observed(holes.missing)
        _, dim = self._sizes(X.shape[1])
        learned = holes.n_observed > dim
        self._check_sizes(int(learned.sum()), X.shape[1])
        self._warn_about_rows(learned, dim)
        rng = check_random_state(self.random_state)
        given = self._given_start(X)
        prepared = self._prepare(X, holes, learned, given)
        n_starts = self._n_starts()
        progress = FitProgress(self, X, y, n_starts, self._max_steps())
        best = self._best_solution(prepared, given, n_starts, rng, progress)
        self._store(prepared, best)
        self._spread_labels(learned)
        progress.end()
        return best

    def _prepare(
        self, X: np.ndarray, holes: Holes, learned: np.ndarray, given: np.ndarray | None
    ) -> Prepared:
        """Return the complete problem where nothing is missing, else the one with holes."""
        if not holes.missing.any() and self._complete_too:
            return prepare(X, float(self.lam), center=self.center, start=given)
        if not learned.all():
            X, holes = X[learned], Holes(holes.missing[learned], holes.n_observed[learned])
        mean = np.zeros(X.shape[1], dtype=X.dtype)
        if self.center:
            mean = observed_mean(X, holes.missing)
        return prepare_masked(X, holes, mean, float(self.lam), prior=self._prior())

    @by_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Return the index of the nearest subspace of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed, in any pattern.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            -1 for samples with at most `subspace_dim` observed entries.
        """
        X = self._validate(X, reset=False)
        holes = Holes.of(X)
        labels = [energy.argmax(axis=1) for _, _, energy in self._coefficients(X, holes)]
        judged = holes.n_observed > self.bases_.shape[2]
        return np.where(judged, np.concatenate(labels), -1)

    def _distances(self, X: np.ndarray) -> np.ndarray:
        """Return √(m/|Ω|) times the norm of the masked residual to every subspace."""
        holes = Holes.of(X)
        distances = np.empty((len(X), len(self.bases_)), dtype=self.bases_.dtype)
        weights = X.shape[1] / np.maximum(holes.n_observed, 1)
        for which, theta, _ in self._coefficients(X, holes):
            missing = holes.missing[which]
            chunk = np.where(missing, 0, X[which].astype(self.bases_.dtype) - self.mean_)
            for p, basis in enumerate(self.bases_):
                residual = np.where(missing, 0, chunk - theta[:, p] @ basis.T)
                distances[which, p] = _norms(residual) * np.sqrt(weights[which])
        return distances

    @by_blocks
    def reconstruct(self, X: Any) -> np.ndarray:
        """Return the nearest point of the union for every sample: denoised, and without holes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN allowed.

        Returns
        -------
        X_reconstructed : ndarray of shape (n_samples, n_features)
            Finite. A sample with at most `subspace_dim` observed entries goes to the subspace
            that explains it with the smallest coefficients (up to `fill_prior`); one without
            any observed entry becomes the mean.
        """
        X = self._validate(X, reset=False)
        out = np.empty(X.shape, dtype=self.bases_.dtype)
        for which, theta, energy in self._coefficients(X, Holes.of(X)):
            nearest = energy.argmax(axis=1)
            part = out[which]
            for p, basis in enumerate(self.bases_):
                own = np.flatnonzero(nearest == p)
                part[own] = theta[own, p] @ basis.T + self.mean_
        return out

    @by_blocks
    def impute(self, X: Any) -> np.ndarray:
        """Fill what is missing and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
        """
        # What was given still has the names of its columns, which `reconstruct` checks.
        filled = self.reconstruct(X)
        X = self._validate(X, reset=False)
        return np.where(np.isnan(X), filled.astype(X.dtype, copy=False), X)

    @by_blocks
    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the squared distance of every sample to its nearest subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            m/|Ω| times minus the squared masked residual; NaN for samples with at most
            `subspace_dim` observed entries.
        """
        X = self._validate(X, reset=False)
        nearest = self._distances(X).min(axis=1)
        judged = (~np.isnan(X)).sum(axis=1) > self.bases_.shape[2]
        return np.where(judged, -nearest * nearest, np.nan)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `score_samples` over the samples that can be judged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            0 is the best; NaN where no sample can be judged.
        """
        scores = self.score_samples(X)
        judged = ~np.isnan(scores)
        return float(np.mean(scores[judged], dtype=np.float64)) if judged.any() else float("nan")

    def _coefficients(
        self, X: np.ndarray, holes: Holes
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield (which rows, θ in the units of the data, energies) by chunks."""
        dtype = self.bases_.dtype
        prepared = prepare_masked(
            X.astype(dtype, copy=False), holes, self.mean_, 1.0, prior=self._prior()
        )
        assert isinstance(prepared.problem, MaskedProblem)
        start = 0
        with self._limit_threads(X):
            for theta, energy in prepared.problem.coefficients(self.bases_):
                which = slice(start, start + len(theta))
                start = which.stop
                yield which, theta / dtype.type(prepared.scale), energy

    def _validate(self, X: Any, *, reset: bool) -> np.ndarray:
        if not reset:
            check_is_fitted(self)
        return np.asarray(
            validate_data(
                self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
        )

    def _spread_labels(self, learned: np.ndarray) -> None:
        """Give -1 to the samples that were not learned from."""
        labels = np.full(len(learned), -1, dtype=np.int64)
        labels[learned] = self.labels_
        self.labels_ = labels

    def _warn_about_rows(self, learned: np.ndarray, least: int) -> None:
        left_out = np.flatnonzero(~learned)
        if len(left_out):
            warn_user(
                f"{len(left_out)} of {len(learned)} rows have at most subspace_dim="
                f"{least} observed entries and are not learned from (rows {listed(left_out)}); "
                "their label is -1",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _norms(residual: np.ndarray) -> np.ndarray:
    """Return row norms that neither overflow nor underflow."""
    largest = np.abs(residual).max(axis=1, keepdims=True)
    safe = np.where(largest > 0, largest, 1)
    return np.asarray(np.linalg.norm(residual / safe, axis=1) * safe[:, 0])
