"""Members of the ensemble: mixtures of Gaussians, and how surprising rows are to them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.arrays import limit_threads, one_hot, pass_work
from polyspan.base.private_sklearn import plain_settings
from polyspan.mixture import SubspaceMixture
from polyspan.mixture._solve.complete import gather_moments, log_weights_of
from polyspan.mixture._solve.gaussians import (
    Gaussians,
    Posterior,
    log_densities,
    per_row,
    soft_assign,
)
from polyspan.mixture._solve.noise import NoiseRule, fit_low_rank
from polyspan.mixture.prediction import gaussians_of
from polyspan.mixture.problem import DENSE_FEATURES
from polyspan.tables.mixture_fill import prior_variances

# Numbers of components; the largest ones are taken that leave enough rows to each.
NUMBERS = (1, 2, 4, 8, 16, 32)
ROWS_PER_COMPONENT = 6
N_NUMBERS = 3
# Most directions of a component. The rest of its variance is noise.
MOST_DIRECTIONS = 16
# Weight of the covariance within components, in rows, in that of each component.
SHRINKAGE = 5.0
# Variance of noise, relative to that of a column, that is added before rows are judged: rounded
# values would otherwise make nearly dependent columns decide alone.
ADDED_NOISE = 0.003
# Steps of EM, of which the first half have one covariance for all components.
STEPS = 8
# Noise variances are kept above this fraction of the mean variance.
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Member(Gaussians):
    """One mixture, learned from standardised rows."""

    unit: float
    """Surprise of a usual row."""


def entry_factor(X: np.ndarray) -> np.ndarray:
    """Return m/|o| of every row: a sum over its o observed entries becomes one over all."""
    n_observed = np.count_nonzero(~np.isnan(X), axis=1)
    return np.asarray(X.shape[1] / np.maximum(n_observed, 1))


def numbers_for(n_rows: int) -> list[int]:
    """Return the numbers of components of the members."""
    allowed = [number for number in NUMBERS if number * ROWS_PER_COMPONENT <= n_rows]
    return (allowed[1:] or [1])[-N_NUMBERS:]


def learn_member(
    rows: np.ndarray, judged: np.ndarray, number: int, rng: np.random.RandomState
) -> Member:
    """Learn one mixture from complete rows; `judged` are those that say what is usual."""
    gaussians = learn_mixture(rows, number, rng).with_noise(ADDED_NOISE)
    values = surprise(judged, gaussians) * entry_factor(judged)
    unit = float(np.median(values)) or 1.0
    # In the layout that they have after a file was read: products then have the same bits.
    arrays = {name: np.ascontiguousarray(array) for name, array in vars(gaussians).items()}
    return Member(**arrays, unit=unit)


def learn_mixture(T: np.ndarray, number: int, rng: np.random.RandomState) -> Gaussians:
    r"""Learn a mixture whose covariances are shrunk to the covariance within components.

    `SubspaceMixture` shrinks to the covariance of all rows. That is wide between clusters, just
    where outliers lie: on iris the area under the curve was .82 with it, and .98 with this one.
    """
    n, m = T.shape
    dim = min(m - 1, MOST_DIRECTIONS)
    if m > DENSE_FEATURES:
        return _learn_wide(T, number, dim, rng)
    floor = LEAST_NOISE * float((T * T).mean()) or 1.0
    rule = NoiseRule("shared", floor)
    responsibilities = one_hot(_nearest_centres(T, number, rng), number, np.float64)
    steps = STEPS if number > 1 else 0
    with limit_threads(pass_work(n, m, number * (dim + 1))):
        low_rank: tuple[np.ndarray, ...]
        for step in range(steps + 1):
            sums = gather_moments(T, responsibilities)
            counts = np.maximum(sums.counts, 1e-6)
            means = sums.first / counts[:, None]
            scatter = sums.second - sums.counts[:, None, None] * (
                means[:, :, None] * means[:, None, :]
            )
            within = scatter.sum(axis=0) / n
            covariances = (scatter + SHRINKAGE * within) / (sums.counts + SHRINKAGE)[:, None, None]
            if step < steps // 2:
                common = fit_low_rank(within[None], np.ones(1), dim, rule)
                low_rank = tuple(np.repeat(array, number, axis=0) for array in common)
            else:
                low_rank = fit_low_rank(covariances, sums.counts + SHRINKAGE, dim, rule)
            gaussians = Gaussians(log_weights_of(sums.counts), means, *low_rank)
            if step < steps:
                responsibilities = soft_assign(log_densities(T, gaussians)[0])[0]
    return gaussians


def _nearest_centres(T: np.ndarray, number: int, rng: np.random.RandomState) -> np.ndarray:
    if number == 1:
        return np.zeros(len(T), dtype=int)
    number = min(number, len(np.unique(T, axis=0)))
    with plain_settings():
        return np.asarray(KMeans(number, n_init=1, max_iter=20, random_state=rng).fit_predict(T))


def _learn_wide(T: np.ndarray, number: int, dim: int, rng: np.random.RandomState) -> Gaussians:
    """Learn from rows of so many columns that no covariance is formed."""
    dim = min(dim, max(1, len(T) // (2 * number)))
    model = SubspaceMixture(
        number, dim, noise="shared", init="anneal", max_iter=STEPS, random_state=rng
    )
    with warnings.catch_warnings():  # a few steps are enough here, as for narrow tables
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(T)
    learned = gaussians_of(model)
    return replace(learned, means=learned.means + model.mean_)


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
    return np.asarray(prior_variances(gaussians, posterior.group, p) / noise)
