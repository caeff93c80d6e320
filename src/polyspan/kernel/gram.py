"""The kernel matrix of all samples: the problem that Algorithm 5 solves, and the union it finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import KernelCenterer

from polyspan._sklearn import plain_settings
from polyspan.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    limit_threads,
    machine_epsilon,
    members_of,
    moved_to,
    namespace,
    row_slices,
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
from polyspan.kernel.fitting import Found
from polyspan.kernel.functions import Kernel, largest_entry
from polyspan.kernel.incomplete import estimate_kernel
from polyspan.kernel.prediction import Position
from polyspan.kernel.preimages import Expansion
from polyspan.kernel.starts import Plan
from polyspan.progress import Monitor


@dataclass(frozen=True)
class GramProblem:
    """Samples that are known by their kernel values."""

    G: Array
    """The kernel matrix, centred."""
    blank: ExactUnion
    """The union to learn, still without subspaces."""
    floor: float
    """Eigenvalues of G up to this are rounding of the matrix before it was centred."""
    coordinates: Array | None = None
    """Rows Z with ZZᵀ = G, which leave-one-out residuals need."""

    runs_in_parallel = True

    @classmethod
    def of(
        cls, G: Array, kernel: Kernel | None, X: Array, *, leave_one_out: bool = False, **known: Any
    ) -> GramProblem:
        """Centre the kernel matrix of samples X; `known` are further fields of the union.

        Without a kernel X is the matrix itself, of which the union needs no more than the diagonal.
        """
        if kernel is None:
            xp = namespace(G)
            X = xp.asarray(xp.linalg.diagonal(G), copy=True)
        with plain_settings(G):
            centerer = KernelCenterer().fit(G)
        floor = machine_epsilon(G) * int(G.shape[0]) * largest_entry(G)
        blank = ExactUnion(kernel, X, centerer, KernelSubspaces([], []), **known)
        G = centred_by(centerer, G)
        return cls(G, blank, floor, explicit_coordinates(G, floor) if leave_one_out else None)

    def union(self, subspaces: KernelSubspaces) -> ExactUnion:
        """Return the union that has these subspaces."""
        return replace(self.blank, subspaces=subspaces)

    def distances(self, subspaces: KernelSubspaces) -> Array:
        """Return d_u between subspaces."""
        return subspaces.distances(self.G)

    def max_steps(self, plan: Plan) -> int:
        """Return the most iterations that one start can take."""
        return 2 * plan.rules.max_iter + 2

    def limit_threads(self, plan: Plan) -> AbstractContextManager[Any]:
        """Limit BLAS threads; the work of one pass is that of the products with G."""
        n_columns = plan.n_subspaces * plan.rules.subspace_dim
        return limit_threads(2.0 * self.G.shape[0] ** 2 * n_columns, plan.n_starts)

    def run(self, plan: Plan, seed: int, monitor: Monitor | None) -> Found:
        """Run one start to its end."""
        G, n_subspaces = self.G, plan.n_subspaces
        rules = replace(plan.rules, floor=self.floor)
        start = plan.start(G, rules.subspace_dim, seed, self.floor)
        if plan.leave_one_out:
            solution, criterion = self._leave_one_out(start, n_subspaces, rules, monitor)
        else:
            solution = alternate(G, start, n_subspaces, rules, monitor=monitor)
            solution = refill_empty(G, solution, n_subspaces, rules, monitor=monitor)
            criterion = solution.objective
        xp = namespace(G)
        solution = replace(solution, labels=xp.astype(solution.labels, xp.int64))
        counts = np.bincount(to_numpy(solution.labels), minlength=n_subspaces)
        return Found(solution, criterion, counts, solution.subspaces)

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
class ExactUnion:
    """Subspaces spanned by training samples: Algorithm 5."""

    kernel: Kernel | None
    """None where kernel values are given."""
    X: Array
    """Training samples, or the diagonal of the given kernel matrix."""
    centerer: KernelCenterer
    subspaces: KernelSubspaces
    incomplete: bool = False
    """Whether values are estimated from the entries that two samples have in common."""
    gram: Array | None = None
    """The kernel matrix that was learned from, where it cannot be computed again."""
    signs: Array | None = None
    """What values of new samples are multiplied by where the matrix was mended."""
    fill: float | None = None
    """Estimate for pairs of samples without a common entry."""

    @property
    def n_subspaces(self) -> int:
        """Number of subspaces."""
        return len(self.subspaces.members)

    @property
    def n_samples(self) -> int:
        """Number of training samples."""
        return int(self.X.shape[0])

    def positions(self, X: Array) -> Iterator[tuple[slice, Position]]:
        """Measure samples chunk by chunk."""
        for which, K in self._values(X):
            means = namespace(K).mean(K, axis=1)
            norms = self._diagonal(X[which, ...]) - 2.0 * means + self.centerer.K_fit_all_
            yield which, Position(self.subspaces.energies(centred_by(self.centerer, K)), norms)

    def nearest(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Return the nearest subspace of samples, chunk by chunk; κ(z, z) is not needed."""
        for which, K in self._values(X):
            energies = self.subspaces.energies(centred_by(self.centerer, K))
            yield which, namespace(K).argmax(energies, axis=1)

    def expansions(self, X: Array) -> Iterator[tuple[Array, Expansion]]:
        """Yield (rows, the projections of these rows on their nearest subspace)."""
        xp = namespace(X)
        G = self.training_values()
        for which, K in self._values(X):
            centred = centred_by(self.centerer, K)
            projections = self.subspaces.projections(centred)
            energies = xp.stack([xp.vecdot(p, p) for p in projections], axis=1)
            members = members_of(xp.argmax(energies, axis=1), self.n_subspaces)
            for p, own in enumerate(members):
                if not own.shape[0]:
                    continue
                # ζ on the members; what centring took away is spread over all samples.
                E = self.subspaces.coefs[p]
                zeta = xp.take(projections[p], own, axis=0) @ transpose(E)
                spread = (1.0 - xp.sum(zeta, axis=1, keepdims=True)) / G.shape[0]
                weights = spread + _over_all(zeta, self.subspaces.members[p], G.shape[0])
                yield own + which.start, Expansion.of(weights, G)

    def training_samples(self) -> tuple[Array, Array | None]:
        """Return the training samples, zero where entries are missing, and which are there."""
        if not self.incomplete:
            return self.X, None
        observed = ~np.isnan(self.X)
        return np.where(observed, self.X, 0.0), observed

    def training_position(self, X: Array) -> Position | None:
        """Measure the training samples where κ(z, z) of given, or mended, values is needed.

        It is the diagonal of the kernel matrix that was learned from: X, where that was given.
        """
        if self.kernel is not None and self.gram is None:
            return None
        G = centred_by(self.centerer, X if self.gram is None else self.gram)
        return Position(self.subspaces.energies(G), namespace(G).linalg.diagonal(G))

    def training_values(self) -> Array:
        """Return the kernel matrix of the training samples, not centred."""
        if self.gram is not None:
            return self.gram
        assert self.kernel is not None
        return self.kernel(self.X)

    def _values(self, X: Array) -> Iterator[tuple[slice, Array]]:
        bound = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
        size = max(1, bound // (4 * self.n_samples * item_bytes(X)))
        for which in row_slices(X.shape[0], size):
            rows = X[which, :]
            if self.kernel is None:
                yield which, rows
            elif self.incomplete:
                yield which, self._estimated(rows)
            else:
                yield which, self.kernel(rows, self.X)

    def _estimated(self, X: Array) -> Array:
        """Estimate values of samples with holes, and treat them as the training samples' were."""
        assert self.kernel is not None
        found = estimate_kernel(self.kernel, X, self.X, fill=self.fill)
        if found.n_unrelated:
            warn_user(
                f"{found.n_unrelated} of {found.values.size} pairs of new and training samples "
                "have no common observed entry: their kernel values are a mean"
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
        observed = np.maximum((~np.isnan(X)).sum(axis=1), 1)
        squares = np.nansum(X * X, axis=1) * X.shape[1] / observed
        return self.kernel.of_products(squares, X.shape[1])


def centred_by(centerer: KernelCenterer, K: Array) -> Array:
    """Return kernel values with the training samples, relative to the mean of these samples."""
    with plain_settings(K):
        return centerer.transform(K)


def _over_all(values: Array, columns: Array, n: int) -> Array:
    """Return (k, n) values that are zero but in some columns."""
    xp = namespace(values)
    place = np.full(n, values.shape[1])
    place[to_numpy(columns)] = np.arange(values.shape[1])
    padded = xp.concat([values, zeros((values.shape[0], 1), values)], axis=1)
    return xp.take(padded, moved_to(place, values), axis=1)
