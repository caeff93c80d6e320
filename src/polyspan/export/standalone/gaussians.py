"""Prediction of mixtures: densities of complete rows, and of rows with missing entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from polyspan.export.standalone.constants import (
    BASES,
    MEAN,
    MEANS,
    MIN_GROUP_ROWS,
    NOISE,
    ROWS_AT_ONCE,
    ROWS_OF_GROUP,
    VARIANCES,
    WEIGHTS,
)
from polyspan.export.standalone.elimination import _pairwise_products, _solve_packed
from polyspan.export.standalone.scaling import _samples


def predict(X: Any) -> np.ndarray:
    """Return the index of the most probable subspace of every sample, (n_samples,)."""
    return _per_row(_samples(X), lambda found: np.argmax(found.joint, axis=1))


def predict_proba(X: Any) -> np.ndarray:
    """Return the probability of every subspace for every sample, (n_samples, n_subspaces)."""
    return _per_row(_samples(X), lambda found: _soft_assign(found.joint)[0])


def score_samples(X: Any) -> np.ndarray:
    """Return the log-density of the observed entries of every sample, (n_samples,)."""
    logs = _per_row(_samples(X), lambda found: _soft_assign(found.joint)[1])
    return logs.astype(np.float64, copy=False)


def transform(X: Any) -> np.ndarray:
    """Return the Mahalanobis distance of every sample to every subspace.

    That of the observed entries, times √(n_features / number of observed entries).
    """
    X = _samples(X)
    distances = _per_row(X, lambda found: np.sqrt(found.squares))
    n_observed = np.maximum((~np.isnan(X)).sum(axis=1), 1)
    roots = np.sqrt(X.shape[1] / n_observed.astype(np.float64))
    return np.asarray(distances * roots.astype(distances.dtype)[:, None])


def reconstruct(X: Any) -> np.ndarray:
    """Return the expected clean sample, missing entries filled, (n_samples, n_features)."""

    def expect(found: _Posterior) -> np.ndarray:
        responsibilities = _soft_assign(found.joint)[0]
        total = responsibilities @ (MEANS - MEAN)
        for p, basis in enumerate(BASES):
            total += (responsibilities[:, p : p + 1] * found.factors[p]) @ basis.T
        return np.asarray(total + MEAN)

    return _per_row(_samples(X), expect)


def impute(X: Any) -> np.ndarray:
    """Fill missing entries with their expectation, and keep every observed entry as it is."""
    X = _samples(X)
    if not np.isnan(X).any():
        return np.array(X)
    return np.where(np.isnan(X), reconstruct(X).astype(X.dtype, copy=False), X)


class _Posterior(NamedTuple):
    """Densities and expected coordinates of some rows, for every component."""

    rows: np.ndarray
    joint: np.ndarray  # log of weight times density, (n, n_subspaces)
    squares: np.ndarray  # squared Mahalanobis distances, (n, n_subspaces)
    factors: np.ndarray  # expected coordinates in the subspace, (n_subspaces, n, subspace_dim)


def _log_weights() -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(WEIGHTS))


def _soft_assign(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the components, and the log-density."""
    top = np.max(joint, axis=1, keepdims=True)
    powers = np.exp(joint - top)
    total = np.sum(powers, axis=1, keepdims=True)
    return powers / total, (top + np.log(total))[:, 0]


def _per_row(X: np.ndarray, compute: Callable[[_Posterior], np.ndarray]) -> np.ndarray:
    """Compute one value or vector for every row."""
    out: np.ndarray | None = None
    for start in range(0, len(X), ROWS_AT_ONCE):
        chunk = (X[start : start + ROWS_AT_ONCE] - MEAN).astype(BASES.dtype, copy=False)
        for found in _posteriors(chunk):
            values = compute(found)
            if out is None:
                out = np.empty((len(X), *values.shape[1:]), dtype=values.dtype)
            out[start + found.rows] = values
    assert out is not None
    return out


def _posteriors(chunk: np.ndarray) -> Iterator[_Posterior]:
    """Yield one posterior of a complete chunk, else one for each group of rows."""
    observed = ~np.isnan(chunk)
    if observed.all():
        yield _complete_posterior(chunk)
        return
    values = np.where(observed, chunk, np.zeros_like(chunk))
    packed = np.ascontiguousarray(np.packbits(observed, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
    number = number.ravel()
    order, ends = np.argsort(number, kind="stable"), np.cumsum(counts)
    together, alone = ROWS_OF_GROUP
    for k in np.flatnonzero(counts >= MIN_GROUP_ROWS):
        members = order[ends[k] - counts[k] : ends[k]]
        for start in range(0, len(members), together):
            rows = members[start : start + together]
            yield _masked_posterior(rows, values[rows], observed[rows[:1]])
    single = np.flatnonzero(counts[number] < MIN_GROUP_ROWS)
    for start in range(0, len(single), alone):
        rows = single[start : start + alone]
        yield _masked_posterior(rows, values[rows], observed[rows])


def _complete_posterior(X: np.ndarray) -> _Posterior:
    """Return the posterior of rows without missing entries."""
    count, m, s = BASES.shape
    means, along = MEANS - MEAN, VARIANCES + NOISE[:, None]
    flat = np.transpose(BASES, (1, 0, 2)).reshape(m, count * s)
    coordinates = (X @ flat).reshape(len(X), count, s)
    inside_means = np.swapaxes(BASES, 1, 2) @ means[..., None]
    coordinates = coordinates - inside_means[None, :, :, 0]
    norms = np.sum(X * X, axis=1)[:, None] - 2.0 * (X @ means.T)
    norms = norms + np.sum(means * means, axis=1)
    squared = coordinates * coordinates
    # A difference of sums, which rounding can make slightly negative.
    outside = norms - np.sum(squared, axis=2)
    outside = np.where(outside > 0, outside, np.zeros_like(outside))
    squares = outside / NOISE + np.sum(squared / along, axis=2)
    logs = np.sum(np.log(along), axis=1) + (m - s) * np.log(NOISE)
    constant = _log_weights() - 0.5 * (logs + m * math.log(2.0 * math.pi))
    factors = np.transpose(coordinates * (VARIANCES / along), (1, 0, 2))
    return _Posterior(np.arange(len(X)), constant - 0.5 * squares, squares, factors)


def _masked_posterior(rows: np.ndarray, values: np.ndarray, mask: np.ndarray) -> _Posterior:
    """Return the posterior of rows with one mask each, or with one mask for all of them.

    With W = D diag(√v) on the observed entries only A = I + WᵀW/σ² is factorised.
    """
    means, roots = MEANS - MEAN, np.sqrt(VARIANCES)[:, None, :]
    W, observed = BASES * roots, mask.astype(values.dtype)
    right = np.swapaxes(W, 1, 2) @ values.T[None, ...]
    right = right - np.swapaxes(W * means[..., None], 1, 2) @ observed.T[None, ...]
    right = right / NOISE[:, None, None]
    if len(observed) == 1:
        masked = W * observed.reshape(1, -1, 1)
        grams = np.swapaxes(masked, 1, 2) @ masked
        systems = np.eye(W.shape[2], dtype=W.dtype) + grams / NOISE[:, None, None]
        logs = np.linalg.slogdet(systems)[1][:, None]
        z = np.linalg.solve(systems, right)
    else:
        z, logs = _eliminate(W, observed, right)
    norms = np.sum(values * values, axis=1)[None, :] - 2.0 * (means @ values.T)
    norms = norms + (means * means) @ observed.T
    squares = norms / NOISE[:, None] - np.sum(right * z, axis=1)
    squares = np.where(squares > 0, squares, np.zeros_like(squares))
    n_observed = np.sum(observed, axis=1)[None, :]
    constant = logs + n_observed * (np.log(NOISE)[:, None] + math.log(2.0 * math.pi))
    joint = _log_weights()[:, None] - 0.5 * (squares + constant)
    return _Posterior(rows, joint.T, squares.T, np.swapaxes(z, 1, 2) * roots)


def _eliminate(
    W: np.ndarray, observed: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve A z = right for all rows and components together; return z and log|A|."""
    count, m, s = W.shape
    if not s:
        return right, np.zeros((count, len(observed)), dtype=W.dtype)
    pairs = _pairwise_products(W / np.sqrt(NOISE)[:, None, None])
    t = pairs.shape[1]
    grams = (pairs.reshape(count * t, m) @ observed.T).reshape(count, t, len(observed))
    diagonal = [i * s - i * (i - 1) // 2 for i in range(s)]
    for k in diagonal:
        grams[:, k, :] += 1.0
    z = _solve_packed(grams, right.copy())
    logs = np.zeros((), dtype=W.dtype)
    for k in diagonal:
        logs = logs + np.log(grams[:, k, :])
    return z, logs
