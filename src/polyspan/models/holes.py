"""Prediction for data with holes: assign, measure, fill and score from what was observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.arrays import (
    Array,
    float64_sum,
    members_of,
    namespace,
    to_numpy,
    transpose,
    unsorted,
    zeros,
)
from polyspan.models.checks import check_columns_observed, listed
from polyspan.models.learner import SubspaceLearner
from polyspan.models.messages import warn_user
from polyspan.models.progress import FitProgress
from polyspan.models.shared_rows import by_blocks
from polyspan.models.validation import validated
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.masked_preparation import Holes, observed_mean, prepare_masked
from polyspan.solvers.preparation import Prepared, prepare
from polyspan.solvers.problem import Solution


class UnionWithHoles(SubspaceLearner):
    """A union of subspaces for samples with NaN, in training and in new data."""

    lam: float
    random_state: Any
    labels_: Array

    def _prior(self) -> float:
        """Return ρ, the weight of filled-in entries."""
        raise NotImplementedError

    # Whether complete data are learned from by the solver for complete data.
    _complete_too = True

    def _fit_observed(self, X: Array, y: Any) -> Solution:
        """Learn from the observed entries and store what was learned."""
        holes = Holes.of(X)
        check_columns_observed(holes.missing)
        _, dim = self._sizes(X.shape[1])
        learned = holes.n_observed > dim
        self._check_sizes(_count(learned), X.shape[1])
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

    def _prepare(self, X: Array, holes: Holes, learned: Array, given: Array | None) -> Prepared:
        """Return the complete problem where nothing is missing, else the one with holes."""
        xp = namespace(X)
        if self._complete_too and not bool(xp.any(holes.missing)):
            return prepare(X, float(self.lam), center=self.center, start=given)
        if not bool(xp.all(learned)):
            rows = xp.nonzero(learned)[0]
            X, holes = xp.take(X, rows, axis=0), holes.take(rows)
        mean = zeros((X.shape[1],), X)
        if self.center:
            mean = observed_mean(X, holes.missing)
        return prepare_masked(X, holes, mean, float(self.lam), prior=self._prior())

    @by_blocks
    def predict(self, X: Any) -> Array:
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
        return self._nearest(self._validate(X, reset=False, method="predict"))

    def _nearest(self, X: Array) -> Array:
        xp = namespace(X)
        holes = Holes.of(X)
        labels = [xp.argmax(energy, axis=1) for _, _, energy in self._coefficients(X, holes)]
        judged = holes.n_observed > self.bases_.shape[2]
        return xp.where(judged, xp.concat(labels, axis=0), -1)

    def _distances(self, X: Array) -> Array:
        """Return √(m/|Ω|) times the norm of the masked residual to every subspace."""
        holes = Holes.of(X)
        xp = namespace(X)
        dtype, n_subspaces = self.bases_.dtype, self.bases_.shape[0]
        distances = zeros((X.shape[0], n_subspaces), self.bases_)
        roots = xp.sqrt(X.shape[1] / xp.astype(xp.clip(holes.n_observed, 1, None), xp.float64))
        for which, theta, _ in self._coefficients(X, holes):
            missing = holes.missing[which, :]
            chunk = xp.where(missing, 0.0, xp.astype(X[which, :], dtype) - self.mean_)
            for p in range(n_subspaces):
                fitted = theta[:, p, :] @ transpose(self.bases_[p, ...])
                residual = xp.where(missing, 0.0, chunk - fitted)
                distances[which, p] = xp.astype(_norms(residual) * roots[which], dtype)
        return distances

    @by_blocks
    def reconstruct(self, X: Any) -> Array:
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
        return self._filled(self._validate(X, reset=False, method="reconstruct"))

    def _filled(self, X: Array) -> Array:
        xp = namespace(X)
        out = zeros(X.shape, self.bases_)
        for which, theta, energy in self._coefficients(X, Holes.of(X)):
            members = members_of(xp.argmax(energy, axis=1), self.bases_.shape[0])
            parts = [
                xp.take(theta[:, p, :], own, axis=0) @ transpose(self.bases_[p, ...]) + self.mean_
                for p, own in enumerate(members)
            ]
            out[which, :] = unsorted(members, parts)
        return out

    @by_blocks
    def impute(self, X: Any) -> Array:
        """Fill what is missing and keep every observed entry as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
        """
        X = self._validate(X, reset=False, method="impute")
        xp = namespace(X)
        return xp.where(xp.isnan(X), xp.astype(self._filled(X), X.dtype, copy=False), X)

    @by_blocks
    def score_samples(self, X: Any) -> Array:
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
        X = self._validate(X, reset=False, method="score_samples")
        xp = namespace(X)
        nearest = xp.min(self._distances(X), axis=1)
        judged = Holes.of(X).n_observed > self.bases_.shape[2]
        return xp.where(judged, -nearest * nearest, float("nan"))

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
        xp = namespace(scores)
        unknown = xp.isnan(scores)
        n_judged = _count(~unknown)  # a dask array may not know how many rows it has
        total = float(float64_sum(xp.where(unknown, 0.0, scores)))
        return total / n_judged if n_judged else float("nan")

    def _coefficients(self, X: Array, holes: Holes) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (which rows, θ in the units of the data, energies) by chunks."""
        dtype = self.bases_.dtype
        X = namespace(X).astype(X, dtype, copy=False)
        prepared = prepare_masked(X, holes, self.mean_, 1.0, prior=self._prior())
        assert isinstance(prepared.problem, MaskedProblem)
        start = 0
        with self._limit_threads(X):
            for theta, energy in prepared.problem.coefficients(self.bases_):
                which = slice(start, start + theta.shape[0])
                start = which.stop
                yield which, theta / prepared.scale, energy

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        return validated(self, X, reset=reset, method=method, fitted="bases_")

    def _spread_labels(self, learned: Array) -> None:
        """Give -1 to the samples that were not learned from."""
        xp = namespace(learned)
        if _count(learned) < learned.shape[0]:
            position = xp.cumulative_sum(xp.astype(learned, xp.int64)) - 1
            spread = xp.take(self.labels_, xp.clip(position, 0, None))
            self.labels_ = xp.where(learned, spread, -1)

    def _warn_about_rows(self, learned: Array, least: int) -> None:
        left_out = np.flatnonzero(~to_numpy(learned))
        if len(left_out):
            warn_user(
                f"{len(left_out)} of {learned.shape[0]} rows have at most subspace_dim="
                f"{least} observed entries and are not learned from (rows {listed(left_out)}); "
                "their label is -1",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _count(flags: Array) -> int:
    xp = namespace(flags)
    return int(xp.sum(xp.astype(flags, xp.int64)))


def _norms(residual: Array) -> Array:
    """Return row norms that neither overflow nor underflow."""
    xp = namespace(residual)
    largest = xp.max(xp.abs(residual), axis=1, keepdims=True)
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    return xp.linalg.vector_norm(residual / safe, axis=1) * safe[:, 0]
