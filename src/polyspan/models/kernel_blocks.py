"""MC-KUSaL on rows in blocks: coordinates of a Nyström map are made where the rows are.

What travels are landmarks, the scatter of every subspace (L·r² numbers, for coordinates of rank r)
and bases. The updates are exact, as those in memory: power steps would need hundreds of passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.arrays import limit_threads
from polyspan.geometry import pairwise_subspace_distances
from polyspan.kernels.low_rank import NystromMap
from polyspan.models.kernel_low_rank import check_landmarks
from polyspan.models.kernel_starts import KernelRun, StartPlan, check_definite, check_kernel_matrix
from polyspan.models.kernel_unions import LowRankUnion
from polyspan.models.progress import FitProgress
from polyspan.models.shared_rows import map_rows, measure
from polyspan.solvers.kernel import KernelSolution, gkiop
from polyspan.solvers.kernel_subspaces import KernelSubspaces
from polyspan.solvers.micusal import Rules, learn_subspaces, refill_empty
from polyspan.solvers.preparation import Prepared
from polyspan.solvers.problem import Solution
from polyspan.solvers.share_preparation import measure_block, prepare_shares
from polyspan.solvers.shares import Recipe, SharedProblem, block_scatter
from polyspan.solvers.spectral_start import feature_distances, spectral_labels
from polyspan.sources import Source

INSTEAD = "RobustMCKUSaL, which estimates kernel values from the observed entries"


@dataclass(frozen=True)
class StartRule:
    """Labels of samples from those of the landmarks: all that blocks need to know of a start."""

    landmarks: np.ndarray
    """Coordinates."""
    labels: np.ndarray | None = None
    """Subspace of each landmark: a sample gets that of the nearest one."""
    subspaces: KernelSubspaces | None = None
    """Or subspaces spanned by landmarks: a sample goes to the nearest one."""

    @classmethod
    def of(cls, landmarks: np.ndarray, plan: StartPlan, s: int, seed: int) -> StartRule:
        """Cluster the landmarks."""
        G = landmarks @ landmarks.T
        if plan.init == "spectral":
            distances = feature_distances(G)
            labels = spectral_labels(distances, plan.n_subspaces, plan.n_neighbors, seed)
            return cls(landmarks, labels=labels)
        rng = np.random.RandomState(seed)
        seeds = rng.choice(len(landmarks), plan.n_subspaces, replace=False)
        size = min(s, len(landmarks) // plan.n_subspaces)
        return cls(landmarks, subspaces=gkiop(G, plan.n_subspaces, size, seeds))

    def __call__(self, which: slice, Z: np.ndarray) -> np.ndarray:
        """Label rows of coordinates."""
        values = Z @ self.landmarks.T
        if self.labels is None:
            assert self.subspaces is not None
            return np.asarray(self.subspaces.energies(values).argmax(axis=1))
        squares = np.einsum("nk,nk->n", self.landmarks, self.landmarks)
        return np.asarray(self.labels[(squares / 2.0 - values).argmin(axis=1)])


def start_scatter(block: np.ndarray, recipe: Recipe, rule: StartRule, n: int) -> np.ndarray | None:
    """Return the scatter of every subspace under the labels of a start, (n_subspaces, r, r)."""
    problem = recipe.problem(block)
    return None if problem is None else block_scatter(problem.rows, rule, n)


def lost_of_block(block: np.ndarray, dtype: Any, map_: NystromMap) -> float | None:
    """Return what of the samples of a block the landmarks do not span."""
    X = np.asarray(block, dtype=dtype)
    return float(np.sum(map_.lost(X, map_(X)), dtype=np.float64)) if len(X) else None


def fit_low_rank_blocks(model: Any, source: Source, y: Any) -> None:
    """Fit a kernel model on rows in blocks and store what was learned."""
    _check_options(model)
    extent = measure(model, source, least=0, allow_nan=False, instead=INSTEAD)
    model._check_sizes(extent.n_rows)
    rng = check_random_state(model.random_state)
    plan = model._plan(extent.n_rows)
    kernel, n_landmarks = check_landmarks(model, extent.n_rows)
    chosen = np.sort(rng.choice(extent.n_rows, n_landmarks, replace=False))
    # As in memory: kernel values of float32 would be too coarse to take roots of.
    landmarks = np.asarray(source.take(chosen), dtype=np.float64)
    G = check_kernel_matrix(kernel(landmarks), model.kernel)
    if model._may_be_indefinite():
        check_definite(G)
    map_ = NystromMap.of(kernel, landmarks)
    dtype = map_.whitener.dtype
    s = min(model.subspace_dim, map_.rank)
    n_starts = model._n_starts()
    seeds = rng.randint(2**31 - 1, size=n_starts)
    progress = FitProgress(model, source.X, y, n_starts, model.max_iter + 2 + plan.n_subspaces)
    weight = 1.0 if np.isinf(model.lam) else float(model.lam)
    lost = weight * source.total(lost_of_block, dtype, map_)
    mapped = source.total(measure_block, dtype, 0, map_)
    prepared = prepare_shares(
        source, mapped, float(model.lam), dtype=dtype, center=True, row_map=map_
    )
    with limit_threads(0.0):
        solutions = []
        for start, seed in enumerate(seeds):
            centred = (map_(landmarks) - prepared.mean) * prepared.scale
            rule = StartRule.of(centred, plan, s, int(seed))
            monitor = progress.monitor(
                start,
                lambda bases: {"_union": LowRankUnion(map_, prepared.mean, bases)},
            )
            found = _run(prepared, rule, model, (plan.n_subspaces, s), monitor)
            solutions.append(_with_lost(found, prepared, lost))
            progress.end_start(start)
    _store(model, source, solutions, (map_, prepared, chosen))
    progress.end()


def _check_options(model: Any) -> None:
    if model.low_rank is None:
        raise ValueError(
            "rows in blocks have no kernel matrix, which would have a number for every pair of "
            "samples: set low_rank, or pass an array"
        )
    if model.residual != "plain":
        raise ValueError(f"residual={model.residual!r} needs all samples in memory: pass an array")
    if not isinstance(model.init, str) or model.gkiop_seeds is not None:
        raise ValueError(
            "labels or seeds of single samples need all of them in memory: pass an array, or "
            "init='spectral' or 'gkiop' without gkiop_seeds"
        )


def _run(
    prepared: Prepared, rule: StartRule, model: Any, sizes: tuple[int, int], monitor: Any
) -> Solution:
    problem = prepared.problem
    assert isinstance(problem, SharedProblem)
    (n_subspaces, s), rank = sizes, problem.rows.shape[1]
    scatter = problem.blocks.total(start_scatter, problem.recipe, rule, n_subspaces)
    blank = np.stack([np.eye(rank, s, dtype=scatter.dtype)] * n_subspaces)
    bases = replace(problem, lam=float("inf")).step_on(scatter, blank)
    rules = Rules("exact", model.max_iter, float(model.tol))
    (solution,) = learn_subspaces(problem, bases[None], rules, monitor=monitor)
    return refill_empty(problem, solution, rules, monitor=monitor)


def _with_lost(found: Solution, prepared: Prepared, lost: float) -> Solution:
    """Count what the landmarks do not span as residual too, whatever the subspaces."""
    return replace(
        found,
        objective=prepared.objective(found.objective) + lost,
        history=tuple(prepared.objective(value) + lost for value in found.history),
    )


def _store(
    model: Any,
    source: Source,
    solutions: list[Solution],
    known: tuple[NystromMap, Prepared, np.ndarray],
) -> None:
    map_, prepared, chosen = known
    model.runs_ = [
        KernelRun(found.objective, found.labels, found.objective, found.stopped == "converged")
        for found in solutions
    ]
    best = min(solutions, key=lambda found: found.objective)
    bases = np.asarray(prepared.outward(best.bases))
    model._union = LowRankUnion(map_, prepared.mean, bases)
    subspaces = KernelSubspaces([chosen] * len(bases), [map_.whitener @ D for D in bases])
    # Labels stay with the rows; here one sample stands for those of each subspace.
    present = np.flatnonzero(np.asarray(best.counts) > 0)
    found = KernelSolution(
        subspaces, present, best.objective, best.history, (), best.n_iter, best.stopped
    )
    model._store(found, np.asarray(pairwise_subspace_distances(bases)))
    model.labels_ = map_rows(source, model, "predict")
    model._warn_about(found)
