"""Deterministic annealing, which often finds a far better optimum of F1 than a random start.

The hard alternation ends in poor local minima. Here every sample belongs to every subspace with a
responsibility ∝ exp(-r/τ), and τ falls geometrically until these are hard. At fixed τ each step
lowers the free energy F1(responsibilities) + λτ Σ w log w.

With subspaces of different dimension this fails. At a high temperature all subspaces hold the same
leading directions, and the largest explains every sample best; it keeps a mixture of clusters,
which the small ones cannot take from it. So clusters are found with one dimension for all, and
dimensions are given out afterwards, by the spectra of the clusters. No common dimension is best for
all data: each one in `levels` is tried, also raised from one level to the next, and the start from
which the alternation ends lowest is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyspan.base.arrays import Array, float64_sum, moved_to, namespace, to_numpy
from polyspan.base.progress import Monitor
from polyspan.geometry.bases import zero_padded
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.problem import Problem
from polyspan.linear._solve.shape import Linear, ObjectiveWeights, join
from polyspan.linear._solve.sums import Sums, member_mask, sum_chunks, weighted

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
        Temperatures τ in units of squared residuals; without any the frames stay as they are.

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
    return frames, xp.stack(history) if history else xp.zeros((0, frames.shape[0]))


# Common dimensions that are tried: all different ones, or this many of them.
MOST_LEVELS = 3
# Power steps towards the leading directions of given clusters: a start needs no more digits.
LEADING_STEPS = 8
# Alternations that only compare starts; and exchanges of dimensions after each.
SEARCH = Rules("power", max_iter=100, tol=1e-5)
MOST_EXCHANGES = 3


def levels(dims: tuple[int, ...]) -> list[int]:
    """Return the common dimensions to try, ascending: the different ones, or some among them."""
    different = sorted(set(dims))
    which = np.linspace(0, len(different) - 1, min(MOST_LEVELS, len(different)))
    return [different[round(k)] for k in which]


def units_of_levels(
    dims: tuple[int, ...], residual: float, ritz: Array, n: float
) -> dict[int, float]:
    """Return the unit of temperature of every level, the mean residual to one pooled subspace.

    Parameters
    ----------
    residual : float
        To the pooled subspace of the largest dimension.
    ritz : array of shape (largest dimension,)
        Its Ritz values, ascending.
    n : float
        Number of samples.
    """
    values = to_numpy(ritz)
    return {dim: residual + float(values[: len(values) - dim].sum()) / n for dim in levels(dims)}


def annealed_starts(
    problem: Problem,
    frames: Array,
    schedules: dict[int, list[float]],
    *,
    monitor: Monitor | None = None,
) -> tuple[Array, np.ndarray]:
    """Return starts whose clusters were found by annealing with a common dimension.

    Parameters
    ----------
    frames : array of shape (n_starts, n_subspaces, n_features, n_columns)
        Drawn starts; the bases have all columns, those of every subspace the largest dimension.
    schedules : dict
        Temperatures by common dimension, the levels in ascending order.
    monitor : callable, default=None
        Sees every step of every annealing, with frames of the common dimension.

    Returns
    -------
    frames : array of the same shape
        Columns beyond the dimension of a subspace are zero.
    free_energy : float64 array of shape (n_temperatures, n_starts)
        Of the annealing that led to every start.
    """
    xp, best = namespace(frames), frames
    lowest = np.full(frames.shape[0], np.inf)
    free_energies = np.full((1, frames.shape[0]), np.nan)
    for (clusters, energies), free_energy in _clusterings(problem, frames, schedules, monitor):
        starts = _matched(problem, clusters, energies)
        for _ in range(MOST_EXCHANGES):
            labels, objective = _alternated(problem, starts)
            # Of two starts that end in one optimum the first is kept.
            lower = objective < lowest * (1.0 - SEARCH.tol)
            if not lower.any():
                break
            best = xp.where(moved_to(lower, frames)[:, None, None, None], starts, best)
            free_energies = np.where(lower, free_energy, free_energies)
            lowest = np.where(lower, objective, lowest)
            starts = _matched(problem, *_leading(problem, frames, labels))
    return best, free_energies


def _clusterings(
    problem: Problem, frames: Array, schedules: dict[int, list[float]], monitor: Monitor | None
) -> Iterator[tuple[tuple[Array, Array], np.ndarray]]:
    """Yield clusters found with common dimensions, and the free energies behind them.

    When a callback stops one annealing, the levels that were annealed before it are enough.
    """
    common = replace(problem, shape=replace(problem.shape, dims=None))
    each = list(schedules)
    for i, (first, schedule) in enumerate(schedules.items()):
        start = _narrowed(problem, frames, first)
        narrow, free_energy = anneal(common, start, schedule, monitor=monitor)
        stopped = free_energy.shape[0] < len(schedule)
        if stopped and i:
            break
        # A cluster may be raised to the levels above, but for the largest: there is its own.
        for above in [*each[i + 1 : -1], None]:
            labels, _ = _alternated(common, narrow)
            clusters = _leading(problem, frames, labels)
            yield clusters, to_numpy(free_energy)
            if above is not None:
                narrow = _narrowed(problem, clusters[0], above)
        if stopped:
            break


def _alternated(problem: Problem, frames: Array) -> tuple[Any, np.ndarray]:
    """Return labels, which stay where the rows are, and objectives of converged runs."""
    found = alternate(problem, frames, SEARCH)
    reached = namespace(frames).stack([solution.frames for solution in found])
    labels, _ = problem.assign(reached, with_products=False)
    return labels, np.array([solution.objective for solution in found])


def _narrowed(problem: Problem, frames: Array, dim: int) -> Array:
    """Return frames with the first columns of their bases alone."""
    bases, points = problem.shape.split(frames)
    return join(bases[..., :dim], points)


def _matched(problem: Problem, frames: Array, energies: Array) -> Array:
    """Return frames in which every cluster has the dimension that suits it.

    Together they explain the most of all ways to give out the dimensions. Frames and energies are
    those of `_leading`.
    """
    xp, dims = namespace(frames), problem.shape.dims or ()
    explained = np.cumsum(to_numpy(energies), axis=-1)
    explained = np.concatenate([np.zeros_like(explained[..., :1]), explained], axis=-1)
    starts = []
    for r, cluster_by_dim in enumerate(explained[..., list(dims)]):
        clusters, slots = linear_sum_assignment(cluster_by_dim, maximize=True)
        order = moved_to(clusters[np.argsort(slots)], frames)
        starts.append(xp.take(frames[r, ...], order, axis=0))
    bases, points = problem.shape.split(xp.stack(starts))
    return join(zero_padded(bases, dims), points)


def _leading(problem: Problem, frames: Array, labels: Any) -> tuple[Array, Array]:
    """Find the leading directions of the members of every cluster, by power steps.

    There are as many as the largest subspace has. Also return what every direction explains,
    descending: (n_starts, n_subspaces, most_dims).

    Parameters
    ----------
    frames : array of shape (n_starts, n_subspaces, n_features, n_columns)
        Where to begin.
    labels : array of shape (n_rows, n_starts), where the rows are
    """
    xp, rows = namespace(frames), problem.rows
    shape, alone = replace(problem.shape, dims=None), ObjectiveWeights.of(float("inf"))
    for _ in range(LEADING_STEPS):
        sums, _ = rows.reduce(member_sums_block, frames, shape, labels, problem.trim)
        frames = shape.step(frames, sums, alone)
    sums, _ = rows.reduce(member_sums_block, frames, shape, labels, problem.trim)
    bases, points = shape.split(frames)
    products = sums.products
    if points is not None:
        products = products - points[..., None] * sums.coefficients[..., None, :]
    inside = bases.mT @ products
    values, vectors = xp.linalg.eigh((inside + inside.mT) / 2.0)
    directions = join(bases @ xp.flip(vectors, axis=-1), points)
    return directions, xp.flip(xp.clip(values, 0.0), axis=-1)


def member_sums_block(
    block: Any, frames: Array, shape: Any, labels: Array, trim: float = 0.0
) -> tuple[Sums, None]:
    """Sum what a power step needs over members that are given. A task.

    `labels` has the shape (n_rows, n_starts); `trim` is that of `assign_block`.
    """

    def given(fit: Any, weights: Array | None) -> tuple[Sums, None]:
        own = labels[fit.which, :].mT
        members = weighted(member_mask(own, frames.shape[1], frames.dtype), weights, axis=1)
        energy = float64_sum(members * fit.gains, axis=(1, 2))
        counts = namespace(frames).sum(members, axis=2)
        return Sums(counts, energy, **fit.member_sums(own, weights)), None

    return sum_chunks(block, frames, shape, given, trim)[0], None
