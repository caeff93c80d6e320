"""Sums over the members of every cluster, the way that suits where the data lie.

Each sample counts in one cluster only. Masking the projections of the others repeats the whole
assignment product; gathering the members first costs 1/L of it, but has to move the rows, and on
an accelerator to wait for their number.
"""

from __future__ import annotations

from polyspan.arrays import (
    Array,
    is_host,
    members_of,
    namespace,
    one_hot,
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
    projections : array of shape (n, n_starts, n_subspaces, subspace_dim)
    labels : array of shape (n, n_starts)
    """
    if is_host(chunk):
        return gathered_sums(chunk, projections, labels, n_subspaces)
    if n_subspaces * projections.shape[3] <= MASKED_COLUMNS:
        return weighted_sums(chunk, projections, one_hot(labels, n_subspaces, chunk.dtype))
    return sorted_sums(chunk, projections, labels, n_subspaces)


def weighted_sums(chunk: Array, projections: Array, weights: Array) -> tuple[Array, Array]:
    """Return the same with weights (n, n_starts, n_subspaces) of any kind, in one product."""
    xp = namespace(chunk)
    n, starts, n_subspaces, s = projections.shape
    weighted = xp.reshape(projections * weights[..., None], (n, starts * n_subspaces * s))
    # The thin factor on the left: a quarter faster than on the right.
    products = xp.reshape(transpose(weighted) @ chunk, (starts, n_subspaces, s, chunk.shape[1]))
    coefficients = xp.reshape(xp.sum(weighted, axis=0), (starts, n_subspaces, s))
    return coefficients, transpose(products)


def gathered_sums(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int
) -> tuple[Array, Array]:
    """Gather the members of one cluster after the other."""
    xp = namespace(chunk)
    own = _own(projections, labels)
    coefficients, products = _blank(chunk, projections)
    for r in range(labels.shape[1]):
        for p, members in enumerate(members_of(labels[:, r], n_subspaces)):
            theirs = xp.take(own[r, ...], members, axis=0)
            coefficients[r, p, :] = xp.sum(theirs, axis=0)
            # The thin factor on the left: in float32 a quarter faster than on the right.
            product = transpose(theirs) @ xp.take(chunk, members, axis=0)
            products[r, p, ...] = transpose(product)
    return coefficients, products


def sorted_sums(
    chunk: Array, projections: Array, labels: Array, n_subspaces: int
) -> tuple[Array, Array]:
    """Bring the rows into the order of their labels; only the sizes of clusters are fetched."""
    xp = namespace(chunk)
    own = _own(projections, labels)
    coefficients, products = _blank(chunk, projections)
    members = one_hot(labels, n_subspaces, chunk.dtype)
    counts = to_numpy(xp.sum(members, axis=0)).astype(int)
    for r in range(labels.shape[1]):
        # One product for all clusters: each launch costs more than the few numbers summed.
        coefficients[r, ...] = transpose(members[:, r, :]) @ own[r, ...]
        order = xp.argsort(labels[:, r])
        rows, theirs = xp.take(chunk, order, axis=0), xp.take(own[r, ...], order, axis=0)
        begin = 0
        for p, count in enumerate(counts[r].tolist()):
            here = slice(begin, begin + count)
            begin = here.stop
            products[r, p, ...] = transpose(rows[here, :]) @ theirs[here, :]
    return coefficients, products


def _own(projections: Array, labels: Array) -> Array:
    """Return each sample's projection on its own subspace, one contiguous block per start."""
    xp = namespace(projections)
    own = xp.take_along_axis(projections, labels[..., None, None], axis=2)
    return xp.asarray(xp.permute_dims(own[:, :, 0, :], (1, 0, 2)), copy=True)


def _blank(chunk: Array, projections: Array) -> tuple[Array, Array]:
    _, starts, n_subspaces, s = projections.shape
    coefficients = zeros((starts, n_subspaces, s), chunk)
    return coefficients, zeros((starts, n_subspaces, chunk.shape[1], s), chunk)
