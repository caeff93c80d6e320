"""Scores of models on held-out samples: how they predict hidden entries, how they denoise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.base.arrays import machine_epsilon, power_of_two_scale
from polyspan.base.inputs import naming_columns, numbers_of_samples, plain_numbers, require_numpy
from polyspan.base.private_sklearn import Interval, check_parameters
from polyspan.base.progress import progress_bar
from polyspan.linear._solve.masked import MaskedBlock

# Weight of filled-in entries in predictions from few observed ones, as in RobustMiCUSaL.
PRIOR = 0.02


def masked_entry_score(
    estimator: Any, X: Any, y: Any = None, *, fraction: float = 0.2, random_state: Any = 0
) -> float:
    """Score a fitted model by how well it predicts entries that are hidden from it.

    A fraction of the observed entries of every sample is hidden. The other entries determine the
    subspace and the coefficients, which predict the hidden ones. Unlike the residual, this score
    is low for a model that is too large: it fits the noise and predicts badly. Use it on held-out
    samples, as `scoring` of `GridSearchCV`.

    Parameters
    ----------
    estimator : fitted model with `bases_` and `mean_`, or a pipeline that ends in one
        The model to judge.
    X : array-like of shape (n_samples, n_features)
        Samples, with NaN for missing entries.
    y : Ignored
        Not used, present for API consistency by convention.
    fraction : float, default=0.2
        Fraction of the observed entries of each sample to hide, between 0 and 1.
    random_state : int, RandomState instance or None, default=0
        Seed of the draw of hidden entries. An int hides the same entries for every model compared.

    Returns
    -------
    float
        Minus the mean squared error of the hidden entries.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import masked_entry_score
    >>> data = make_union_of_subspaces((60, 60), n_features=20, subspace_dim=3, spread=0.5,
    ...                                noise=0.1, random_state=0)
    >>> search = GridSearchCV(MiCUSaL(2, random_state=0), {"subspace_dim": [1, 3, 8]},
    ...                       scoring=masked_entry_score, cv=3).fit(data.X)
    >>> search.best_params_
    {'subspace_dim': 3}
    """
    check_parameters(
        "masked_entry_score",
        fraction=(fraction, [Interval(Real, 0, 1, closed="neither")]),
        random_state=(random_state, ["random_state"]),
    )
    require_numpy("masked_entry_score", X=X)
    if hasattr(estimator, "steps"):
        X, estimator = estimator[:-1].transform(X), estimator[-1]
    check_linear(estimator, "masked_entry_score")
    require_numpy("masked_entry_score", bases_=estimator.bases_)
    X = plain_numbers(X)
    with naming_columns(X):
        X = validate_data(
            estimator, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
    errors = hidden_entry_errors(
        estimator.bases_, estimator.mean_, X, fraction, check_random_state(random_state)
    )
    return -float(errors.squares.sum() / max(1.0, errors.counts.sum()))


def check_linear(estimator: Any, name: str) -> None:
    """Refuse models without linear subspaces, whose hidden entries are predicted otherwise."""
    check_is_fitted(estimator)
    if hasattr(estimator, "means_") or not hasattr(estimator, "bases_"):
        raise ValueError(
            f"{name} judges models of linear subspaces (`bases_` and `mean_`), and "
            f"{type(estimator).__name__} is none: compare such models by their own `score` on "
            "held-out samples"
        )
    if getattr(estimator, "anchors_", None) is not None:
        raise ValueError(
            f"{name} cannot judge affine subspaces yet: compare affine models by `score` on "
            "held-out samples, or set affine=False"
        )


@dataclass(frozen=True)
class HiddenErrors:
    """Errors of hidden entries, per sample."""

    squares: np.ndarray
    """Sum of squared errors of every sample."""
    counts: np.ndarray
    """Number of hidden entries of every sample."""


def hidden_entry_errors(
    bases: np.ndarray,
    mean: np.ndarray,
    X: np.ndarray,
    fraction: float,
    rng: np.random.RandomState,
) -> HiddenErrors:
    """Hide entries, predict them from the others, and return the squared errors.

    Parameters
    ----------
    bases : ndarray of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases of linear subspaces.
    mean : ndarray of shape (n_features,)
        Mean through which the subspaces go.
    X : ndarray of shape (n_samples, n_features)
        Samples, with NaN for missing entries.
    fraction : float
        Probability with which an observed entry is hidden.
    rng : RandomState instance
        Generator that draws the hidden entries.

    Returns
    -------
    HiddenErrors
        `squares`, the sum of squared errors of every sample, and `counts`, its number of hidden
        entries.
    """
    observed = ~np.isnan(X)
    hidden = observed & (rng.uniform(size=X.shape) < fraction)
    seen = np.where(hidden, np.nan, X)
    block, scale = masked_block(seen, mean.astype(X.dtype))
    predicted = np.empty_like(X)
    for fit in block.fits(bases.astype(X.dtype)[None], None):
        nearest = fit.gains[0].argmax(axis=0)
        own = fit.coefficients[0][nearest, :, np.arange(len(nearest))] / scale
        predicted[fit.which] = np.einsum("nms,ns->nm", bases[nearest], own) + mean
    error = np.where(hidden, predicted - np.where(observed, X, 0.0), 0.0)
    return HiddenErrors((error**2).sum(axis=1), hidden.sum(axis=1))


def masked_block(X: np.ndarray, mean: np.ndarray) -> tuple[MaskedBlock, float]:
    """Return all rows, centred, scaled and with zeros where missing, and their scale."""
    largest = float(np.where(np.isnan(X), 0.0, np.abs(X - mean)).max())
    scale = power_of_two_scale(largest, machine_epsilon(X))
    block = MaskedBlock.of(X, mean, scale, PRIOR, too_few=-1)
    assert block is not None
    return block, scale


@dataclass(frozen=True)
class NoiseChoice:
    """The result of `choose_by_noise`: the best parameters, and all that were tried.

    Parameters
    ----------
    best_params : dict
        The setting with the lowest error.
    error : float
        Relative error of the denoised held-out samples, at the best parameters.
    standard_error : float
        Standard error of `error` over the samples.
    table : list of dict
        One row per setting: params, error, standard_error.
    """

    best_params: dict[str, Any]
    error: float
    standard_error: float
    table: list[dict[str, Any]]


def choose_by_noise(
    estimator: Any,
    X: Any,
    noise: float | Sequence[float],
    param_grid: Mapping[str, Sequence[Any]],
    *,
    n_splits: int = 3,
    random_state: Any = None,
) -> NoiseChoice:
    """Choose the parameters that best denoise held-out samples with added noise.

    The samples are assumed to be clean. White noise of the level that new samples are expected to
    have is added to the held-out samples, `reconstruct` denoises them, and the result is compared
    with the clean samples. Folds and noise are the same for every setting.

    Parameters
    ----------
    estimator : estimator with `reconstruct`
        Model to set and fit, such as `MCKUSaL` (with `n_subspaces=1` it is kernel PCA) or
        `MiCUSaL`. It is cloned, never changed.
    X : array-like of shape (n_samples, n_features)
        Complete samples, without NaN.
    noise : float or sequence of float
        Expected squared norm σ² ≥ 0 of the noise of a sample; errors at several levels are
        averaged.
    param_grid : dict of lists
        Values to try of every parameter, as for `GridSearchCV`.
    n_splits : int, default=3
        Number of folds, each held out once.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the noise.

    Returns
    -------
    NoiseChoice
        The best setting, its error, and the errors of all settings.

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.model_selection import choose_by_noise
    >>> X = make_union_of_subspaces((60, 60), n_features=20, subspace_dim=3, spread=0.5,
    ...                             noise=0.0, random_state=0).X
    >>> choice = choose_by_noise(MiCUSaL(2, random_state=0), X, 0.3,
    ...                          {"subspace_dim": [1, 3, 8]}, random_state=0)
    >>> choice.best_params
    {'subspace_dim': 3}
    """
    check_parameters(
        "choose_by_noise",
        noise=(noise, [Interval(Real, 0, None, closed="left"), "array-like"]),
        param_grid=(param_grid, [Mapping]),
        n_splits=(n_splits, [Interval(Integral, 2, None, closed="left")]),
        random_state=(random_state, ["random_state"]),
    )
    require_numpy("choose_by_noise", X=X)
    X = numbers_of_samples(X, dtype=np.float64)
    levels = np.atleast_1d(np.asarray(noise, dtype=float))
    if not (np.isfinite(levels) & (levels >= 0)).all() or not levels.size:
        raise ValueError(f"noise={noise} must be finite and not negative")
    rng = check_random_state(random_state)
    splits = list(KFold(n_splits, shuffle=True, random_state=rng.randint(2**31 - 1)).split(X))
    drawn = rng.standard_normal(X.shape) / np.sqrt(X.shape[1])
    norms = np.einsum("nm,nm->n", X, X)
    norms = np.where(norms > 0, norms, 1.0)
    table, grid = [], list(ParameterGrid(param_grid))
    with progress_bar(False, len(grid) * n_splits, "choose_by_noise") as advance:
        for params in grid:
            errors = np.zeros(len(X))
            for train, test in splits:
                model = clone(estimator).set_params(**params).fit(X[train])
                for level in levels:
                    # An array, also of an estimator whose output is set to frames.
                    denoised = np.asarray(model.reconstruct(X[test] + np.sqrt(level) * drawn[test]))
                    squares = np.sum((denoised - X[test]) ** 2, axis=1)
                    errors[test] += squares / norms[test] / len(levels)
                advance()
            error, spread = float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(len(errors)))
            table.append({"params": params, "error": error, "standard_error": spread})
    tried = [row for row in table if not np.isnan(row["error"])]
    if not tried:
        raise ValueError("no setting of param_grid reconstructs the held-out samples: all are NaN")
    best = min(tried, key=lambda row: row["error"])
    return NoiseChoice(best["params"], best["error"], best["standard_error"], table)
