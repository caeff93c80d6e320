"""Steps of `fit` that all kernel models use: check the data, run all starts, store the best."""

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
from polyspan.kernel.prediction import MISSING_ADVICE, KernelUnion
from polyspan.kernel.starts import Plan
from polyspan.progress import FitProgress

if TYPE_CHECKING:
    from polyspan.kernel.gram import GramProblem
    from polyspan.kernel.nystrom import NystromProblem


@dataclass(frozen=True)
class Data:
    """Checked training data: an array in memory, or rows in files or in other processes."""

    X: Any
    """The array, or the object (dask, Zarr, HDF5) that holds the rows."""
    n_samples: int
    source: Source | None = None


@dataclass(frozen=True)
class RunResult:
    """Result of one start, as a problem returns it."""

    solution: KernelSolution
    criterion: float
    """What starts are compared by: F3, or the sum of leave-one-out residuals."""
    counts: np.ndarray
    """Samples per subspace."""
    problem_subspaces: Any
    """The subspaces in the form that `union` and `distances` of the problem take."""


@dataclass(frozen=True)
class KernelRun:
    """Result of one start, as users see it in `runs_`."""

    objective: float
    """F3 at its labels."""
    labels: Array | None
    """None where the rows are not in memory."""
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
    check_extent(model, source, extent, allow_nan=False, instead=MISSING_ADVICE)
    return Data(source.X, extent.n_rows, source)


def run_starts(
    problem: GramProblem | NystromProblem,
    plan: Plan,
    rng: np.random.RandomState,
    progress: FitProgress,
) -> list[RunResult]:
    """Run all starts, in threads where the problem allows it."""
    seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=plan.n_starts)]

    def run(start: int) -> RunResult:
        monitor = progress.monitor(start, lambda current: {"_union": problem.union(current)})
        result = problem.run(plan, seeds[start], monitor)
        progress.end_start(start)
        return result

    n_jobs = plan.n_jobs if problem.runs_in_parallel else 1
    with problem.limit_threads(plan):
        starts = (delayed(run)(start) for start in range(plan.n_starts))
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(starts))


def store(
    model: KernelUnion, data: Data, problem: GramProblem | NystromProblem, runs: list[RunResult]
) -> RunResult:
    """Store the best of all runs, and return it."""
    criteria = [found.criterion for found in runs]
    best = runs[criteria.index(lowest_finite(criteria))]
    model.runs_ = [
        KernelRun(
            run.solution.objective, run.solution.labels, run.criterion,
            run.solution.stopped == "converged",
        )
        for run in runs
    ]  # fmt: skip
    solution, distances = best.solution, problem.distances(best.problem_subspaces)
    xp = namespace(distances)
    model._union = problem.union(best.problem_subspaces)
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


def warn_about(best: RunResult, plan: Plan) -> None:
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
