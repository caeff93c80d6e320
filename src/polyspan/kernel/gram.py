"""The problem that Algorithm 5 solves, given by a kernel matrix.

The problem with weights w_i is that without them for the features √w_i φ̃(y_i), where φ̃ is φ minus
its weighted mean. Their kernel matrix is √w_i G̃_ij √w_j: it has the eigenvalues that G̃ has with
repeated samples. Samples of weight 0 are taken out before.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    float64_sum,
    limit_threads,
    machine_epsilon,
    namespace,
    to_numpy,
)
from polyspan.base.progress import Monitor
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
from polyspan.kernel.fitted_unions import ExactUnion
from polyspan.kernel.functions import Kernel, centerer_of, centred_by, largest_entry
from polyspan.kernel.options import KernelOptions


@dataclass(frozen=True)
class GramProblem:
    """Learn a union of subspaces from the kernel matrix of all samples."""

    G: Array
    """The kernel matrix, centred; with weights that of the features √w_i φ̃(y_i)."""
    unfitted: ExactUnion
    """The union to learn, without its subspaces."""
    floor: float
    """Eigenvalues of G up to this value are rounding errors of the matrix before centring."""
    coordinates: Array | None = None
    """Rows Z with ZZᵀ = G̃, which leave-one-out residuals need."""
    weights: Array | None = None
    """Weights w_i of the samples, all positive; None: all count the same."""

    runs_in_parallel = True

    @classmethod
    def of(
        cls,
        G: Array,
        kernel: Kernel | None,
        X: Array,
        *,
        leave_one_out: bool = False,
        weights: Array | None = None,
        **fields: Any,
    ) -> GramProblem:
        """Centre the kernel matrix of samples X; `fields` are further fields of the union.

        Without a kernel, X is the kernel matrix itself; the union then stores only its diagonal.
        """
        xp = namespace(G)
        # A copy, so that a change of the caller's array does not change the model, and so that it
        # rounds as after loading: BLAS multiplies an array with itself in another way.
        X = xp.asarray(xp.linalg.diagonal(G) if kernel is None else X, copy=True)
        shares = None if weights is None else weights / xp.sum(weights)
        centerer = centerer_of(G, shares)
        total = int(G.shape[0]) if weights is None else float(xp.sum(weights))
        floor = machine_epsilon(G) * total * largest_entry(G)
        unfitted = ExactUnion(kernel, X, centerer, KernelSubspaces([], []), shares=shares, **fields)
        G = centred_by(centerer, G, shares)
        if weights is not None:
            G = _scaled(G, xp.sqrt(weights))
        coordinates = explicit_coordinates(G, floor) if leave_one_out else None
        if coordinates is not None and weights is not None:
            coordinates = coordinates / xp.sqrt(weights)[:, None]
        return cls(G, unfitted, floor, coordinates, weights)

    def union(self, subspaces: KernelSubspaces) -> ExactUnion:
        """Return the union with these subspaces."""
        if self.weights is not None:
            subspaces = subspaces.times(namespace(self.G).sqrt(self.weights))
        return replace(self.unfitted, subspaces=subspaces)

    def mean_square(self) -> float:
        """Return the mean of the centred k(x, x)."""
        n = self.G.shape[0] if self.weights is None else float(float64_sum(self.weights))
        return float(float64_sum(namespace(self.G).linalg.diagonal(self.G))) / n

    def with_lam(self, lam: float) -> GramProblem:
        """Return the problem with this λ, which is that of the rules of a run."""
        return self

    def distances(self, subspaces: KernelSubspaces) -> Array:
        """Return d_u between subspaces."""
        return subspaces.distances(self.G)

    def max_steps(self, options: KernelOptions) -> int:
        """Return the most iterations that one start can take."""
        return 2 * options.max_iter + 2

    def limit_threads(self, options: KernelOptions) -> AbstractContextManager[Any]:
        """Limit BLAS threads by the work of one pass, which consists of products with G."""
        n_columns = options.n_subspaces * options.subspace_dim
        return limit_threads(2.0 * self.G.shape[0] ** 2 * n_columns, options.n_starts)

    def run(self, options: KernelOptions, seed: int, monitor: Monitor | None) -> KernelSolution:
        """Run one start until it stops."""
        G, rules = self.G, replace(options, floor=self.floor)
        start = self._start(options, seed)
        if options.leave_one_out:
            solution, criterion = self._leave_one_out(start, rules, monitor)
        else:
            solution = alternate(G, start, rules, self.weights, monitor)
            solution = refill_empty(G, solution, rules, self.weights, monitor)
            criterion = solution.objective
        counts = np.bincount(to_numpy(solution.labels), minlength=rules.n_subspaces)
        own = solution.subspaces
        among_all = self._among_all(self.union(own).subspaces)
        return replace(
            solution, subspaces=among_all, criterion=criterion, counts=counts, learned=own
        )

    def _start(self, options: KernelOptions, seed: int) -> KernelSubspaces | Array:
        """Return the start of one run, for the scaled matrix."""
        size = options.subspace_dim
        if self.weights is None:
            return options.start(self.G, size, seed, self.floor)
        roots = namespace(self.G).sqrt(self.weights)
        weights = to_numpy(self.weights).astype(np.float64)
        floor = self.floor * len(weights) / float(weights.sum())
        start = options.start(_scaled(self.G, 1.0 / roots), size, seed, floor, weights)
        return start.times(1.0 / roots) if isinstance(start, KernelSubspaces) else start

    def _among_all(self, subspaces: KernelSubspaces) -> KernelSubspaces:
        """Return subspaces with members numbered among all samples, also those of weight 0."""
        kept = self.unfitted.kept
        if kept is None:
            return subspaces
        take = namespace(kept).take
        return replace(subspaces, members=[take(kept, c, axis=0) for c in subspaces.members])

    def _leave_one_out(
        self, start: KernelSubspaces | Array, rules: KernelRules, monitor: Monitor | None
    ) -> tuple[KernelSolution, float]:
        """Find labels by leave-one-out residuals, then the bases for these labels."""
        G = self.G
        if isinstance(start, KernelSubspaces):
            start = namespace(G).argmax(start.energies(G), axis=1)
        assert self.coordinates is not None
        found = leave_one_out_labels(
            self.coordinates, start, rules.n_subspaces, rules.subspace_dim, self.weights
        )
        subspaces, inner = fit_bases(G, found.labels, rules, self.weights)
        value = objective(G, subspaces, found.labels, rules.lam)
        if monitor is not None:
            monitor(0, 0, value, subspaces)
        stopped = "converged" if found.settled else "max_iter"
        solution = KernelSolution(
            subspaces, found.labels, value, (value,), (inner,), found.n_iter, stopped
        )
        return solution, found.criterion


def _scaled(G: Array, roots: Array) -> Array:
    """Return √w_i G_ij √w_j, as symmetric as G."""
    return G * (roots[:, None] * roots)
