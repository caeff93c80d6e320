"""The steps of Algorithm 1 for many problems of one shape at once, as batched products.

What `alternation` does for the starts of one problem is done here for all starts of all problems,
and nothing loops over problems. Frames are held as rows, in an array of the shape (n_problems,
n_starts, n_subspaces, n_columns, n_features): D_lᵀ, and below it the point c_l where subspaces are
affine. The bases of a subspace, of a run and of a problem are then all matrices without a copy,
and no product has a short last axis. `batched_runs` takes the steps until every run is over.

In the comments P is the number of problems, R of starts, L of subspaces, s their dimension, c the
number of columns of a frame (s, or s + 1), n of samples and m of features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyspan.base.arrays import (
    Array,
    float64_sum,
    is_host,
    machine_epsilon,
    moved_to,
    namespace,
    rows_at_once,
    to_numpy,
    zeros,
)
from polyspan.data.rows import ArrayRows
from polyspan.geometry.bases import Dims, orthonormal_rows
from polyspan.geometry.distances import closeness_of_gram
from polyspan.linear._solve.annealing import POOLED_STEPS
from polyspan.linear._solve.observation import CompleteBlock, energies
from polyspan.linear._solve.problem import Problem
from polyspan.linear._solve.shape import Affine, Linear, ObjectiveWeights, Shape, shape_of
from polyspan.linear._solve.sums import Sums, gathered_sums, member_mask, softmax

# On a CPU the members are gathered from this many terms of a product on. Where a product of one
# problem and one run is smaller, the calls from Python cost more than multiplying by a mask.
GATHERED_FROM = 1_000_000


@dataclass(frozen=True)
class Batch:
    """Complete data of many problems, and the kind of subspaces and the λ that they share."""

    X: Array
    """Centred samples: (n_problems, n_samples, n_features)."""
    total: Array
    """Sums of their squares, in double precision: (n_problems,)."""
    lam: float
    affine: bool = False
    dims: Dims = None
    """Dimension of every subspace, where they differ."""

    @classmethod
    def of(cls, X: Array, lam: float, affine: bool, dims: Dims = None) -> Batch:
        """Measure centred samples."""
        norms = namespace(X).sum(X * X, axis=2)
        return cls(X, float64_sum(norms, axis=1), lam, affine, dims)

    def take(self, problems: np.ndarray) -> Batch:
        """Return some of the problems, each as often as it is named."""
        which, xp = moved_to(problems, self.X), namespace(self.X)
        return replace(self, X=xp.take(self.X, which, axis=0), total=xp.take(self.total, which))

    def problem(self, p: int) -> Problem:
        """Return one of the problems as the solvers of single problems take it."""
        X, total = self.X[p, ...], float(self.total[p])
        rows = ArrayRows(CompleteBlock(X, None, rows_at_once(X)), X.shape[0], X)
        shape = shape_of(self.affine, total / X.shape[0], self.dims)
        return Problem(rows, shape, self.lam, total)

    def project(self, frames: Array) -> tuple[Array, Array]:
        """Return projections, (P, R, L, c, n), and gains, (P, R, L, n).

        The projections are D_lᵀy, and the gains their squared norms. For affine subspaces they are
        D_lᵀ(y - c_l) with a row of ones below, so that the product which sums them over members
        sums the members as well; the gains are ‖D_lᵀ(y - c_l)‖² + 2c_lᵀy - ‖c_l‖².
        """
        xp = namespace(frames)
        P, R, L, c, m = frames.shape
        projections = xp.reshape(frames, (P, R * L * c, m)) @ self.X.mT
        projections = xp.reshape(projections, (P, R, L, c, self.X.shape[1]))
        if not self.affine:
            return projections, energies(projections)
        bases, points = frames[..., :-1, :], frames[..., -1:, :]
        projections[..., :-1, :] -= bases @ points.mT
        lifted = 2.0 * projections[..., -1, :] - xp.sum(points * points, axis=-1)
        projections[..., -1, :] = 1.0
        return projections, energies(projections[..., :-1, :]) + lifted

    def hard_step(self, frames: Array, projections: Array, labels: Array) -> Array:
        """Take a power step with the members of every subspace; projections are overwritten."""
        P, _, L, c, m = frames.shape
        if not is_host(frames) or m * labels.shape[2] * L * c < GATHERED_FROM:
            members = member_mask(labels, L, frames.dtype)
            return self.soft_step(frames, projections, members)
        products, sums = zeros(frames.shape, frames), zeros(frames.shape[:-1], frames)
        for p in range(P):
            sums[p, ...], own = gathered_sums(self.X[p, ...], projections[p, ...], labels[p, ...])
            products[p, ...] = own.mT
        return self._step(frames, products, sums)

    def soft_step(self, frames: Array, projections: Array, weights: Array) -> Array:
        """Take a power step with weights (P, R, L, n); projections are overwritten."""
        xp = namespace(frames)
        P, R, L, c, _ = frames.shape
        projections *= weights[:, :, :, None, :]
        products = xp.reshape(projections, (P, R * L * c, self.X.shape[1])) @ self.X
        products = xp.reshape(products, frames.shape)
        return self._step(frames, products, xp.sum(projections, axis=4) if self.affine else None)

    def _step(self, frames: Array, products: Array, sums: Array) -> Array:
        """Take the step of the shape, all runs of all problems as starts of one.

        Parameters
        ----------
        products : array of shape (P, R, L, c, m)
            Σ w (D_lᵀ(y - c_l))yᵀ and, of affine subspaces, as last row Σ w yᵀ.
        sums : array of shape (P, R, L, s + 1)
            Of affine subspaces: Σ w D_lᵀ(y - c_l) and, as last entry, Σ w.
        """
        xp = namespace(frames)
        P, R, L, c, m = frames.shape
        weights = ObjectiveWeights.of(self.lam)
        if not self.affine and weights.closeness and L > 1:
            # `power_step` in the layout of rows, where frames side by side need no copy: of small
            # problems that is a tenth of the time.
            wide = xp.reshape(frames, (P * R, L * c, m))
            gradient = (weights.closeness * (wide @ wide.mT)) @ wide
            gradient = gradient + weights.fit * xp.reshape(products, wide.shape)
            return orthonormal_rows(xp.reshape(gradient, frames.shape), self.dims)
        products = xp.reshape(products, (P * R, L, c, m))
        if not self.affine:
            gathered = Sums(counts=None, energy=None, products=products.mT)
        else:
            sums = xp.reshape(sums, (P * R, L, c))
            gathered = Sums(
                counts=sums[..., -1],
                energy=None,  # a step needs none
                coefficients=sums[..., :-1],
                products=products[..., :-1, :].mT,
                totals=products[..., -1, :],
            )
        stepped = self._shape(R).step(_runs_as_columns(frames), gathered, weights)
        return xp.reshape(stepped.mT, frames.shape)

    def _shape(self, n_starts: int) -> Shape:
        """Return the shape, that of affine subspaces with the unit of every run."""
        if not self.affine:
            return Linear(self.dims)
        xp = namespace(self.total)
        units = self.total / self.X.shape[1]
        units = xp.where(units > 0, units, xp.ones_like(units))
        every = xp.broadcast_to(units[:, None], (units.shape[0], n_starts))
        return Affine(xp.reshape(every, (-1,)), self.dims)

    def objective(self, frames: Array, energy: Array) -> Array:
        """Return F1 of every run from its sum of gains, (P, R)."""
        xp = namespace(energy)
        residual = xp.maximum(self.total[:, None] - energy, xp.zeros_like(energy))
        return self.with_closeness(frames, residual)

    def with_closeness(self, frames: Array, residual: Array) -> Array:
        """Return F1 of every run from its squared residuals, (P, R)."""
        if math.isinf(self.lam):
            return residual
        P, R, L, c, m = frames.shape
        if self.affine:
            near = self._shape(R).closeness(_runs_as_columns(frames))
        else:
            wide = namespace(frames).reshape(frames, (P * R, L * c, m))
            near = closeness_of_gram(wide @ wide.mT, L, self.dims)
        return namespace(residual).reshape(near, residual.shape) + self.lam * residual

    def rounding(self) -> np.ndarray:
        """Return the objective of every problem below which its data are fitted to rounding."""
        weight = 1.0 if math.isinf(self.lam) else self.lam
        return 4.0 * machine_epsilon(self.X) * weight * to_numpy(self.total)


def _runs_as_columns(frames: Array) -> Array:
    """Return frames as the solvers of single problems hold them: (P * R, L, m, c)."""
    P, R, L, c, m = frames.shape
    return namespace(frames).reshape(frames, (P * R, L, c, m)).mT


def nearest(batch: Batch, frames: Array) -> tuple[Array, Array, Array]:
    """Return labels (P, R, n), their sum of gains (P, R) and the projections behind them."""
    xp = namespace(frames)
    projections, gains = batch.project(frames)
    best_gains = float64_sum(xp.max(gains, axis=2), axis=2)
    return xp.argmax(gains, axis=2), best_gains, projections


def affine_labels(batch: Batch, frames: Array) -> tuple[Array, Array]:
    """Return labels (P, n) and F1 (P,) of one affine run per problem, from the residuals.

    ‖y‖² minus a gain loses its digits where clusters lie far apart for their width.

    Parameters
    ----------
    frames : array of shape (n_problems, 1, n_subspaces, subspace_dim + 1, n_features)
    """
    xp = namespace(frames)
    squares = []
    for p in range(frames.shape[2]):
        basis = frames[:, 0, p, :-1, :]
        residual = batch.X - frames[:, 0, p, -1:, :]
        residual -= (residual @ basis.mT) @ basis
        squares.append(xp.vecdot(residual, residual))
    every = xp.stack(squares, axis=1)
    residual = float64_sum(xp.min(every, axis=1), axis=1)[:, None]
    return xp.argmin(every, axis=1), batch.with_closeness(frames, residual)[:, 0]


def fit_pooled(batch: Batch, start: Array) -> tuple[Array, Array, Array]:
    """Find one pooled subspace per problem; see `annealing.pooled_residual`.

    Parameters
    ----------
    start : array of shape (n_problems, subspace_dim, n_features)

    Returns
    -------
    bases : array of the same shape
    residual : float64 array of shape (n_problems,)
        Sum of squared residuals.
    ritz : array of shape (n_problems, subspace_dim)
    """
    xp = namespace(start)
    single = replace(batch, lam=math.inf, affine=False, dims=None)
    frames = start[:, None, None, ...]
    for _ in range(POOLED_STEPS):
        projections, _ = single.project(frames)
        products = xp.reshape(projections[:, 0, 0, ...] @ batch.X, frames.shape)
        frames = single._step(frames, products, None)
    projections, gains = single.project(frames)
    own, bases = projections[:, 0, 0, ...], frames[:, 0, 0, ...]
    residual = batch.total - float64_sum(gains, axis=(1, 2, 3))
    residual = xp.maximum(residual, xp.zeros_like(residual))
    if batch.dims is None:
        return bases, residual, xp.linalg.eigvalsh(own @ own.mT)
    ritz, vectors = xp.linalg.eigh(own @ own.mT)
    return xp.flip(vectors.mT, axis=1) @ bases, residual, ritz


def anneal_batch(batch: Batch, frames: Array, units: Array, schedule: Sequence[float]) -> Array:
    """Lower the temperature once, one power step at each; see `annealing.anneal`.

    `units`, of shape (n_problems,), is the temperature that the schedule is a multiple of.
    """
    xp = namespace(frames)
    units = xp.astype(units, frames.dtype, copy=False)[:, None, None, None]
    for temperature in schedule:
        projections, gains = batch.project(frames)
        responsibilities, _ = softmax(gains / (temperature * units), axis=2)
        frames = batch.soft_step(frames, projections, responsibilities)
    return frames
