"""The compared systems by their names in the paper, with its settings.

"Printed" means as printed in the paper, without our changes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from polyspan import AdaptiveMiCUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.baselines import (
    GROUSE,
    KGROUSE,
    BlockSparseDictionary,
    KSubspaces,
    RobustSparseSubspaceClustering,
    SparseSubspaceClustering,
    ThresholdingSubspaceClustering,
)

#: Step and outer iterations with which k-GROUSE comes close to the published numbers.
SMALL_STEP = {"step_size": 0.1, "max_iter": 4}
#: A step with which k-GROUSE and GROUSE learn from noisy samples.
GOOD_STEP = {"step_size": 1.5}


_PRINTED = {"init": "random", "solver": "exact"}
_PRINTED_MISSING = {"init": "random", "solver": "grouse", "max_iter": 5, "center": False}
_ADAPTIVE = {
    "lam": 4.0,
    "max_subspaces": 8,
    "max_dim": 20,
    "k1": 6,
    "k2": 10,
    "merge_threshold": 0.08,
}
_ANNEALED = {"init": "anneal", "lam": 4.0}
_SYSTEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MiCUSaL": (MiCUSaL, {"lam": 4.0, **_PRINTED}),
    "K-sub": (KSubspaces, _PRINTED),
    "ours": (MiCUSaL, _ANNEALED),
    "rMiCUSaL": (RobustMiCUSaL, {"lam": 4.0, **_PRINTED_MISSING}),
    "ours, missing": (RobustMiCUSaL, {"center": False, **_ANNEALED}),
    "kGROUSE": (KGROUSE, {}),
    "SSC": (SparseSubspaceClustering, {}),
    "RSSC": (RobustSparseSubspaceClustering, {}),
    "TSC": (ThresholdingSubspaceClustering, {}),
    "SAC+BK-SVD": (BlockSparseDictionary, {}),
}


def build(method: str, n_subspaces: int, s: int, seed: int, **options: Any) -> Any:
    """Return an estimator, not fitted.

    "MiCUSaL", "K-sub", "rMiCUSaL", "kGROUSE" are the printed algorithms from random starts,
    "ours" and "ours, missing" are annealed.
    """
    common: dict[str, Any] = {"random_state": seed, **options}
    if method == "aMiCUSaL":
        return AdaptiveMiCUSaL(**{**_ADAPTIVE, **common})
    if method == "GROUSE":
        return GROUSE(s, **common)
    kind, fixed = _SYSTEMS[method]
    return kind(**{"n_subspaces": n_subspaces, "subspace_dim": s, **fixed, **common})


def fit(model: Any, X: np.ndarray) -> Any:
    """Fit without warnings: the printed algorithms stop as in the paper, converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def fit_starts(model: Any, X: np.ndarray, n_starts: int, seed: int) -> list[Any]:
    """Fit from several random starts, one after the other; the lowest objective comes first.

    All of them are returned, because some claims of the paper are about single starts.
    """
    runs = [
        fit(clone(model).set_params(n_init=1, random_state=seed + k), X) for k in range(n_starts)
    ]
    return sorted(runs, key=lambda run: run.objective_)


class PCA:
    """One subspace through the mean, of any dimension, optionally with shrinkage."""

    def __init__(self, Y: np.ndarray, *, center: bool = True) -> None:
        self.mean = Y.mean(axis=0) if center else np.zeros(Y.shape[1])
        _, values, self.rows = np.linalg.svd(Y - self.mean, full_matrices=False)
        self.variances = values**2 / len(Y)

    def best_dimension(self, noisy: np.ndarray, clean: np.ndarray) -> int:
        """Return the dimension that denoises best samples whose clean version is known."""
        coordinates = (noisy - self.mean) @ self.rows.T
        gain = np.cumsum(
            coordinates**2 - 2 * coordinates * ((clean - self.mean) @ self.rows.T), axis=1
        )
        weights = 1.0 / np.sum(clean * clean, axis=1)
        return int(np.argmin(weights @ gain)) + 1

    def projection(self, s: int) -> _Projection:
        """Return a denoiser with s components."""
        return _Projection(self.mean, self.rows[:s], np.ones(len(self.rows[:s])))

    def shrunk(self, s: int, noise: float, test_noise: float) -> _Projection:
        """Return a denoiser that shrinks components by the Wiener filter for known noise."""
        m = len(self.mean)
        signal = np.maximum(self.variances[:s] - noise / m, 0.0)
        return _Projection(self.mean, self.rows[:s], signal / (signal + test_noise / m))


class _Projection:
    def __init__(self, mean: np.ndarray, rows: np.ndarray, shrink: np.ndarray) -> None:
        self.mean, self.rows, self.shrink = mean, rows, shrink

    def reconstruct(self, Z: np.ndarray) -> np.ndarray:
        coordinates = (Z - self.mean) @ self.rows.T
        return np.asarray((coordinates * self.shrink) @ self.rows + self.mean)
