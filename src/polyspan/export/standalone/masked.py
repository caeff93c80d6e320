"""Prediction of linear and affine models that take missing entries.

With an observed set Ω of a row y, the coefficients θ of subspace l minimise
‖[y - c - Dθ]_Ω‖² + ρ‖[c + Dθ] outside Ω‖², and residuals are scaled by m/|Ω|.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from polyspan.export.standalone.constants import (
    ANCHORS,
    BASES,
    MEAN,
    PRIOR,
    ROWS_AT_ONCE,
    SAMPLES_PER_PATTERN,
    TOO_FEW,
)
from polyspan.export.standalone.elimination import _pairwise_products, _solve_packed
from polyspan.export.standalone.ranges import _power_of_two
from polyspan.export.standalone.scaling import _samples


def predict(X: Any) -> np.ndarray:
    """Return the index of the nearest subspace of every sample, (n_samples,).

    -1 for samples with at most TOO_FEW observed entries.
    """
    X = _samples(X)
    labels = np.concatenate([np.argmax(fit.gains, axis=0) for fit in _fits(X)])
    return np.where((~np.isnan(X)).sum(axis=1) > TOO_FEW, labels, -1)


def transform(X: Any) -> np.ndarray:
    """Return the distance of every sample to every subspace, (n_samples, n_subspaces).

    That of the observed entries, times √(n_features / number of observed entries).
    """
    return _distances(_samples(X))


def _distances(X: np.ndarray) -> np.ndarray:
    """Return the distances of checked samples."""
    distances = np.zeros((len(X), len(BASES)), dtype=BASES.dtype)
    for fit in _fits(X):
        for p in range(len(BASES)):
            residual = fit.values - _fitted(fit, p, slice(None))
            residual[fit.missing] = 0
            largest = np.abs(residual).max(axis=1, keepdims=True)
            safe = np.where(largest > 0, largest, np.ones_like(largest))
            norms = np.linalg.norm(residual / safe, axis=1) * safe[:, 0]
            distances[fit.rows, p] = norms * np.sqrt(fit.weights) / fit.scale
    return distances


def score_samples(X: Any) -> np.ndarray:
    """Return minus the squared distance of every sample to its nearest subspace.

    NaN for samples with at most TOO_FEW observed entries.
    """
    X = _samples(X)
    nearest = np.min(_distances(X), axis=1)
    scores = -nearest * nearest
    scores[(~np.isnan(X)).sum(axis=1) <= TOO_FEW] = np.nan
    return np.asarray(scores)


def reconstruct(X: Any) -> np.ndarray:
    """Return the nearest point of the union for every sample, missing entries filled."""
    X = _samples(X)
    points = np.zeros(X.shape, dtype=BASES.dtype)
    for fit in _fits(X):
        labels = np.argmax(fit.gains, axis=0)
        for p in range(len(BASES)):
            own = np.flatnonzero(labels == p)
            points[fit.rows.start + own] = _fitted(fit, p, own) / fit.scale + MEAN
    return points


def impute(X: Any) -> np.ndarray:
    """Fill missing entries by `reconstruct`, and keep every observed entry as it is."""
    X = _samples(X)
    return np.where(np.isnan(X), reconstruct(X).astype(X.dtype, copy=False), X)


class _Fit(NamedTuple):
    """How all subspaces fit a chunk of rows."""

    rows: slice
    values: np.ndarray  # centred and scaled, 0 where missing
    missing: np.ndarray  # boolean
    weights: np.ndarray  # n_features / number of observed entries
    coefficients: np.ndarray  # (n_subspaces, subspace_dim, n)
    gains: np.ndarray  # squared norm minus residual and prior, weighted: (n_subspaces, n)
    scale: float


def _fitted(fit: _Fit, p: int, own: Any) -> np.ndarray:
    """Return the points of subspace p that some rows are fitted by, relative to the mean."""
    found = fit.coefficients[p][:, own].T @ BASES[p].T
    return np.asarray(found if ANCHORS is None else found + fit.scale * (ANCHORS - MEAN)[p])


def _fits(X: np.ndarray) -> Iterator[_Fit]:
    """Yield how all subspaces fit each chunk of rows."""
    X = X.astype(BASES.dtype, copy=False)
    missing, values = np.isnan(X), X - MEAN
    values[missing] = 0
    scale = _power_of_two(float(np.abs(values).max()), BASES.dtype)
    if scale != 1.0:
        values = values * scale
    m = X.shape[1]
    n_observed = np.maximum(m - missing.sum(axis=1), 1)
    weights = (m / n_observed.astype(np.float64)).astype(X.dtype)
    pairs = _pairwise_products(BASES)
    patterns, inverse = _shared(missing, pairs)
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, min(len(X), start + ROWS_AT_ONCE))
        chunk, hidden = values[rows], missing[rows].astype(X.dtype)
        right = np.swapaxes(BASES, 1, 2) @ chunk.T
        lift = np.zeros((), dtype=X.dtype)
        if ANCHORS is not None:
            cross, lift = _affine_terms(scale * (ANCHORS - MEAN), chunk, hidden)
            right = right + cross
        if inverse is None or patterns is None:
            theta = _solve_packed(_systems(pairs, hidden), right.copy())
        else:
            own = np.take(inverse, patterns[rows], axis=1)
            theta = np.transpose(right, (0, 2, 1))[..., None, :] @ own
            theta = np.transpose(theta[:, :, 0, :], (0, 2, 1))
        gains = np.sum(right * theta, axis=1)
        gains = (gains if ANCHORS is None else gains + lift) * weights[rows]
        yield _Fit(rows, chunk, missing[rows], weights[rows], theta, gains, scale)


def _systems(pairs: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Return I - (1 - ρ) DᵀD over the missing rows of D, packed: (k, s(s+1)/2, n)."""
    k, t, m = pairs.shape
    gram = (pairs.reshape(k * t, m) @ hidden.T).reshape(k, t, len(hidden))
    gram *= -(1.0 - PRIOR)
    s = BASES.shape[2]
    for i in range(s):
        # Slightly above 1: with few observed entries and no prior a system may be singular.
        gram[:, i * s - i * (i - 1) // 2, :] += 1.0 + 4.0 * np.finfo(gram.dtype).eps
    return np.asarray(gram)


def _shared(missing: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the mask of every row by its number, and the inverse systems of all masks.

    None where masks do not recur, or where a system is singular to rounding.
    """
    packed = np.ascontiguousarray(np.packbits(missing, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) * SAMPLES_PER_PATTERN > len(keys):
        return None, None
    systems = _systems(pairs, missing[first].astype(pairs.dtype))
    k, t, n = systems.shape
    s = BASES.shape[2]
    positions = np.empty((s, s), dtype=np.int64)
    rows, columns = np.triu_indices(s)
    positions[rows, columns] = positions[columns, rows] = np.arange(t)
    full = np.take(systems, positions.ravel(), axis=1).reshape(k, s, s, n)
    try:
        inverse = np.linalg.inv(np.transpose(full, (0, 3, 1, 2)))
    except np.linalg.LinAlgError:
        return None, None
    largest = float(np.abs(inverse).max()) if s else 0.0
    return number.ravel(), inverse if largest < 0.1 / np.finfo(systems.dtype).eps else None


def _affine_terms(
    points: np.ndarray, values: np.ndarray, hidden: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what points of affine subspaces add to right-hand sides and to gains."""
    turned = np.swapaxes(BASES, 1, 2)
    factors = np.concatenate([turned, points[:, None, :]], axis=1) * points[:, None, :]
    k, t, m = factors.shape
    unseen = (factors.reshape(k * t, m) @ hidden.T).reshape(k, t, len(hidden))
    unseen = (1.0 - PRIOR) * unseen
    squares = np.sum(points * points, axis=1)[:, None]
    lift = 2.0 * (points @ values.T) - squares + unseen[:, -1, :]
    return unseen[:, :-1, :] - turned @ points[..., None], lift
