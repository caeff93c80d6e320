"""MC-KUSaL for many samples: a Nyström map, then the linear machinery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polyspan.arrays import (
    Array,
    float64_sum,
    limit_threads,
    moved_to,
    namespace,
    one_hot,
    pass_work,
    to_numpy,
    transpose,
)
from polyspan.geometry import pairwise_subspace_distances
from polyspan.kernels import Kernel
from polyspan.kernels.low_rank import NystromMap
from polyspan.models.kernel_starts import (
    KernelRun,
    StartPlan,
    check_definite,
    check_kernel_matrix,
)
from polyspan.models.kernel_unions import LowRankUnion
from polyspan.models.progress import FitProgress
from polyspan.solvers.kernel import KernelSolution, gkiop
from polyspan.solvers.kernel_leave_one_out import leave_one_out_labels
from polyspan.solvers.kernel_subspaces import KernelSubspaces
from polyspan.solvers.micusal import Rules, learn_subspaces, refill_empty
from polyspan.solvers.preparation import prepare
from polyspan.solvers.problem import Problem, Solution
from polyspan.solvers.spectral_start import feature_distances, spectral_labels
from polyspan.solvers.updates import exact_update


def fit_low_rank(model: Any, X: Array, y: Any, plan: StartPlan, rng: np.random.RandomState) -> None:
    """Fit a kernel model on coordinates of rank `model.low_rank` and store what was learned."""
    xp, n = namespace(X), X.shape[0]
    n_subspaces = plan.n_subspaces
    kernel, n_landmarks = check_landmarks(model, n)
    chosen = moved_to(np.sort(rng.choice(n, n_landmarks, replace=False)), X)
    landmarks = xp.take(X, chosen, axis=0)
    G = check_kernel_matrix(kernel(landmarks), model.kernel)
    if model._may_be_indefinite():
        check_definite(G)
    map_ = NystromMap.of(kernel, landmarks)
    s = min(model.subspace_dim, map_.rank)
    Z = map_(X)
    n_starts = model._n_starts()
    seeds = rng.randint(2**31 - 1, size=n_starts)
    progress = FitProgress(model, X, y, n_starts, model.max_iter + 2 + n_subspaces)
    # What the landmarks do not span is residual too, whatever the subspaces.
    weight = 1.0 if np.isinf(model.lam) else float(model.lam)
    lost = weight * float(xp.sum(map_.lost(X, Z)))
    with limit_threads(pass_work(n, map_.rank, n_subspaces * s)):
        prepared = prepare(Z, float(model.lam), center=True)
        problem, mean = prepared.problem, prepared.mean
        results = []
        for start, seed in enumerate(seeds):
            labels = _start_labels(Z - mean, chosen, plan, s, int(seed))
            monitor = progress.monitor(
                start, lambda bases: {"_union": LowRankUnion(map_, mean, prepared.outward(bases))}
            )
            solution, criterion = _run(problem, labels, model, (n_subspaces, s), monitor)
            progress.end_start(start)
            solution = replace(
                solution,
                objective=prepared.objective(solution.objective) + lost,
                history=tuple(prepared.objective(v) + lost for v in solution.history),
            )
            run = KernelRun(
                solution.objective, solution.labels, criterion, solution.stopped == "converged"
            )
            results.append((solution, run))
    model.runs_ = [run for _, run in results]
    best = results[int(np.argmin([run.criterion for run in model.runs_]))][0]
    bases = prepared.outward(best.bases)
    model._union = LowRankUnion(map_, mean, bases)
    subspaces = KernelSubspaces(
        [chosen] * n_subspaces, [map_.whitener @ bases[p, ...] for p in range(n_subspaces)]
    )
    found = KernelSolution(
        subspaces, xp.astype(best.labels, xp.int64), best.objective, best.history, (), best.n_iter,
        best.stopped,
    )  # fmt: skip
    model._store(found, pairwise_subspace_distances(bases))
    progress.end()
    model._warn_about(found)


def check_landmarks(model: Any, n_samples: int) -> tuple[Kernel, int]:
    """Return the kernel and the number of landmarks, if there are enough."""
    kernel = model._kernel()
    if kernel is None:
        raise ValueError(
            "low_rank needs the samples, not kernel='precomputed': pass them and a kernel"
        )
    n_landmarks = min(int(model.low_rank), n_samples)
    least = max(model.subspace_dim + 1, model.n_subspaces)
    if n_landmarks < least:
        raise ValueError(
            f"low_rank={model.low_rank} with n_samples={n_samples} gives {n_landmarks} landmarks: "
            f"subspace_dim={model.subspace_dim} and n_subspaces={model.n_subspaces} need {least}"
        )
    return kernel, n_landmarks


def _start_labels(Z: Array, chosen: Array, plan: StartPlan, s: int, seed: int) -> Array:
    """Label all samples from the start of the landmarks: nothing here is larger than N×r."""
    xp = namespace(Z)
    if plan.init == "labels":
        return moved_to(plan.given, Z)
    landmarks = xp.take(Z, chosen, axis=0)
    G = landmarks @ transpose(landmarks)
    squares = xp.linalg.diagonal(G)
    products = Z @ transpose(landmarks)
    if plan.init == "spectral":
        labels = spectral_labels(feature_distances(G), plan.n_subspaces, plan.n_neighbors, seed)
        nearest = xp.argmin(squares / 2.0 - products, axis=1)
        return xp.take(moved_to(labels, Z), nearest)
    n_landmarks = landmarks.shape[0]
    seeds = np.random.RandomState(seed).choice(n_landmarks, plan.n_subspaces, replace=False)
    if plan.given is not None:
        # Seeds are samples; the landmarks nearest to them take their place.
        theirs = xp.take(products, moved_to(plan.given, Z), axis=0)
        seeds = to_numpy(xp.argmin(squares / 2.0 - theirs, axis=1))
    size = min(s, n_landmarks // plan.n_subspaces)
    subspaces = gkiop(G, plan.n_subspaces, size, seeds)
    return xp.argmax(subspaces.energies(products), axis=1)


def _run(
    problem: Problem, start: Array, model: Any, sizes: tuple[int, int], monitor: Any
) -> tuple[Solution, float]:
    """Learn from labels; return the solution and what starts are compared by."""
    (n_subspaces, s), rank = sizes, problem.rows.shape[1]
    xp = namespace(start)
    like = problem.rows.X
    blank = moved_to(np.stack([np.eye(rank, s)] * n_subspaces), like, like.dtype)
    apart = replace(problem, lam=float("inf"))
    if model.residual == "loo":
        Z = problem.rows.centred(slice(0, problem.rows.shape[0]))
        found = leave_one_out_labels(Z, start, n_subspaces, s)
        bases = exact_update(apart, blank, found.labels)
        bases = exact_update(problem, bases, found.labels)
        own = problem.own_coefficients(bases, found.labels)
        energy = xp.reshape(float64_sum(own * own), (1,))
        value = float(problem.objective(bases[None, ...], energy)[0])
        counts = xp.sum(one_hot(found.labels, n_subspaces, xp.int64), axis=0)
        if monitor is not None:
            monitor(0, 0, value, bases)
        stopped = "converged" if found.settled else "max_iter"
        solution = Solution(
            bases, found.labels, counts, value, value, (value,), found.n_iter, stopped
        )
        return solution, found.criterion
    bases = exact_update(apart, blank, start)
    # Exact: coordinates are few, and power steps would need hundreds of iterations here.
    rules = Rules("exact", model.max_iter, float(model.tol))
    (solution,) = learn_subspaces(problem, bases[None, ...], rules, monitor=monitor)
    solution = refill_empty(problem, solution, rules, monitor=monitor)
    return solution, solution.objective
