"""Prediction of linear and affine models that take complete data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polyspan.export.standalone.constants import (
    ANCHORS,
    BASES,
    MEAN,
    ROWS_OF_TYPE,
)
from polyspan.export.standalone.ranges import _power_of_two
from polyspan.export.standalone.scaling import _samples


def predict(X: Any) -> np.ndarray:
    """Return the index of the nearest subspace of every sample, (n_samples,)."""
    if ANCHORS is not None:
        return np.asarray(np.argmin(transform(X), axis=1))
    X = _samples(X)
    labels = np.zeros(len(X), dtype=np.int64)
    for rows, chunk, _ in _chunks(X):
        projections = _project(chunk)
        labels[rows] = np.argmax(np.sum(projections * projections, axis=1), axis=0)
    return labels


def transform(X: Any) -> np.ndarray:
    """Return the distance of every sample to every subspace, (n_samples, n_subspaces)."""
    X = _samples(X)
    distances = np.zeros((len(X), len(BASES)), dtype=BASES.dtype)
    for rows, chunk, scales in _chunks(X):
        for p, basis in enumerate(BASES):
            about = chunk
            if ANCHORS is not None:
                about = chunk - (ANCHORS - MEAN)[p] * (1.0 if scales is None else scales)
            norms = np.linalg.norm(about - (about @ basis) @ basis.T, axis=1)
            distances[rows, p] = norms if scales is None else norms / scales[:, 0]
    return distances


def score_samples(X: Any) -> np.ndarray:
    """Return minus the squared distance of every sample to its nearest subspace."""
    nearest = np.min(transform(X), axis=1)
    return np.asarray(-nearest * nearest)


def reconstruct(X: Any) -> np.ndarray:
    """Return the nearest point of the union for every sample, (n_samples, n_features)."""
    X = _samples(X)
    if ANCHORS is not None:
        labels, points = predict(X), np.zeros(X.shape, dtype=np.result_type(X, BASES))
        for p, basis in enumerate(BASES):
            about = X[labels == p] - ANCHORS[p]
            points[labels == p] = (about @ basis) @ basis.T + ANCHORS[p]
        return points
    points = np.zeros(X.shape, dtype=BASES.dtype)
    for rows, chunk, scales in _chunks(X):
        projections = _project(chunk)
        labels = np.argmax(np.sum(projections * projections, axis=1), axis=0)
        for p, basis in enumerate(BASES):
            own = np.flatnonzero(labels == p)
            projected = projections[p][:, own].T @ basis.T
            if scales is not None:
                projected = projected / scales[own]
            points[rows.start + own] = projected + MEAN
    return points


def _chunks(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
    """Yield centred rows, times powers of two where their squares would leave the range."""
    farthest = 0.0 if ANCHORS is None else float(np.abs(ANCHORS - MEAN).max())
    size = ROWS_OF_TYPE[X.itemsize]
    for start in range(0, len(X), size):
        chunk = X[start : start + size] - MEAN
        largest = np.maximum(np.abs(chunk).max(axis=1), farthest)
        scales = np.array([[_power_of_two(float(one), BASES.dtype)] for one in largest])
        if (scales == 1.0).all():
            yield slice(start, start + len(chunk)), chunk.astype(BASES.dtype, copy=False), None
        else:
            scaled = (chunk * scales).astype(BASES.dtype, copy=False)
            yield slice(start, start + len(chunk)), scaled, scales


def _project(chunk: np.ndarray) -> np.ndarray:
    """Return the coordinates of all rows in all subspaces, (n_subspaces, subspace_dim, n)."""
    count, m, s = BASES.shape
    stacked = np.swapaxes(BASES, 1, 2).reshape(count * s, m)
    if chunk.itemsize == 4:
        projections = np.ascontiguousarray((chunk @ stacked.T).T)
    else:
        projections = stacked @ chunk.T
    return np.asarray(projections.reshape(count, s, len(chunk)))
