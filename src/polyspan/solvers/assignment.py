"""Subspace assignment (Algorithm 1, steps 3 to 6) and the sums that the update needs, in one pass.

A pass over one chunk of rows returns sums over its samples. That is what one process, a GPU and a
cluster of workers have in common. All starts of a small problem travel in one product: bases have
the shape (n_starts, n_subspaces, n_features, subspace_dim).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    is_host,
    moved_to,
    namespace,
    transpose,
    zeros,
)
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.member_sums import member_mask, member_sums, weighted_sums
from polyspan.solvers.projections import Stacked, gains, project


@dataclass(frozen=True)
class Sums:
    """Sums over samples, one per start (and per subspace)."""

    counts: Array
    """Members, or their weights: (n_starts, n_subspaces)."""
    energy: Array
    """Σ w (‖y‖² - r), in double precision: (n_starts,); Σ w ‖D_lᵀy‖² for linear subspaces."""
    score: Array
    """What the assignment minimised, where that is not the residual: (n_starts,)."""
    entropy: Array
    """Σ w log w: (n_starts,); 0 for hard labels."""
    coefficients: Array | None = None
    """Σ w D_lᵀy: (n_starts, n_subspaces, subspace_dim)."""
    products: Array | None = None
    """Σ w y (D_lᵀy)ᵀ: (n_starts, n_subspaces, n_features, subspace_dim)."""
    totals: Array | None = None
    """Σ w y, which affine subspaces need: (n_starts, n_subspaces, n_features)."""

    def __add__(self, other: Sums) -> Sums:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Sums(*(None if a is None else a + b for a, b in pairs))

    def of_starts(self, which: Array) -> Sums:
        """Return the sums of some starts."""
        xp = namespace(self.energy)
        parts = (getattr(self, f.name) for f in fields(self))
        return Sums(*(None if a is None else xp.take(a, which, axis=0) for a in parts))

    def centred(self, offset: Array | None) -> Sums:
        """Take the offset of the rows out of the products; in the projections it is none."""
        if offset is None or self.products is None or self.coefficients is None:
            return self
        outer = offset[:, None] * self.coefficients[:, :, None, :]
        totals = self.totals
        if totals is not None:
            weights = namespace(totals).astype(self.counts, totals.dtype)
            totals = totals - weights[..., None] * offset
        return replace(self, products=self.products - outer, totals=totals)


def assign_chunk(
    chunk: Array,
    stacked: Stacked,
    *,
    with_products: bool,
    leverage: Leverage | None = None,
) -> tuple[Array, Sums]:
    """Give every row to its nearest subspace; return labels (n_starts, n) and sums."""
    xp = namespace(chunk)
    n_subspaces = stacked.shape[1]
    projections = project(chunk, stacked)
    energy = gains(chunk, projections, stacked)
    if leverage is None:
        labels, won = xp.argmax(energy, axis=1), xp.max(energy, axis=1)
        score = zeros((stacked.shape[0],), chunk, xp.float64)
    else:
        residuals = leverage.residuals(projections, energy)
        labels = xp.argmin(residuals, axis=1)
        won = xp.take_along_axis(energy, labels[:, None, :], axis=1)[:, 0, :]
        score = float64_sum(xp.min(residuals, axis=1), axis=1)
    energy_sum = float64_sum(won, axis=1)
    sums = Sums(_count(labels, n_subspaces), energy_sum, score, xp.zeros_like(energy_sum))
    if with_products:
        coefficients, products = member_sums(chunk, projections, labels, n_subspaces)
        sums = replace(sums, coefficients=coefficients, products=products)
        if stacked.anchors is not None:
            members = member_mask(labels, n_subspaces, chunk.dtype)
            sums = replace(sums, totals=_totals(chunk, members))
    return labels, sums


def weigh_chunk(
    chunk: Array,
    stacked: Stacked,
    temperature: float,
    *,
    leverage: Leverage | None = None,
) -> tuple[Array, Sums]:
    """Share every row out with weights ∝ exp(-r/τ); return weights (n_starts, L, n) and sums."""
    xp = namespace(chunk)
    projections = project(chunk, stacked)
    energy = gains(chunk, projections, stacked)
    # ‖y‖² is common to all subspaces: the residual and minus the energy give the same weights.
    gain = energy if leverage is None else -leverage.residuals(projections, energy)
    weights, log_weights = softmax(gain / temperature, axis=1)
    coefficients, products = weighted_sums(chunk, projections, weights)
    energy_sum = float64_sum(weights * energy, axis=(1, 2))
    entropy = float64_sum(weights * log_weights, axis=(1, 2))
    score = -float64_sum(weights * gain, axis=(1, 2))
    counts = xp.sum(weights, axis=2)
    totals = None if stacked.anchors is None else _totals(chunk, weights)
    return weights, Sums(counts, energy_sum, score, entropy, coefficients, products, totals)


def _totals(chunk: Array, weights: Array) -> Array:
    """Return Σ w y, (n_starts, n_subspaces, n_features)."""
    xp = namespace(chunk)
    starts, n_subspaces, n = weights.shape
    flat = xp.reshape(weights, (starts * n_subspaces, n)) @ chunk
    return xp.reshape(flat, (starts, n_subspaces, chunk.shape[1]))


def assign(
    rows: Rows,
    bases: Array,
    *,
    with_products: bool,
    leverage: Leverage | None = None,
    anchors: Array | None = None,
) -> tuple[Array, Sums]:
    """Run `assign_chunk` over all rows; labels have the shape (n_samples, n_starts)."""
    parts, total = [], None
    stacked = Stacked.of(bases, rows.offset, anchors)
    for which, chunk in rows.chunks():
        own = None if leverage is None else leverage.rows(which)
        labels, sums = assign_chunk(chunk, stacked, with_products=with_products, leverage=own)
        parts.append(labels)
        total = sums if total is None else total + sums
    assert total is not None
    return transpose(_concatenate(parts)), total.centred(rows.offset)


def weigh(
    rows: Rows,
    bases: Array,
    temperature: float,
    *,
    leverage: Leverage | None = None,
    keep_weights: bool = True,
    anchors: Array | None = None,
) -> tuple[Array | None, Sums]:
    """Run `weigh_chunk` over all rows; weights, if kept, are (n_samples, n_starts, L)."""
    parts, total = [], None
    stacked = Stacked.of(bases, rows.offset, anchors)
    for which, chunk in rows.chunks():
        own = None if leverage is None else leverage.rows(which)
        weights, sums = weigh_chunk(chunk, stacked, temperature, leverage=own)
        if keep_weights:
            parts.append(weights)
        total = sums if total is None else total + sums
    assert total is not None
    kept = None
    if keep_weights:
        kept = namespace(parts[0]).permute_dims(_concatenate(parts), (2, 0, 1))
    return kept, total.centred(rows.offset)


def _concatenate(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=-1)


def _count(labels: Array, n_subspaces: int) -> Array:
    """Count the members of every subspace, (n_starts, n_subspaces)."""
    xp = namespace(labels)
    if not is_host(labels):
        return xp.sum(member_mask(labels, n_subspaces, xp.int64), axis=2)
    # Comparisons, one per count: a sum over a mask costs three times as much.
    counts = [
        [int(xp.count_nonzero(labels[r, :] == p)) for p in range(n_subspaces)]
        for r in range(labels.shape[0])
    ]
    return moved_to(counts, labels, xp.int64)


def softmax(x: Array, axis: int = -1) -> tuple[Array, Array]:
    """Return weights and their logarithms; the largest exponent is 0, so nothing overflows."""
    xp = namespace(x)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=axis, keepdims=True)
    return powers / total, shifted - xp.log(total)
