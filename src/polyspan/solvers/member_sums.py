"""Sums over the members of every cluster, the way that suits where the data lie.

Each sample counts in one cluster only. Masking the projections of the others repeats the whole
assignment product; gathering the members first costs 1/L of it, but has to move the rows, and on
an accelerator to wait for their number.
"""

from __future__ import annotations

from typing import Any

from polyspan.arrays import (
    Array,
    device,
    is_host,
    members_of,
    namespace,
    to_numpy,
    transpose,
    zeros,
)

# Up to this many columns L·s a masked product is faster on an accelerator than moving the rows:
# about 14 operations of double precision take the time of one byte there, and a row of m numbers
# moves 24m bytes (read, written, read again) or costs 2mLs operations.
MASKED_COLUMNS = 128


def member_sums(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int
) -> tuple[Array, Array]:
    """Return Σ D_lᵀy, (n_starts, L, s), and Y_lᵀ(Y_l D_l), (n_starts, L, m, s), of hard clusters.

    Parameters
    ----------
    chunk : array of shape (n, n_features)
    projections : array of shape (n_starts, n_subspaces, subspace_dim, n)
    labels : array of shape (n_starts, n)
    """
    if is_host(chunk):
        return gathered_sums(chunk, projections, labels, n_subspaces)
    if n_subspaces * projections.shape[2] <= MASKED_COLUMNS:
        members = member_mask(labels, n_subspaces, chunk.dtype)
        return weighted_sums(chunk, projections, members)
    return sorted_sums(chunk, projections, labels, n_subspaces)


def weighted_sums(chunk: Array, projections: Array, weights: Array) -> tuple[Array, Array]:
    """Return the same with weights (n_starts, n_subspaces, n) of any kind, in one product."""
    xp = namespace(chunk)
    starts, n_subspaces, s, n = projections.shape
    weighted = projections * weights[:, :, None, :]
    products = xp.reshape(weighted, (starts * n_subspaces * s, n)) @ chunk
    products = xp.reshape(products, (starts, n_subspaces, s, chunk.shape[1]))
    return xp.sum(weighted, axis=3), transpose(products)


def gathered_sums(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int
) -> tuple[Array, Array]:
    """Gather the members of one cluster after the other."""
    xp = namespace(chunk)
    coefficients, products = _blank(chunk, projections)
    for r in range(labels.shape[0]):
        for p, members in enumerate(members_of(labels[r, :], n_subspaces)):
            theirs = xp.take(projections[r, p, ...], members, axis=1)
            coefficients[r, p, :] = xp.sum(theirs, axis=1)
            products[r, p, ...] = theirs @ xp.take(chunk, members, axis=0)
    return coefficients, transpose(products)


def sorted_sums(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int
) -> tuple[Array, Array]:
    """Bring the rows into the order of their labels; only the sizes of clusters are fetched."""
    xp = namespace(chunk)
    own = xp.take_along_axis(projections, labels[:, None, None, :], axis=1)[:, 0, ...]
    coefficients, products = _blank(chunk, projections)
    members = member_mask(labels, n_subspaces, chunk.dtype)
    counts = to_numpy(xp.sum(members, axis=2)).astype(int)
    for r in range(labels.shape[0]):
        # One product for all clusters: each launch costs more than the few numbers summed.
        coefficients[r, ...] = members[r, ...] @ transpose(own[r, ...])
        order = xp.argsort(labels[r, :])
        rows, theirs = xp.take(chunk, order, axis=0), xp.take(own[r, ...], order, axis=1)
        begin = 0
        for p, count in enumerate(counts[r].tolist()):
            here = slice(begin, begin + count)
            begin = here.stop
            products[r, p, ...] = theirs[:, here] @ rows[here, :]
    return coefficients, transpose(products)


def member_mask(labels: Array, n_subspaces: int, dtype: Any) -> Array:
    """Return 1 where a sample belongs to a subspace, (..., n_subspaces, n), for labels (..., n)."""
    xp = namespace(labels)
    every = xp.arange(n_subspaces, dtype=labels.dtype, device=device(labels))
    return xp.astype(labels[..., None, :] == every[:, None], dtype)


def _blank(chunk: Array, projections: Array) -> tuple[Array, Array]:
    starts, n_subspaces, s, _ = projections.shape
    coefficients = zeros((starts, n_subspaces, s), chunk)
    return coefficients, zeros((starts, n_subspaces, s, chunk.shape[1]), chunk)
