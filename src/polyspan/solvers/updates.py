"""Subspace update (Algorithm 1, steps 7 to 13): maximise tr(QᵀA_lQ), one subspace at a time.

A_l = pull Σ_{p≠l} D_pD_pᵀ + data S_l, with S_l the scatter of the members of subspace l.
"""

from __future__ import annotations

from polyspan.arrays import (
    Array,
    Rows,
    machine_epsilon,
    namespace,
    top_eigenvectors,
    transpose,
)
from polyspan.geometry import orthonormal_columns
from polyspan.solvers.krylov import leading_subspace
from polyspan.solvers.problem import Problem

# Up to this many features a dense eigensolver is cheaper than products to full accuracy.
DENSE_FEATURES = 1024


def power_update(problem: Problem, bases: Array, products: Array) -> Array:
    """Take one power step D_l ← orth(A_lD_l) for l = 1…L in turn, all starts at once.

    A_l is positive semidefinite, so tr(QᵀA_lQ) is convex in Q and its tangent at D_l is a lower
    bound, which any orthonormal basis of the span of A_lD_l maximises: the objective never rises.

    Parameters
    ----------
    bases, products : array of shape (n_starts, n_subspaces, n_features, subspace_dim)
        `products` holds S_lD_l, which the assignment has made already.
    """
    xp = namespace(bases)
    starts, n_subspaces, m, s = bases.shape
    wide = xp.reshape(xp.permute_dims(bases, (0, 2, 1, 3)), (starts, m, n_subspaces * s))
    wide = xp.asarray(wide, copy=True)
    updated = xp.empty_like(bases)
    for p in range(n_subspaces):
        own = bases[:, p, :, :]
        step = problem.data * products[:, p, :, :]
        if problem.pull:
            # `wide` holds the own basis too, whose share in the product is D_l itself.
            step = step + problem.pull * (wide @ (transpose(wide) @ own) - own)
        # A shift of A_l by a rounding unit changes no result, keeps it semidefinite, and where
        # A_lD_l has not full rank (an empty cluster) keeps the old directions.
        size = xp.max(xp.abs(step), axis=(1, 2), keepdims=True)
        shift = xp.where(size > 0, size * machine_epsilon(bases), xp.ones_like(size))
        new = orthonormal_columns(step + shift * own)
        updated[:, p, :, :] = new
        wide[:, :, p * s : (p + 1) * s] = new
    return updated


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
        updated[p, ...] = _exact_basis(problem, updated, labels, p)
    return updated


def _exact_basis(problem: Problem, bases: Array, labels: Array, p: int) -> Array:
    """Choose the factorisation by shape: the thin factor, the dense matrix or products."""
    xp = namespace(bases)
    n_subspaces, m, s = bases.shape
    others = [bases[q, ...] for q in range(n_subspaces) if q != p and problem.pull]
    n_members = int(xp.sum(xp.astype(labels == p, xp.int64)))
    n_columns = n_members + len(others) * s
    if n_columns == 0:
        return bases[p, ...]
    if n_columns < m:
        factor = _thin_factor(problem, others, labels, p)
        _, vectors = top_eigenvectors(transpose(factor) @ factor, min(s, n_columns))
        leading = factor @ vectors
    elif m <= DENSE_FEATURES:
        matrix = problem.data * _scatter(problem.rows, labels, p)
        for other in others:
            matrix = matrix + problem.pull * (other @ transpose(other))
        _, leading = top_eigenvectors(matrix, s)
    else:
        return leading_subspace(
            lambda block: _apply(problem, others, labels, p, block), bases[p, ...]
        )
    return _complete(leading, bases[p, ...])


def _complete(leading: Array, old: Array) -> Array:
    """Orthonormalise, filling directions that A_l does not determine from the old basis."""
    xp = namespace(old)
    s = old.shape[1]
    size = xp.linalg.vector_norm(leading, axis=0)
    keep = size > xp.max(size) * machine_epsilon(old) * 100.0
    leading = leading[:, keep]
    if leading.shape[1] < s:
        leading = xp.concat([leading / xp.max(size), old], axis=1)
    return orthonormal_columns(leading)[:, :s]


def _members(rows: Rows, labels: Array, p: int) -> list[Array]:
    """Return the centred members of subspace p, chunk by chunk."""
    xp = namespace(labels)
    parts = []
    for which, chunk, offset in rows.chunks():
        members = xp.take(chunk, xp.nonzero(labels[which] == p)[0], axis=0)
        parts.append(members if offset is None else members - offset)
    return parts


def _thin_factor(problem: Problem, others: list[Array], labels: Array, p: int) -> Array:
    """Return M = [√pull D_q …, √data Y_lᵀ] with A_l = M Mᵀ."""
    xp = namespace(labels)
    parts = [problem.pull**0.5 * other for other in others]
    parts += [problem.data**0.5 * transpose(part) for part in _members(problem.rows, labels, p)]
    return xp.concat(parts, axis=1)


def _scatter(rows: Rows, labels: Array, p: int) -> Array:
    total = 0.0
    for part in _members(rows, labels, p):
        total = total + transpose(part) @ part
    return total


def _apply(problem: Problem, others: list[Array], labels: Array, p: int, block: Array) -> Array:
    """Return A_l times a thin block, never forming A_l."""
    product = 0.0 * block
    for part in _members(problem.rows, labels, p):
        product = product + problem.data * (transpose(part) @ (part @ block))
    for other in others:
        product = product + problem.pull * (other @ (transpose(other) @ block))
    return product
