"""Exact update (Algorithm 1, steps 7 to 13): leading eigenvectors of A_l for every subspace.

A_l = closeness Σ_{p≠l} D_pD_pᵀ + fit S_l, with S_l the scatter of the members of subspace l (about
its point, where subspaces are affine). Members are rows if all samples are in memory, else sums
over them from one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from polyspan.base.arrays import (
    Array,
    identity,
    machine_epsilon,
    namespace,
    row_slices,
    sum_of_squares,
    top_eigenvectors,
    zeros,
)
from polyspan.base.checks import warn_unconverged
from polyspan.data.rows import Addable
from polyspan.engine.krylov import EXTRA, Leading, leading_subspace
from polyspan.geometry.bases import Dims, orthonormal_columns
from polyspan.linear._solve.shape import ObjectiveWeights, PointTerm, join, with_columns

# Up to this many features a dense eigensolver is cheaper than products to full accuracy.
DENSE_FEATURES = 1024
# A Gram matrix of this many times as many rows as wanted eigenvectors is worth products.
PRODUCTS_FROM = 10
# Cycles of products before an update from a large scatter gives up.
MAX_CYCLES = 100


@dataclass(frozen=True)
class MemberRows:
    """The members of every subspace of one start, if all samples are in memory."""

    block: Any
    """A block of complete rows."""
    weights: Array | None
    """Weight of every sample, or None where all count alike."""
    labels: Array

    def count(self, p: int) -> int:
        """Return the number of members."""
        own = self.labels == p
        if self.weights is not None:
            own = own & (self.weights > 0)
        return int(namespace(self.labels).count_nonzero(own))

    def total(self, p: int) -> tuple[Array, Array]:
        """Return the sum of the members and of their weights, (1,)."""
        xp = namespace(self.labels)
        total, mass = 0.0, zeros((1,), self.block.X)
        for members, weights in self._member_chunks(p):
            if weights is None:
                total, mass = total + xp.sum(members, axis=0), mass + float(members.shape[0])
            else:
                total, mass = total + weights @ members, mass + xp.sum(weights)
        return total, mass

    def rows(self, p: int, point: Array | None) -> list[Array]:
        """Return √w (y - point) of the members, chunk by chunk."""
        xp = namespace(self.labels)
        parts = []
        for members, weights in self._member_chunks(p):
            if point is not None:
                members = members - point
            parts.append(members if weights is None else members * xp.sqrt(weights)[:, None])
        return parts

    def scatter(self, p: int, point: Array | None) -> Array:
        """Return the scatter of the members about a point."""
        total = 0.0
        for part in self.rows(p, point):
            total = total + part.mT @ part
        return total

    def _member_chunks(self, p: int) -> Any:
        xp, block = namespace(self.labels), self.block
        for which in row_slices(self.labels.shape[0], block.size):
            own = xp.nonzero(self.labels[which] == p)[0]
            members = xp.take(block.X[which, :], own, axis=0)
            if block.mean is not None:
                members = members - block.mean
            yield members, None if self.weights is None else xp.take(self.weights[which], own)


@dataclass(frozen=True)
class MemberMoments(Addable):
    """The members of every subspace of one start, if only sums over them are known."""

    counts: Array
    mass: Array
    totals: Array
    """Σ w (y - about): (n_subspaces, n_features)."""
    scatters: Array
    """Σ w (y - about)(y - about)ᵀ: (n_subspaces, n_features, n_features)."""
    about: Array | None = None
    """Points that the sums are about, (n_subspaces, n_features), or None for the mean."""

    def __add__(self, other: MemberMoments) -> MemberMoments:
        return replace(super().__add__(other), about=self.about)

    def count(self, p: int) -> int:
        """Return the number of members."""
        return int(self.counts[p])

    def total(self, p: int) -> tuple[Array, Array]:
        """Return the sum of the members and of their weights, (1,)."""
        mass, total = self.mass[p : p + 1], self.totals[p, :]
        return (total if self.about is None else total + mass * self.about[p, :]), mass

    def scatter(self, p: int, point: Array | None) -> Array:
        """Return the scatter about a point: the shift from where it was summed is thin."""
        scatter = self.scatters[p, ...]
        if point is None or self.about is None:
            return scatter
        step = point - self.about[p, :]
        cross = self.totals[p, :][:, None] * step
        outer = step[:, None] * step
        return scatter - cross - cross.mT + self.mass[p] * outer


#: Members, by what is known of them.
Members = MemberRows | MemberMoments


def moments_block(
    block: Any, frames: Array, shape: Any, labels: Array, start: int
) -> tuple[MemberMoments, None]:
    """Sum the moments of the members of one start. A task.

    Parameters
    ----------
    frames : array of shape (n_subspaces, n_features, n_columns)
    labels : array of shape (n_rows, n_starts)
    start : int
        Which of the starts.
    """
    xp = namespace(frames)
    bases, points = shape.split(frames)
    own = labels[:, start]
    complete, weights = block.completed(bases, points, own)
    members, subspaces = MemberRows(complete, weights, own), range(bases.shape[0])
    about = [None if points is None else points[p, :] for p in subspaces]
    totals, masses = zip(*(members.total(p) for p in subspaces), strict=True)
    mass, total = xp.concat(masses, axis=0), xp.stack(totals)
    sums = MemberMoments(
        xp.asarray([members.count(p) for p in subspaces]),
        mass,
        total if points is None else total - mass[:, None] * points,
        xp.stack([members.scatter(p, about[p]) for p in subspaces]),
        points,
    )
    return sums, None


def residual_block(
    block: Any, frames: Array, shape: Any, labels: Array | None
) -> tuple[float, None]:
    """Sum (weighted) squared residuals of complete rows, from the residuals themselves. A task.

    ‖y‖² minus what a subspace explains loses its digits where clusters lie far apart for their
    width. Without labels, (n_rows,), every row counts with its nearest subspace.
    """
    xp = namespace(frames)
    bases, points = shape.split(frames)
    if labels is None:
        fits = block.fits(*shape.split(frames[None, ...]))
        labels = xp.concat([xp.argmax(fit.gains[0, ...], axis=0) for fit in fits], axis=0)
    complete, weights = block.completed(bases, points, labels)
    members, total = MemberRows(complete, weights, labels), 0.0
    for p in range(bases.shape[0]):
        for rows in members.rows(p, None if points is None else points[p, :]):
            residual = rows - (rows @ bases[p, ...]) @ bases[p, ...].mT
            total += sum_of_squares(residual)
    return total, None


def exact_step(members: Members, frames: Array, shape: Any, weights: ObjectiveWeights) -> Array:
    """Replace every point (of affine subspaces) and basis in turn by the best, for one start.

    The best basis is that of the top eigenvectors of A_l, the other subspaces fixed.

    Parameters
    ----------
    frames : array of shape (n_subspaces, n_features, n_columns)
    """
    updated = namespace(frames).asarray(frames, copy=True)
    for p in range(frames.shape[0]):
        bases, points = shape.split(updated)
        point = point_term = None
        if points is not None:
            point, point_term = shape.move_point(updated, p, *members.total(p), weights)
        basis = exact_basis(members, bases, p, point, weights, point_term, shape.dims)
        updated[p, ...] = join(with_columns(basis, bases.shape[2]), point)
    return updated


def exact_basis(
    members: Members,
    bases: Array,
    p: int,
    point: Array | None,
    weights: ObjectiveWeights,
    point_term: PointTerm | None = None,
    dims: Dims = None,
) -> Array:
    """Return the top eigenvectors of A_l for subspace p, the others fixed, in descending order.

    There are as many as the dimension of the subspace. The factorisation is chosen by shape: of
    the thin factor, of the dense matrix, or products.
    """
    n_subspaces, m, s = bases.shape
    dims = (s,) * n_subspaces if dims is None else dims
    s = dims[p]
    old = bases[p, :, :s]
    if s == 0:
        return old
    others = [bases[q, :, : dims[q]] for q in range(n_subspaces) if q != p and weights.closeness]
    n_columns = members.count(p) + sum(other.shape[1] for other in others)
    if n_columns == 0:
        return old
    if isinstance(members, MemberRows) and n_columns < m and point_term is None:
        # A_l = FᵀF, with one row of F for each column of the other bases and each member.
        parts = [(weights.closeness**0.5 * other).mT for other in others]
        rows = members.rows(p, point)
        parts += rows if weights.fit == 1.0 else [weights.fit**0.5 * part for part in rows]
        factor = namespace(bases).concat(parts, axis=0)
        values, vectors = _top_of_gram(factor @ factor.mT, factor @ old)
        return _complete(values, factor.mT @ vectors, old)
    if isinstance(members, MemberMoments) or m <= DENSE_FEATURES or m < 4 * (s + EXTRA):
        matrix = weights.fit * members.scatter(p, point)
        for other in others:
            matrix = matrix + weights.closeness * (other @ other.mT)
        if point_term is not None:
            matrix = matrix + point_term(identity(m, bases))
        return top_eigenvectors(matrix, s)[1]
    found = _by_products(members.rows(p, point), others, old, weights, point_term)
    if not found.converged:
        warn_unconverged(
            f"the leading {s} eigenvectors of subspace {p} were not found to rounding "
            f"in {MAX_CYCLES} cycles: its update is not exact"
        )
    return found.vectors


def _by_products(
    rows: list[Array],
    others: list[Array],
    old: Array,
    weights: ObjectiveWeights,
    point_term: PointTerm | None,
) -> Leading:
    """Return the top eigenvectors of A_l from products alone: A_l is never formed."""

    def apply(block: Array) -> Array:
        product = 0.0 * block if point_term is None else point_term(block)
        for part in rows:
            product = product + weights.fit * (part.mT @ (part @ block))
        for other in others:
            product = product + weights.closeness * (other @ (other.mT @ block))
        return product

    return leading_subspace(apply, old, max_cycles=MAX_CYCLES)


def _top_of_gram(gram: Array, old: Array) -> tuple[Array, Array]:
    """Return the leading eigenpairs of a Gram matrix.

    Near the solution one cycle of products from the old basis finds them in half the time that
    LAPACK's reduction to tridiagonal form takes; otherwise LAPACK does it.
    """
    n, s = old.shape
    if n >= PRODUCTS_FROM * s:
        found = leading_subspace(lambda block: gram @ block, old, max_cycles=1, start_tol=0.3)
        if found.converged:
            return found.values, found.vectors
    return top_eigenvectors(gram, min(n, s))


def _complete(values: Array, images: Array, old: Array) -> Array:
    """Turn MV into orthonormal eigenvectors of MMᵀ, given the eigenvalues of MᵀM.

    The images are orthogonal to rounding times the spread of the eigenvalues: where that is
    wide, or the eigenvalues are not exact, they are orthonormalised, and where A_l leaves
    directions open the old ones fill them.
    """
    xp = namespace(old)
    s = old.shape[1]
    largest, smallest = float(values[0]), float(values[-1])
    # Squares that are not normal numbers have few digits, and so have their roots.
    exact = smallest > float(xp.finfo(old.dtype).smallest_normal) / machine_epsilon(old)
    if images.shape[1] == s and smallest > 1e-3 * largest and exact:
        return images / xp.sqrt(values)
    known = values > largest * machine_epsilon(old) * 100.0
    n_known = int(xp.sum(xp.astype(known, xp.int64)))
    images = images[:, :n_known] / xp.sqrt(values[:n_known])
    return orthonormal_columns(xp.concat([images, old], axis=1) if n_known < s else images)[:, :s]
