"""Deterministic annealing, which finds a good optimum of F1 from one start.

The hard alternation ends in poor local minima. Here every sample belongs to every subspace with a
responsibility ∝ exp(-r/τ), and τ falls geometrically until these are hard. At fixed τ each step
lowers the free energy F1(responsibilities) + λτ Σ w log w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyspan.base.arrays import Array, moved_to, namespace
from polyspan.linear._solve.problem import Monitor, Problem
from polyspan.linear._solve.shape import Linear

# The pooled residual is only a unit of temperature: a few steps settle it to a percent.
POOLED_STEPS = 8


def pooled_residual(problem: Problem, start: Array) -> tuple[float, Array, Array]:
    """Return the mean squared residual to one pooled subspace, its Ritz values and its basis.

    Parameters
    ----------
    start : array of shape (n_features, subspace_dim)
    """
    xp = namespace(start)
    single = replace(problem, shape=Linear(), lam=math.inf)
    bases, weights = start[None, None, ...], single.weights
    for _ in range(POOLED_STEPS):
        _, sums = single.assign(bases, with_products=True, keep=False)
        bases = single.shape.step(bases, sums, weights)
    _, sums = single.assign(bases, with_products=True, keep=False)
    assert sums.products is not None
    inside = bases[0, 0, ...].mT @ sums.products[0, 0, ...]
    total, n = problem.total, problem.n_samples
    if sums.squares is not None:  # some samples take no part
        total, n = float(sums.squares[0]), float(xp.sum(sums.counts))
    residual = max(total - float(sums.energy[0]), 0.0) / n
    if problem.shape.dims is None:
        return residual, xp.linalg.eigvalsh(inside), bases[0, 0, ...]
    # Subspaces of lower dimension have the first columns: the leading directions.
    ritz, vectors = xp.linalg.eigh((inside + inside.mT) / 2.0)
    return residual, ritz, bases[0, 0, ...] @ xp.flip(vectors, axis=1)


def temperatures(unit: float, hottest: float, coldest: float, n_steps: int) -> list[float]:
    """Return a geometric schedule from hottest·unit down to coldest·unit."""
    if n_steps == 1:
        return [coldest * unit]
    ratio = (coldest / hottest) ** (1.0 / (n_steps - 1))
    return [unit * hottest * ratio**k for k in range(n_steps)]


def anneal(
    problem: Problem,
    frames: Array,
    schedule: Sequence[float],
    *,
    leave_one_out: bool = False,
    monitor: Monitor | None = None,
) -> tuple[Array, Array]:
    """Lower the temperature once through the schedule, one power step at each.

    Parameters
    ----------
    frames : array of shape (n_starts, n_subspaces, n_features, n_columns)
    schedule : sequence of float
        Temperatures τ in units of squared residuals.

    Returns
    -------
    frames : array of the same shape
    free_energy : float64 array of shape (len(schedule), n_starts)
        Before each step, at its temperature; NaN after the monitor has stopped a start, which then
        stays where it is.
    """
    xp, stopped = namespace(frames), np.zeros(frames.shape[0], dtype=bool)
    shape, weights = problem.shape, problem.weights
    factor = 1.0 if math.isinf(problem.lam) else problem.lam
    history, kept = [], None
    for step, temperature in enumerate(schedule):
        kept, sums = problem.soft_assign(frames, temperature, before=kept, keep=leave_one_out)
        value = problem.objective(frames, sums.energy, sums.squares)
        free = value + factor * temperature * sums.entropy
        history.append(free)
        stepped = shape.step(frames, sums, weights)
        if stopped.any():
            over = moved_to(stopped, frames)
            stepped = xp.where(over[:, None, None, None], frames, stepped)
            history[-1] = xp.where(over, xp.full_like(free, math.nan), free)
        frames = stepped
        if monitor is not None:
            for r in np.flatnonzero(~stopped).tolist():
                stopped[r] = monitor(r, step, float(free[r]), frames[r, ...])
            if stopped.all():
                break
    return frames, xp.stack(history)
