"""From a point of the feature space back to the input space (Sec. IV-C).

A point is given by the weights χ of its expansion P = Σ χ_i φ(y_i) over the training samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.kernels.functions import Kernel

# Steps of the fixed-point iteration for the Gaussian kernel, and when it has settled.
FIXED_POINT_STEPS = 100
FIXED_POINT_TOL = 1e-7


@dataclass(frozen=True)
class Expansion:
    """Points of the feature space, and their inner products with the training samples."""

    weights: np.ndarray
    """χ: (n, n_training)."""
    products: np.ndarray
    """Pᵀφ(y_i): (n, n_training)."""
    squares: np.ndarray
    """‖P‖²: (n,)."""

    @classmethod
    def of(cls, weights: np.ndarray, G: np.ndarray) -> Expansion:
        """Expand over samples with the (uncentred) kernel matrix G."""
        products = weights @ G
        return cls(weights, products, np.einsum("ni,ni->n", weights, products))

    def feature_distances(self, diagonal: np.ndarray) -> np.ndarray:
        """Return ‖P - φ(y_i)‖², given κ(y_i, y_i)."""
        return np.asarray(self.squares[:, None] + diagonal - 2.0 * self.products)


def combination_weights(kernel: Kernel, point: Expansion, diagonal: np.ndarray) -> np.ndarray:
    """Return e_i of every point: its pre-image is Σ e_i y_i (Gaussian: divided by Σ e_i)."""
    kernel.check_preimage()
    if kernel.name == "rbf":
        return np.asarray(point.weights * (1.0 - point.feature_distances(diagonal) / 2.0))
    degree = 1 if kernel.name == "linear" else int(kernel.degree)
    if degree == 1:
        return point.weights
    squares = np.where(point.squares > 0, point.squares, 1.0)[:, None]
    # (d-1)/d of an odd d: an even power of an odd root, so the sign goes.
    ratios = np.abs(point.products / squares) ** ((degree - 1) / degree)
    return np.asarray(point.weights * ratios)


def preimages(
    kernel: Kernel,
    e: np.ndarray,
    Y: np.ndarray,
    observed: np.ndarray | None = None,
    *,
    corrected: bool = True,
) -> np.ndarray:
    """Return Σ e_i y_i of every point, entry by entry where samples have holes.

    Parameters
    ----------
    e : array of shape (n, n_training)
    Y : array of shape (n_training, n_features)
        Zeros where nothing was observed.
    observed : boolean array of the shape of Y, default=None
        None: all entries.
    corrected : bool, default=True
        Whether dot-product kernels get the factor N/|r_u| for the samples that lack entry u; the
        paper has it for the Gaussian kernel only.
    """
    sums = e @ Y
    share = 1.0 if observed is None else observed.mean(axis=0)
    if kernel.name == "rbf":
        total = e.sum(axis=1, keepdims=True)
        return np.asarray(sums / (_away_from_zero(total) * share))
    return np.asarray(sums / share if corrected else sums)


def polish(
    kernel: Kernel,
    start: np.ndarray,
    weights: np.ndarray,
    Y: np.ndarray,
    *,
    max_iter: int = FIXED_POINT_STEPS,
    tol: float = FIXED_POINT_TOL,
) -> np.ndarray:
    """Iterate z ← Σ χ_i κ(z, y_i) y_i / Σ χ_i κ(z, y_i) for the Gaussian kernel.

    A step is kept only where it raises Pᵀφ(z), so the result is never worse than the start.
    """
    z = start.copy()
    values = weights * kernel(z, Y)
    reached = values.sum(axis=1)
    active = np.flatnonzero(reached > 0)
    for _ in range(max_iter):
        if not len(active):
            break
        stepped = (values[active] @ Y) / reached[active, None]
        new_values = weights[active] * kernel(stepped, Y)
        new = new_values.sum(axis=1)
        better = new > reached[active]
        rows = active[better]
        moved = np.linalg.norm(stepped[better] - z[rows], axis=1)
        z[rows], values[rows], reached[rows] = stepped[better], new_values[better], new[better]
        active = rows[moved > tol * np.linalg.norm(z[rows], axis=1)]
    return z


def _away_from_zero(total: np.ndarray) -> np.ndarray:
    """Keep denominators from vanishing: there the point has no pre-image near the samples."""
    tiny = np.finfo(total.dtype).eps
    return np.where(np.abs(total) < tiny, np.where(total < 0, -tiny, tiny), total)
