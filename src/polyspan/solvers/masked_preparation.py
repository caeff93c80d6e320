"""From data with NaN to a problem on zero-filled values and a mask; nothing deeper sees NaN."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    is_host,
    keep_freed_memory,
    machine_epsilon,
    moved_to,
    namespace,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    to_numpy,
    zeros,
)
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.preparation import Prepared, working_weight

# Patterns are worth sharing when each stands, on average, for this many samples.
SHARED_FROM = 4


@dataclass(frozen=True)
class Holes:
    """Where entries are missing."""

    missing: Array
    """Boolean, (n_samples, n_features)."""
    n_observed: Array
    """Observed entries of every sample."""

    @classmethod
    def of(cls, X: Array) -> Holes:
        """Find the NaN of X."""
        xp = namespace(X)
        missing = xp.isnan(X)
        return cls(missing, X.shape[1] - xp.sum(xp.astype(missing, xp.int64), axis=1))

    def take(self, rows: Array) -> Holes:
        """Return the holes of some rows."""
        xp = namespace(rows)
        return Holes(xp.take(self.missing, rows, axis=0), xp.take(self.n_observed, rows))


def observed_mean(X: Array, missing: Array) -> Array:
    """Return the mean of the observed entries of every feature, safely for huge entries."""
    xp = namespace(X)
    n, m = X.shape
    total, count = zeros((m,), X, xp.float64), zeros((m,), X, xp.float64)
    slices = row_slices(n, rows_at_once(X))
    filled = (xp.where(missing[which, :], 0.0, X[which, :]) for which in slices)
    scale = power_of_two_scale(
        max(float(xp.max(xp.abs(values))) for values in filled), machine_epsilon(X)
    )
    for which in slices:
        values = xp.where(missing[which, :], 0.0, X[which, :])
        total = total + float64_sum(values * scale, axis=0)
        count = count + xp.sum(xp.astype(~missing[which, :], xp.float64), axis=0)
    return xp.astype(total / count / scale, X.dtype)


def prepare_masked(X: Array, holes: Holes, mean: Array, lam: float, *, prior: float) -> Prepared:
    """Subtract the mean from what was observed, put zeros elsewhere, weigh samples by m/|Ω|.

    Memory: one filled copy of X.
    """
    keep_freed_memory()
    xp = namespace(X)
    m = X.shape[1]
    values = X - mean
    values = xp.where(holes.missing, 0.0, values)
    scale = power_of_two_scale(float(xp.max(xp.abs(values))), machine_epsilon(X))
    if scale != 1.0:
        values = values * scale
    observed = xp.astype(xp.clip(holes.n_observed, 1, None), xp.float64)
    weights = xp.astype(m / observed, X.dtype)
    norms = xp.vecdot(values, values) * weights
    patterns, shared = recurring_patterns(holes.missing)
    problem = MaskedProblem(
        rows=Rows(values, None, rows_at_once(values)),
        norms=norms,
        total=float(float64_sum(norms)),
        lam=working_weight(lam, scale),
        missing=holes.missing,
        weights=weights,
        prior=prior,
        patterns=patterns,
        shared=shared,
    )
    return Prepared(problem, mean, scale)


def recurring_patterns(missing: Array) -> tuple[Array | None, Array | None]:
    """Return (pattern of each sample, patterns) where few patterns recur, else (None, None).

    They are looked for on the CPU; on an accelerator a system per sample costs less than that.
    """
    if not is_host(missing):
        return None, None
    packed = np.packbits(to_numpy(missing), axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) * SHARED_FROM > len(packed):
        return None, None
    shared = namespace(missing).take(missing, moved_to(first, missing), axis=0)
    return moved_to(inverse.astype(np.int64), missing), shared
