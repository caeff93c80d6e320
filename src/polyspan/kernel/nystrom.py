"""A Nyström map: explicit coordinates of rank r in place of an N×N kernel matrix.

In these coordinates the problem is a linear one, and the linear solver solves it. Where the rows
are in files or in other processes, the coordinates are computed there; only landmarks, the scatter
of every subspace (L·r² numbers) and bases are sent. Updates are exact, because there are few
coordinates and power steps would need hundreds of passes.

The map is written by hand because `sklearn.kernel_approximation.Nystroem` draws its landmarks
itself and keeps directions that are only rounding errors.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    chunk_rows,
    float64_sum,
    is_host,
    item_bytes,
    limit_threads,
    members_of,
    moved_to,
    namespace,
    pass_work,
    row_slices,
    to_numpy,
    zeros,
)
from polyspan.base.progress import Monitor
from polyspan.data.working import Working, measure_block, working_lam
from polyspan.geometry.distances import distances_between
from polyspan.geometry.matrices import leading_eigen
from polyspan.kernel._solve.alternation import KernelSolution
from polyspan.kernel._solve.leave_one_out import LeaveOneOut, leave_one_out_labels
from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitted_unions import LowRankUnion
from polyspan.kernel.fitting import Data
from polyspan.kernel.functions import Kernel, check_values, matrix_of
from polyspan.kernel.options import KernelOptions
from polyspan.linear._solve.alternation import Rules, Solution, learn, update_exactly
from polyspan.linear._solve.problem import Problem, prepare, prepare_source

# Eigenvalues of the landmarks' kernel matrix below this fraction of the largest are rounding.
RANK_TOL = 1e-12


@dataclass(frozen=True)
class NystromMap:
    """φ(x) ≈ whitener ᵀ κ(landmarks, x), so that inner products of coordinates approximate κ."""

    kernel: Kernel
    landmarks: Array
    """Rows of the training data: (n_landmarks, n_features)."""
    whitener: Array
    """(n_landmarks, rank), with whitenerᵀ K whitener = I."""

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Array) -> NystromMap:
        """Build the map from landmarks."""
        values, vectors = leading_eigen(matrix_of(kernel, landmarks), RANK_TOL)
        if not values.shape[0]:  # all kernel values are 0: use one coordinate, which is 0
            return cls(kernel, landmarks, zeros((landmarks.shape[0], 1), landmarks))
        return cls(kernel, landmarks, vectors / namespace(values).sqrt(values))

    @property
    def rank(self) -> int:
        """Number of coordinates: the number of landmarks, or fewer where some are alike."""
        return int(self.whitener.shape[1])

    def __call__(self, X: Array) -> Array:
        """Return the coordinates of every row, (n, rank), chunk by chunk."""
        out = zeros((X.shape[0], self.rank), self.whitener)
        wide = X.shape[1] + self.landmarks.shape[0]
        for part in row_slices(X.shape[0], chunk_rows(wide, item_bytes(X), host=is_host(X))):
            out[part, :] = check_values(self.kernel(X[part, :], self.landmarks)) @ self.whitener
        return out

    def residuals(self, X: Array, Z: Array) -> Array:
        """Return κ(x, x) - ‖z‖², the squared distance of φ(x) to the span of the landmarks."""
        xp = namespace(Z)
        return xp.clip(self.kernel.diagonal(X) - xp.vecdot(Z, Z), 0.0, None)


@dataclass(frozen=True)
class NystromProblem:
    """Learn a union of subspaces from the Nyström coordinates of all samples."""

    map: NystromMap
    landmark_rows: Array
    """Indices of the samples that are the landmarks."""
    linear: Problem
    """The problem in the coordinates."""
    working: Working
    residual: float
    """λ times the squared distances of all samples to the span of the landmarks, which every
    union adds to its objective."""

    runs_in_parallel = False

    @classmethod
    def of(
        cls, data: Data, kernel: Kernel | None, low_rank: int, options: KernelOptions, rng: Any
    ) -> NystromProblem:
        """Draw landmarks and map the samples; rows of a source are mapped when they are read."""
        kernel, n_landmarks = _check_landmarks(kernel, low_rank, options, data.n_samples)
        chosen = _draw_landmarks(data, n_landmarks, rng)
        source = data.source
        if source is None:
            X, xp, own = data.X, namespace(data.X), data.weights
            map_ = NystromMap.of(kernel, xp.take(X, moved_to(chosen, X), axis=0))
            Z = map_(X)
            residuals = map_.residuals(X, Z)
            residual = float(xp.sum(residuals if own is None else own * residuals))
            linear, working = prepare(Z, 1.0, center=True, weights=own)
            chosen = chosen if data.kept is None else data.kept[chosen]
        else:
            # In float64, as for arrays in memory: square roots of float32 values are too inexact.
            map_ = NystromMap.of(kernel, np.asarray(source.take(chosen), dtype=np.float64))
            dtype = map_.whitener.dtype
            residual, _ = source.reduce(landmark_residual_block, dtype, map_, data.weights)
            extent, _ = source.reduce(measure_block, dtype, 0, map_, data.weights)
            linear, working = prepare_source(
                source, extent, 1.0, dtype=dtype, center=True, row_map=map_, weights=data.weights
            )
        return cls(map_, moved_to(chosen, linear.rows.like), linear, working, residual)

    def union(self, frames: Array) -> LowRankUnion:
        """Return the union with these bases of the linear solver."""
        return LowRankUnion(self.map, self.working.mean, self.working.to_data(frames))

    def mean_square(self) -> float:
        """Return the mean of the centred k(x, x)."""
        scale = self.working.scale
        return (self.linear.total / scale / scale + self.residual) / self.linear.n_samples

    def with_lam(self, lam: float) -> NystromProblem:
        """Return the problem with this λ, from the one with λ=1 that `of` returns."""
        weight = 1.0 if math.isinf(lam) else lam
        linear = replace(self.linear, lam=working_lam(lam, self.working.scale))
        return replace(self, linear=linear, residual=weight * self.residual)

    def distances(self, frames: Array) -> Array:
        """Return d_u between subspaces."""
        return distances_between(self.working.to_data(frames))

    def max_steps(self, options: KernelOptions) -> int:
        """Return the most iterations that one start can take."""
        return options.max_iter + 2 + options.n_subspaces

    def limit_threads(self, options: KernelOptions) -> AbstractContextManager[Any]:
        """Limit BLAS threads by the work of one pass; blocks of a source get one thread each."""
        rows, rank = self.linear.rows, self.map.rank
        n_columns = options.n_subspaces * min(options.subspace_dim, rank)
        return limit_threads(pass_work(rows.n_rows, rank, n_columns) if rows.in_memory else 0.0)

    def run(self, options: KernelOptions, seed: int, monitor: Monitor | None) -> KernelSolution:
        """Run one start until it stops."""
        linear, s = self.linear, min(options.subspace_dim, self.map.rank)
        labels = self._start_labels(options, s, seed)
        if options.leave_one_out:
            solution = self._leave_one_out(labels, options.n_subspaces, s, monitor)
        else:
            frames = self._start_frames(labels, options.n_subspaces, s)
            rules = Rules("exact", options.max_iter, options.tol)
            (solution,) = learn(linear, frames[None, ...], rules, monitor=monitor)
        found = self._in_feature_space(solution)
        criterion = solution.criterion if options.leave_one_out else found.objective
        counts = to_numpy(solution.counts)
        return replace(found, criterion=criterion, counts=counts, learned=solution.frames)

    def _leave_one_out(
        self, labels: Any, n_subspaces: int, s: int, monitor: Monitor | None
    ) -> Solution:
        """Find labels by leave-one-out residuals, then the bases for these labels."""
        linear = self.linear
        loo, _ = linear.rows.reduce(leave_one_out_block, labels, n_subspaces, s)
        labels = loo.labels[:, None]
        frames = self._start_frames(labels, n_subspaces, s)
        frames = update_exactly(linear, frames, labels, 0)
        (energy, counts), _ = linear.rows.reduce(assigned_energy_block, frames, loo.labels)
        value = float(linear.objective(frames[None, ...], energy)[0])
        if monitor is not None:
            monitor(0, 0, value, frames)
        stopped = "converged" if loo.settled else "max_iter"
        return Solution(
            frames, loo.labels, counts, value, loo.criterion, (value,), loo.n_iter, stopped
        )

    def _start_frames(self, labels: Any, n_subspaces: int, s: int) -> Array:
        """Return the bases with the smallest residuals for given labels, as if λ were infinite."""
        like = self.linear.rows.like
        blank = moved_to(np.stack([np.eye(self.map.rank, s)] * n_subspaces), like, like.dtype)
        return update_exactly(replace(self.linear, lam=math.inf), blank, labels, 0)

    def _start_labels(self, options: KernelOptions, s: int, seed: int) -> Any:
        """Find a start for the landmarks and label all samples by it; memory grows with N·r.

        The labels, (n_samples, 1), stay with the rows.
        """
        rows = self.linear.rows
        if options.init == "labels":
            return moved_to(options.given_start, rows.like)[:, None]
        landmarks = (self.map(self.map.landmarks) - self.working.mean) * self.working.scale
        if options.given_start is not None:
            # Seeds can be any samples: they are replaced by the nearest landmarks.
            seeds = nearest_landmarks(rows.take(options.given_start), landmarks)
            options = replace(options, given_start=to_numpy(seeds))
        size = min(s, landmarks.shape[0] // options.n_subspaces)
        start = options.start(landmarks @ landmarks.mT, size, seed, floor=0.0)
        return rows.reduce(label_block, landmarks, start, keep=True)[1]

    def _in_feature_space(self, solution: Solution) -> KernelSolution:
        """Return a solution in the units of the data, spanned by the landmarks."""
        working = self.working
        unit = working.residual_unit(self.linear.lam)
        history = [v / unit / unit + self.residual for v in solution.history]
        value = solution.objective / unit / unit + self.residual
        bases = working.to_data(solution.frames)
        coefs = [self.map.whitener @ bases[p, ...] for p in range(bases.shape[0])]
        subspaces = KernelSubspaces([self.landmark_rows] * len(coefs), coefs)
        labels = solution.labels if self.linear.rows.in_memory else None
        return KernelSolution(
            subspaces, labels, value, tuple(history), (), solution.n_iter, solution.stopped
        )


def _check_landmarks(
    kernel: Kernel | None, low_rank: int, options: KernelOptions, n_samples: int
) -> tuple[Kernel, int]:
    """Return the kernel and the number of landmarks, if there are enough."""
    if kernel is None:
        raise ValueError(
            "low_rank needs the samples, not kernel='precomputed': pass them and a kernel"
        )
    s, n_landmarks = options.subspace_dim, min(low_rank, n_samples)
    least = max(s + 1, options.n_subspaces)
    if n_landmarks < least:
        raise ValueError(
            f"low_rank={low_rank} with n_samples={n_samples} gives {n_landmarks} landmarks: "
            f"subspace_dim={s} and n_subspaces={options.n_subspaces} need {least}"
        )
    return kernel, n_landmarks


def _draw_landmarks(data: Data, n_landmarks: int, rng: Any) -> np.ndarray:
    """Draw rows as landmarks, by their weights: heavy samples need a good map most."""
    weights, chances = data.weights, None
    rows = np.arange(data.n_samples)
    if weights is not None:
        weights = to_numpy(weights) if data.source is None else data.source.collect(weights)
        rows = np.flatnonzero(weights)
        weights = weights[rows].astype(np.float64)
        if np.ptp(weights) > 0:  # equal weights give the landmarks of none
            chances = weights / weights.sum()
    chosen = np.sort(rng.choice(len(rows), n_landmarks, replace=False, p=chances))
    found: np.ndarray = rows[chosen]
    return found


def landmark_residual_block(
    block: Array, dtype: Any, map_: NystromMap, weights: np.ndarray | None = None
) -> tuple[float | None, None]:
    """Return the (weighted) sum of `NystromMap.residuals` over a block. A task."""
    X = np.asarray(block, dtype=dtype)
    if weights is not None:
        X, weights = X[weights > 0], weights[weights > 0]
    if not len(X):
        return None, None
    residuals = map_.residuals(X, map_(X))
    residuals = residuals if weights is None else weights * residuals
    return float(np.sum(residuals, dtype=np.float64)), None


def nearest_landmarks(Z: Array, landmarks: Array) -> Array:
    """Return the nearest landmark of every row of coordinates."""
    xp = namespace(Z)
    squares = xp.vecdot(landmarks, landmarks)
    return xp.argmin(squares / 2.0 - Z @ landmarks.mT, axis=1)


def label_block(block: Any, landmarks: Array, start: KernelSubspaces | Array) -> tuple[None, Array]:
    """Label rows by the start that was found for the landmarks. A task.

    If `start` holds subspaces, a row gets the nearest one. If it holds labels of the landmarks, a
    row gets the label of the nearest landmark.
    """
    xp = namespace(landmarks)
    labels = []
    for which in row_slices(block.X.shape[0], block.size):
        Z = block.centred(which)
        if isinstance(start, KernelSubspaces):
            labels.append(xp.argmax(start.energies(Z @ landmarks.mT), axis=1))
        else:
            of_landmarks = moved_to(start, landmarks)
            labels.append(xp.take(of_landmarks, nearest_landmarks(Z, landmarks)))
    return None, xp.concat(labels, axis=0)[:, None]


def leave_one_out_block(
    block: Any, labels: Array, n_subspaces: int, s: int
) -> tuple[LeaveOneOut, None]:
    """Improve labels by leave-one-out residuals. A task for a block that holds all rows."""
    Z = block.centred(slice(0, block.X.shape[0]))
    own = None if block.sample_weights is None else block.sample_weights[0, :]
    return leave_one_out_labels(Z, labels[:, 0], n_subspaces, s, own), None


def assigned_energy_block(block: Any, frames: Array, labels: Array) -> tuple[Any, None]:
    """Return Σ_i w_i‖D_lᵀy_i‖² for the label l of row i, (1,), and samples per subspace. A task."""
    xp = namespace(frames)
    own = block.assigned_coefficients(frames, labels)
    counts = [int(c.shape[0]) for c in members_of(labels, frames.shape[0])]
    squares = own * own
    if block.sample_weights is not None:
        squares = squares * block.sample_weights[0, :][:, None]
    return (xp.reshape(float64_sum(squares), (1,)), np.asarray(counts)), None
