"""Which setting denoises best: noise is added to held-out samples, and they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.utils import check_array, check_random_state


@dataclass(frozen=True)
class NoiseChoice:
    """What `choose_by_noise` decided and what it tried."""

    best_params: dict[str, Any]
    error: float
    """Relative error of the denoised held-out samples, at the best parameters."""
    standard_error: float
    table: list[dict[str, Any]]
    """One row per setting: params, error, standard_error."""


def search_by_noise(
    estimator: Any,
    X: Any,
    noise: float | Sequence[float],
    param_grid: Mapping[str, Sequence[Any]],
    n_splits: int,
    random_state: Any,
) -> NoiseChoice:
    """Fit every setting on every fold; see `polyspan.model_selection.choose_by_noise`."""
    X = check_array(X, dtype=np.float64)
    levels = np.atleast_1d(np.asarray(noise, dtype=float))
    if not (np.isfinite(levels) & (levels >= 0)).all() or not levels.size:
        raise ValueError(f"noise={noise} must be finite and not negative")
    rng = check_random_state(random_state)
    splits = list(KFold(n_splits, shuffle=True, random_state=rng.randint(2**31 - 1)).split(X))
    drawn = rng.standard_normal(X.shape) / np.sqrt(X.shape[1])
    norms = np.einsum("nm,nm->n", X, X)
    norms = np.where(norms > 0, norms, 1.0)
    table = []
    for params in ParameterGrid(param_grid):
        errors = np.zeros(len(X))
        for train, test in splits:
            model = clone(estimator).set_params(**params).fit(X[train])
            for level in levels:
                denoised = model.reconstruct(X[test] + np.sqrt(level) * drawn[test])
                squares = np.sum((denoised - X[test]) ** 2, axis=1)
                errors[test] += squares / norms[test] / len(levels)
        spread = float(errors.std(ddof=1) / np.sqrt(len(errors)))
        table.append({"params": params, "error": float(errors.mean()), "standard_error": spread})
    tried = [row for row in table if not np.isnan(row["error"])]
    if not tried:
        raise ValueError("no setting of param_grid reconstructs the held-out samples: all are NaN")
    best = min(tried, key=lambda row: row["error"])
    return NoiseChoice(best["params"], best["error"], best["standard_error"], table)
