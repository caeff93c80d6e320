r"""What a subspace is: linear, through the mean of the samples, or affine.

A solver holds frames, arrays of shape (…, n_features, n_columns). For linear subspaces a frame is
the basis D_l. For affine ones it is [D_l c_l], with c_l a point of the subspace relative to the
mean of the samples. With b_l = (I - D_lD_lᵀ)c_l, the point nearest to the mean (its foot), the
metric of the paper is extended by the squared distance of the feet, divided by the mean squared
norm v of the centred samples, so that it does not depend on the scale of the data:

.. math:: F_1 = \sum_{l \ne p} \left(d_u^2(S_l, S_p) + \|b_l - b_p\|^2 / v\right)
          + \lambda \sum_i \|(I - D_{l_i} D_{l_i}^T)(y_i - c_{l_i})\|^2

F1 does not depend on which point of its subspace c_l is. The solver chooses it near the mean of the
members, so that a basis turns about them: about a distant point it could hardly turn at all. With
subspace_dim=0 only the points are left: k-means whose centres are pulled together.

Subspaces may have different dimensions s_l. Then all bases have as many columns as the largest, and
those beyond s_l are zero. Zero columns have no energy, no product and no closeness, so that only
what orthonormalises or counts directions looks at `dims`. The squared distance of two subspaces is
½‖P_l - P_p‖², which is d_u² where dimensions are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyspan.base.arrays import Array, float64_sum, machine_epsilon, namespace, zeros
from polyspan.geometry.bases import Dims, orthonormal_columns, orthonormal_step
from polyspan.geometry.distances import closeness, side_by_side
from polyspan.linear._solve.sums import Sums

#: Multiplies a thin matrix by the term that the points of affine subspaces add to A_l.
PointTerm = Callable[[Array], Array]


@dataclass(frozen=True)
class ObjectiveWeights:
    """How a step weighs fit against closeness, given λ, scaled so that neither exceeds 1.

    A_l = closeness Σ_{p≠l} D_pD_pᵀ + fit S_l, with S_l the scatter of the members of subspace l.
    """

    closeness: float
    fit: float

    @classmethod
    def of(cls, lam: float) -> ObjectiveWeights:
        """Return the weights for λ; for λ=∞ closeness has none."""
        return cls(0.0 if math.isinf(lam) else min(1.0, 2.0 / lam), min(1.0, lam / 2.0))


def power_step(
    bases: Array, products: Array, weights: ObjectiveWeights, dims: Dims = None
) -> Array:
    """Take one power step for all subspaces of all starts at once.

    With W = [D_1 … D_L], minimising F1 is maximising ‖WᵀW‖² + λ Σ tr(D_lᵀS_lD_l), since the
    diagonal blocks of WᵀW are identities. Both terms are convex in W (the first is a Schatten
    norm to the fourth), so the tangent at W is a lower bound, which orthonormal bases of the
    blocks of its gradient, D_l ← orth(Σ_p D_pD_pᵀD_l + λ/2 S_lD_l), maximise: the objective never
    rises. The sum has p=l in it; without that the bound would hold for one l at a time only, and
    all subspaces could not be stepped in one product.

    Parameters
    ----------
    bases, products : array of shape (n_starts, n_subspaces, n_features, subspace_dim)
        `products` holds S_lD_l, which the assignment has made already.
    dims : tuple of int or None, default=None
        Dimension of every subspace, where they differ.
    """
    xp = namespace(bases)
    starts, n_subspaces, m, s = bases.shape
    if s == 0:
        return bases
    gradient = products if weights.fit == 1.0 else weights.fit * products
    if weights.closeness and n_subspaces > 1:
        wide = side_by_side(bases)
        others = wide @ (weights.closeness * (wide.mT @ wide))
        others = xp.permute_dims(xp.reshape(others, (starts, m, n_subspaces, s)), (0, 2, 1, 3))
        gradient = gradient + others
    else:
        # A shift by a rounding unit changes no result, keeps S_l semidefinite, and where S_lD_l
        # has not full rank (few members, or none) keeps the old directions.
        size = xp.max(xp.abs(gradient), axis=(2, 3), keepdims=True)
        shift = xp.where(size > 0, size * machine_epsilon(bases), xp.ones_like(size))
        gradient = gradient + shift * bases
    return orthonormal_step(gradient, dims)


@dataclass(frozen=True)
class Linear:
    """Subspaces through the mean; a frame is a basis."""

    dims: Dims = None
    """Dimension of every subspace; None: that of all is the number of columns."""
    n_points = 0
    """Columns of a frame that are points."""

    def split(self, frames: Array) -> tuple[Array, Array | None]:
        """Return the bases; there are no points."""
        return frames, None

    def closeness(self, frames: Array) -> Array:
        """Return Σ d_u² over pairs, for every start."""
        return closeness(frames, self.dims)

    def step(self, frames: Array, sums: Sums, weights: ObjectiveWeights) -> Array:
        """Take a power step; see `power_step`."""
        return power_step(frames, sums.products, weights, self.dims)

    def fit_basis(
        self, samples: Array, frames: Array, p: int, weights: Array | None = None
    ) -> Array:
        """Return leading directions of samples as subspace p, completed by those of a frame."""
        return _leading_basis(samples, frames, p, self.dims, weights)


@dataclass(frozen=True)
class Affine:
    """Subspaces with a point of their own; a frame is [D_l c_l]."""

    unit: Any
    """The v that makes distances of points comparable with those of subspaces.

    A number, or an array with one for every start: the starts of many problems.
    """
    dims: Dims = None
    """As for `Linear`."""
    n_points = 1

    def split(self, frames: Array) -> tuple[Array, Array | None]:
        """Return bases and points."""
        return frames[..., :-1], frames[..., -1]

    def closeness(self, frames: Array) -> Array:
        """Return the first term of F1 for every start: how far the subspaces are apart."""
        bases, points = frames[..., :-1], frames[..., -1]
        feet = points - project_on(bases, points)
        apart = feet - namespace(feet).mean(feet, axis=1, keepdims=True)
        spread = 2.0 * points.shape[1] * float64_sum(apart * apart, axis=(1, 2))
        near = closeness(bases, self.dims) if bases.shape[-1] else 0.0
        return near + spread / self.unit

    def step(self, frames: Array, sums: Sums, weights: ObjectiveWeights) -> Array:
        """Move every point to its optimum, then take a power step about the new points."""
        xp = namespace(frames)
        bases, points = frames[..., :-1], frames[..., -1]
        assert sums.products is not None
        assert sums.coefficients is not None
        assert sums.totals is not None
        mass = sums.counts if sums.mass is None else sums.mass
        mass = xp.astype(mass, bases.dtype)[..., None]
        moved = self._moved_points(bases, points, sums.totals, mass, weights)
        # The scatter about the old points is accurate; the shift to the new ones is thin.
        about_old = sums.products - points[..., None] * sums.coefficients[..., None, :]
        step = moved - points
        excess = sums.totals - mass * points
        inside = step[..., None, :] @ bases
        products = (
            about_old
            - step[..., None] * (excess[..., None, :] @ bases)
            - excess[..., None] * inside
            + (mass * step)[..., None] * inside
        )
        if weights.closeness:
            feet = xp.sum(moved - project_on(bases, moved), axis=1, keepdims=True)
            term = point_closeness_product(moved, feet + 0.0 * moved, moved.shape[1], bases)
            # `power_step` weighs products with `fit` and adds the closeness of bases itself.
            products = products + self._point_weight(weights, term) * term
        return join(power_step(bases, products, weights, self.dims), moved)

    def fit_basis(
        self, samples: Array, frames: Array, p: int, weights: Array | None = None
    ) -> Array:
        """Return a frame of the affine span of some samples as subspace p, completed as above."""
        xp = namespace(samples)
        mean = xp.mean(samples, axis=0) if weights is None else weights @ samples / xp.sum(weights)
        bases = frames[..., :-1]
        return join(_leading_basis(samples - mean, bases, p, self.dims, weights), mean)

    def move_point(
        self, frames: Array, p: int, total: Array, mass: Array, weights: ObjectiveWeights
    ) -> tuple[Array, PointTerm | None]:
        """Return the best point of subspace p of one start, and its term in A_l."""
        bases, points = frames[..., :-1], frames[..., -1]
        feet = points - project_on(bases, points)
        others = namespace(feet).sum(feet, axis=0) - feet[p, :]
        n_others = frames.shape[0] - 1
        moved = self._best_point(
            bases[p, ...], points[p, :], others, total, mass, n_others, weights
        )
        if not (weights.closeness and bases.shape[-1]):
            return moved, None
        factor = weights.closeness / self.unit
        return moved, lambda block: factor * point_closeness_product(moved, others, n_others, block)

    def _point_weight(self, weights: ObjectiveWeights, like: Array) -> Any:
        """Return how many samples one other point counts for, to multiply an array with."""
        xp = namespace(like)
        most = float(xp.finfo(like.dtype).max) ** 0.5  # products with it stay finite
        point_weight = weights.closeness / weights.fit / self.unit
        if not getattr(point_weight, "ndim", 0):
            return min(float(point_weight), most)
        point_weight = xp.astype(xp.clip(point_weight, None, most), like.dtype)
        return xp.reshape(point_weight, (-1, *(1,) * (like.ndim - 1)))

    def _moved_points(
        self, bases: Array, points: Array, totals: Array, mass: Array, weights: ObjectiveWeights
    ) -> Array:
        """Move the points of all starts, one subspace after the other."""
        xp = namespace(bases)
        moved = xp.asarray(points, copy=True)
        feet = xp.asarray(points - project_on(bases, points), copy=True)
        n_others = points.shape[1] - 1
        for p in range(points.shape[1]):
            basis, others = bases[:, p, ...], xp.sum(feet, axis=1) - feet[:, p, :]
            moved[:, p, :] = self._best_point(
                basis, moved[:, p, :], others, totals[:, p, :], mass[:, p, :], n_others, weights
            )
            feet[:, p, :] = moved[:, p, :] - project_on(basis, moved[:, p, :])
        return moved

    def _best_point(
        self, basis: Array, old: Array, others: Array, total: Array, mass: Array, n_others: int,
        weights: ObjectiveWeights,
    ) -> Array:  # fmt: skip
        """Return the point that minimises F1, the basis and the other points fixed.

        Orthogonal to the subspace it is a weighted mean of the samples and the other points. Along
        the subspace, where F1 does not depend on it, it is the mean of the samples.
        """
        xp = namespace(basis)
        mean = xp.where(mass > 0, total / xp.where(mass > 0, mass, xp.ones_like(mass)), old)
        if not weights.closeness or n_others == 0:
            return mean
        point_weight = self._point_weight(weights, others)
        across = (point_weight * others + total) / (point_weight * n_others + mass)
        return across + project_on(basis, mean - across)


#: A solver gets steps, closeness and points of the subspaces from its methods.
Shape = Linear | Affine


def join(bases: Array, points: Array | None) -> Array:
    """Return frames [D_l c_l], or the bases where there are no points."""
    if points is None:
        return bases
    return namespace(bases).concat([bases, points[..., None]], axis=-1)


def project_on(bases: Array, points: Array) -> Array:
    """Return the projections D_lD_lᵀc of a stack of points."""
    return ((points[..., None, :] @ bases) @ bases.mT)[..., 0, :]


def point_closeness_product(points: Array, feet: Array, n: int, block: Array) -> Array:
    """Return the term of A_l from the distances of the points, times a thin matrix `block`.

    -Σ‖b_l - b_p‖² is convex in the projections P_l, so its tangent, tr P_l M with
    M = L ccᵀ - (Bcᵀ + cBᵀ) and B = Σ b_p, is a lower bound. For one l, the others fixed, it is
    linear itself, with L-1 in place of L and the other feet alone in B. M has rank two and,
    but for a multiple of the identity, which changes no eigenvector, is semidefinite.
    """
    xp = namespace(block)
    tilt = feet - 0.5 * n * points
    norms = xp.linalg.vector_norm(tilt, axis=-1) * xp.linalg.vector_norm(points, axis=-1)
    shift = xp.maximum(xp.sum(tilt * points, axis=-1) + norms, xp.zeros_like(norms))
    return (
        shift[..., None, None] * block
        - tilt[..., None] * (points[..., None, :] @ block)
        - points[..., None] * (tilt[..., None, :] @ block)
    )


def leading_directions(samples: Array, old: Array, weights: Array | None = None) -> Array:
    """Return the leading left singular vectors of samples (as rows), as many as `old` has columns.

    Where the samples are too few, columns of `old` fill up.
    """
    xp = namespace(old)
    s = old.shape[1]
    if s == 0:
        return old
    if weights is not None:
        samples = samples * xp.sqrt(weights)[:, None]
    u, _, _ = xp.linalg.svd(samples.mT, full_matrices=False)
    if u.shape[1] < s:
        u = xp.concat([u, old], axis=1)
    return orthonormal_columns(u[:, :s])


def _leading_basis(
    samples: Array, bases: Array, p: int, dims: Dims, weights: Array | None
) -> Array:
    """Return leading directions of samples, as many as subspace p has, and zeros beyond."""
    if dims is None:
        return leading_directions(samples, bases[0, ...], weights)
    own = leading_directions(samples, bases[p, :, : dims[p]], weights)
    return with_columns(own, bases.shape[-1])


def with_columns(basis: Array, n: int) -> Array:
    """Return a basis with columns of zeros, so that it has n."""
    missing = n - basis.shape[-1]
    if not missing:
        return basis
    return namespace(basis).concat([basis, zeros((*basis.shape[:-1], missing), basis)], axis=-1)


def shape_of(affine: bool, unit: float, dims: Dims = None) -> Shape:
    """Return the shape that an option asks for."""
    return Affine(unit or 1.0, dims) if affine else Linear(dims)
