"""Starts and runs of the kernel models: pure steps between a kernel matrix and a solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.arrays import (
    Array,
    machine_epsilon,
    namespace,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.geometry import leading_rank, symmetric_eigen
from polyspan.solvers.kernel import (
    KernelMonitor,
    KernelRules,
    KernelSolution,
    fit_bases,
    gkiop,
    learn_kernel_subspaces,
    objective,
    refill_empty,
)
from polyspan.solvers.kernel_leave_one_out import leave_one_out_labels
from polyspan.solvers.kernel_subspaces import KernelSubspaces
from polyspan.solvers.spectral_start import feature_distances, spectral_labels

# Eigenvalues of the kernel matrix below this share of the largest are rounding.
RANK_TOL = 1e-10


@dataclass(frozen=True)
class KernelRun:
    """What one start of a kernel model reached."""

    objective: float
    """F3 at its labels."""
    labels: Array
    criterion: float
    """What starts are compared by: F3, or the sum of leave-one-out residuals."""
    converged: bool


@dataclass(frozen=True)
class StartPlan:
    """Where the starts of a fit come from."""

    init: str
    """"gkiop", "spectral" or "labels"."""
    n_subspaces: int
    n_neighbors: int
    given: np.ndarray | None
    """Labels, or seeds of GKIOP, that the user gave."""
    distances: np.ndarray | None = None
    """Between the samples, for "spectral"; None: those of the kernel matrix."""

    def start(self, G: Array, rules: KernelRules, seed: int) -> KernelSubspaces | Array:
        """Return the start of one run on a centred kernel matrix."""
        if self.init == "labels":
            assert self.given is not None
            return self.given
        if self.init == "spectral":
            distances = feature_distances(G) if self.distances is None else self.distances
            return spectral_labels(distances, self.n_subspaces, self.n_neighbors, seed)
        seeds = self.given
        if seeds is None:
            rng = np.random.RandomState(seed)
            seeds = rng.choice(G.shape[0], self.n_subspaces, replace=False)
        return gkiop(G, self.n_subspaces, rules.subspace_dim, seeds, floor=rules.floor)


def run_start(
    G: Array,
    plan: StartPlan,
    rules: KernelRules,
    seed: int,
    *,
    leave_one_out: bool,
    coordinates: Array | None,
    monitor: KernelMonitor | None,
) -> tuple[KernelSolution, KernelRun]:
    """Run one start to its end."""
    xp = namespace(G)
    start = plan.start(G, rules, seed)
    if leave_one_out:
        assert coordinates is not None
        labels = start
        if isinstance(start, KernelSubspaces):
            labels = xp.argmax(start.energies(G), axis=1)
        found = leave_one_out_labels(coordinates, labels, plan.n_subspaces, rules.subspace_dim)
        subspaces, inner = fit_bases(G, found.labels, plan.n_subspaces, rules)
        value = objective(G, subspaces, found.labels, rules.lam)
        if monitor is not None:
            monitor(0, value, subspaces)
        stopped = "converged" if found.settled else "max_iter"
        solution = KernelSolution(
            subspaces, found.labels, value, (value,), (inner,), found.n_iter, stopped
        )
        return solution, KernelRun(value, found.labels, found.criterion, found.settled)
    solution = learn_kernel_subspaces(G, start, plan.n_subspaces, rules, monitor=monitor)
    solution = refill_empty(G, solution, plan.n_subspaces, rules, monitor=monitor)
    solution = replace(solution, labels=xp.astype(solution.labels, xp.int64))
    value = solution.objective
    return solution, KernelRun(value, solution.labels, value, solution.stopped == "converged")


def rounding_floor(G: Array) -> float:
    """Return the eigenvalue up to which those of the centred matrix are rounding."""
    return machine_epsilon(G) * int(G.shape[0]) * _size(G)


def explicit_coordinates(G: Array, floor: float) -> Array:
    """Return rows Z with ZZᵀ = G̃, without the directions that rounding made."""
    n = G.shape[0]
    values, vectors = symmetric_eigen(G)
    rank = leading_rank(values, max(RANK_TOL * float(values[-1]), floor, 0.0))
    if not rank:
        return zeros((n, 1), G)
    return vectors[:, n - rank :] * namespace(G).sqrt(values[n - rank :])


def check_kernel_matrix(G: Array, name: Any) -> Array:
    """Return a symmetric kernel matrix, or raise an error that says what is wrong with it."""
    if G.ndim != 2 or G.shape[0] != G.shape[1]:
        raise ValueError(
            f"the kernel matrix has the shape {tuple(G.shape)}: kernel={name!r} needs a square "
            "one, (n_samples, n_samples)"
        )
    xp = namespace(G)
    if not bool(xp.all(xp.isfinite(G))):
        raise ValueError(
            "kernel values are not finite: scale X, or lower gamma or degree; a degree that is no "
            "integer has no value where gamma * <x, y> + coef0 is negative"
        )
    apart = _size(G - transpose(G))
    if apart > 1e-8 * max(_size(G), np.finfo(float).tiny):
        raise ValueError(
            f"the kernel matrix is not symmetric: G and its transpose differ by {apart:.3g}"
        )
    return (G + transpose(G)) / 2


def _size(G: Array) -> float:
    xp = namespace(G)
    return float(xp.max(xp.abs(G)))


def check_definite(G: Array) -> None:
    """Raise an error where a kernel matrix has negative eigenvalues beyond rounding."""
    values = to_numpy(namespace(G).linalg.eigvalsh(G))
    if values[0] < -1e-8 * max(float(np.abs(values).max()), np.finfo(float).tiny):
        raise ValueError(
            f"the kernel matrix is not positive semidefinite: its eigenvalues go from "
            f"{values[0]:.3g} to {values[-1]:.3g}; polyspan.kernels.nearest_positive_definite "
            "mends it"
        )
