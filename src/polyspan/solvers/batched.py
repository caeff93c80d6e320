"""The steps of Algorithm 1 for many problems of one shape at once, as batched products.

What `solvers.micusal` does for the starts of one problem is done here for all starts of all
problems, and nothing loops over problems. Bases are held as rows, D_lᵀ, in an array of the shape
(n_problems, n_starts, n_subspaces, subspace_dim, n_features): the bases of a subspace, of a run
and of a problem are then all matrices without a copy, and no product meets a short last axis.
`batched_runs` takes the steps until every run is over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyspan.arrays import (
    Array,
    float64_sum,
    is_host,
    machine_epsilon,
    members_of,
    moved_to,
    namespace,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.geometry import closeness_of_gram, orthonormal_rows
from polyspan.solvers.annealing import POOLED_STEPS
from polyspan.solvers.assignment import softmax
from polyspan.solvers.member_sums import member_mask
from polyspan.solvers.problem import Balance

# On a CPU a product of a problem and a run of this many terms is worth gathering the members for;
# smaller ones are over before Python has named them.
GATHERED_FROM = 1_000_000


@dataclass(frozen=True)
class Batch(Balance):
    """Complete data of many problems, and the weight λ that they share."""

    X: Array
    """Centred samples: (n_problems, n_samples, n_features)."""
    total: Array
    """Sums of their squares, in double precision: (n_problems,)."""
    lam: float

    @classmethod
    def of(cls, X: Array, lam: float) -> Batch:
        """Measure centred samples."""
        norms = namespace(X).sum(X * X, axis=2)
        return cls(X, float64_sum(norms, axis=1), lam)

    def take(self, problems: np.ndarray) -> Batch:
        """Return some of the problems, each as often as it is named."""
        which, xp = moved_to(problems, self.X), namespace(self.X)
        return Batch(xp.take(self.X, which, axis=0), xp.take(self.total, which), self.lam)

    def project(self, frames: Array) -> tuple[Array, Array]:
        """Return D_lᵀy, (P, R, L, s, n), and its squared norms, (P, R, L, n)."""
        xp = namespace(frames)
        P, R, L, s, m = frames.shape
        projections = xp.reshape(frames, (P, R * L * s, m)) @ transpose(self.X)
        projections = xp.reshape(projections, (P, R, L, s, -1))
        if is_host(frames):
            return projections, xp.sum(projections * projections, axis=3)
        # A norm reads the projections once, where their squares would be written and read again.
        norms = xp.linalg.vector_norm(projections, axis=3)
        return projections, norms * norms

    def gram(self, frames: Array) -> Array | None:
        """Return WᵀW of every run, which objective and step share; None without a pull."""
        if not self.pull:
            return None
        wide = _runs_wide(frames)
        return wide @ transpose(wide)

    def hard_step(
        self, frames: Array, projections: Array, labels: Array, gram: Array | None
    ) -> Array:
        """Take a power step with the members of every subspace; projections are overwritten."""
        xp = namespace(frames)
        P, R, L, s, m = frames.shape
        if not is_host(frames) or m * labels.shape[2] * L * s < GATHERED_FROM:
            members = member_mask(labels, L, frames.dtype)
            return self.soft_step(frames, projections, members, gram)
        products = zeros(frames.shape, frames)
        for p in range(P):
            for r in range(R):
                for q, members in enumerate(members_of(labels[p, r, :], L)):
                    theirs = xp.take(projections[p, r, q, ...], members, axis=1)
                    products[p, r, q, ...] = theirs @ xp.take(self.X[p, ...], members, axis=0)
        return self._step(frames, products, gram)

    def soft_step(
        self, frames: Array, projections: Array, weights: Array, gram: Array | None = None
    ) -> Array:
        """Take a power step with weights (P, R, L, n); projections are overwritten."""
        xp = namespace(frames)
        P, R, L, s, _ = frames.shape
        projections *= weights[:, :, :, None, :]
        products = xp.reshape(projections, (P, R * L * s, -1)) @ self.X
        return self._step(frames, products, gram)

    def _step(self, frames: Array, products: Array, gram: Array | None) -> Array:
        """Orthonormalise the gradient from S_lD_l; see `updates.power_update`."""
        xp = namespace(frames)
        _, _, L, s, m = frames.shape
        if s == 0:
            return frames
        if self.pull and L > 1:
            wide = _runs_wide(frames)
            gram = wide @ transpose(wide) if gram is None else gram
            gradient = xp.reshape(products, wide.shape)
            gradient = gradient if self.data == 1.0 else self.data * gradient
            gradient = gradient + (self.pull * gram) @ wide
        else:
            gradient = xp.reshape(products, (-1, s, m))
            size = xp.max(xp.abs(gradient), axis=(1, 2), keepdims=True)
            shift = xp.where(size > 0, size * machine_epsilon(frames), xp.ones_like(size))
            gradient = gradient + shift * xp.reshape(frames, (-1, s, m))
        return xp.reshape(orthonormal_rows(xp.reshape(gradient, (-1, s, m))), frames.shape)

    def objective(self, frames: Array, energy: Array, gram: Array | None) -> Array:
        """Return F1 of every run from Σ‖D_lᵀy_i‖², (P, R)."""
        xp = namespace(energy)
        residual = xp.maximum(self.total[:, None] - energy, xp.zeros_like(energy))
        if gram is None:
            return residual
        near = closeness_of_gram(gram, frames.shape[2])
        return xp.reshape(near, energy.shape) + self.lam * residual

    def rounding(self) -> np.ndarray:
        """Return the objective of every problem below which its data are fitted to rounding."""
        weight = 1.0 if math.isinf(self.lam) else self.lam
        return 4.0 * machine_epsilon(self.X) * weight * to_numpy(self.total)


def _runs_wide(frames: Array) -> Array:
    """Return the rows of all subspaces of a run below each other: (P * R, L * s, m)."""
    P, R, L, s, m = frames.shape
    return namespace(frames).reshape(frames, (P * R, L * s, m))


def nearest(batch: Batch, frames: Array) -> tuple[Array, Array, Array]:
    """Return labels (P, R, n), their energy (P, R) and the projections that led to them."""
    xp = namespace(frames)
    projections, energy = batch.project(frames)
    won = float64_sum(xp.max(energy, axis=2), axis=2)
    return xp.argmax(energy, axis=2), won, projections


def pool(batch: Batch, start: Array) -> tuple[Array, Array, Array]:
    """Find one pooled subspace per problem; see `annealing.pooled_residual`.

    Parameters
    ----------
    start : array of shape (n_problems, subspace_dim, n_features)

    Returns
    -------
    frames : array of the same shape
    residual : float64 array of shape (n_problems,)
        Sum of squared residuals.
    ritz : array of shape (n_problems, subspace_dim)
    """
    xp = namespace(start)
    single = Batch(batch.X, batch.total, math.inf)
    frames = start[:, None, None, ...]
    for _ in range(POOLED_STEPS):
        projections, _ = single.project(frames)
        frames = single._step(
            frames, xp.reshape(projections[:, 0, 0, ...] @ batch.X, frames.shape), None
        )
    projections, energy = single.project(frames)
    own = projections[:, 0, 0, ...]
    ritz = xp.linalg.eigvalsh(own @ transpose(own))
    residual = batch.total - float64_sum(energy, axis=(1, 2, 3))
    return frames[:, 0, 0, ...], xp.maximum(residual, xp.zeros_like(residual)), ritz


def cool(batch: Batch, frames: Array, units: Array, schedule: Sequence[float]) -> Array:
    """Lower the temperature once, one power step at each; see `annealing.anneal`.

    `units`, of shape (n_problems,), is the temperature that the schedule is a multiple of.
    """
    xp = namespace(frames)
    units = xp.astype(units, frames.dtype, copy=False)[:, None, None, None]
    for temperature in schedule:
        projections, energy = batch.project(frames)
        weights, _ = softmax(energy / (temperature * units), axis=2)
        frames = batch.soft_step(frames, projections, weights)
    return frames
