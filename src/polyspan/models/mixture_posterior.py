"""Posteriors of many samples, complete or with holes, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from polyspan.arrays import (
    Array,
    chunk_rows,
    is_host,
    item_bytes,
    limit_threads,
    namespace,
    pass_work,
    row_slices,
    unsorted,
)
from polyspan.models.mixture_start import find_patterns
from polyspan.solvers.mixture import Gaussians, log_densities, share_out
from polyspan.solvers.mixture_patterns import Group, posterior_covariances, posterior_factors


class Part(NamedTuple):
    """Some rows of a chunk and what the components say about them."""

    joint: Array
    """log π_l N(x; l) of the observed entries, (n, L)."""
    squares: Array
    """Squared Mahalanobis distances, (n, L)."""
    factors: Array
    """E[D_lᵀ(clean - μ_l)], (L, n, s)."""
    group: Group | None
    """Which rows of the chunk, where it has holes; None: all of them."""

    def rows_of(self, chunk: Array) -> Array:
        """Return the rows of the chunk that this part is about."""
        if self.group is None:
            return chunk
        return namespace(chunk).take(chunk, self.group.rows, axis=0)


def posterior_parts(
    X: Array, mean: Array, gaussians: Gaussians
) -> Iterator[tuple[slice, Iterator[Part]]]:
    """Yield all rows in chunks, and each chunk in parts: one, or groups of equal masks.

    Parameters
    ----------
    X : array of shape (n, n_features)
        NaN where missing.
    mean : array of shape (n_features,)
        What the Gaussians are about.
    """
    xp = namespace(X)
    n_subspaces, m, s = gaussians.bases.shape
    dtype = gaussians.bases.dtype
    size = chunk_rows(m, item_bytes(gaussians.bases), n_subspaces * (s + 2), host=is_host(X))
    with limit_threads(pass_work(X.shape[0], m, n_subspaces * s)):
        for which in row_slices(X.shape[0], size):
            chunk = xp.astype(X[which, :] - mean, dtype, copy=False)
            yield which, _parts_of(chunk, gaussians)


def _parts_of(chunk: Array, gaussians: Gaussians) -> Iterator[Part]:
    xp = namespace(chunk)
    observed = ~xp.isnan(chunk)
    if bool(xp.all(observed)):
        joint, squares, coordinates = log_densities(chunk, gaussians)
        gain = gaussians.variances / (gaussians.variances + gaussians.noise[:, None])
        factors = xp.permute_dims(coordinates * gain, (1, 0, 2))
        yield Part(joint, squares, factors, None)
        return
    n_subspaces, _, s = gaussians.bases.shape
    roots = xp.sqrt(gaussians.variances)[:, None, :]
    patterns = find_patterns(xp.where(observed, chunk, 0.0), observed)
    for group in patterns.groups(n_subspaces, s):
        joint, squares, z = posterior_factors(group, gaussians)
        yield Part(joint, squares, z * roots, group)


def in_order(
    parts: Iterable[Part], compute: Callable[[Part], tuple[Array, ...]]
) -> tuple[Array, ...]:
    """Return what is computed for the rows of every part, in the order of the rows of the chunk."""
    rows, found = [], []
    for part in parts:
        computed = compute(part)
        if part.group is None:
            return computed
        rows.append(part.group.rows)
        found.append(computed)
    return tuple(unsorted(rows, list(pieces)) for pieces in zip(*found, strict=True))


def entry_variances(part: Part, gaussians: Gaussians) -> np.ndarray:
    """Return the variance of every entry of some rows with holes, given what was observed.

    In NumPy, as all of the imputer that asks for it.
    """
    assert part.group is not None
    shares = share_out(part.joint)[0]
    first = np.zeros_like(part.group.values)
    second = np.zeros_like(first)
    for p, W in enumerate(gaussians.factors):
        mean = gaussians.means[p] + part.factors[p] @ gaussians.bases[p].T
        covariances = posterior_covariances(part.group, gaussians, p)
        pairs = (W[:, :, None] * W[:, None, :]).reshape(len(W), -1)
        own = (pairs @ covariances.reshape(pairs.shape[1], -1)).T
        share = shares[:, p : p + 1]
        first += share * mean
        second += share * (mean * mean + own + gaussians.noise[p])
    return np.asarray(np.maximum(second - first * first, 0))


def degrees_of_freedom(gaussians: Gaussians, extra: float | None) -> Array:
    """Return the trace of the map from a sample to its posterior mean, for every component.

    `extra` is the variance of noise that was added, or None where the components' own is removed.
    """
    xp = namespace(gaussians.noise)
    noise = gaussians.noise[:, None]
    if extra is None:
        return xp.sum(gaussians.variances / (gaussians.variances + noise), axis=1)
    _, m, s = gaussians.bases.shape
    along = (gaussians.variances + noise) / (gaussians.variances + noise + extra)
    off = (m - s) * gaussians.noise / (gaussians.noise + extra)
    return xp.sum(along, axis=1) + off
