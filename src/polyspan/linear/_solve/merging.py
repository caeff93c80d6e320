"""Algorithm 2 (aMiCUSaL): prune empty subspaces, merge close ones, estimate the dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.progress import Monitor
from polyspan.geometry.dimension import neighbour_estimate
from polyspan.geometry.distances import distances_between
from polyspan.linear._solve.alternation import Rules, Solution, alternate, update_exactly
from polyspan.linear._solve.exact import MemberRows, exact_basis
from polyspan.linear._solve.observation import CompleteBlock
from polyspan.linear._solve.problem import Problem


@dataclass(frozen=True)
class Merge:
    """One step that removed a subspace."""

    kind: str
    """"prune" (no sample had chosen it) or "merge" (it was too close to another)."""
    n_left: int
    """Subspaces left afterwards."""
    distance: float
    """Normalised distance of the merged pair; NaN for a pruned one."""


def learn_adaptively(
    problem: Problem,
    bases: np.ndarray,
    rules: Rules,
    *,
    merge_threshold: float,
    k1: int,
    k2: int,
    monitor: Monitor | None = None,
) -> Solution:
    """Run Algorithm 2 from one start of L_max bases of dimension s_max.

    Incomplete data go through the same steps on samples that are filled anew before each update.

    Parameters
    ----------
    bases : array of shape (max_subspaces, n_features, max_dim)
    merge_threshold : float
        Normalised distance up to which two subspaces are merged.
    k1, k2 : int
        Smallest and largest number of neighbours in the estimate of dimensions.
    """
    merges: list[Merge] = []
    bases, labels = _learn_and_prune(problem, bases, rules, merges, monitor)
    bases = _merge_close(problem, bases, labels, merge_threshold, merges)
    assigned, _ = problem.assign(bases[None], with_products=False)
    dimensions = _dimensions(problem, bases, assigned[:, 0], k1, k2)
    s = _chosen_dimension(dimensions, bases.shape[2])
    solver = "exact" if isinstance(problem.counted_block(bases), CompleteBlock) else "power"
    (solution,) = alternate(problem, bases[None, :, :, :s], replace(rules, solver=solver))
    return replace(solution, merges=tuple(merges), dimensions=tuple(dimensions))


def _learn_and_prune(
    problem: Problem,
    bases: np.ndarray,
    rules: Rules,
    merges: list[Merge],
    monitor: Monitor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Alternate as Algorithm 1 does, dropping subspaces without samples (steps 2 to 10)."""
    previous = math.inf
    for iteration in range(rules.max_iter):
        assigned, sums = problem.assign(bases[None], with_products=False)
        labels, counts = assigned[:, 0], sums.counts[0]
        value = float(problem.objective(bases[None], sums.energy, sums.squares)[0])
        stop_asked = monitor is not None and monitor(0, iteration, value, bases)
        alive = np.flatnonzero(counts)
        if len(alive) < len(bases):
            for n_left in range(len(bases) - 1, len(alive) - 1, -1):
                merges.append(Merge("prune", n_left, math.nan))
            labels = np.searchsorted(alive, labels)
            bases = bases[alive]
            previous = math.inf  # the closeness term has lost its part of the pruned ones
        elif stop_asked or previous - value <= rules.tol * abs(value):
            break
        previous = min(previous, value)
        # Columns in the order of their eigenvalues, as the trimming needs them.
        bases = update_exactly(problem, bases, labels[:, None], 0)
    return bases, labels


def _merge_close(
    problem: Problem,
    bases: np.ndarray,
    labels: np.ndarray,
    threshold: float,
    merges: list[Merge],
) -> np.ndarray:
    """Merge the closest pair while it is within the threshold (steps 11 to 16)."""
    labels = labels.copy()
    while len(bases) > 1:
        distances = distances_between(bases) / math.sqrt(bases.shape[2])
        np.fill_diagonal(distances, np.inf)
        first, second = sorted(np.unravel_index(np.argmin(distances), distances.shape))
        if distances[first, second] > threshold:
            break
        block = problem.counted_block(bases)
        labels[labels == second] = first
        complete, weights = block.completed(bases, None, labels)
        labels[labels > second] -= 1
        bases = np.delete(bases, second, axis=0)
        members = MemberRows(complete, weights, labels)
        bases[first] = exact_basis(members, bases, int(first), None, problem.weights)
        merges.append(Merge("merge", len(bases), float(distances[first, second])))
    return bases


def _dimensions(
    problem: Problem, bases: np.ndarray, labels: np.ndarray, k1: int, k2: int
) -> list[float]:
    """Estimate the dimension of the projected members of every subspace (steps 17 to 21).

    Distances between projections D_lD_lᵀy are those between their coefficients D_lᵀy.
    """
    block = problem.counted_block(bases)
    coefficients = block.assigned_coefficients(bases, labels)
    if problem.trim:
        labels = np.where(block.sample_weights[0] > 0, labels, -1)
    return [
        neighbour_estimate(coefficients[labels == p], k1, k2)[0]
        if (labels == p).sum() > 1
        else math.nan
        for p in range(len(bases))
    ]


def _chosen_dimension(dimensions: list[float], max_dim: int) -> int:
    """Return the largest estimate, rounded, between 1 and max_dim; max_dim if there is none."""
    known = [d for d in dimensions if not math.isnan(d)]
    return min(max_dim, max(1, round(max(known)))) if known else max_dim


def most_frequent_size(solutions: list[Any]) -> list[Any]:
    """Keep the runs whose number of subspaces came out most often (of ties the smaller)."""
    sizes = [len(solution.frames) for solution in solutions]
    common = max(sorted(set(sizes)), key=sizes.count)
    return [solution for solution in solutions if len(solution.frames) == common]
