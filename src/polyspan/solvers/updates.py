"""Subspace update (Algorithm 1, steps 7 to 13): raise tr(D_lᵀA_lD_l) for every subspace.

A_l = pull Σ_{p≠l} D_pD_pᵀ + data S_l, with S_l the scatter of the members of subspace l.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

from polyspan.arrays import (
    Array,
    Rows,
    machine_epsilon,
    namespace,
    top_eigenvectors,
    transpose,
)
from polyspan.geometry import orthonormal_columns, orthonormal_step, side_by_side
from polyspan.solvers.krylov import EXTRA, leading_subspace

if TYPE_CHECKING:
    from polyspan.solvers.problem import Balance, Problem

# Up to this many features a dense eigensolver is cheaper than products to full accuracy.
DENSE_FEATURES = 1024
# A Gram matrix of this many times as many rows as wanted eigenvectors is worth products.
PRODUCTS_FROM = 10
# Cycles of products before an update from a large scatter gives up.
MAX_CYCLES = 100


def power_update(problem: Balance, bases: Array, products: Array) -> Array:
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
    """
    xp = namespace(bases)
    starts, n_subspaces, m, s = bases.shape
    if s == 0:
        return bases
    gradient = products if problem.data == 1.0 else problem.data * products
    if problem.pull and n_subspaces > 1:
        wide = side_by_side(bases)
        others = wide @ (problem.pull * (transpose(wide) @ wide))
        others = xp.permute_dims(xp.reshape(others, (starts, m, n_subspaces, s)), (0, 2, 1, 3))
        gradient = gradient + others
    else:
        # A shift by a rounding unit changes no result, keeps S_l semidefinite, and where S_lD_l
        # has not full rank (few members, or none) keeps the old directions.
        size = xp.max(xp.abs(gradient), axis=(2, 3), keepdims=True)
        shift = xp.where(size > 0, size * machine_epsilon(bases), xp.ones_like(size))
        gradient = gradient + shift * bases
    return orthonormal_step(gradient)


def exact_update(problem: Problem, bases: Array, labels: Array) -> Array:
    """Replace every basis in turn by the top eigenvectors of its A_l, for one start.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    labels : array of shape (n_samples,)
    """
    xp = namespace(bases)
    updated = xp.asarray(bases, copy=True)
    for p in range(bases.shape[0]):
        updated[p, ...] = exact_basis(problem, updated, labels, p)
    return updated


def exact_basis(problem: Problem, bases: Array, labels: Array, p: int) -> Array:
    """Return the top eigenvectors of A_l for subspace p, the others fixed, in descending order.

    The factorisation is chosen by shape: of the thin factor, of the dense matrix, or products.
    """
    xp = namespace(bases)
    n_subspaces, m, s = bases.shape
    if s == 0:
        return bases[p, ...]
    others = [bases[q, ...] for q in range(n_subspaces) if q != p and problem.pull]
    n_members = int(xp.sum(xp.astype(labels == p, xp.int64)))
    n_columns = n_members + len(others) * s
    if n_columns == 0:
        return bases[p, ...]
    if n_columns < m:
        factor = _thin_factor(problem, others, labels, p)
        values, vectors = _top_of_gram(factor @ transpose(factor), factor @ bases[p, ...])
        return _complete(values, transpose(factor) @ vectors, bases[p, ...])
    if m <= DENSE_FEATURES or m < 4 * (s + EXTRA):
        matrix = problem.data * _scatter(problem.rows, labels, p)
        for other in others:
            matrix = matrix + problem.pull * (other @ transpose(other))
        return top_eigenvectors(matrix, s)[1]
    found = leading_subspace(
        lambda block: apply_scatter(problem, others, labels, p, block),
        bases[p, ...],
        max_cycles=MAX_CYCLES,
    )
    if not found.converged:
        warnings.warn(
            f"the leading {s} eigenvectors of subspace {p} were not found to rounding in "
            f"{MAX_CYCLES} cycles: its update is not exact",
            ConvergenceWarning,
            stacklevel=2,
        )
    return found.vectors


def _top_of_gram(gram: Array, old: Array) -> tuple[Array, Array]:
    """Return the leading eigenpairs of a Gram matrix.

    Near the solution one cycle of products from the old basis finds them in half the time that
    LAPACK's reduction to tridiagonal form takes; otherwise LAPACK does it.
    """
    n, s = old.shape
    if n >= PRODUCTS_FROM * s:
        found = leading_subspace(lambda block: gram @ block, old, max_cycles=1, near=0.3)
        if found.converged:
            return found.values, found.vectors
    return top_eigenvectors(gram, min(n, s))


def _complete(values: Array, images: Array, old: Array) -> Array:
    """Turn MV into orthonormal eigenvectors of MMᵀ, given the eigenvalues of MᵀM.

    The images are orthogonal to rounding times the spread of the eigenvalues: where that is
    wide they are orthonormalised, and where A_l leaves directions open the old ones fill them.
    """
    xp = namespace(old)
    s = old.shape[1]
    largest, smallest = float(values[0]), float(values[-1])
    if images.shape[1] == s and smallest > 1e-3 * largest:
        return images / xp.sqrt(values)
    known = values > largest * machine_epsilon(old) * 100.0
    n_known = int(xp.sum(xp.astype(known, xp.int64)))
    images = images[:, :n_known] / xp.sqrt(values[:n_known])
    return orthonormal_columns(xp.concat([images, old], axis=1) if n_known < s else images)[:, :s]


def _members(rows: Rows, labels: Array, p: int) -> list[Array]:
    """Return the centred members of subspace p, chunk by chunk."""
    xp = namespace(labels)
    parts = []
    for which, chunk in rows.chunks():
        members = xp.take(chunk, xp.nonzero(labels[which] == p)[0], axis=0)
        parts.append(members if rows.offset is None else members - rows.offset)
    return parts


def _thin_factor(problem: Problem, others: list[Array], labels: Array, p: int) -> Array:
    """Return the thin M with A_l = MᵀM: rows √pull D_qᵀ … and √data Y_l."""
    xp = namespace(labels)
    parts = [transpose(problem.pull**0.5 * other) for other in others]
    for part in _members(problem.rows, labels, p):
        parts.append(part if problem.data == 1.0 else problem.data**0.5 * part)
    return xp.concat(parts, axis=0)


def _scatter(rows: Rows, labels: Array, p: int) -> Array:
    total = 0.0
    for part in _members(rows, labels, p):
        total = total + transpose(part) @ part
    return total


def apply_scatter(
    problem: Problem, others: list[Array], labels: Array, p: int, block: Array
) -> Array:
    """Return A_l times a thin block, never forming A_l."""
    product = 0.0 * block
    for part in _members(problem.rows, labels, p):
        product = product + problem.data * (transpose(part) @ (part @ block))
    for other in others:
        product = product + problem.pull * (other @ (transpose(other) @ block))
    return product
