"""Fill a table with fitted models: scaling of the columns, predictions, variances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from polyspan.data.missing import Group
from polyspan.mixture._solve.gaussians import (
    Gaussians,
    Posterior,
    per_row,
    posterior_covariances,
    soft_assign,
)
from polyspan.mixture.fitted import gaussians_of, posterior_means
from polyspan.mixture.mixture import SubspaceMixture

# Number of rows whose hidden entries calibrate the variances, and weight of the uncalibrated
# variances, in hidden entries.
CALIBRATION_ROWS, CALIBRATION_PRIOR = 200, 20.0
# Columns with a higher kurtosis than this (3 for a Gaussian) are scaled down.
MOST_KURTOSIS = 100.0


@dataclass(frozen=True)
class Scaling:
    """Mean, spread and range of the observed entries of every column."""

    mean: np.ndarray
    spread: np.ndarray
    """Standard deviation; for constant columns the power of two below their entries, or ½ for 0."""
    scale: np.ndarray
    """Divisor of each feature: its spread, or more where the spread comes from a few outliers,
    which would otherwise determine the subspaces."""
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scaling:
        """Measure a table in which every column has an observed entry."""
        X = np.asarray(X, dtype=np.float64)
        least, most = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        # Powers of entries like 1e200 or 1e-200 overflow or become 0; after division they do not.
        unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(least), np.abs(most)))[1] - 1)
        X = X / unit
        mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        # Rounding may leave a spread in a constant column.
        spread = np.where((spread > 0) & (least < most), spread, 1.0)
        kurtosis = np.nanmean(((X - mean) / spread) ** 4, axis=0)
        scale = spread * np.sqrt(np.maximum(1.0, kurtosis / MOST_KURTOSIS))
        return cls(mean * unit, spread * unit, scale * unit, least, most)

    def standardise(self, X: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return standardised features."""
        standardised = np.asarray((X - self.mean) / self.scale, dtype=dtype)
        # A column that was constant in `fit` has no spread to scale new entries by.
        standardised[:, self.least == self.most] *= 0
        return standardised


@dataclass(frozen=True)
class Fill:
    """All that is needed to fill a table: scaling, models and shrinkage of their predictions."""

    scaling: Scaling
    models: tuple[SubspaceMixture, ...]
    """Empty where the mean of the column is the best prediction."""
    slopes: np.ndarray
    """From 0 (fill with the mean of the column) to 1 (with the prediction), for every column."""
    sizes: tuple[int, int]
    """Number and dimension of the subspaces."""
    error: float
    """Root mean squared error of the hidden entries, on standardised features."""
    stretch: float = 1.0
    """Factor of the variances, which makes them match the errors of hidden entries."""

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what missing entries are expected to be, and their standard deviations.

        They are in the range of the column in `fit`.
        """
        scaling, standardised = self.scaling, self.scaling.standardise(X)
        expected = self._mean_prediction(standardised) * self.slopes
        filled = np.clip(expected * scaling.scale + scaling.mean, scaling.least, scaling.most)
        spread = np.sqrt(self.stretch * self._variances(standardised)) * scaling.scale
        return filled, np.where(scaling.least < scaling.most, spread, 0.0)

    def draw_scores(self, X: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Draw the missing entries, minus their expectation and divided by their spread.

        One of the models is taken. The entries of a row are correlated as it says.
        """
        if not self.models:
            return rng.standard_normal(X.shape)
        model = self.models[rng.randint(len(self.models))]
        gaussians = gaussians_of(model)
        draw = partial(_entry_scores, gaussians, rng)
        standardised = self.scaling.standardise(X)
        return np.asarray(per_row(standardised, model.mean_, gaussians, draw)[0])

    def calibration(self, standardised: np.ndarray, hidden: np.ndarray) -> float:
        """Return the ratio of squared errors to predicted variances of hidden entries."""
        rows = np.unique(np.linspace(0, len(standardised) - 1, CALIBRATION_ROWS).astype(int))
        truth, hidden = standardised[rows], hidden[rows]
        visible = np.where(hidden, np.nan, truth)
        errors = self._mean_prediction(visible) * self.slopes - truth
        variances = self._variances(visible)[hidden]
        prior = CALIBRATION_PRIOR * float(variances.mean()) if len(variances) else 1.0
        return float((np.sum(errors[hidden] ** 2) + prior) / (variances.sum() + prior))

    def _mean_prediction(self, X: np.ndarray) -> np.ndarray:
        """Return the mean of the predictions of all models, in standardised features."""
        if not self.models:
            return np.zeros_like(X)
        return np.asarray(sum(predict(model, X) for model in self.models) / len(self.models))

    def _variances(self, X: np.ndarray) -> np.ndarray:
        """Return the variance of every missing standardised entry, before calibration."""
        total = np.zeros(X.shape)
        for model in self.models:
            gaussians = gaussians_of(model)
            total += per_row(X, model.mean_, gaussians, partial(_entry_variances, gaussians))[0]
        # The fraction 1 - slope of the prediction is replaced by the mean of the column, and so has
        # the variance of the column.
        variance = total / len(self.models) if self.models else np.ones(X.shape)
        column_variance = (self.scaling.spread / self.scaling.scale) ** 2
        return np.asarray(self.slopes**2 * variance + (1.0 - self.slopes) ** 2 * column_variance)


def predict(model: SubspaceMixture, X: np.ndarray) -> np.ndarray:
    """Return the posterior means of standardised features."""
    return np.asarray(posterior_means(X, model.mean_, gaussians_of(model))[0])


def prior_variances(gaussians: Gaussians, group: Group, p: int) -> np.ndarray:
    """Return the diagonal of W A⁻¹ Wᵀ of component p: the variances of entries without noise."""
    W, covariances = gaussians.factors[p], posterior_covariances(group, gaussians, p)
    n_pairs = W.shape[1] ** 2  # none where there are no directions
    pairs = (W[:, :, None] * W[:, None, :]).reshape(len(W), n_pairs)
    return np.asarray((pairs @ covariances.reshape(n_pairs, covariances.shape[2])).T)


def _entry_variances(gaussians: Gaussians, posterior: Posterior) -> tuple[np.ndarray]:
    """Return the variance of every entry, given the observed ones; 0 for complete rows."""
    if posterior.group is None:
        return (np.zeros_like(posterior.values),)
    responsibilities = soft_assign(posterior.joint)[0]
    first = np.zeros_like(posterior.values)
    second = np.zeros_like(first)
    for p, basis in enumerate(gaussians.bases):
        mean = gaussians.means[p] + posterior.factors[p] @ basis.T
        variances = prior_variances(gaussians, posterior.group, p)
        own = responsibilities[:, p : p + 1]
        first += own * mean
        second += own * (mean * mean + variances + gaussians.noise[p])
    return (np.maximum(second - first * first, 0),)


def _entry_scores(
    gaussians: Gaussians, rng: np.random.RandomState, posterior: Posterior
) -> tuple[np.ndarray]:
    """Draw every entry given the observed ones, as a standard score; 0 for complete rows."""
    if posterior.group is None:
        return (np.zeros_like(posterior.values),)
    responsibilities = soft_assign(posterior.joint)[0]
    below = np.cumsum(responsibilities, axis=1) < rng.uniform(size=(len(responsibilities), 1))
    chosen = np.minimum(below.sum(axis=1), len(gaussians.noise) - 1)
    expected = np.zeros_like(posterior.values)
    drawn = np.zeros_like(posterior.values)
    for p, W in enumerate(gaussians.factors):
        mean = gaussians.means[p] + posterior.factors[p] @ gaussians.bases[p].T
        expected += responsibilities[:, p : p + 1] * mean
        own = np.flatnonzero(chosen == p)
        covariances = posterior_covariances(posterior.group, gaussians, p).transpose(2, 0, 1)
        roots = np.linalg.cholesky(covariances.astype(np.float64))
        roots = np.broadcast_to(roots, (len(chosen), *roots.shape[1:]))[own]
        steps = np.matmul(roots, rng.standard_normal((len(own), W.shape[1], 1)))[..., 0]
        noise = np.sqrt(gaussians.noise[p]) * rng.standard_normal((len(own), len(W)))
        drawn[own] = mean[own] + steps @ W.T + noise
    spread = np.sqrt(_entry_variances(gaussians, posterior)[0])
    return ((drawn - expected) / np.maximum(spread, 1e-12),)
