"""Factors and parts of symmetric matrices, by LAPACK's best routine where NumPy has them."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from polyspan.arrays import Array, is_numpy, namespace


def symmetric_eigen(a: Array) -> tuple[Array, Array]:
    """Return all eigenvalues of a symmetric matrix, ascending, and their vectors."""
    numpy = is_numpy(a)
    found = scipy.linalg.eigh(a, check_finite=False) if numpy else namespace(a).linalg.eigh(a)
    return found[0], found[1]


def leading_rank(values: Array, least: float) -> int:
    """Return how many of some ascending eigenvalues are larger than `least`."""
    xp = namespace(values)
    return int(xp.sum(xp.astype(values > least, xp.int64)))


def cholesky_or_none(a: Array) -> Array | None:
    """Return the lower Cholesky factor, or None where the matrix is not positive definite."""
    xp = namespace(a)
    try:
        if is_numpy(a):
            return scipy.linalg.cholesky(a, lower=True, check_finite=False)
        lower = xp.linalg.cholesky(a)
    except Exception:  # every framework has an error of its own for it
        return None
    return lower if bool(xp.all(xp.isfinite(lower))) else None


def submatrix(a: Array, rows: Array, columns: Array) -> Array:
    """Return the entries of a matrix at the crossings of some rows and columns."""
    if is_numpy(a):
        return a[np.ix_(rows, columns)]
    xp = namespace(a)
    return xp.take(xp.take(a, rows, axis=0), columns, axis=1)
