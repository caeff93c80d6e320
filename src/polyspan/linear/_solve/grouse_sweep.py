"""The sweep of Algorithm 3 over samples, compiled by numba.

By hand: no library has it. Each sample tilts the basis by a rank-one step, so the sweep is
sequential by nature and gains nothing from matrix products.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

# The fit Dθ of a sample is as long as θ where the basis is orthonormal: by how much the two may
# differ before it is made so again. Errors may grow a thousandfold from one sample to the next.
DRIFT = 1e-11
# Least pivot of the Gram matrix of the observed rows, whose eigenvalues lie between 0 and 1. Below,
# the observed entries do not fix the coefficients.
LEAST_PIVOT = 1e-10


# Sums may be reordered, which lets them run several at a time; NaN and infinity keep their meaning.
@numba.njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def sweep(  # noqa: C901 - plain loops are what compiles well
    columns: Any, values: Any, missing: Any, members: Any, steps: Any, greedy: bool = False
) -> None:  # pragma: no cover - compiled; its plain twin is sweep.py_func
    """Take one rank-one step for every member, in place (Algorithm 3, steps 12 to 16).

    A step assumes that the basis is orthonormal; it is made so again at the end, and before where
    it drifts.

    Parameters
    ----------
    columns : array of shape (subspace_dim, n_features)
        The basis, transposed, so that the long axis is contiguous; tilted in place.
    values : array of shape (n_samples, n_features)
        Zeros where missing.
    missing : boolean array of shape (n_samples, n_features)
    members : int array
        Rows to visit, in this order.
    steps : array of shape (n_samples,)
        λ m η_t / |Ω_i| of every sample.
    greedy : bool, default=False
        Turn by arctan(‖r‖/‖ω‖) instead, which fits the sample exactly: for data without noise.
    """
    s, m = columns.shape
    gram = np.empty((s, s))
    theta = np.empty(s)
    omega = np.empty(m)
    residual = np.empty(m)
    part = np.empty((s, m))
    for i in members:
        y, hole = values[i], missing[i]
        _observed_gram(columns, hole, part, gram)
        for a in range(s):
            x = 0.0
            for j in range(m):  # y is zero where missing
                x += columns[a, j] * y[j]
            theta[a] = x
        if not _solve_in_place(gram, theta):
            continue
        omega[:] = 0.0
        for a in range(s):
            for j in range(m):
                omega[j] += theta[a] * columns[a, j]
        omega_square, residual_square, theta_square = 0.0, 0.0, 0.0
        for j in range(m):
            residual[j] = 0.0 if hole[j] else y[j] - omega[j]
            omega_square += omega[j] * omega[j]
            residual_square += residual[j] * residual[j]
        for a in range(s):
            theta_square += theta[a] * theta[a]
        if omega_square == 0.0 or residual_square == 0.0 or theta_square == 0.0:
            continue
        omega_norm, residual_norm = np.sqrt(omega_square), np.sqrt(residual_square)
        angle = residual_norm * omega_norm * steps[i]
        if greedy:
            angle = np.arctan(residual_norm / omega_norm)
        along = (np.cos(angle) - 1.0) / omega_norm
        across = np.sin(angle) / residual_norm
        scale = 1.0 / np.sqrt(theta_square)
        for j in range(m):
            omega[j] = scale * (along * omega[j] + across * residual[j])
        for a in range(s):
            x = theta[a]
            for j in range(m):
                columns[a, j] += x * omega[j]
        if abs(omega_square - theta_square) > DRIFT * theta_square:
            _orthonormalise(columns)
    _orthonormalise(columns)


@numba.njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _orthonormalise(columns: Any) -> None:  # pragma: no cover
    """Make nearly orthonormal rows orthonormal, by Gram-Schmidt."""
    s, m = columns.shape
    for a in range(s):
        for b in range(a):
            x = 0.0
            for j in range(m):
                x += columns[a, j] * columns[b, j]
            for j in range(m):
                columns[a, j] -= x * columns[b, j]
        x = 0.0
        for j in range(m):
            x += columns[a, j] * columns[a, j]
        x = 1.0 / np.sqrt(x)
        for j in range(m):
            columns[a, j] *= x


@numba.njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _observed_gram(columns: Any, hole: Any, part: Any, gram: Any) -> None:  # pragma: no cover
    """Write the Gram matrix of the observed rows of the basis into the lower triangle.

    The basis is orthonormal, so it is I minus that of the missing rows, whichever are fewer.
    """
    s, m = columns.shape
    n_missing = 0
    for j in range(m):
        n_missing += hole[j]
    by_missing = 2 * n_missing < m
    k = 0
    for j in range(m):
        if hole[j] == by_missing:
            for a in range(s):
                part[a, k] = columns[a, j]
            k += 1
    for a in range(s):
        for b in range(a + 1):
            x = 0.0
            for j in range(k):
                x += part[a, j] * part[b, j]
            gram[a, b] = -x if by_missing else x
        if by_missing:
            gram[a, a] += 1.0


@numba.njit(cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _solve_in_place(gram: Any, theta: Any) -> bool:  # pragma: no cover
    """Solve the system in the lower triangle by Cholesky, overwriting both; False if singular.

    The diagonal holds the reciprocals of the factor's: s divisions instead of s²/2, which would
    take as long as all the rest.
    """
    s = len(theta)
    for a in range(s):
        for b in range(a):
            x = gram[a, b]
            for k in range(b):
                x -= gram[a, k] * gram[b, k]
            gram[a, b] = x * gram[b, b]
        x = gram[a, a]
        for k in range(a):
            x -= gram[a, k] * gram[a, k]
        if not x > LEAST_PIVOT:
            return False
        gram[a, a] = 1.0 / np.sqrt(x)
        x = theta[a]
        for k in range(a):
            x -= gram[a, k] * theta[k]
        theta[a] = x * gram[a, a]
    for a in range(s - 1, -1, -1):
        theta[a] *= gram[a, a]
        for k in range(a):
            theta[k] -= gram[a, k] * theta[a]
    return True
