"""Labels by leave-one-out residuals in a feature space, from a good start.

Clusters with few samples for their dimension take in any sample and represent it well. Scored by
the affine subspace as it would be without it, r/(1-h)², a sample finds where it belongs. Each
cluster has a scale g_l of its own at first, which is moved into the common one while the weights
w ∝ exp(-(r/g_l + log g_l)/τ) harden. No objective is minimised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.geometry import orthonormal_columns
from polyspan.solvers.annealing import temperatures
from polyspan.solvers.krylov import leading_subspace
from polyspan.solvers.leave_one_out import SMALLEST_SLACK

STEPS = 20
# In units of the scales, that is of the mean residual.
HOTTEST, COLDEST = 0.1, 0.01
# Hard steps after the last temperature; labels can go round in circles.
HARD_STEPS = 10
# Weights below this count for nothing, but keep their clusters from vanishing.
SMALLEST_WEIGHT = 1e-12


@dataclass(frozen=True)
class LeaveOneOut:
    """Labels, and the sum of leave-one-out residuals that they reach."""

    labels: np.ndarray
    criterion: float
    n_iter: int
    """Steps taken, soft and hard."""
    settled: bool
    """Whether the labels came to rest; otherwise the best of those seen are kept."""


def leave_one_out_labels(
    Z: np.ndarray, labels: np.ndarray, n_subspaces: int, s: int
) -> LeaveOneOut:
    """Improve labels of samples given by coordinates in the feature space.

    Parameters
    ----------
    Z : array of shape (n_samples, rank)
        Rows with ZZᵀ = G̃.
    labels : array of shape (n_samples,)
        Where to start.
    """
    weights = np.maximum(_one_hot(labels, n_subspaces), SMALLEST_WEIGHT)
    bases: list[np.ndarray | None] = [None] * n_subspaces
    for step, tau in enumerate(temperatures(1.0, HOTTEST, COLDEST, STEPS)):
        residuals, bases = _residuals(Z, weights, bases, s)
        scales = (weights * residuals).sum(axis=0) / weights.sum(axis=0)
        pooled = float((weights * residuals).sum()) / len(Z)
        if pooled <= 0:
            break
        tiny = np.finfo(Z.dtype).eps * pooled
        share = (step + 1) / STEPS
        scales = np.maximum(scales, tiny) ** (1.0 - share) * pooled**share
        exponents = -(residuals / scales + np.log(scales)) / tau
        exponents -= exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        weights = np.maximum(weights, SMALLEST_WEIGHT)
    best, lowest, settled = weights.argmax(axis=1), np.inf, False
    current = best
    n_hard = 0
    while n_hard < HARD_STEPS and not settled:
        n_hard += 1
        hard = np.maximum(_one_hot(current, n_subspaces), SMALLEST_WEIGHT)
        residuals, bases = _residuals(Z, hard, bases, s)
        criterion = float(residuals[np.arange(len(Z)), current].sum())
        if criterion < lowest:
            best, lowest = current, criterion
        moved = residuals.argmin(axis=1)
        settled = bool(np.array_equal(moved, current))
        current = moved
    return LeaveOneOut(best, lowest, STEPS + n_hard, settled)


def _residuals(
    Z: np.ndarray, weights: np.ndarray, bases: list[np.ndarray | None], s: int
) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """Return r/(1-h)² of every sample to every weighted affine subspace, and the bases."""
    residuals = np.empty(weights.shape)
    found: list[np.ndarray | None] = []
    for p, old in enumerate(bases):
        w = weights[:, p]
        total = float(w.sum())
        centred = Z - (w @ Z) / total
        basis, values = _leading(centred, w, old, s)
        projections = centred @ basis
        inside = projections * projections
        r = np.maximum(np.einsum("nk,nk->n", centred, centred) - inside.sum(axis=1), 0.0)
        used = values > np.finfo(Z.dtype).eps * 10.0 * values.max(initial=0.0)
        h = w * (inside[:, used] / values[used]).sum(axis=1) + w / total
        residuals[:, p] = r / np.clip(1.0 - h, SMALLEST_SLACK, 1.0) ** 2
        found.append(basis)
    return residuals, found


def _leading(
    centred: np.ndarray, w: np.ndarray, old: np.ndarray | None, s: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading directions of a weighted scatter and its variances along them."""
    n, rank = centred.shape
    s = min(s, n, rank)
    weighted = centred * np.sqrt(w)[:, None]
    heaviest = np.argsort(w)[::-1][:s]
    start = orthonormal_columns(weighted[heaviest].T) if old is None else old
    if rank >= 4 * (s + 1):
        found = leading_subspace(
            lambda block: weighted.T @ (weighted @ block), start, max_cycles=20
        )
        return np.asarray(found.vectors), np.asarray(found.values)
    values, vectors = np.linalg.eigh(weighted.T @ weighted)
    return vectors[:, ::-1][:, :s], values[::-1][:s]


def _one_hot(labels: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(np.eye(n)[labels])
