"""Missing entries: where they are, the mean of the observed ones, which masks recur."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from polyspan.base.arrays import (
    CHUNK_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    machine_epsilon,
    moved_to,
    namespace,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    to_numpy,
    zeros,
)

# Samples share the work of their pattern if patterns have at least so many samples on average.
SAMPLES_PER_PATTERN = 4
# Rows with equal masks form a group if there are at least this many.
MIN_GROUP_ROWS = 8


@dataclass(frozen=True)
class Holes:
    """Where entries are missing."""

    missing: Array
    """Boolean, (n_samples, n_features)."""
    n_observed: Array
    """Number of observed entries of every sample."""

    @classmethod
    def of(cls, X: Array) -> Holes:
        """Find the NaN entries of X."""
        xp = namespace(X)
        missing = xp.isnan(X)
        return cls(missing, X.shape[1] - xp.sum(xp.astype(missing, xp.int64), axis=1))

    def take(self, rows: Array) -> Holes:
        """Return the holes of some rows."""
        xp = namespace(rows)
        return Holes(xp.take(self.missing, rows, axis=0), xp.take(self.n_observed, rows))


def observed_mean(X: Array, missing: Array, weights: Array | None = None) -> Array:
    """Return the mean of the observed entries of every feature; huge entries do not overflow.

    `weights`, (n_samples,), are those of the samples; None: 1 for each. A feature that was observed
    only in samples of weight 0 has the mean of these.
    """
    xp = namespace(X)
    n, m = X.shape
    total, count = zeros((m,), X, xp.float64), zeros((m,), X, xp.float64)
    slices = row_slices(n, rows_at_once(X))
    filled = (xp.where(missing[which, :], 0.0, X[which, :]) for which in slices)
    scale = power_of_two_scale(
        max(float(xp.max(xp.abs(values))) for values in filled), machine_epsilon(X)
    )
    for which in slices:
        values = xp.astype(xp.where(missing[which, :], 0.0, X[which, :]) * scale, xp.float64)
        observed = xp.astype(~missing[which, :], xp.float64)
        if weights is not None:
            own = xp.astype(weights[which, None], xp.float64)
            values, observed = values * own, observed * own
        total = total + xp.sum(values, axis=0)
        count = count + xp.sum(observed, axis=0)
    if weights is not None and bool(xp.any(count == 0)):
        seen = count > 0
        found = xp.astype(total / xp.where(seen, count, 1.0) / scale, X.dtype)
        return xp.where(seen, found, observed_mean(X, missing))
    return xp.astype(total / count / scale, X.dtype)


def recurring_patterns(missing: Array) -> tuple[Array | None, Array | None]:
    """Return (pattern of each sample, patterns) where few patterns recur, else (None, None).

    Only on the CPU: on an accelerator it costs more to find equal patterns than to solve one
    system per sample.
    """
    if not is_host(missing):
        return None, None
    keys = mask_keys(missing)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) * SAMPLES_PER_PATTERN > len(keys):
        return None, None
    shared = namespace(missing).take(missing, moved_to(first, missing), axis=0)
    return moved_to(inverse.astype(np.int64), missing), shared


def mask_keys(mask: Array) -> np.ndarray:
    """Return one key per row; rows with equal masks have equal keys."""
    packed = np.packbits(to_numpy(mask), axis=1)
    return np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1])))[:, 0]


@dataclass(frozen=True)
class Group:
    """Some rows that either all have the same mask, or have one mask each."""

    rows: Array
    """Indices of the rows, (n,)."""
    values: Array
    """Zero where missing, (n, n_features)."""
    observed: Array
    """1 where observed, else 0: (n, n_features), or (1, n_features) for a common mask."""

    @property
    def shared(self) -> bool:
        """Whether all rows have the same mask."""
        return bool(self.observed.shape[0] == 1)

    def take(self, members: Array) -> Group:
        """Return some of the rows."""
        xp = namespace(self.values)
        observed = self.observed if self.shared else xp.take(self.observed, members, axis=0)
        rows = xp.take(self.rows, members)
        return Group(rows, xp.take(self.values, members, axis=0), observed)


@dataclass(frozen=True)
class Patterns:
    """Zero-filled rows, where they are observed, and which of them have equal masks."""

    values: Array
    """Shape (n, n_features)."""
    observed: Array
    """1 where observed, else 0, in the type of the values."""
    recurring: tuple[Array, ...]
    """For every mask that recurs, the indices of its rows."""
    single: Array
    """Indices of all other rows."""

    def groups(self, n_systems: int, dim: int) -> Iterator[Group]:
        """Yield all rows, in groups whose linear systems stay within the memory bound.

        A row needs `n_systems` systems of `dim` unknowns; rows with equal masks share them.
        """
        xp = namespace(self.values)
        m, size = self.values.shape[1], item_bytes(self.values)
        # A step holds several arrays of this size, and they have to fit on an accelerator too.
        most = 4 * CHUNK_BYTES if is_host(self.values) else DEVICE_CHUNK_BYTES // 4
        n_shared = max(1, most // (size * (3 * m + 4 * n_systems * (dim + 1))))
        for rows in self.recurring:
            for which in row_slices(rows.shape[0], n_shared):
                part = rows[which]
                observed = xp.take(self.observed, part[:1], axis=0)
                yield Group(part, xp.take(self.values, part, axis=0), observed)
        n_own = max(1, most // (size * (3 * m + 2 * n_systems * (dim + 1) * (dim + 2))))
        for which in row_slices(self.single.shape[0], n_own):
            part = self.single[which]
            observed = xp.take(self.observed, part, axis=0)
            yield Group(part, xp.take(self.values, part, axis=0), observed)


def find_patterns(values: Array, observed: Array) -> Patterns:
    """Group rows by their masks.

    Equal masks are searched only on the CPU. On an accelerator the search costs more than one
    system per row: there only the complete rows become a group.
    """
    xp = namespace(values)
    as_numbers = xp.astype(observed, values.dtype)
    if not is_host(values):
        complete = xp.all(observed, axis=1)
        recurring = (xp.nonzero(complete)[0],)
        return Patterns(values, as_numbers, recurring, xp.nonzero(~complete)[0])
    _, inverse, counts = np.unique(mask_keys(observed), return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    firsts = np.cumsum(counts) - counts
    recurring = tuple(
        moved_to(order[firsts[k] : firsts[k] + counts[k]], values, xp.int64)
        for k in np.flatnonzero(counts >= MIN_GROUP_ROWS)
    )
    single = moved_to(np.flatnonzero(counts[inverse] < MIN_GROUP_ROWS), values, xp.int64)
    return Patterns(values, as_numbers, recurring, single)
