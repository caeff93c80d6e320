"""Leave-one-out residuals: a sample scored by the basis as it would be without that sample.

A cluster with few samples bends towards each of them, so that a sample looks well represented
wherever it happens to be. To first order, leaving it out turns its residual r into r/(1-h)², with
h = w pᵀG⁻¹p its leverage, p = D_lᵀy and G = Σ w ppᵀ the scatter inside the subspace (in the basis
of Ritz vectors G is diagonal and h = w Σ_k (d_kᵀy)²/e_k). With missing entries p are the
coefficients of the filled sample, and w has its weight m/|Ω| in it. A sample of weight 2 counts
twice in G, and one of the two is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyspan.base.arrays import Array, machine_epsilon, namespace
from polyspan.data.rows import Addable
from polyspan.linear._solve.sums import member_mask, weighted

# A sample that carries a direction alone has h=1; its residual without itself is then not
# infinite but unknown. 1-h is kept above this.
SMALLEST_SLACK = 0.05


@dataclass(frozen=True)
class Leverage:
    """What leave-one-out residuals need beside the fits."""

    whitener: Array
    """C with C Cᵀ = G⁻¹: (n_starts, n_subspaces, subspace_dim, subspace_dim)."""
    centre: Array | None = None
    """Σ w p / Σ w of affine subspaces: (n_starts, n_subspaces, subspace_dim)."""
    mass: Array | None = None
    """Σ w of affine subspaces, which have the mean to learn as well."""

    def residuals(self, fit: Any, weights: Array) -> Array:
        """Return r/(1-h)², (n_starts, n_subspaces, n).

        Parameters
        ----------
        fit : fit of a chunk
        weights : array of shape (n_starts, n_subspaces, n)
            Present membership of every sample.
        """
        xp = namespace(weights)
        projections = fit.coefficients
        weights = weights if fit.weights is None else weights * fit.weights
        if fit.sample_weights is not None:
            # Of a sample that counts several times one copy is left out.
            weights = weights * xp.clip(fit.sample_weights, None, 1.0)[:, None, :]
        if self.centre is not None:
            projections = projections - self.centre[..., None]
        # The weight before the square: a cluster that nearly vanished has a huge whitener.
        whitened = (self.whitener.mT @ projections) * xp.sqrt(weights)[:, :, None, :]
        whitened = xp.clip(whitened, -1.0, 1.0)
        leverage = xp.sum(whitened * whitened, axis=2)
        if self.mass is not None:
            leverage = leverage + weights / xp.clip(self.mass, 1.0, None)[..., None]
        slack = xp.clip(1.0 - leverage, SMALLEST_SLACK, 1.0)
        residual = xp.clip(fit.norms() - fit.gains, 0.0, None)
        return residual / (slack * slack)


@dataclass(frozen=True)
class CoefficientScatter(Addable):
    """Sums over the coefficients p of the members of every subspace."""

    gram: Array
    """Σ w ppᵀ: (n_starts, n_subspaces, subspace_dim, subspace_dim)."""
    total: Array
    """Σ w p."""
    mass: Array
    """Σ w."""

    def leverage(self, *, affine: bool) -> Leverage:
        """Invert G (about the mean of the members where subspaces are affine)."""
        if not affine:
            return Leverage(_whitener(self.gram))
        xp = namespace(self.gram)
        least = xp.finfo(self.gram.dtype).smallest_normal
        centre = self.total / xp.clip(self.mass, least, None)[..., None]
        gram = self.gram - self.total[..., :, None] * centre[..., None, :]
        return Leverage(_whitener(gram), centre, self.mass)


def coefficient_scatter_block(
    block: Any, frames: Array, shape: Any, membership: Array
) -> tuple[CoefficientScatter, None]:
    """Sum the scatter of the coefficients of a block. A task.

    `membership` holds labels, (n_rows, n_starts), or responsibilities, with one axis more.
    """
    xp = namespace(frames)
    bases, points = shape.split(frames)
    total = None
    for fit in block.fits(bases, points):
        own = membership[fit.which, ...]
        if own.ndim == 2:
            weights = member_mask(own.mT, bases.shape[1], frames.dtype)
        else:
            weights = xp.permute_dims(own, (1, 2, 0))
        weights = weights if fit.weights is None else weights * fit.weights
        weights = weighted(weights, fit.sample_weights, axis=1)
        scaled = fit.coefficients * weights[:, :, None, :]
        part = CoefficientScatter(
            scaled @ fit.coefficients.mT,
            xp.sum(scaled, axis=3),
            xp.sum(weights, axis=2),
        )
        total = part if total is None else total + part
    assert total is not None
    return total, None


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
