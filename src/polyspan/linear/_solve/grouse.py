"""Algorithm 3 (rMiCUSaL) as printed: incremental gradient descent on the Grassmann manifold.

The sweep over samples is compiled; fits import this file when they need it, since numba takes a
second to load. It is written by hand, as no library has it. Each sample tilts the basis by a
rank-one step, so that the sweep is sequential by nature and gains nothing from matrix products.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from polyspan.base.arrays import Array
from polyspan.base.progress import Monitor
from polyspan.data.rows import ArrayRows
from polyspan.linear._solve.alternation import Rules, Solution
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.problem import Problem


def closeness_step(basis: Array, others: Array, step: float) -> Array:
    """Move along the geodesic that brings the basis nearer to the others (steps 10 and 11).

    `others` holds the other bases side by side; A_l times the basis needs no m×m matrix.
    """
    if others.shape[1] == 0:
        return basis
    pulled = others @ (others.T @ basis)
    delta = 2.0 * (pulled - basis @ (basis.T @ pulled))
    # With Δ = UΣVᵀ, U sin(Ση) = ΔV sin(Ση)/Σ, a smooth function of Σ² = the eigenvalues of the
    # small ΔᵀΔ: the paper's geodesic without the decomposition of a tall matrix.
    squares, v = np.linalg.eigh(delta.T @ delta)
    sigma = np.sqrt(np.maximum(squares, 0.0))
    along = (v * np.cos(sigma * step)) @ v.T
    across = (v * (step * np.sinc(sigma * step / np.pi))) @ v.T
    return basis @ along + delta @ across


def learn_by_grouse(
    problem: Problem,
    bases: Array,
    rules: Rules,
    *,
    step_size: float,
    n_sweeps: int,
    weighted: bool = True,
    monitor: Monitor | None = None,
) -> Solution:
    """Run Algorithm 3 from one start.

    F2 is recorded after each assignment. Nothing guarantees that it falls: the step size decides.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    step_size : float
        η, divided by t in the t-th sweep.
    n_sweeps : int
        Number of sweeps between two assignments.
    weighted : bool, default=True
        Whether samples with few observed entries take longer steps, m/|Ω_i| times as long.
    """
    bases = np.array(bases, dtype=np.float64)
    assert isinstance(problem.rows, ArrayRows)
    block = problem.rows.block
    assert isinstance(block, MaskedBlock)
    values = np.ascontiguousarray(block.values, dtype=np.float64)
    # Without the closeness term (λ=∞, k-GROUSE) the step size is that of the data alone.
    no_closeness = math.isinf(problem.lam)
    weight = 1.0 if no_closeness else problem.lam
    steps = np.full(len(values), weight * step_size)
    if weighted:
        steps *= np.asarray(block.weights, dtype=np.float64)
    history: list[float] = []
    stopped = "max_iter"
    for iteration in range(rules.max_iter + 1):
        labels, sums = problem.assign(bases[None], with_products=False)
        history.append(float(problem.objective(bases[None], sums.energy)[0]))
        settled = iteration > 0 and abs(history[-2] - history[-1]) <= rules.tol * abs(history[-1])
        stop_asked = monitor is not None and monitor(0, iteration, history[-1], bases)
        if settled or stop_asked:
            stopped = "converged" if settled else "callback"
        if settled or stop_asked or iteration == rules.max_iter:
            break
        for p in range(len(bases)):
            members = np.flatnonzero(labels[:, 0] == p)
            others = np.delete(bases, p, axis=0).transpose(1, 0, 2).reshape(bases.shape[1], -1)
            basis = bases[p].copy()
            for t in range(1, n_sweeps + 1):
                if not no_closeness:
                    basis = closeness_step(basis, others, step_size / t)
                columns = np.ascontiguousarray(basis.T)
                sweep(columns, values, block.missing, members, steps / t)
                basis = columns.T
            bases[p] = basis
    return Solution(
        frames=bases.astype(block.values.dtype),
        labels=labels[:, 0],
        counts=sums.counts[0],
        objective=history[-1],
        criterion=history[-1],
        history=tuple(history),
        n_iter=iteration,
        stopped=stopped,
    )


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
