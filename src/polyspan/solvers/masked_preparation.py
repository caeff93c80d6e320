"""From data with NaN to a problem on zero-filled values and a mask; nothing deeper sees NaN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import (
    Rows,
    chunk_rows,
    keep_freed_memory,
    machine_epsilon,
    power_of_two_scale,
)
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.preparation import Prepared, working_weight

# Patterns are worth sharing when each stands, on average, for this many samples.
SHARED_FROM = 4


@dataclass(frozen=True)
class Holes:
    """Where entries are missing."""

    missing: np.ndarray
    """Boolean, (n_samples, n_features)."""
    n_observed: np.ndarray
    """Observed entries of every sample."""

    @classmethod
    def of(cls, X: np.ndarray) -> Holes:
        """Find the NaN of X."""
        missing = np.isnan(X)
        return cls(missing, X.shape[1] - missing.sum(axis=1))


def observed_mean(X: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the mean of the observed entries of every feature, safely for huge entries."""
    n, m = X.shape
    total, count = np.zeros(m), np.zeros(m)
    largest = float(np.nanmax(np.abs(X)))
    scale = power_of_two_scale(largest, machine_epsilon(X))
    size = chunk_rows(m, X.dtype.itemsize)
    for start in range(0, n, size):
        which = slice(start, start + size)
        values = np.where(missing[which], 0, X[which])
        total += (values * scale).sum(axis=0, dtype=np.float64)
        count += (~missing[which]).sum(axis=0)
    return np.asarray(total / count / scale, dtype=X.dtype)


def prepare_masked(
    X: np.ndarray, holes: Holes, mean: np.ndarray, lam: float, *, prior: float
) -> Prepared:
    """Subtract the mean from what was observed, put zeros elsewhere, weigh samples by m/|Ω|.

    Memory: one filled copy of X.
    """
    keep_freed_memory()
    m = X.shape[1]
    values = np.where(holes.missing, X.dtype.type(0), X - mean)
    scale = power_of_two_scale(float(np.abs(values).max(initial=0.0)), machine_epsilon(X))
    if scale != 1.0:
        values *= scale
    weights = (m / np.maximum(holes.n_observed, 1)).astype(X.dtype)
    norms = np.einsum("nm,nm->n", values, values) * weights
    patterns, shared = recurring_patterns(holes.missing)
    problem = MaskedProblem(
        rows=Rows(values, None, chunk_rows(m, values.dtype.itemsize)),
        norms=norms,
        total=float(norms.sum(dtype=np.float64)),
        lam=working_weight(lam, scale),
        missing=holes.missing,
        weights=weights,
        prior=prior,
        patterns=patterns,
        shared=shared,
    )
    return Prepared(problem, mean, scale)


def recurring_patterns(missing: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return (pattern of each sample, patterns) where few patterns recur, else (None, None)."""
    packed = np.packbits(missing, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) * SHARED_FROM > len(missing):
        return None, None
    return inverse.astype(np.int64), missing[first]
