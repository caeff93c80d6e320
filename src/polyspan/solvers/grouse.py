"""Algorithm 3 (rMiCUSaL) to the letter: incremental gradient descent on the Grassmann manifold.

Numba compiles the sweep over samples; nothing else imports it. Each sample tilts the basis by a
rank-one step, so the sweep is sequential by nature and gains nothing from matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from polyspan.arrays import Array
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.problem import Monitor, Solution


@dataclass(frozen=True)
class GrouseRules:
    """The step size η, divided by t in the t-th sweep, and how often to go round."""

    step_size: float
    n_sweeps: int
    max_iter: int
    tol: float


@numba.njit(cache=True)
def sweep(  # noqa: C901 - one pass of plain loops, which is what compiles well
    basis: Any, values: Any, missing: Any, members: Any, steps: Any
) -> None:  # pragma: no cover - compiled; its plain twin is sweep.py_func
    """Take one rank-one step for every member, in place (Algorithm 3, steps 12 to 16).

    Parameters
    ----------
    basis : array of shape (n_features, subspace_dim)
        Orthonormal; tilted in place.
    values : array of shape (n_samples, n_features)
        Zeros where missing.
    missing : boolean array of shape (n_samples, n_features)
    members : int array
        Rows to visit, in this order.
    steps : array of shape (n_samples,)
        λ m η_t / |Ω_i| of every sample.
    """
    m, s = basis.shape
    gram = np.empty((s, s))
    theta = np.empty(s)
    omega = np.empty(m)
    residual = np.empty(m)
    for i in members:
        y, hole = values[i], missing[i]
        n_missing = 0
        for j in range(m):
            n_missing += hole[j]
        # D is orthonormal: the Gram matrix over the observed rows is I minus that over the
        # missing ones, whichever are fewer.
        by_missing = 2 * n_missing < m
        gram[:] = 0.0
        theta[:] = 0.0
        for j in range(m):
            if hole[j] == by_missing:
                for a in range(s):
                    for b in range(a + 1):
                        gram[a, b] += basis[j, a] * basis[j, b]
            if not hole[j]:
                for a in range(s):
                    theta[a] += basis[j, a] * y[j]
        if by_missing:
            for a in range(s):
                for b in range(a + 1):
                    gram[a, b] = -gram[a, b]
                gram[a, a] += 1.0
        # Cholesky in the lower triangle, then two triangular solves in place.
        for a in range(s):
            for b in range(a):
                x = gram[a, b]
                for k in range(b):
                    x -= gram[a, k] * gram[b, k]
                gram[a, b] = x / gram[b, b]
            x = gram[a, a]
            for k in range(a):
                x -= gram[a, k] * gram[a, k]
            gram[a, a] = np.sqrt(max(x, 1e-300))
        for a in range(s):
            x = theta[a]
            for k in range(a):
                x -= gram[a, k] * theta[k]
            theta[a] = x / gram[a, a]
        for a in range(s - 1, -1, -1):
            x = theta[a]
            for k in range(a + 1, s):
                x -= gram[k, a] * theta[k]
            theta[a] = x / gram[a, a]
        omega_norm, residual_norm, theta_norm = 0.0, 0.0, 0.0
        for j in range(m):
            x = 0.0
            for a in range(s):
                x += basis[j, a] * theta[a]
            omega[j] = x
            omega_norm += x * x
            residual[j] = 0.0 if hole[j] else y[j] - x
            residual_norm += residual[j] * residual[j]
        for a in range(s):
            theta_norm += theta[a] * theta[a]
        omega_norm, residual_norm = np.sqrt(omega_norm), np.sqrt(residual_norm)
        theta_norm = np.sqrt(theta_norm)
        if omega_norm == 0.0 or residual_norm == 0.0 or theta_norm == 0.0:
            continue
        angle = residual_norm * omega_norm * steps[i]
        along = (np.cos(angle) - 1.0) / omega_norm
        across = np.sin(angle) / residual_norm
        for j in range(m):
            x = (along * omega[j] + across * residual[j]) / theta_norm
            for a in range(s):
                basis[j, a] += x * theta[a]


def closeness_step(basis: Array, others: list[Array], step: float) -> Array:
    """Move along the geodesic that brings the basis nearer to the others (steps 10 and 11)."""
    if not others:
        return basis
    pulled = sum(other @ (other.T @ basis) for other in others)
    delta = 2.0 * (pulled - basis @ (basis.T @ pulled))
    u, sigma, vt = np.linalg.svd(delta, full_matrices=False)
    turned = (basis @ vt.T) * np.cos(sigma * step) + u * np.sin(sigma * step)
    return turned @ vt


def learn_by_grouse(
    problem: MaskedProblem, bases: Array, rules: GrouseRules, *, monitor: Monitor | None = None
) -> Solution:
    """Run Algorithm 3 from one start.

    F2 is recorded after each assignment. Nothing guarantees that it falls: the step size decides.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    """
    bases = np.array(bases, dtype=np.float64)
    values = np.ascontiguousarray(problem.rows.X, dtype=np.float64)
    assert problem.missing is not None
    assert problem.weights is not None
    steps = problem.lam * rules.step_size * np.asarray(problem.weights, dtype=np.float64)
    history: list[float] = []
    stopped = "max_iter"
    for iteration in range(rules.max_iter + 1):
        labels, sums = problem.assign(bases[None], with_products=False)
        history.append(float(problem.objective(bases[None], sums.energy)[0]))
        settled = iteration > 0 and abs(history[-2] - history[-1]) <= rules.tol * abs(history[-1])
        asked = monitor is not None and monitor(0, iteration, history[-1], bases)
        if settled or asked:
            stopped = "converged" if settled else "callback"
        if settled or asked or iteration == rules.max_iter:
            break
        for p in range(len(bases)):
            members = np.flatnonzero(labels[:, 0] == p)
            others = [bases[q] for q in range(len(bases)) if q != p]
            basis = bases[p].copy()
            for t in range(1, rules.n_sweeps + 1):
                basis = np.ascontiguousarray(closeness_step(basis, others, rules.step_size / t))
                sweep(basis, values, problem.missing, members, steps / t)
            bases[p] = basis
    return Solution(
        bases=bases.astype(problem.rows.X.dtype),
        labels=labels[:, 0],
        counts=sums.counts[0],
        objective=history[-1],
        criterion=history[-1],
        history=tuple(history),
        n_iter=iteration,
        stopped=stopped,
    )
