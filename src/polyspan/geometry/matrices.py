"""Factors and submatrices of symmetric matrices, by the fastest LAPACK routine on NumPy."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from polyspan.base.arrays import Array, is_numpy, namespace


def leading_eigen(a: Array, tol: float, floor: float = 0.0) -> tuple[Array, Array]:
    """Return the large eigenvalues of a symmetric matrix, ascending, and their eigenvectors.

    Large are those above `floor` and above `tol` times the largest; the others are rounding.

    Parameters
    ----------
    a : array of shape (n, n)
        Symmetric matrix.
    tol : float
        Fraction of the largest eigenvalue up to which an eigenvalue is left out.
    floor : float, default=0.0
        Value up to which an eigenvalue is left out.

    Returns
    -------
    values : array of shape (k,)
        The k large eigenvalues, ascending.
    vectors : array of shape (n, k)
        Their eigenvectors, as columns.
    """
    xp = namespace(a)
    if is_numpy(a):
        values, vectors = scipy.linalg.eigh(a, check_finite=False)
    else:
        values, vectors = xp.linalg.eigh(a)
    above = xp.count_nonzero(values > max(tol * float(values[-1]), floor, 0.0))
    first = a.shape[0] - int(above)
    return values[first:], vectors[:, first:]


def cholesky_or_none(a: Array) -> Array | None:
    """Return the lower Cholesky factor, or None where the matrix is not positive definite.

    Parameters
    ----------
    a : array of shape (n, n)
        Symmetric matrix.

    Returns
    -------
    array of shape (n, n) or None
        Lower triangular factor L with LLᵀ = a, or None.
    """
    xp = namespace(a)
    try:
        if is_numpy(a):
            return scipy.linalg.cholesky(a, lower=True, check_finite=False)
        lower = xp.linalg.cholesky(a)
    except Exception:  # every framework has its own error class for it
        return None
    return lower if bool(xp.all(xp.isfinite(lower))) else None


def submatrix(a: Array, rows: Array, columns: Array) -> Array:
    """Return the entries of a matrix at the crossings of some rows and columns.

    Parameters
    ----------
    a : array of shape (n, m)
        The matrix.
    rows : array of shape (k,)
        Indices of the rows to take.
    columns : array of shape (l,)
        Indices of the columns to take.

    Returns
    -------
    array of shape (k, l)
        Entries at these rows and columns.
    """
    if is_numpy(a):
        return a[np.ix_(rows, columns)]
    xp = namespace(a)
    return xp.take(xp.take(a, rows, axis=0), columns, axis=1)
