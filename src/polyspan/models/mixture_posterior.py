"""Posteriors of many samples, complete or with holes, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyspan.arrays import chunk_rows, limit_threads, pass_work
from polyspan.models.mixture_start import find_patterns
from polyspan.solvers.mixture import Gaussians, log_densities, share_out
from polyspan.solvers.mixture_patterns import Group, posterior_covariances, posterior_factors


class Part(NamedTuple):
    """Some rows and what the components say about them."""

    rows: Any
    """Slice or indices."""
    joint: np.ndarray
    """log π_l N(x; l) of the observed entries, (n, L)."""
    squares: np.ndarray
    """Squared Mahalanobis distances, (n, L)."""
    factors: np.ndarray
    """E[D_lᵀ(clean - μ_l)], (L, n, s)."""
    group: Group | None
    """Where there are holes."""


def posterior_parts(X: np.ndarray, mean: np.ndarray, gaussians: Gaussians) -> Iterator[Part]:
    """Yield all rows, those with holes in groups of equal masks.

    Parameters
    ----------
    X : array of shape (n, n_features)
        NaN where missing.
    mean : array of shape (n_features,)
        What the Gaussians are about.
    """
    n_subspaces, m, s = gaussians.bases.shape
    dtype = gaussians.bases.dtype
    gain = gaussians.variances / (gaussians.variances + gaussians.noise[:, None])
    size = chunk_rows(m, dtype.itemsize, n_subspaces * (s + 2))
    roots = np.sqrt(gaussians.variances)[:, None, :]
    with limit_threads(pass_work(len(X), m, n_subspaces * s)):
        for start in range(0, len(X), size):
            chunk = (X[start : start + size] - mean).astype(dtype, copy=False)
            observed = ~np.isnan(chunk)
            if observed.all():
                which = slice(start, start + len(chunk))
                joint, squares, coordinates = log_densities(chunk, gaussians)
                factors = np.moveaxis(coordinates * gain, 1, 0)
                yield Part(which, joint, squares, factors, None)
                continue
            patterns = find_patterns(np.where(observed, chunk, 0).astype(dtype), observed)
            for group in patterns.groups(n_subspaces, s):
                joint, squares, z = posterior_factors(group, gaussians)
                yield Part(start + group.rows, joint, squares, z * roots, group)


def entry_variances(part: Part, gaussians: Gaussians) -> np.ndarray:
    """Return the variance of every entry of some rows with holes, given what was observed."""
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


def degrees_of_freedom(gaussians: Gaussians, extra: float) -> np.ndarray:
    """Return the trace of the map from a sample to its posterior mean, for every component."""
    noise = gaussians.noise[:, None]
    if not extra:
        return np.asarray((gaussians.variances / (gaussians.variances + noise)).sum(axis=1))
    _, m, s = gaussians.bases.shape
    along = (gaussians.variances + noise) / (gaussians.variances + noise + extra)
    off = (m - s) * gaussians.noise / (gaussians.noise + extra)
    return np.asarray(along.sum(axis=1) + off)
