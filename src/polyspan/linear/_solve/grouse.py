"""Algorithm 3 (rMiCUSaL) as printed: incremental gradient descent on the Grassmann manifold.

The sweep over samples is compiled, in `grouse_sweep.py`, which is imported when a fit calls it:
numba takes a second to load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from polyspan.base.arrays import Array
from polyspan.data.rows import ArrayRows
from polyspan.linear._solve.alternation import Solution
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.problem import Monitor, Problem


@dataclass(frozen=True)
class GrouseRules:
    """The step size η, divided by t in the t-th sweep, and the numbers of iterations."""

    step_size: float
    n_sweeps: int
    max_iter: int
    tol: float
    weighted: bool = True
    """Whether samples with few observed entries take longer steps, m/|Ω_i| times as long."""


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
    problem: Problem, bases: Array, rules: GrouseRules, *, monitor: Monitor | None = None
) -> Solution:
    """Run Algorithm 3 from one start.

    F2 is recorded after each assignment. Nothing guarantees that it falls: the step size decides.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    """
    from polyspan.linear._solve.grouse_sweep import sweep

    bases = np.array(bases, dtype=np.float64)
    assert isinstance(problem.rows, ArrayRows)
    block = problem.rows.block
    assert isinstance(block, MaskedBlock)
    values = np.ascontiguousarray(block.values, dtype=np.float64)
    # Without the closeness term (λ=∞, k-GROUSE) the step size is that of the data alone.
    no_closeness = math.isinf(problem.lam)
    weight = 1.0 if no_closeness else problem.lam
    steps = np.full(len(values), weight * rules.step_size)
    if rules.weighted:
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
            for t in range(1, rules.n_sweeps + 1):
                if not no_closeness:
                    basis = closeness_step(basis, others, rules.step_size / t)
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
