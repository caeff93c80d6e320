"""Steps of `fit` that all kernel models use: check the data, run all starts, store the best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.arrays import Array, moved_to, namespace, restore_order, to_numpy
from polyspan.base.checks import check_extent, check_header, lowest_finite, warn_empty, warn_user
from polyspan.base.progress import FitProgress
from polyspan.data.prediction import map_rows
from polyspan.data.rows import Source
from polyspan.data.weights import check_weights, keep_without_weight, source_weights
from polyspan.data.working import auto_lam, measure_block
from polyspan.geometry.matrices import submatrix
from polyspan.kernel._solve.alternation import KernelSolution
from polyspan.kernel.functions import check_kernel_matrix
from polyspan.kernel.options import KernelOptions
from polyspan.kernel.prediction import MISSING_ADVICE, KernelUnion

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
    weights: Any = None
    """Weights of the samples, all positive; those of a source, some 0; None: all count the same."""
    kept: np.ndarray | None = None
    """Places of the samples among all that were given; None: none has the weight 0."""
    left_out: Array | None = None
    """The samples of weight 0; with a precomputed kernel their values with all samples."""

    @property
    def n_given(self) -> int:
        """Number of samples, also those of weight 0."""
        return self.n_samples + (0 if self.left_out is None else int(self.left_out.shape[0]))

    @property
    def weighting(self) -> dict[str, Any]:
        """The weights and the kept samples, as `GramProblem.of` takes them."""
        kept = None if self.kept is None else moved_to(self.kept, self.X)
        return {"weights": self.weights, "kept": kept}


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


def read(model: KernelUnion, X: Any, sample_weight: Any, source: Source | None = None) -> Data:
    """Check training data and weights; a source of rows is read once."""
    keep_without_weight(model, sample_weight)
    if source is None:
        X = model._validate(X, reset=True)
        return weighted_data(
            X, check_weights(sample_weight, X), pairwise=model.kernel == "precomputed"
        )
    check_header(model, source)
    weights = None if sample_weight is None else source_weights(sample_weight, source)
    extent, _ = source.reduce(measure_block, source.working_type, 0, None, weights)
    check_extent(model, source, extent, allow_nan=False, instead=MISSING_ADVICE)
    return Data(source.X, extent.n_learned, source, weights)


def weighted_data(X: Array, weights: Array | None, *, pairwise: bool = False) -> Data:
    """Take samples of weight 0 out of checked data."""
    if weights is None:
        return Data(X, X.shape[0])
    if bool(np.all(to_numpy(weights) > 0)):
        return Data(X, X.shape[0], weights=weights)
    if pairwise:
        X = check_kernel_matrix(X, "precomputed")
    xp, counts = namespace(X), to_numpy(weights) > 0
    kept = np.flatnonzero(counts)
    rows, others = (moved_to(places, X) for places in (kept, np.flatnonzero(~counts)))
    own = submatrix(X, rows, rows) if pairwise else xp.take(X, rows, axis=0)
    weights = xp.take(weights, rows, axis=0)
    return Data(
        own,
        len(kept),
        weights=None if bool(xp.all(weights == 1)) else weights,
        kept=kept,
        left_out=xp.take(X, others, axis=0),
    )


def labels_of_all(
    data: Data, problem: GramProblem | NystromProblem, run: KernelSolution
) -> Array | None:
    """Return the labels of a run; samples of weight 0 have those of the nearest subspace."""
    labels = run.labels
    if labels is None or data.kept is None or data.left_out is None:
        return labels
    others = np.setdiff1d(np.arange(data.n_given), data.kept)
    nearest = problem.union(run.learned).nearest(data.left_out)
    places = [moved_to(data.kept, labels), moved_to(others, labels)]
    return restore_order(places, [labels, nearest])


def learn(
    model: KernelUnion,
    data: Data,
    y: Any,
    problem: GramProblem | NystromProblem,
    options: KernelOptions,
    rng: np.random.RandomState,
) -> None:
    """Run all starts, store the best, and warn about it."""
    lam: Any = getattr(model, "lam", math.inf)  # kernel PCA has none
    model.lam_ = auto_lam(problem.mean_square()) if isinstance(lam, str) else float(lam)
    options = replace(options, lam=model.lam_)
    problem = problem.with_lam(model.lam_)
    progress = FitProgress(model, data.X, y, options.n_starts, problem.max_steps(options))
    best = store(model, data, problem, run_starts(problem, options, rng, progress))
    progress.end()
    warn_about(best, options)


def run_starts(
    problem: GramProblem | NystromProblem,
    options: KernelOptions,
    rng: np.random.RandomState,
    progress: FitProgress,
) -> list[KernelSolution]:
    """Run all starts, in threads where the problem allows it."""
    seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=options.n_starts)]

    def run(start: int) -> KernelSolution:
        monitor = progress.monitor(start, lambda current: {"_union": problem.union(current)})
        result = problem.run(options, seeds[start], monitor)
        progress.end_start(start)
        return result

    n_jobs = options.n_jobs if problem.runs_in_parallel else 1
    with problem.limit_threads(options):
        starts = (delayed(run)(start) for start in range(options.n_starts))
        return list(Parallel(n_jobs=n_jobs, prefer="threads")(starts))


def store(
    model: KernelUnion,
    data: Data,
    problem: GramProblem | NystromProblem,
    runs: list[KernelSolution],
) -> KernelSolution:
    """Store the best of all runs, and return it."""
    criteria = [found.criterion for found in runs]
    place = criteria.index(lowest_finite(criteria))
    best = runs[place]
    model.runs_ = [
        KernelRun(
            run.objective, labels_of_all(data, problem, run), run.criterion,
            run.stopped == "converged",
        )
        for run in runs
    ]  # fmt: skip
    distances = problem.distances(best.learned)
    xp = namespace(distances)
    model._union = problem.union(best.learned)
    model.members_ = best.subspaces.members
    model.coefs_ = best.subspaces.coefs
    model.objective_ = best.objective
    model.objective_history_ = moved_to(best.history, distances, xp.float64)
    model.update_histories_ = [
        moved_to(history, distances, xp.float64) for history in best.update_histories
    ]
    model.subspace_distances_ = distances
    model.n_iter_ = best.n_iter
    model.converged_ = best.stopped == "converged"
    model.labels_ = model.runs_[place].labels
    if data.source is not None:
        model.labels_ = map_rows(data.source, model, "predict")
    return best


def warn_about(best: KernelSolution, options: KernelOptions) -> None:
    """Warn about empty subspaces, lost directions, and a run that did not converge."""
    warn_empty(best.counts)
    dims = best.subspaces.dimensions
    short = np.flatnonzero((dims < options.subspace_dim) & (best.counts > 0))
    if len(short):
        warn_user(
            f"subspaces {short.tolist()} have {dims[short].tolist()} directions, fewer than "
            f"subspace_dim={options.subspace_dim}: their samples span no more"
        )
    if best.stopped == "cycle":
        warn_user(
            f"labels came back after {best.n_iter} iterations: they go round in a cycle, of "
            "which the lowest objective is kept; another lam or init may settle",
            ConvergenceWarning,
        )
    if best.stopped == "max_iter":
        message = f"labels did not settle in max_iter={options.max_iter} iterations"
        advice = "raise max_iter or tol"
        if options.leave_one_out:
            message = f"leave-one-out labels did not settle in {best.n_iter} steps"
            advice = "the best of those seen are kept"
        warn_user(f"{message}: {advice}", ConvergenceWarning)
