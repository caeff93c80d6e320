r"""Affine subspaces: the same loops, with a point of every subspace beside its basis.

A frame [D_l c_l] of shape (n_features, subspace_dim + 1) takes the place of a basis: c_l is a
point of the subspace, relative to the mean of the samples. With b_l = (I - D_lD_lᵀ)c_l, the point
of it that is nearest to the mean, the metric of the paper is extended by the distance of these, in
units of the mean squared norm v of the centred samples, so that it stays without dimension:

.. math:: F_1 = \sum_{l \ne p} \left(d_u^2(S_l, S_p) + \|b_l - b_p\|^2 / v\right)
          + \lambda \sum_i \|(I - D_{l_i} D_{l_i}^T)(y_i - c_{l_i})\|^2

F1 does not depend on which point of its subspace c_l is. It is kept where the members have their
mean, so that a basis turns about them: about a distant point it could hardly turn at all. With
subspace_dim=0 only the points are left: k-means whose centres are pulled together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    identity,
    namespace,
    top_eigenvectors,
    transpose,
    zeros,
)
from polyspan.geometry import closeness
from polyspan.solvers.assignment import Sums, assign, weigh
from polyspan.solvers.krylov import EXTRA, leading_subspace
from polyspan.solvers.leave_one_out import Leverage, measure_leverage
from polyspan.solvers.problem import Problem, leading_directions
from polyspan.solvers.projections import Stacked, gains, project
from polyspan.solvers.updates import (
    DENSE_FEATURES,
    MAX_CYCLES,
    apply_scatter,
    exact_basis,
    power_update,
)


def split(frames: Array) -> tuple[Array, Array]:
    """Return bases and points of a stack of frames."""
    return frames[..., :-1], frames[..., -1]


def join(bases: Array, anchors: Array) -> Array:
    """Return frames [D_l c_l]."""
    return namespace(bases).concat([bases, anchors[..., None]], axis=-1)


@dataclass(frozen=True)
class AffineProblem(Problem):
    """Complete data near affine subspaces; every `bases` here is a stack of frames."""

    def assign(
        self, bases: Array, *, with_products: bool, leverage: Leverage | None = None
    ) -> tuple[Array, Sums]:
        """Give every sample to its nearest affine subspace."""
        bases, anchors = split(bases)
        return assign(
            self.rows, bases, with_products=with_products, leverage=leverage, anchors=anchors
        )

    def weigh(
        self,
        bases: Array,
        temperature: float,
        *,
        leverage: Leverage | None = None,
        keep_weights: bool = True,
    ) -> tuple[Array | None, Sums]:
        """Share every sample out among the affine subspaces."""
        bases, anchors = split(bases)
        return weigh(
            self.rows,
            bases,
            temperature,
            leverage=leverage,
            keep_weights=keep_weights,
            anchors=anchors,
        )

    def leverage(self, bases: Array, weights: Array) -> Leverage:
        """Return what leave-one-out residuals need; the mean of a cluster counts as learned."""
        bases, anchors = split(bases)
        return measure_leverage(self.rows, bases, weights, self.norms, anchors)

    def residuals(self, bases: Array) -> Array:
        """Return the squared residual of every sample to its nearest subspace, for one start."""
        xp = namespace(bases)
        bases, anchors = split(bases[None, ...])
        stacked = Stacked.of(bases, self.rows.offset, anchors)
        best = [
            xp.max(gains(chunk, project(chunk, stacked), stacked)[0, ...], axis=0)
            for _, chunk in self.rows.chunks()
        ]
        return self.norms - xp.concat(best, axis=0)

    @property
    def unit(self) -> float:
        """The v that makes distances of points comparable with those of subspaces."""
        return self.total / self.rows.shape[0] or 1.0

    @property
    def tie(self) -> float:
        """Samples that one other point counts for, when a point is moved."""
        return self.pull / self.data / self.unit

    def objective(self, bases: Array, energy: Array) -> Array:
        """Return the extended F1 of every start, in double precision."""
        if math.isinf(self.lam):
            return super().objective(bases, energy)
        xp = namespace(energy)
        residual = xp.maximum(self.total - energy, xp.zeros_like(energy))
        return self.spread(bases) + self.lam * residual

    def spread(self, frames: Array) -> Array:
        """Return the first term of F1 for every start: how far the subspaces are apart."""
        bases, anchors = split(frames)
        feet = anchors - along(bases, anchors)
        apart = feet - namespace(feet).mean(feet, axis=1, keepdims=True)
        spread = 2.0 * anchors.shape[1] * float64_sum(apart * apart, axis=(1, 2))
        near = closeness(bases) if bases.shape[-1] else 0.0
        return near + spread / self.unit

    def power_step(self, bases: Array, sums: Sums) -> Array:
        """Move every point to its optimum, then take a power step about the new points."""
        xp = namespace(bases)
        bases, anchors = split(bases)
        assert sums.products is not None
        assert sums.coefficients is not None
        assert sums.totals is not None
        counts = xp.astype(sums.counts, bases.dtype)[..., None]
        moved = self._moved(bases, anchors, sums.totals, counts)
        # The scatter about the old points is accurate; the shift to the new ones is thin.
        about_old = sums.products - anchors[..., None] * sums.coefficients[..., None, :]
        step = moved - anchors
        excess = sums.totals - counts * anchors
        inside = step[..., None, :] @ bases
        products = (
            about_old
            - step[..., None] * (excess[..., None, :] @ bases)
            - excess[..., None] * inside
            + (counts * step)[..., None] * inside
        )
        if self.pull:
            feet = xp.sum(moved - along(bases, moved), axis=1, keepdims=True)
            drawn = self._draw(moved, feet + 0.0 * moved, moved.shape[1], bases)
            # `power_update` weighs products with `data` and adds the pull of the bases itself.
            products = products + self.tie * drawn
        return join(power_update(self, bases, products), moved)

    def exact_step(self, bases: Array, labels: Array) -> Array:
        """Move the point of every subspace in turn, and take the eigenvectors about it."""
        xp = namespace(bases)
        old, points = split(bases)
        bases, anchors = xp.asarray(old, copy=True), xp.asarray(points, copy=True)
        for p in range(bases.shape[0]):
            total, count = _member_total(self.rows, labels, p)
            feet = anchors - along(bases, anchors)
            others = xp.sum(feet, axis=0) - feet[p, :]
            moved = self._optimum(
                bases[p, ...], anchors[p, :], others, total, count, old.shape[0] - 1
            )
            anchors[p, :] = moved
            if self.pull and bases.shape[-1]:
                bases[p, ...] = self._drawn_basis(bases, moved, others, labels, p)
            else:
                bases[p, ...] = exact_basis(self._about(moved), bases, labels, p)
        return join(bases, anchors)

    def _draw(self, points: Array, feet: Array, n: int, block: Array) -> Array:
        """Return what the distance of the points adds to A_l, times a thin block.

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

    def _drawn_basis(self, bases: Array, point: Array, feet: Array, labels: Array, p: int) -> Array:
        """Return the leading eigenvectors of A_l with the pull of the points in it."""
        n, m, s = bases.shape
        others = [bases[q, ...] for q in range(n) if q != p]
        about = self._about(point)

        def apply(block: Array) -> Array:
            drawn = self.pull / self.unit * self._draw(point, feet, n - 1, block)
            return apply_scatter(about, others, labels, p, block) + drawn

        if m <= DENSE_FEATURES or m < 4 * (s + EXTRA):
            return top_eigenvectors(apply(identity(m, bases)), s)[1]
        return leading_subspace(apply, bases[p, ...], max_cycles=MAX_CYCLES).vectors

    def through(self, samples: Array, old: Array) -> Array:
        """Return a frame of the affine span of some samples."""
        mean = namespace(samples).mean(samples, axis=0)
        return join(leading_directions(samples - mean, split(old)[0]), mean)

    def through_mean(self) -> Problem:
        """Return the problem of linear subspaces: all of them through the mean."""
        return Problem(self.rows, self.norms, self.total, self.lam)

    def _about(self, anchor: Array) -> Problem:
        """Return the linear problem about one point."""
        rows = self.rows
        mean = anchor if rows.mean is None else rows.mean + anchor
        shifted = Rows(rows.X, mean, rows.size, rows.explicit)
        return replace(self.through_mean(), rows=shifted)

    def _moved(self, bases: Array, anchors: Array, totals: Array, counts: Array) -> Array:
        """Move the points of all starts, one subspace after the other."""
        xp = namespace(bases)
        moved = xp.asarray(anchors, copy=True)
        feet = xp.asarray(anchors - along(bases, anchors), copy=True)
        n_others = anchors.shape[1] - 1
        for p in range(anchors.shape[1]):
            basis, others = bases[:, p, ...], xp.sum(feet, axis=1) - feet[:, p, :]
            sums = totals[:, p, :], counts[:, p, :]
            moved[:, p, :] = self._optimum(basis, moved[:, p, :], others, *sums, n_others)
            feet[:, p, :] = moved[:, p, :] - along(basis, moved[:, p, :])
        return moved

    def _optimum(
        self, basis: Array, old: Array, others: Array, total: Array, count: Array, n_others: int
    ) -> Array:
        """Return the point that minimises F1, the basis and the other points fixed.

        Across its subspace the samples and the other points draw it; along its subspace it goes
        to the mean of the samples, which F1 does not mind.
        """
        xp = namespace(basis)
        mean = xp.where(count > 0, total / xp.where(count > 0, count, xp.ones_like(count)), old)
        if not self.pull or n_others == 0:
            return mean
        across = (self.tie * others + total) / (self.tie * n_others + count)
        return across + along(basis, mean - across)


def along(bases: Array, points: Array) -> Array:
    """Return the projections D_lD_lᵀc of a stack of points."""
    return ((points[..., None, :] @ bases) @ transpose(bases))[..., 0, :]


def _member_total(rows: Rows, labels: Array, p: int) -> tuple[Array, Array]:
    """Return the sum of the members of subspace p and their number, (1,)."""
    xp = namespace(labels)
    total, count = 0.0, 0
    for which, chunk in rows.chunks():
        members = xp.take(chunk, xp.nonzero(labels[which] == p)[0], axis=0)
        if rows.offset is not None:
            members = members - rows.offset
        total = total + xp.sum(members, axis=0)
        count += members.shape[0]
    return total, zeros((1,), rows.X) + float(count)
