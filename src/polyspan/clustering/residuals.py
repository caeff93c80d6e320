"""Leave-one-out residuals of a partition, to compare two of them."""

from __future__ import annotations

import numpy as np

# 1 - leverage is at least this: a sample that has a direction of its own says nothing.
LEAST_FREE = 0.05


def leave_one_out(Z: np.ndarray, labels: np.ndarray, n_clusters: int, dim: int) -> np.ndarray:
    """Return squared residuals of every sample to the subspace of its cluster without it.

    r/(1 - h)², r the squared residual to the leading `dim` directions of the cluster and h the
    leverage of the sample in them.
    """
    out = np.zeros(len(Z))
    for c in range(n_clusters):
        own = np.flatnonzero(labels == c)
        if not len(own):
            continue
        U, S, _ = np.linalg.svd(Z[own], full_matrices=False)
        U, S = U[:, :dim], S[:dim]
        residuals = np.maximum((Z[own] ** 2).sum(axis=1) - (U**2) @ S**2, 0.0)
        free = np.maximum(1.0 - (U**2).sum(axis=1), LEAST_FREE)
        out[own] = residuals / free**2
    return out


def paired_t(current: np.ndarray, other: np.ndarray) -> float:
    """Return the mean difference over its standard error: positive where `other` is lower."""
    difference = current - other
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return float(difference.mean() / error) if error > 0 else 0.0
