"""Choose parameters for denoising by noise that is added to held-out samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.utils import check_array, check_random_state

from polyspan.base.inputs import naming_columns, plain_numbers, require_numpy
from polyspan.base.private_sklearn import Interval, check_parameters
from polyspan.base.progress import progress_bar


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
    X = plain_numbers(X)
    with naming_columns(X):
        X = check_array(X, dtype=np.float64)
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
            spread = float(errors.std(ddof=1) / np.sqrt(len(errors)))
            table.append(
                {"params": params, "error": float(errors.mean()), "standard_error": spread}
            )
    tried = [row for row in table if not np.isnan(row["error"])]
    if not tried:
        raise ValueError("no setting of param_grid reconstructs the held-out samples: all are NaN")
    best = min(tried, key=lambda row: row["error"])
    return NoiseChoice(best["params"], best["error"], best["standard_error"], table)
