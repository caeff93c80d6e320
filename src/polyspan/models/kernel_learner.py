"""Starts, restarts, progress and warnings around the kernel solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import KernelCenterer

from polyspan._sklearn import plain_settings
from polyspan.arrays import Array, limit_threads, moved_to, namespace, to_numpy
from polyspan.kernels import Kernel
from polyspan.models.kernel_base import KernelUnionBase
from polyspan.models.kernel_starts import (
    KernelRun,
    StartPlan,
    explicit_coordinates,
    rounding_floor,
    run_start,
)
from polyspan.models.kernel_unions import ExactUnion, centred_by
from polyspan.models.messages import warn_user
from polyspan.models.progress import FitProgress
from polyspan.solvers.kernel import KernelRules, KernelSolution


class KernelLearner(KernelUnionBase):
    """Fit a union of subspaces of a feature space from several starts."""

    subspace_dim: int

    @property
    def _dim(self) -> int:
        """The dimension to learn; a class may choose it from the data."""
        return self.subspace_dim

    lam: float
    init: Any
    gkiop_seeds: Any
    n_neighbors: int
    n_init: int | str
    residual: str
    max_iter: int
    tol: float
    max_update_iter: int
    update_tol: float
    n_jobs: int | None

    def _learn(
        self,
        X: Array,
        y: Any,
        G: Array,
        plan: StartPlan,
        rng: np.random.RandomState,
        **known: Any,
    ) -> None:
        """Run all starts on a kernel matrix and store the best.

        `X` is what the user gave; `known` says what else the fitted union needs.
        """
        samples = known.pop("samples", X)
        with plain_settings(G):
            centerer = KernelCenterer().fit(G)
        centred = centred_by(centerer, G)
        rules = self._rules(rounding_floor(G))
        n_starts = self._n_starts()
        seeds = [int(seed) for seed in rng.randint(2**31 - 1, size=n_starts)]
        loo = self.residual == "loo"
        coordinates = explicit_coordinates(centred, rules.floor) if loo else None
        progress = FitProgress(self, X, y, n_starts, 2 * self.max_iter + 2)

        def solve(start: int) -> tuple[KernelSolution, KernelRun]:
            monitor = progress.monitor(
                start,
                lambda subspaces: {
                    "_union": ExactUnion(self._kernel(), samples, centerer, subspaces, **known)
                },
            )
            report = None
            if monitor is not None:

                def report(iteration: int, value: float, subspaces: Any) -> bool:
                    return monitor(0, iteration, value, subspaces)

            result = run_start(
                centred, plan, rules, seeds[start],
                leave_one_out=loo, coordinates=coordinates, monitor=report,
            )  # fmt: skip
            progress.end_start(start)
            return result

        # The work of one pass is that of the products with G̃.
        with limit_threads(2.0 * G.shape[0] ** 2 * plan.n_subspaces * rules.subspace_dim, n_starts):
            results = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(solve)(start) for start in range(n_starts)
            )
        self.runs_ = [run for _, run in results]
        best = int(np.argmin([run.criterion for run in self.runs_]))
        solution = results[best][0]
        self._union = ExactUnion(self._kernel(), samples, centerer, solution.subspaces, **known)
        self._store(solution, solution.subspaces.distances(centred))
        progress.end()
        self._warn_about(solution)

    def _store(self, solution: KernelSolution, distances: Array) -> None:
        self.members_ = solution.subspaces.members
        self.coefs_ = solution.subspaces.coefs
        self.labels_ = solution.labels
        self.objective_ = solution.objective
        double = namespace(distances).float64
        self.objective_history_ = moved_to(solution.history, distances, double)
        self.update_histories_ = [moved_to(h, distances, double) for h in solution.update_histories]
        self.subspace_distances_ = distances
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.stopped == "converged"

    def _rules(self, floor: float) -> KernelRules:
        return KernelRules(
            self._dim,
            float(self.lam),
            self.max_iter,
            float(self.tol),
            self.max_update_iter,
            float(self.update_tol),
            floor,
        )

    def _kernel(self) -> Kernel | None:
        raise NotImplementedError

    def _n_starts(self) -> int:
        single = not isinstance(self.init, str) or self.gkiop_seeds is not None
        if single and self.n_init not in ("auto", 1):
            warn_user(f"one start is given: n_init={self.n_init} is not used", RuntimeWarning)
        if single:
            return 1
        if self.n_init == "auto":
            return 8 if self.init == "gkiop" else 1
        return int(self.n_init)

    def _plan(self, n: int) -> StartPlan:
        """Check what the user gave to start from."""
        if not isinstance(self.init, str):
            labels = to_numpy(self.init)
            if labels.shape != (n,) or labels.dtype.kind not in "iu":
                raise ValueError(
                    f"init has the shape {labels.shape} and the type {labels.dtype}: give one "
                    f"integer label for each of the {n} samples, or 'spectral' or 'gkiop'"
                )
            if labels.min() < 0 or labels.max() >= self.n_subspaces:
                raise ValueError(
                    f"labels in init go from {labels.min()} to {labels.max()}: they must be "
                    f"between 0 and n_subspaces - 1 = {self.n_subspaces - 1}"
                )
            return StartPlan("labels", self.n_subspaces, self.n_neighbors, labels.astype(np.int64))
        seeds = None
        if self.gkiop_seeds is not None:
            if self.init != "gkiop":
                raise ValueError(f"gkiop_seeds are for init='gkiop', not for init={self.init!r}")
            seeds = to_numpy(self.gkiop_seeds)
            valid = seeds.shape == (self.n_subspaces,) and seeds.dtype.kind in "iu"
            if (
                not valid
                or len(set(seeds.tolist())) < len(seeds)
                or not ((seeds >= 0) & (seeds < n)).all()
            ):
                raise ValueError(
                    f"gkiop_seeds={self.gkiop_seeds} must be n_subspaces={self.n_subspaces} "
                    f"different samples, from 0 to {n - 1}"
                )
        return StartPlan(self.init, self.n_subspaces, self.n_neighbors, seeds)

    def _check_sizes(self, n: int) -> None:
        if self._dim * self.n_subspaces > n:
            raise ValueError(
                f"n_samples={n} is fewer than n_subspaces * subspace_dim = {self.n_subspaces} * "
                f"{self._dim}: every sample could have a direction of its own; lower "
                "n_subspaces or subspace_dim, or give more samples"
            )

    def _warn_about(self, solution: KernelSolution) -> None:
        counts = np.bincount(to_numpy(solution.labels), minlength=self.n_subspaces)
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            warn_user(
                f"no sample is assigned to subspaces {empty.tolist()}: lower n_subspaces, or raise "
                "lam or n_init"
            )
        dims = solution.subspaces.dimensions
        short = np.flatnonzero((dims < self._dim) & (counts > 0))
        if len(short):
            warn_user(
                f"subspaces {short.tolist()} have {dims[short].tolist()} directions, fewer than "
                f"subspace_dim={self._dim}: their samples span no more"
            )
        if solution.stopped == "max_iter":
            message = (
                f"labels did not settle in max_iter={self.max_iter} iterations: raise max_iter "
                "or tol"
            )
            if self.residual == "loo":
                message = (
                    f"leave-one-out labels did not settle in {solution.n_iter} steps: the best of "
                    "those seen are kept"
                )
            warn_user(message, ConvergenceWarning)
