"""Ways to draw completed tables: functions of a table with NaN, a number of draws and a seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from polyspan import SubspaceImputer

#: Returns completed tables, of shape (draws, rows, columns).
Draw = Callable[[np.ndarray, int, int], np.ndarray]


def ours(holes: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """Return draws of one fitted `SubspaceImputer`."""
    model = SubspaceImputer(random_state=0).fit(holes)
    tables = model.sample_imputations(holes, n_draws, random_state=seed)
    return np.stack([np.asarray(table, dtype=float) for table in tables])


def around_mean(holes: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """Return filled tables with Gaussian noise of `impute_std`, independent between entries."""
    model = SubspaceImputer(random_state=0).fit(holes)
    filled, std = model.transform(holes), model.impute_std(holes)
    noise = np.random.default_rng(seed).standard_normal((n_draws, *holes.shape))
    return filled + std * noise


def iterative(holes: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """Return one chained regression with draws of its posterior for each completed table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it has not converged, as draws do not
        return np.stack(
            [
                IterativeImputer(
                    sample_posterior=True, random_state=1000 * seed + draw
                ).fit_transform(holes)
                for draw in range(n_draws)
            ]
        )


def from_column(holes: np.ndarray, n_draws: int, seed: int) -> np.ndarray:
    """Return tables with observed entries of the same column in the holes."""
    rng = np.random.default_rng(seed)
    tables = np.repeat(holes[None], n_draws, axis=0)
    for column, values in enumerate(holes.T):
        hidden = np.isnan(values)
        tables[:, hidden, column] = rng.choice(values[~hidden], (n_draws, hidden.sum()))
    return tables


DRAWS: dict[str, Draw] = {
    "column": from_column,
    "iterative": iterative,
    "polyspan, impute_std": around_mean,
    "polyspan": ours,
}


def available() -> list[str]:
    """Return the methods that this version of polyspan has."""
    missing = set() if hasattr(SubspaceImputer, "sample_imputations") else {"polyspan"}
    return [name for name in DRAWS if name not in missing]
