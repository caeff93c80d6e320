"""Algorithm 3 of the paper, line by line, in NumPy: the reference for the times of our solvers."""

from __future__ import annotations

import numpy as np


def sweep(
    basis: np.ndarray,
    values: np.ndarray,
    missing: np.ndarray,
    members: np.ndarray,
    steps: np.ndarray,
) -> np.ndarray:
    """Take one rank-one step for every member of a subspace (steps 12 to 16)."""
    for i in members:
        seen = ~missing[i]
        rows = basis[seen]
        theta, *_ = np.linalg.lstsq(rows, values[i, seen], rcond=None)
        omega = basis @ theta
        residual = np.zeros(len(basis))
        residual[seen] = values[i, seen] - omega[seen]
        residual_norm, omega_norm = np.linalg.norm(residual), np.linalg.norm(omega)
        angle = residual_norm * omega_norm * steps[i]
        direction = (np.cos(angle) - 1.0) * omega / omega_norm
        direction += np.sin(angle) * residual / residual_norm
        basis = basis + np.outer(direction, theta / np.linalg.norm(theta))
    return basis


def closeness_step(basis: np.ndarray, others: list[np.ndarray], step: float) -> np.ndarray:
    """Move along the geodesic towards the other bases (steps 10 and 11); form its m×m matrix."""
    m = len(basis)
    A = sum(other @ other.T for other in others)
    delta = 2.0 * (np.eye(m) - basis @ basis.T) @ A @ basis
    u, sigma, vt = np.linalg.svd(delta, full_matrices=False)
    turned = basis @ vt.T @ np.diag(np.cos(sigma * step)) + u @ np.diag(np.sin(sigma * step))
    return np.asarray(turned @ vt)


def assign(bases: np.ndarray, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Assign every sample to the subspace that fits its observed entries best (steps 3 to 6)."""
    labels = np.empty(len(values), dtype=int)
    for i in range(len(values)):
        seen = ~missing[i]
        residuals = []
        for basis in bases:
            theta, *_ = np.linalg.lstsq(basis[seen], values[i, seen], rcond=None)
            residuals.append(np.sum((values[i, seen] - basis[seen] @ theta) ** 2))
        labels[i] = int(np.argmin(residuals))
    return labels
