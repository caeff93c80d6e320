"""The compiled loop over the trees of a forest."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def mean_of_trees(
    X: np.ndarray,
    roots: np.ndarray,
    features: np.ndarray,
    thresholds: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the mean of the leaves of all trees to `out`, (n_samples, n_outputs)."""
    share = 1.0 / len(roots)
    for i in range(X.shape[0]):
        for root in roots:
            node = root
            while features[node] >= 0:
                below = X[i, features[node]] <= thresholds[node]
                node = left[node] if below else right[node]
            for output in range(out.shape[1]):
                out[i, output] += share * values[node, output]
