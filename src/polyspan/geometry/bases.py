"""Orthonormal bases: draw them, compute them, check and repair them."""

from __future__ import annotations

import numpy as np

from polyspan.base.arrays import (
    Array,
    identity,
    is_host,
    machine_epsilon,
    moved_to,
    namespace,
    to_numpy,
)
from polyspan.geometry.checked import check_axes

# If the smallest pivot of a Cholesky factor, as a fraction of the largest, is below this times the
# square root of the rounding unit, the rows are not orthonormal even after two passes.
NARROWEST_PIVOTS = 100.0
# If no pivot is below this fraction of the largest, rows are orthonormal to 1e-12 after one pass.
WIDE_PIVOTS = 0.03
# Below this the squares from which a factor was computed have lost digits.
SMALLEST_PIVOT = 1e-140

#: Dimension of every subspace of a stack; None: all have as many as there are columns.
Dims = tuple[int, ...] | None


def orthonormal_columns(a: Array) -> Array:
    """Return orthonormal bases that contain the column spans of a stack of tall matrices.

    By Householder QR. The columns are orthonormal to rounding even if `a` does not have full
    rank; then arbitrary directions complete the span.

    Parameters
    ----------
    a : array of shape (..., n_features, dim)
        Stack of matrices with n_features ≥ dim.

    Returns
    -------
    array of shape (..., n_features, dim)
        Orthonormal bases.
    """
    return namespace(a).linalg.qr(a, mode="reduced").Q


def orthonormal_step(a: Array, dims: Dims = None) -> Array:
    """Return `orthonormal_columns` of a stack of any shape, as fast as its device allows.

    Accelerators are slow at QR decompositions of many thin matrices (seconds for a thousand small
    problems): there a Cholesky factor of the Gram matrix is used instead.

    Parameters
    ----------
    a : array of shape (..., n_features, dim)
        Stack of matrices with n_features ≥ dim.
    dims : tuple of int or None, default=None
        Dimensions along the third last axis. Columns of `a` beyond them must be zero, and they
        stay zero; the first columns of a QR decomposition do not depend on those after them.
        None: all columns are directions.

    Returns
    -------
    array of shape (..., n_features, dim)
        Orthonormal bases.
    """
    if is_host(a):
        return zero_padded(orthonormal_columns(a), dims)
    return cholesky_rows(a.mT, dims).mT


def orthonormal_rows(a: Array, dims: Dims = None) -> Array:
    """Return the same as `orthonormal_step`, for the rows of a stack of wide matrices.

    Parameters
    ----------
    a : array of shape (..., dim, n_features)
        Stack of matrices with n_features ≥ dim.
    dims : tuple of int or None, default=None
        Dimensions along the third last axis. Rows of `a` beyond them must be zero, and they stay
        zero. None: all rows are directions.

    Returns
    -------
    array of shape (..., dim, n_features)
        Matrices with orthonormal rows.
    """
    return orthonormal_step(a.mT, dims).mT


def zero_padded(bases: Array, dims: Dims) -> Array:
    """Return a stack of bases with zeros beyond every dimension.

    Parameters
    ----------
    bases : array of shape (..., n_subspaces, n_features, most_dims)
        Stack of bases, with as many columns as the largest dimension.
    dims : tuple of n_subspaces ints or None
        Dimension of every subspace; None: all dimensions are the number of columns, and nothing
        changes.

    Returns
    -------
    array of shape (..., n_subspaces, n_features, most_dims)
        The stack, whose columns beyond a subspace's own dimension are zero.
    """
    if dims is None:
        return bases
    own = moved_to(np.arange(bases.shape[-1]) < np.asarray(dims)[:, None, None], bases)
    return namespace(bases).where(own, bases, 0.0)


def cholesky_rows(a: Array, dims: Dims = None) -> Array:
    """Orthonormalise the rows of a stack of wide matrices by two passes of A ← L⁻¹A, LLᵀ = AAᵀ.

    Gram matrices are in double precision. After the first pass the error is the rounding unit
    times the squared condition number, after the second only rounding; if the condition is good,
    one pass is enough. Matrices that are too ill-conditioned for two passes go to Householder QR.

    With `dims`, rows beyond every dimension are zero and stay so: their pivots are large.
    """
    xp = namespace(a)
    shape = a.shape
    a = xp.reshape(a, (-1, *shape[-2:]))
    padding = None
    if dims is not None:
        beyond = np.arange(shape[-2]) >= np.asarray(dims)[:, None]
        beyond = np.broadcast_to(beyond[..., None] * np.eye(shape[-2]), (*shape[:-1], shape[-2]))
        padding = moved_to(beyond.reshape(-1, shape[-2], shape[-2]), a, xp.float64)
    lower = _cholesky(a, padding)
    pivots = xp.linalg.diagonal(lower)
    largest, smallest = xp.max(pivots, axis=1), xp.min(pivots, axis=1)
    spread = smallest / largest * xp.astype(smallest > SMALLEST_PIVOT, smallest.dtype)
    least = NARROWEST_PIVOTS * max(machine_epsilon(lower) ** 0.5, machine_epsilon(a))
    narrowest = float(xp.min(spread))  # usually the only number fetched from the device
    if narrowest > least:  # False for NaN
        return xp.reshape(_passes(a, lower, narrowest, padding), shape)
    fine = to_numpy(spread) > least
    kept, bad = np.flatnonzero(fine), np.flatnonzero(~fine)
    chosen = moved_to(kept, a)
    others = xp.take(a, moved_to(bad, a), axis=0).mT
    padding = None if padding is None else xp.take(padding, chosen, axis=0)
    parts = [
        _passes(xp.take(a, chosen, axis=0), xp.take(lower, chosen, axis=0), 0.0, padding),
        orthonormal_columns(others).mT,
    ]
    back = np.argsort(np.concatenate([kept, bad]))
    found = xp.reshape(xp.take(xp.concat(parts, axis=0), moved_to(back, a), axis=0), shape)
    return found if dims is None else zero_padded(found.mT, dims).mT


def _cholesky(a: Array, padding: Array | None) -> Array:
    """Return the lower factors of AAᵀ + εI, ε of the size of rounding: they always exist.

    `padding` has ones on the diagonal for rows of zeros that are no directions.
    """
    xp = namespace(a)
    wide = xp.astype(a, xp.float64, copy=False)
    gram = wide @ wide.mT
    largest = xp.max(xp.linalg.diagonal(gram), axis=1)[:, None, None]
    if padding is not None:
        gram = gram + xp.where(largest > 0, largest, xp.ones_like(largest)) * padding
    # Zero matrices and matrices that are not finite get a factor too (infinity and NaN show on the
    # diagonal of the Gram matrix); their tiny pivots mark these factors as useless.
    unit = identity(gram.shape[-1], gram)
    tiny = xp.finfo(gram.dtype).smallest_normal
    lift = largest * (16.0 * gram.shape[-1] * machine_epsilon(gram)) + tiny
    return xp.linalg.cholesky(xp.where(xp.isfinite(largest), gram + lift * unit, tiny * unit))


def _passes(a: Array, lower: Array, narrowest: float, padding: Array | None) -> Array:
    xp = namespace(a)
    a = xp.astype(xp.linalg.inv(lower), a.dtype, copy=False) @ a
    if narrowest > WIDE_PIVOTS and machine_epsilon(a) < 1e-10:
        return a
    return xp.astype(xp.linalg.inv(_cholesky(a, padding)), a.dtype, copy=False) @ a


def near_copies(basis: Array, n: int, dims: Dims = None) -> Array:
    """Return n bases near the given one, each with its own small fixed perturbation.

    Exact copies are a saddle point of the objective: every sample is equally near to all of them,
    and rounding errors would decide the next step.

    Parameters
    ----------
    basis : array of shape (..., n_features, dim)
        Orthonormal basis, or a stack of them.
    n : int
        Number of copies of each basis.
    dims : tuple of n ints or None, default=None
        Dimension of every copy, which has only that many of the first columns; None: all columns.

    Returns
    -------
    array of shape (..., n, n_features, dim)
        Orthonormal bases; columns beyond a copy's own dimension are zero.
    """
    m, s = basis.shape[-2:]
    turns = np.random.RandomState(0).standard_normal((n, m, s)) / m**0.5
    little = machine_epsilon(basis) ** 0.4  # far above rounding, and its square far below
    near = basis[..., None, :, :] + little * moved_to(turns, basis, basis.dtype)
    return zero_padded(orthonormal_columns(near), dims)


def range_basis(a: Array) -> Array:
    """Return the left singular vectors that span the columns of `a`, as MATLAB's `orth`.

    The paper's generator makes each subspace from the basis of the previous one plus noise W_l
    with a positive mean, so another basis of the same span would give other data. The signs of
    singular vectors depend on LAPACK; here they follow scikit-learn's rule (`svd_flip`): the
    entry of every vector with the largest absolute value is positive.

    Parameters
    ----------
    a : array of shape (n_features, n_columns)
        Matrix whose columns span the subspace.

    Returns
    -------
    array of shape (n_features, rank)
        Orthonormal basis of the column span, with as many columns as the rank of `a`.
    """
    xp = namespace(a)
    u, values, _ = xp.linalg.svd(a, full_matrices=False)
    largest = xp.argmax(xp.abs(u), axis=0)
    u = u * xp.sign(xp.take_along_axis(u, largest[None, :], axis=0))
    threshold = max(a.shape) * machine_epsilon(a) * float(xp.max(values))
    rank = int(xp.sum(xp.astype(values > threshold, xp.int64)))
    return u[:, :rank]


def draw_bases(shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Draw orthonormal bases of uniformly distributed subspaces.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result; the last two axes are (n_features, dim).
    rng : RandomState instance
        Generator of the random numbers.

    Returns
    -------
    ndarray of shape `shape`
        Orthonormal bases.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.geometry import draw_bases
    >>> bases = draw_bases((4, 10, 2), np.random.RandomState(0))
    >>> bool(np.allclose(bases[0].T @ bases[0], np.eye(2)))
    True
    """
    check_axes(tuple(shape), "shape", "..., n_features, dim", tall=True)
    return np.asarray(orthonormal_columns(rng.standard_normal(shape)))


def subspace_dims(bases: Array) -> Array:
    """Return the dimension of every subspace of a stack.

    Parameters
    ----------
    bases : array of shape (..., n_subspaces, n_features, most_dims)
        Bases. Where dimensions differ, the columns beyond a subspace's own dimension are zero.

    Returns
    -------
    array of shape (..., n_subspaces)
        Number of columns of every basis that are not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.geometry import subspace_dims
    >>> subspace_dims(np.stack([np.eye(4)[:, :2], np.eye(4)[:, :2] * [1, 0]])).tolist()
    [2, 1]
    """
    xp = namespace(bases)
    return xp.sum(xp.astype(xp.any(bases != 0, axis=-2), xp.int64), axis=-1)


def is_orthonormal(bases: Array, tolerance: float | None = None) -> bool:
    """Tell whether every matrix of a stack has orthonormal columns.

    Parameters
    ----------
    bases : array of shape (..., n_features, dim)
        Matrices to check.
    tolerance : float or None, default=None
        Largest difference of an entry of DᵀD from that of the identity; None: the square root of
        the rounding unit.

    Returns
    -------
    bool
        True if all of them have orthonormal columns.
    """
    xp = namespace(bases)
    if tolerance is None:
        tolerance = machine_epsilon(bases) ** 0.5
    gram = bases.mT @ bases
    return bool(xp.max(xp.abs(gram - identity(gram.shape[-1], gram))) <= tolerance)


def orthonormalise(bases: Array) -> Array:
    """Return the nearest stack with orthonormal columns (the polar factors).

    Parameters
    ----------
    bases : array of shape (..., n_features, dim)
        Matrices of full column rank.

    Returns
    -------
    array of shape (..., n_features, dim)
        Orthonormal bases of the same column spans.

    Raises
    ------
    ValueError
        If a matrix does not have full column rank, so that no nearest one exists.
    """
    xp = namespace(bases)
    u, values, vt = xp.linalg.svd(bases, full_matrices=False)
    threshold = values[..., 0] * machine_epsilon(bases) * bases.shape[-2]
    if not bool(xp.all(values[..., -1] > threshold)):
        bad = [int(i) for i in xp.nonzero(~(values[..., -1] > threshold))[0]]
        raise ValueError(
            f"bases {bad} have linearly dependent columns: give {bases.shape[-1]} independent "
            "columns per subspace"
        )
    return u @ vt
