"""The moves of a fit that the kernel models share: read, and learn from the starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from polyspan.arrays import Array, moved_to, namespace
from polyspan.checks import check_extent, check_header, lowest_finite, warn_user
from polyspan.data.measure import measure_block
from polyspan.data.prediction import map_rows
from polyspan.data.rows import Source
from polyspan.kernel._solve.alternation import KernelSolution
from polyspan.kernel.prediction import INSTEAD, KernelUnion
from polyspan.kernel.starts import Plan
from polyspan.progress import FitProgress

if TYPE_CHECKING:
    from polyspan.kernel.gram import GramProblem
    from polyspan.kernel.nystrom import NystromProblem


@dataclass(frozen=True)
class Data:
    """Checked training data: an array in memory, or rows that are elsewhere."""

    X: Any
    """The array, or what the rows come from."""
    n_samples: int
    source: Source | None = None


@dataclass(frozen=True)
class Found:
    """Where one start ended."""

    solution: KernelSolution
    criterion: float
    """What starts are compared by: F3, or the sum of leave-one-out residuals."""
    counts: np.ndarray
    """Samples per subspace."""
    reached: Any
    """The subspaces as the problem has them."""


@dataclass(frozen=True)
class KernelRun:
    """What one start of a kernel model reached."""

    objective: float
    """F3 at its labels."""
    labels: Array | None
    """None where the rows are elsewhere."""
    criterion: float
    """What starts are compared by: F3, or the sum of leave-one-out residuals."""
    converged: bool


def read(model: KernelUnion, X: Any, source: Source | None) -> Data:
    """Check training data; a source of rows is read once."""
    if source is None:
        X = model._validate(X, reset=True)
        return Data(X, X.shape[0])
    check_header(model, source)
    extent, _ = source.reduce(measure_block, source.working_type, 0, None)
    check_extent(model, source, extent, allow_nan=False, instead=INSTEAD)
    return Data(source.X, extent.n_rows, source)


def run_starts(
    problem: GramProblem | NystromProblem,
    plan: Plan,
    rng: np.random.RandomState,
    progress: FitProgress,
) -> list[Found]:
    """Run all starts, in threads where it pays."""
    seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=plan.n_starts)]

    def run(start: int) -> Found:
        monitor = progress.monitor(start, lambda reached: {"_union": problem.union(reached)})
        found = problem.run(plan, seeds[start], monitor)
        progress.end_start(start)
        return found

    n_jobs = plan.n_jobs if problem.runs_in_parallel else 1
    with problem.limit_threads(plan):
        starts = (delayed(run)(start) for start in range(plan.n_starts))
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(starts))


def store(
    model: KernelUnion, data: Data, problem: GramProblem | NystromProblem, runs: list[Found]
) -> Found:
    """Store the best of all runs, and return it."""
    criteria = [found.criterion for found in runs]
    best = runs[criteria.index(lowest_finite(criteria))]
    model.runs_ = [
        KernelRun(
            found.solution.objective, found.solution.labels, found.criterion,
            found.solution.stopped == "converged",
        )
        for found in runs
    ]  # fmt: skip
    solution, distances = best.solution, problem.distances(best.reached)
    xp = namespace(distances)
    model._union = problem.union(best.reached)
    model.members_ = solution.subspaces.members
    model.coefs_ = solution.subspaces.coefs
    model.objective_ = solution.objective
    model.objective_history_ = moved_to(solution.history, distances, xp.float64)
    model.update_histories_ = [
        moved_to(history, distances, xp.float64) for history in solution.update_histories
    ]
    model.subspace_distances_ = distances
    model.n_iter_ = solution.n_iter
    model.converged_ = solution.stopped == "converged"
    model.labels_ = solution.labels
    if data.source is not None:
        model.labels_ = map_rows(data.source, model, "predict")
    return best


def warn_about(best: Found, plan: Plan) -> None:
    """Warn about empty subspaces, lost directions, and a run that did not converge."""
    solution, rules = best.solution, plan.rules
    empty = np.flatnonzero(best.counts == 0)
    if len(empty):
        warn_user(
            f"no sample is assigned to subspaces {empty.tolist()}: lower n_subspaces, or raise "
            "lam or n_init"
        )
    dims = solution.subspaces.dimensions
    short = np.flatnonzero((dims < rules.subspace_dim) & (best.counts > 0))
    if len(short):
        warn_user(
            f"subspaces {short.tolist()} have {dims[short].tolist()} directions, fewer than "
            f"subspace_dim={rules.subspace_dim}: their samples span no more"
        )
    if solution.stopped == "cycle":
        warn_user(
            f"labels came back after {solution.n_iter} iterations: they go round in a cycle, of "
            "which the lowest objective is kept; another lam or init may settle",
            ConvergenceWarning,
        )
    if solution.stopped == "max_iter":
        message = (
            f"labels did not settle in max_iter={rules.max_iter} iterations: raise max_iter or tol"
        )
        if plan.leave_one_out:
            message = (
                f"leave-one-out labels did not settle in {solution.n_iter} steps: the best of "
                "those seen are kept"
            )
        warn_user(message, ConvergenceWarning)
