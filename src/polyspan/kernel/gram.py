"""The problem that Algorithm 5 solves, given by a kernel matrix, and the union that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan._sklearn import plain_settings
from polyspan.arrays import (
    Array,
    limit_threads,
    machine_epsilon,
    moved_to,
    namespace,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.checks import warn_user
from polyspan.kernel._solve.alternation import (
    KernelRules,
    KernelSolution,
    alternate,
    fit_bases,
    objective,
    refill_empty,
)
from polyspan.kernel._solve.leave_one_out import explicit_coordinates, leave_one_out_labels
from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitting import RunResult
from polyspan.kernel.functions import Kernel, largest_entry
from polyspan.kernel.incomplete import estimate_kernel, estimate_squared_norms
from polyspan.kernel.prediction import FittedUnion, residual_norms, slices_of
from polyspan.kernel.starts import Plan
from polyspan.progress import Monitor


@dataclass(frozen=True)
class GramProblem:
    """Learn a union of subspaces from the kernel matrix of all samples."""

    G: Array
    """The kernel matrix, centred."""
    unfitted: ExactUnion
    """The union to learn, without its subspaces."""
    floor: float
    """Eigenvalues of G up to this value are rounding errors of the matrix before centring."""
    coordinates: Array | None = None
    """Rows Z with ZZᵀ = G, which leave-one-out residuals need."""

    runs_in_parallel = True

    @classmethod
    def of(
        cls,
        G: Array,
        kernel: Kernel | None,
        X: Array,
        *,
        leave_one_out: bool = False,
        **fields: Any,
    ) -> GramProblem:
        """Centre the kernel matrix of samples X; `fields` are further fields of the union.

        Without a kernel, X is the kernel matrix itself; the union then stores only its diagonal.
        """
        xp = namespace(G)
        # A copy, so that a change of the caller's array does not change the model, and so that it
        # rounds as after loading: BLAS multiplies an array with itself in another way.
        X = xp.asarray(xp.linalg.diagonal(G) if kernel is None else X, copy=True)
        with plain_settings(G):
            centerer = KernelCenterer().fit(G)
        floor = machine_epsilon(G) * int(G.shape[0]) * largest_entry(G)
        unfitted = ExactUnion(kernel, X, centerer, KernelSubspaces([], []), **fields)
        G = centred_by(centerer, G)
        return cls(G, unfitted, floor, explicit_coordinates(G, floor) if leave_one_out else None)

    def union(self, subspaces: KernelSubspaces) -> ExactUnion:
        """Return the union with these subspaces."""
        return replace(self.unfitted, subspaces=subspaces)

    def distances(self, subspaces: KernelSubspaces) -> Array:
        """Return d_u between subspaces."""
        return subspaces.distances(self.G)

    def max_steps(self, plan: Plan) -> int:
        """Return the most iterations that one start can take."""
        return 2 * plan.rules.max_iter + 2

    def limit_threads(self, plan: Plan) -> AbstractContextManager[Any]:
        """Limit BLAS threads by the work of one pass, which consists of products with G."""
        n_columns = plan.n_subspaces * plan.rules.subspace_dim
        return limit_threads(2.0 * self.G.shape[0] ** 2 * n_columns, plan.n_starts)

    def run(self, plan: Plan, seed: int, monitor: Monitor | None) -> RunResult:
        """Run one start until it stops."""
        G, n_subspaces = self.G, plan.n_subspaces
        rules = replace(plan.rules, floor=self.floor)
        start = plan.start(G, rules.subspace_dim, seed, self.floor)
        if plan.leave_one_out:
            solution, criterion = self._leave_one_out(start, n_subspaces, rules, monitor)
        else:
            solution = alternate(G, start, n_subspaces, rules, monitor=monitor)
            solution = refill_empty(G, solution, n_subspaces, rules, monitor=monitor)
            criterion = solution.objective
        counts = np.bincount(to_numpy(solution.labels), minlength=n_subspaces)
        return RunResult(solution, criterion, counts, solution.subspaces)

    def _leave_one_out(
        self,
        start: KernelSubspaces | Array,
        n_subspaces: int,
        rules: KernelRules,
        monitor: Monitor | None,
    ) -> tuple[KernelSolution, float]:
        """Find labels by leave-one-out residuals, then the bases for these labels."""
        G = self.G
        if isinstance(start, KernelSubspaces):
            start = namespace(G).argmax(start.energies(G), axis=1)
        assert self.coordinates is not None
        found = leave_one_out_labels(self.coordinates, start, n_subspaces, rules.subspace_dim)
        subspaces, inner = fit_bases(G, found.labels, n_subspaces, rules)
        value = objective(G, subspaces, found.labels, rules.lam)
        if monitor is not None:
            monitor(0, 0, value, subspaces)
        stopped = "converged" if found.settled else "max_iter"
        solution = KernelSolution(
            subspaces, found.labels, value, (value,), (inner,), found.n_iter, stopped
        )
        return solution, found.criterion


@dataclass(frozen=True)
class ExactUnion(FittedUnion):
    """Subspaces spanned by training samples: Algorithm 5."""

    kernel: Kernel | None
    """None for a precomputed kernel."""
    X: Array
    """Training samples, or the diagonal of a precomputed kernel matrix."""
    centerer: KernelCenterer
    subspaces: KernelSubspaces
    incomplete: bool = False
    """Whether values are estimated from the entries that two samples have in common."""
    gram: Array | None = None
    """The kernel matrix of the training samples, where it cannot be computed again from X."""
    signs: Array | None = None
    """S of `Mended`: kernel values of new samples are multiplied by it. None: not mended."""
    fill: float | None = None
    """Squared distance or inner product of pairs of samples without a common entry."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return len(self.subspaces.members)

    def chunks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield kernel values of samples with the training samples, not centred."""
        for which in slices_of(X, 4 * self.X.shape[0]):
            rows = X[which, :]
            if self.kernel is None:
                yield which, rows
            elif self.incomplete:
                yield which, self._estimated(rows)
            else:
                yield which, self.kernel(rows, self.X)

    def projections(self, chunk: Array) -> list[Array]:
        """Return D_lᵀφ̃(z) for every subspace."""
        return self.subspaces.projections(centred_by(self.centerer, chunk))

    def squared_norms(self, X: Array, chunk: Array) -> Array:
        """Return κ̃(z, z) = κ(z, z) - 2 Σ_i κ(z, y_i)/N + Σ_ij κ(y_i, y_j)/N²."""
        means = namespace(chunk).mean(chunk, axis=1)
        return self._diagonal(X) - 2.0 * means + self.centerer.K_fit_all_

    def expansion_weights(self, projections: Array, p: int) -> Array:
        """Return ζ over all training samples; the mean that centring removed is added again."""
        xp, n = namespace(projections), self.X.shape[0]
        zeta = projections @ transpose(self.subspaces.coefs[p])
        spread = (1.0 - xp.sum(zeta, axis=1, keepdims=True)) / n
        # Samples that are not members take the last column, which is zero.
        column = np.full(n, zeta.shape[1])
        column[to_numpy(self.subspaces.members[p])] = np.arange(zeta.shape[1])
        padded = xp.concat([zeta, zeros((zeta.shape[0], 1), zeta)], axis=1)
        return spread + xp.take(padded, moved_to(column, zeta), axis=1)

    def training_samples(self) -> tuple[Array, Array | None]:
        """Return the training samples, 0 where entries are missing, and the mask of the others."""
        if not self.incomplete:
            return self.X, None
        observed = ~np.isnan(self.X)
        return np.where(observed, self.X, 0.0), observed

    def training_distances(self, X: Array) -> Array:
        """Return the distances of the training samples.

        For a precomputed or mended kernel matrix, κ(z, z) is its diagonal. A precomputed matrix
        is X.
        """
        if self.kernel is not None and self.gram is None:
            return self.distances(X)
        G = centred_by(self.centerer, X if self.gram is None else self.gram)
        return residual_norms(namespace(G).linalg.diagonal(G), self.subspaces.energies(G))

    def training_values(self) -> Array:
        """Return the kernel matrix of the training samples, not centred."""
        if self.gram is not None:
            return self.gram
        assert self.kernel is not None
        return self.kernel(self.X)

    def _estimated(self, X: Array) -> Array:
        """Estimate kernel values of incomplete samples, and mend them as those of the training."""
        assert self.kernel is not None
        found = estimate_kernel(self.kernel, X, self.X, fill=self.fill)
        if found.n_unrelated:
            warn_user(
                f"{found.n_unrelated} of {found.values.size} pairs of new and training samples "
                "have no common observed entry: their kernel values are set by the mean of the "
                "pairs of training samples"
            )
        return found.values if self.signs is None else np.asarray(found.values @ self.signs)

    def _diagonal(self, X: Array) -> Array:
        if self.kernel is None:
            xp = namespace(self.X)
            spread = float(xp.max(self.X) - xp.min(self.X))
            if spread > 1e-12 * float(xp.max(xp.abs(self.X))):
                raise ValueError(
                    "kernel='precomputed' does not hold κ(z, z) of new samples, which distances "
                    "need where it differs from sample to sample: pass the samples and a kernel"
                )
            return zeros((X.shape[0],), X) + self.X[0]
        if not self.incomplete:
            return self.kernel.diagonal(X)
        if self.kernel.name == "rbf":
            return np.ones(len(X), dtype=X.dtype)
        return self.kernel.of_products(estimate_squared_norms(X), X.shape[1])


def centred_by(centerer: KernelCenterer, K: Array) -> Array:
    """Centre kernel values with the training samples: φ(z) and φ(y_i) minus the mean of φ."""
    with plain_settings(K):
        return centerer.transform(K)
