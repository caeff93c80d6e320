"""Algorithm 5 (MC-KUSaL): alternate assignment and update in the feature space."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, members_of, moved_to, namespace, to_numpy
from polyspan.base.progress import Monitor
from polyspan.geometry.matrices import submatrix
from polyspan.kernel._solve.subspaces import (
    Factor,
    KernelSubspaces,
    leading_directions,
    squared_distance,
    updated_directions,
)
from polyspan.linear._solve.shape import ObjectiveWeights

# Objectives that differ by less than this fraction differ by rounding.
SAME_OBJECTIVE = 1e-9


@dataclass(frozen=True)
class KernelRules:
    """Number and dimension of the subspaces, weight λ, and stopping rules of the two loops."""

    n_subspaces: int
    subspace_dim: int
    lam: float
    max_iter: int = 100
    """Outer iterations: assignment, bases, update."""
    tol: float = 1e-6
    """Outer: stop when no label changes, or F3 changes by no more than this fraction."""
    max_update_iter: int = 50
    """Inner iterations; each updates every subspace once."""
    update_tol: float = 1e-6
    """Inner: stop when f3 falls by no more than this fraction."""
    floor: float = 0.0
    """Eigenvalues of G̃ up to this value are rounding errors of the matrix before centring."""


@dataclass(frozen=True)
class KernelSolution:
    """Result of one run."""

    subspaces: KernelSubspaces
    labels: Array
    """Subspace of every sample; None where the rows are not in memory."""
    objective: float
    """F3 at these labels and subspaces: the lowest of `history`, up to rounding."""
    history: tuple[float, ...]
    """F3 after every assignment."""
    update_histories: tuple[tuple[float, ...], ...]
    """f3 (F3 with the labels fixed) at the start of every update loop and after each of its
    iterations; never rises within a loop."""
    n_iter: int
    stopped: str
    """Why: "converged", "max_iter", "callback", or "cycle" where labels came back."""
    criterion: float = math.nan
    """What starts are compared by: F3, or the sum of leave-one-out residuals."""
    counts: Any = None
    """Samples per subspace."""
    learned: Any = None
    """The subspaces in the form that `union` and `distances` of the problem take."""


def objective(G: Array, subspaces: KernelSubspaces, labels: Array, lam: float) -> float:
    """Return F3; for λ=∞ the sum of squared residuals."""
    xp = namespace(G)
    energy = subspaces.energies(G)
    captured = xp.take_along_axis(energy, labels[:, None], axis=1)[:, 0]
    residual = max(float(xp.sum(xp.linalg.diagonal(G) - captured)), 0.0)
    return residual if math.isinf(lam) else subspaces.closeness(G) + lam * residual


def fit_bases(
    G: Array, labels: Array, rules: KernelRules, sample_weights: Array | None = None
) -> tuple[KernelSubspaces, tuple[float, ...]]:
    """Find the bases for given labels: steps 9 to 20 of Algorithm 5.

    Returns the subspaces, and f3 at the start and after every inner iteration. `sample_weights`
    are those that G was scaled by.
    """
    weights = ObjectiveWeights.of(rules.lam)
    members = members_of(labels, rules.n_subspaces)
    factors = [
        Factor.of(submatrix(G, c, c), rules.floor, thin=_repeated(sample_weights, c))
        for c in members
    ]
    U = [leading_directions(f, rules.subspace_dim) for f in factors]
    E = [f.coefficients(u) for f, u in zip(factors, U, strict=True)]
    # G̃_lp for all pairs: gathered once, used in every inner iteration.
    between = {
        (a, b): submatrix(G, members[a], members[b])
        for a in range(rules.n_subspaces)
        for b in range(rules.n_subspaces)
        if a != b and weights.closeness
    }
    history = [_fixed_labels_objective(factors, between, U, E, rules)]
    for _ in range(rules.max_update_iter if between else 0):
        for a, factor in enumerate(factors):
            others = [factor.whiten(between[a, b] @ e) for b, e in enumerate(E) if b != a]
            U[a] = updated_directions(factor, others, weights, U[a])
            E[a] = factor.coefficients(U[a])
        history.append(_fixed_labels_objective(factors, between, U, E, rules))
        if history[-2] - history[-1] <= rules.update_tol * abs(history[-1]):
            break
    return KernelSubspaces(members, E), tuple(history)


def _repeated(sample_weights: Array | None, members: Array) -> bool:
    """Tell whether some members have another weight than 1.

    The matrix of a cluster with repeated samples is singular, and its eigenvectors leave out all
    directions near rounding. With weights the same directions must be left out.
    """
    if sample_weights is None:
        return False
    xp = namespace(sample_weights)
    return bool(xp.any(xp.take(sample_weights, members, axis=0) != 1))


def _fixed_labels_objective(
    factors: list[Factor],
    between: dict[tuple[int, int], Array],
    U: list[Array],
    E: list[Array],
    rules: KernelRules,
) -> float:
    """Return f3, the objective F3 with the labels fixed."""
    residual = 0.0
    for factor, u in zip(factors, U, strict=True):
        xp = namespace(u)
        captured = xp.sum(u * (factor.gram @ u))
        residual += float(xp.sum(xp.linalg.diagonal(factor.gram)) - captured)
    residual = max(residual, 0.0)
    if not between:
        return residual if math.isinf(rules.lam) else rules.lam * residual
    pairs = ((a, b) for a, b in between if a < b)
    close = sum(squared_distance(E[a], between[a, b], E[b]) for a, b in pairs)
    return 2.0 * close + rules.lam * residual


def alternate(
    G: Array,
    start: KernelSubspaces | Array,
    rules: KernelRules,
    sample_weights: Array | None = None,
    monitor: Monitor | None = None,
) -> KernelSolution:
    """Run Algorithm 5 on a centred kernel matrix, from subspaces or from labels.

    The run is over when an assignment leaves all labels as they were: the bases are then those of
    these labels. F3 never rises inside an update loop. The bases that the loop starts from are new
    ones, so F3 may rise from one assignment to the next, and labels may come back, which ends the
    run too. The lowest iterate is returned, and the last one where the two differ by rounding.
    """
    xp = namespace(G)
    history: list[float] = []
    updates: list[tuple[float, ...]] = []
    labels: Array | None = None
    if isinstance(start, KernelSubspaces):
        subspaces = start
    else:
        labels = moved_to(start, G)
        subspaces, inner = fit_bases(G, labels, rules, sample_weights)
        updates.append(inner)
    stopped, lowest = "max_iter", (math.inf, subspaces, labels)
    seen: set[bytes] = set()
    for iteration in range(rules.max_iter + 1):
        assigned = xp.argmax(subspaces.energies(G), axis=1)
        history.append(objective(G, subspaces, assigned, rules.lam))
        same = labels is not None and bool(xp.all(assigned == labels))
        small = len(history) > 1 and (
            abs(history[-2] - history[-1]) <= rules.tol * abs(history[-1]) and rules.tol > 0
        )
        labels = assigned
        if history[-1] <= lowest[0] + SAME_OBJECTIVE * abs(lowest[0]):
            lowest = (history[-1], subspaces, labels)
        asked = monitor is not None and monitor(0, iteration, history[-1], subspaces)
        # Bases depend on labels alone: where labels come back, so does all that followed them.
        before = to_numpy(labels).tobytes()
        cycle = before in seen
        seen.add(before)
        if same or small or asked or cycle:
            stopped = "converged" if same or small else "callback" if asked else "cycle"
            break
        if iteration < rules.max_iter:
            subspaces, inner = fit_bases(G, labels, rules, sample_weights)
            updates.append(inner)
    value, subspaces, labels = lowest if math.isfinite(lowest[0]) else (math.nan, subspaces, labels)
    return KernelSolution(
        subspaces, labels, value, tuple(history), tuple(updates), iteration, stopped
    )


def refill_empty(
    G: Array,
    solution: KernelSolution,
    rules: KernelRules,
    sample_weights: Array | None = None,
    monitor: Monitor | None = None,
) -> KernelSolution:
    """Give empty subspaces the samples with the largest residuals and run again; keep the better.

    Where the objective of the new run is above that of the old one, the history has the old value.
    """
    xp = namespace(G)
    own = np.ones(G.shape[0]) if sample_weights is None else to_numpy(sample_weights)
    for _ in range(rules.n_subspaces):
        counts = np.bincount(to_numpy(solution.labels), minlength=rules.n_subspaces)
        empty = np.flatnonzero(counts == 0)
        if not len(empty) or solution.stopped != "converged":
            break
        energies = xp.max(solution.subspaces.energies(G), axis=1)
        residuals = to_numpy(xp.linalg.diagonal(G) - energies)
        worst = np.argsort(residuals / own)[::-1]
        size = _size_of_empty(own[worst], len(empty), rules)
        labels = to_numpy(solution.labels).copy()
        for k, p in enumerate(empty):
            labels[worst[k :: len(empty)][:size]] = p
        resumed = alternate(G, labels, rules, sample_weights, monitor)
        if not resumed.objective < solution.objective:
            break
        reached = tuple(min(value, solution.objective) for value in resumed.history)
        solution = replace(
            resumed,
            history=(*solution.history, *reached),
            update_histories=(*solution.update_histories, *resumed.update_histories),
            n_iter=solution.n_iter + resumed.n_iter,
        )
    return solution


def _size_of_empty(weights: np.ndarray, n_empty: int, rules: KernelRules) -> int:
    """Return how many samples an empty subspace gets, given weights from the worst sample on.

    Together they have the weight W/(2L) per empty subspace.
    """
    share = weights.sum() / (2 * rules.n_subspaces)
    n_worst = int(np.searchsorted(np.cumsum(weights), n_empty * share, side="right"))
    return max(rules.subspace_dim, n_worst // n_empty)
