"""Pre-images: from a point of the feature space back to the input space (Sec. IV-C).

A point P of the feature space is given by weights χ over the training samples: P = Σ χ_i φ(y_i).
"""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.base.arrays import Array, device, machine_epsilon, namespace, restore_order
from polyspan.kernel.functions import Kernel

# Most steps of the fixed-point iteration for the Gaussian kernel, and the relative change at which
# it has converged.
FIXED_POINT_STEPS = 100
FIXED_POINT_TOL = 1e-7


@dataclass(frozen=True)
class Expansion:
    """Points of the feature space, and their inner products with the training samples."""

    weights: Array
    """χ: (n, n_training)."""
    products: Array
    """Pᵀφ(y_i): (n, n_training)."""
    squares: Array
    """‖P‖²: (n,)."""

    @classmethod
    def of(cls, weights: Array, G: Array) -> Expansion:
        """Compute the inner products from the training samples' (uncentred) kernel matrix G."""
        products = weights @ G
        return cls(weights, products, namespace(weights).vecdot(weights, products))

    def feature_distances(self, diagonal: Array) -> Array:
        """Return ‖P - φ(y_i)‖², given κ(y_i, y_i)."""
        return self.squares[:, None] + diagonal - 2.0 * self.products


def combination_weights(kernel: Kernel, point: Expansion, diagonal: Array) -> Array:
    """Return e_i of every point: its pre-image is Σ e_i y_i (Gaussian: divided by Σ e_i)."""
    kernel.check_preimage()
    if kernel.name == "rbf":
        return point.weights * (1.0 - point.feature_distances(diagonal) / 2.0)
    degree = 1 if kernel.name == "linear" else int(kernel.degree)
    if degree == 1:
        return point.weights
    xp = namespace(point.weights)
    squares = xp.where(point.squares > 0, point.squares, 1.0)[:, None]
    # For an odd degree d, the power (d-1)/d is an even power of an odd root, which is not negative.
    ratios = xp.abs(point.products / squares) ** ((degree - 1) / degree)
    return point.weights * ratios


def preimages(
    kernel: Kernel,
    e: Array,
    Y: Array,
    observed: Array | None = None,
    *,
    corrected: bool = True,
    shares: Array | None = None,
) -> Array:
    """Return the pre-image Σ e_i y_i of every point; missing entries of y_i count as 0.

    Parameters
    ----------
    e : array of shape (n, n_training)
        From `combination_weights`.
    Y : array of shape (n_training, n_features)
        The training samples, 0 where an entry is missing.
    observed : boolean array of the shape of Y, default=None
        Which entries of Y are observed; None: all.
    corrected : bool, default=True
        Whether entry u of a pre-image is multiplied by N/|r_u|, for |r_u| samples of N that have
        this entry, also with dot-product kernels. The paper does it for the Gaussian kernel only.
    shares : array of shape (n_training,), default=None
        Weights of the samples, with the sum 1, for these numbers; None: all count the same.
    """
    xp = namespace(e)
    sums = e @ Y
    fraction: Array = 1.0
    if observed is not None:
        seen = xp.astype(observed, e.dtype)
        fraction = xp.mean(seen, axis=0) if shares is None else shares @ seen
    if kernel.name == "rbf":
        total = xp.sum(e, axis=1, keepdims=True)
        return sums / (_away_from_zero(total) * fraction)
    return sums / fraction if corrected else sums


def polish(kernel: Kernel, start: Array, weights: Array, Y: Array) -> Array:
    """Iterate z ← Σ χ_i κ(z, y_i) y_i / Σ χ_i κ(z, y_i) for the Gaussian kernel.

    A step is kept only where it raises Pᵀφ(z), so the result is never worse than the start.
    """
    xp = namespace(start)
    z, values = start, weights * kernel(start, Y)
    reached = xp.sum(values, axis=1)
    rows = xp.arange(start.shape[0], device=device(start))
    moving = reached > 0
    finished_rows, finished = [], []
    for _ in range(FIXED_POINT_STEPS):
        # Only the rows that still move are iterated; the others are stored.
        done, active = xp.nonzero(~moving)[0], xp.nonzero(moving)[0]
        finished_rows.append(xp.take(rows, done))
        finished.append(xp.take(z, done, axis=0))
        rows, reached = xp.take(rows, active), xp.take(reached, active)
        z, values, weights = (xp.take(a, active, axis=0) for a in (z, values, weights))
        if rows.shape[0] == 0:
            break
        stepped = (values @ Y) / reached[:, None]
        new_values = weights * kernel(stepped, Y)
        new = xp.sum(new_values, axis=1)
        better = new > reached
        moved = xp.linalg.vector_norm(stepped - z, axis=1)
        z = xp.where(better[:, None], stepped, z)
        values = xp.where(better[:, None], new_values, values)
        reached = xp.where(better, new, reached)
        moving = better & (moved > FIXED_POINT_TOL * xp.linalg.vector_norm(z, axis=1))
    return restore_order([*finished_rows, rows], [*finished, z])


def _away_from_zero(total: Array) -> Array:
    """Keep denominators away from 0, where a point has no pre-image near the samples."""
    xp, tiny = namespace(total), machine_epsilon(total)
    signs = xp.where(total < 0, -1.0, xp.ones_like(total))
    return xp.where(xp.abs(total) < tiny, tiny * signs, total)
