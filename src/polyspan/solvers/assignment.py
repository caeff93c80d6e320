"""Subspace assignment (Algorithm 1, steps 3 to 6) and, in the same pass, the sums that the update needs.

A pass over one chunk of rows returns sums over its samples. That is what one process, a GPU and a
cluster of workers have in common. All starts of a small problem travel in one product: bases have
the shape (n_starts, n_subspaces, n_features, subspace_dim).
"""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import Array, Rows, float64_sum, namespace, transpose
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.projections import energies, project


@dataclass(frozen=True)
class Sums:
    """Sums over samples, one per start (and per subspace)."""

    counts: Array
    """Members, or their weights: (n_starts, n_subspaces)."""
    energy: Array
    """Σ w ‖D_lᵀy‖², in double precision: (n_starts,)."""
    score: Array
    """What the assignment minimised, where that is not the residual: (n_starts,)."""
    entropy: Array
    """Σ w log w: (n_starts,); 0 for hard labels."""
    products: Array | None
    """Σ w y (D_lᵀy)ᵀ: (n_starts, n_subspaces, n_features, subspace_dim)."""

    def __add__(self, other: Sums) -> Sums:
        products = self.products
        if products is not None and other.products is not None:
            products = products + other.products
        return Sums(
            self.counts + other.counts,
            self.energy + other.energy,
            self.score + other.score,
            self.entropy + other.entropy,
            products,
        )


def member_products(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int, offset: Array | None
) -> Array:
    """Return Y_lᵀ(Y_l D_l) of hard clusters.

    Each sample counts in one cluster only: gathering members costs 1/L of the assignment
    product, where masking would cost all of it again.
    """
    xp = namespace(chunk, projections)
    starts, s = projections.shape[1], projections.shape[3]
    products = xp.zeros((starts, n_subspaces, chunk.shape[1], s), dtype=chunk.dtype)
    for r in range(starts):
        own = labels[:, r]
        for p in range(n_subspaces):
            members = xp.nonzero(own == p)[0]
            coefficients = xp.take(projections[:, r, p, :], members, axis=0)
            product = transpose(xp.take(chunk, members, axis=0)) @ coefficients
            if offset is not None:
                product = product - offset[:, None] * xp.sum(coefficients, axis=0)[None, :]
            products[r, p, ...] = product
    return products


def assign_chunk(
    chunk: Array,
    bases: Array,
    offset: Array | None,
    *,
    with_products: bool,
    leverage: Leverage | None = None,
) -> tuple[Array, Sums]:
    """Give every row to its nearest subspace; return labels (n, n_starts) and sums."""
    xp = namespace(chunk, bases)
    n_subspaces = bases.shape[1]
    projections = project(chunk, bases, offset)
    energy = energies(projections)
    if leverage is None:
        labels = xp.argmax(energy, axis=2)
        won = xp.max(energy, axis=2)
        score = xp.zeros((bases.shape[0],), dtype=xp.float64)
    else:
        residuals = leverage.residuals(projections, energy)
        labels = xp.argmin(residuals, axis=2)
        won = xp.sum(xp.where(_one_hot(labels, n_subspaces), energy, 0.0), axis=2)
        score = float64_sum(xp.min(residuals, axis=2), axis=0)
    counts = xp.sum(xp.astype(_one_hot(labels, n_subspaces), xp.int64), axis=0)
    products = None
    if with_products:
        products = member_products(chunk, projections, labels, n_subspaces, offset)
    energy_sum = float64_sum(won, axis=0)
    return labels, Sums(counts, energy_sum, score, xp.zeros_like(energy_sum), products)


def weigh_chunk(
    chunk: Array,
    bases: Array,
    offset: Array | None,
    temperature: float,
    *,
    leverage: Leverage | None = None,
) -> tuple[Array, Sums]:
    """Share every row out with weights ∝ exp(-r/τ); return weights (n, n_starts, L) and sums."""
    xp = namespace(chunk, bases)
    starts, n_subspaces, m, s = bases.shape
    projections = project(chunk, bases, offset)
    energy = energies(projections)
    # ‖y‖² is common to all subspaces: the residual and minus the energy give the same weights.
    gain = energy if leverage is None else -leverage.residuals(projections, energy)
    weights, log_weights = _softmax(gain / temperature)
    weighted = xp.reshape(projections * weights[..., None], (chunk.shape[0], -1))
    products = transpose(chunk) @ weighted
    if offset is not None:
        products = products - offset[:, None] * xp.sum(weighted, axis=0)[None, :]
    products = xp.permute_dims(xp.reshape(products, (m, starts, n_subspaces, s)), (1, 2, 0, 3))
    energy_sum = float64_sum(weights * energy, axis=(0, 2))
    entropy = float64_sum(weights * log_weights, axis=(0, 2))
    score = -float64_sum(weights * gain, axis=(0, 2))
    return weights, Sums(xp.sum(weights, axis=0), energy_sum, score, entropy, products)


def assign(
    rows: Rows, bases: Array, *, with_products: bool, leverage: Leverage | None = None
) -> tuple[Array, Sums]:
    """Run `assign_chunk` over all rows; labels have the shape (n_samples, n_starts)."""
    parts, total = [], None
    for which, chunk, offset in rows.chunks():
        own = None if leverage is None else leverage.rows(which)
        labels, sums = assign_chunk(
            chunk, bases, offset, with_products=with_products, leverage=own
        )
        parts.append(labels)
        total = sums if total is None else total + sums
    assert total is not None
    return _concatenate(parts), total


def weigh(
    rows: Rows, bases: Array, temperature: float, *, leverage: Leverage | None = None
) -> tuple[Array, Sums]:
    """Run `weigh_chunk` over all rows; weights have the shape (n_samples, n_starts, L)."""
    parts, total = [], None
    for which, chunk, offset in rows.chunks():
        own = None if leverage is None else leverage.rows(which)
        weights, sums = weigh_chunk(chunk, bases, offset, temperature, leverage=own)
        parts.append(weights)
        total = sums if total is None else total + sums
    assert total is not None
    return _concatenate(parts), total


def _concatenate(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)


def _one_hot(labels: Array, n_subspaces: int) -> Array:
    xp = namespace(labels)
    return labels[..., None] == xp.arange(n_subspaces, dtype=labels.dtype)


def _softmax(x: Array) -> tuple[Array, Array]:
    """Return weights and their logarithms; the largest exponent is 0, so nothing overflows."""
    xp = namespace(x)
    shifted = x - xp.max(x, axis=-1, keepdims=True)
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=-1, keepdims=True)
    return powers / total, shifted - xp.log(total)
