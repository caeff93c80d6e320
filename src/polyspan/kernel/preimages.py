"""From a point of the feature space back to the input space (Sec. IV-C).

A point is given by the weights χ of its expansion P = Σ χ_i φ(y_i) over the training samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, device, machine_epsilon, namespace, restore_order
from polyspan.kernel.functions import Kernel

# Steps of the fixed-point iteration for the Gaussian kernel, and when it has settled.
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
        """Expand over samples with the (uncentred) kernel matrix G."""
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
    # (d-1)/d of an odd d: an even power of an odd root, so the sign goes.
    ratios = xp.abs(point.products / squares) ** ((degree - 1) / degree)
    return point.weights * ratios


def preimages(
    kernel: Kernel,
    e: Array,
    Y: Array,
    observed: Array | None = None,
    *,
    corrected: bool = True,
) -> Array:
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
    xp = namespace(e)
    sums = e @ Y
    fraction = 1.0 if observed is None else xp.mean(xp.astype(observed, e.dtype), axis=0)
    if kernel.name == "rbf":
        total = xp.sum(e, axis=1, keepdims=True)
        return sums / (_away_from_zero(total) * fraction)
    return sums / fraction if corrected else sums


def polish(
    kernel: Kernel,
    start: Array,
    weights: Array,
    Y: Array,
    *,
    max_iter: int = FIXED_POINT_STEPS,
    tol: float = FIXED_POINT_TOL,
) -> Array:
    """Iterate z ← Σ χ_i κ(z, y_i) y_i / Σ χ_i κ(z, y_i) for the Gaussian kernel.

    A step is kept only where it raises Pᵀφ(z), so the result is never worse than the start.
    """
    xp = namespace(start)
    z, values = start, weights * kernel(start, Y)
    reached = xp.sum(values, axis=1)
    left = xp.arange(start.shape[0], device=device(start))
    going = reached > 0
    rows, ends = [], []
    for _ in range(max_iter):
        # Rows that have settled are put aside; the others go on among themselves.
        over, on = xp.nonzero(~going)[0], xp.nonzero(going)[0]
        rows.append(xp.take(left, over))
        ends.append(xp.take(z, over, axis=0))
        left, reached = xp.take(left, on), xp.take(reached, on)
        z, values, weights = (xp.take(a, on, axis=0) for a in (z, values, weights))
        if left.shape[0] == 0:
            break
        stepped = (values @ Y) / reached[:, None]
        new_values = weights * kernel(stepped, Y)
        new = xp.sum(new_values, axis=1)
        better = new > reached
        moved = xp.linalg.vector_norm(stepped - z, axis=1)
        z = xp.where(better[:, None], stepped, z)
        values = xp.where(better[:, None], new_values, values)
        reached = xp.where(better, new, reached)
        going = better & (moved > tol * xp.linalg.vector_norm(z, axis=1))
    return restore_order([*rows, left], [*ends, z])


def _away_from_zero(total: Array) -> Array:
    """Keep denominators from vanishing: there the point has no pre-image near the samples."""
    xp, tiny = namespace(total), machine_epsilon(total)
    return xp.where(
        xp.abs(total) < tiny,
        tiny * xp.where(total < 0, -xp.ones_like(total), xp.ones_like(total)),
        total,
    )
