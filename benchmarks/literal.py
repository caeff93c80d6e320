"""Algorithm 1 of the paper, line by line, in vectorised NumPy: the reference for our times.

It forms the m×m matrix A_l and takes its full eigendecomposition, as printed. The objective is
recorded after every assignment, so the first entry belongs to the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LiteralResult:
    """Result of the literal algorithm."""

    bases: np.ndarray
    labels: np.ndarray
    history: list[float]
    n_iter: int


def assign(Y: np.ndarray, bases: np.ndarray) -> tuple[np.ndarray, float]:
    """Run steps 3 to 6: find the largest ‖D_lᵀy_i‖; return labels and the sum of its squares."""
    energy = np.stack([np.sum((Y @ basis) ** 2, axis=1) for basis in bases], axis=1)
    labels = np.argmax(energy, axis=1)
    return labels, float(np.max(energy, axis=1).sum())


def update_one(Y: np.ndarray, labels: np.ndarray, bases: np.ndarray, p: int, lam: float) -> None:
    """Run steps 8 to 12 for one subspace, in place."""
    members = Y[labels == p]
    if math.isinf(lam):
        A = members.T @ members
    else:
        A = lam / 2 * (members.T @ members)
        for q, other in enumerate(bases):
            if q != p:
                A += other @ other.T
    _, vectors = np.linalg.eigh(A)
    bases[p] = vectors[:, -bases.shape[2] :]


def objective(bases: np.ndarray, residual: float, lam: float) -> float:
    """Return F1; for λ=∞ the sum of squared residuals."""
    if math.isinf(lam):
        return residual
    n, _, s = bases.shape
    pairs = ((i, j) for i in range(n) for j in range(n) if i != j)
    closeness = sum(s - np.sum((bases[i].T @ bases[j]) ** 2) for i, j in pairs)
    return float(closeness + lam * residual)


def micusal(
    X: np.ndarray,
    bases: np.ndarray,
    lam: float,
    *,
    max_iter: int = 300,
    tol: float = 1e-6,
    center: bool = True,
) -> LiteralResult:
    """Run Algorithm 1 from one start until an iteration lowers F1 by less than tol·F1."""
    Y = X - X.mean(axis=0) if center else X
    total = float(np.sum(Y * Y))
    bases = bases.copy()
    history: list[float] = []
    for iteration in range(max_iter + 1):
        labels, energy = assign(Y, bases)
        history.append(objective(bases, total - energy, lam))
        settled = iteration > 0 and history[-2] - history[-1] <= tol * history[-1]
        if settled or iteration == max_iter:
            break
        for p in range(len(bases)):
            update_one(Y, labels, bases, p, lam)
    return LiteralResult(bases, labels, history, iteration)
