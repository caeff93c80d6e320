"""Leave-one-out residuals: a sample scored by the basis as it would be without that sample.

A cluster with few samples bends towards each of them, so that a sample looks well represented
wherever it happens to be. To first order, leaving it out turns its residual r into r/(1-h)², with
h = w pᵀG⁻¹p its leverage, p = D_lᵀy and G = Σ w ppᵀ the scatter inside the subspace (in the basis
of Ritz vectors G is diagonal and h = w Σ_k (d_kᵀy)²/e_k).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyspan.arrays import Array, Rows, machine_epsilon, namespace, transpose
from polyspan.solvers.projections import Stacked, project

# A sample that carries a direction alone has h=1; its residual without itself is then not
# infinite but unknown. 1-h is kept above this.
SMALLEST_SLACK = 0.05


@dataclass(frozen=True)
class Leverage:
    """What leave-one-out residuals need beside the projections."""

    whitener: Array
    """C with C Cᵀ = G⁻¹: (n_starts, n_subspaces, subspace_dim, subspace_dim)."""
    weights: Array
    """Present membership of every sample: (n, n_starts, n_subspaces)."""
    norms: Array
    """‖y‖²: (n,)."""
    centre: Array | None = None
    """Σ w p / Σ w of affine subspaces: (n_starts, n_subspaces, subspace_dim)."""
    counts: Array | None = None
    """Σ w of affine subspaces, which have the mean to learn as well."""

    def rows(self, which: slice) -> Leverage:
        """Return the same for some of the samples."""
        return replace(self, weights=self.weights[which, ...], norms=self.norms[which])

    def residuals(self, projections: Array, energy: Array) -> Array:
        """Return r/(1-h)², (n_starts, n_subspaces, n), from projections with n as last axis."""
        xp = namespace(projections)
        weights = xp.permute_dims(self.weights, (1, 2, 0))
        if self.centre is not None:
            projections = projections - self.centre[..., None]
        # The weight before the square: a cluster that nearly vanished has a huge whitener.
        whitened = (transpose(self.whitener) @ projections) * xp.sqrt(weights)[:, :, None, :]
        whitened = xp.clip(whitened, -1.0, 1.0)
        leverage = xp.sum(whitened * whitened, axis=2)
        if self.counts is not None:
            leverage = leverage + weights / xp.clip(self.counts, 1.0, None)[..., None]
        slack = xp.clip(1.0 - leverage, SMALLEST_SLACK, 1.0)
        residual = xp.clip(self.norms - energy, 0.0, None)
        return residual / (slack * slack)


def measure_leverage(
    rows: Rows, bases: Array, weights: Array, norms: Array, anchors: Array | None = None
) -> Leverage:
    """Sum G = Σ w ppᵀ over all rows (about their mean where subspaces are affine) and invert it."""
    xp = namespace(bases)
    gram: Array = 0.0
    first: Array = 0.0
    stacked = Stacked.of(bases, rows.offset, anchors)
    for which, chunk in rows.chunks():
        p = project(chunk, stacked)
        weighted = p * xp.permute_dims(weights[which, ...], (1, 2, 0))[:, :, None, :]
        part, mean = weighted @ transpose(p), xp.sum(weighted, axis=3)
        gram, first = gram + part, first + mean
    if anchors is None:
        return Leverage(_whitener(gram), weights, norms)
    counts = xp.sum(weights, axis=0)
    centre = first / xp.clip(counts, xp.finfo(bases.dtype).smallest_normal, None)[..., None]
    gram = gram - first[..., :, None] * centre[..., None, :]
    return Leverage(_whitener(gram), weights, norms, centre, counts)


def _whitener(gram: Array) -> Array:
    """Return C with C Cᵀ = G⁻¹; a direction that no member uses has no leverage either."""
    xp = namespace(gram)
    if gram.shape[-1] == 0:
        return gram
    values, vectors = xp.linalg.eigh(gram)
    floor = xp.max(values, axis=-1, keepdims=True) * machine_epsilon(gram) * 10.0
    used = (values > floor) & (values > xp.finfo(gram.dtype).smallest_normal * 1e6)
    inverse = xp.where(used, 1.0 / xp.sqrt(xp.where(used, values, 1.0)), 0.0)
    return vectors * inverse[..., None, :]
