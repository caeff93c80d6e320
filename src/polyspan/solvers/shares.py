"""Rows that are not all here: cut into blocks, on other machines or on disk.

A block of rows, with what all of them have in common (`Recipe`), is a small problem of its own: it
is visited as one in memory is, by the same functions. What comes back from a block is a sum, and
sums add up. So a pass sends bases one way and sums the other, and nothing here knows who adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from polyspan.arrays import (
    Array,
    Rows,
    chunk_rows,
    item_bytes,
    keep_freed_memory,
    top_eigenvectors,
)
from polyspan.solvers.assignment import Sums
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.masked import MaskedProblem
from polyspan.solvers.masked_preparation import recurring_patterns
from polyspan.solvers.problem import Problem

# A subspace that is re-seeded starts from no more samples than this, which are gathered.
MOST_GATHERED = 1000

#: Maps rows to what is worked on, such as the coordinates of a kernel; applied where the rows are.
RowMap = Callable[[Array], Array]


class Blocks(Protocol):
    """Blocks of rows somewhere."""

    def total(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of task(block, *arguments) over all blocks, in their order.

        A task that returns None, for a block without rows, adds nothing.
        """


@dataclass(frozen=True)
class PartedRows(Rows):
    """The shape of rows that are elsewhere; X has no rows, only a width and a type."""

    n_rows: int = 0
    n_columns: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, wherever they are, and of features."""
        return (self.n_rows, int(self.X.shape[1]))

    @property
    def rows_together(self) -> int:
        """All starts share one pass: reading the rows again costs more than anything."""
        return 1

    def with_columns(self, n_columns: int) -> PartedRows:
        """Return the same rows, to be visited within the memory of n_columns projections."""
        return replace(self, n_columns=n_columns)


@dataclass(frozen=True)
class Recipe:
    """How a block of rows becomes a problem, in units that all blocks share."""

    lam: float
    dtype: Any
    mean: Array | None = None
    """In working units."""
    explicit: bool = False
    scale: float = 1.0
    holes: bool = False
    least: int = 0
    """With holes: samples with no more observed entries than this are left out."""
    prior: float = 0.0
    row_map: RowMap | None = None
    n_columns: int = 0

    def problem(self, block: Array, *, with_norms: bool = False) -> Problem | None:
        """Return the block as a problem, or None where it has no rows to learn from."""
        keep_freed_memory()
        X = np.asarray(block, dtype=self.dtype)
        if self.row_map is not None and len(X):
            X = self.row_map(X)
        if self.holes:
            return self._masked(X)
        if not len(X):
            return None
        if self.scale != 1.0:
            X = X * self.scale
        size = chunk_rows(X.shape[1], item_bytes(X), self.n_columns)
        rows = Rows(X, self.mean, size, self.explicit)
        norms = np.empty(0, dtype=X.dtype)
        if with_norms:
            slices = [slice(k, k + size) for k in range(0, len(X), size)]
            norms = np.concatenate([_squares(rows.centred(which)) for which in slices])
        return Problem(rows, norms, float(norms.sum(dtype=np.float64)), self.lam)

    def _masked(self, X: np.ndarray) -> Problem | None:
        missing = np.isnan(X)
        n_observed = X.shape[1] - missing.sum(axis=1)
        learned = n_observed > self.least
        if not learned.all():
            X, missing, n_observed = X[learned], missing[learned], n_observed[learned]
        if not len(X):
            return None
        # Scaled first: the mean is in working units.
        values = X * X.dtype.type(self.scale)
        if self.mean is not None:
            values -= self.mean
        values[missing] = 0
        weights = (X.shape[1] / n_observed).astype(X.dtype)
        norms = _squares(values) * weights
        patterns, shared = recurring_patterns(missing)
        rows = Rows(values, None, chunk_rows(X.shape[1], item_bytes(X), self.n_columns))
        return MaskedProblem(
            rows, norms, float(norms.sum(dtype=np.float64)), self.lam,
            missing, weights, self.prior, patterns, shared,
        )  # fmt: skip


def _squares(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("nm,nm->n", values, values))


@dataclass(frozen=True)
class Worst:
    """The worst represented samples so far: squared residuals, descending, and the samples."""

    residuals: Array
    samples: Array

    def __add__(self, other: Worst) -> Worst:
        residuals = np.concatenate([self.residuals, other.residuals])
        samples = np.concatenate([self.samples, other.samples])
        order = np.argsort(-residuals, kind="stable")[:MOST_GATHERED]
        return Worst(residuals[order], samples[order])


@dataclass(frozen=True)
class SharedProblem(Problem):
    """Data in blocks: what a solver asks of it.

    Labels stay where the rows are: those returned here have no rows.
    """

    blocks: Blocks = field(default=None)  # type: ignore[assignment]
    recipe: Recipe = field(default=None)  # type: ignore[assignment]

    def assign(
        self, bases: Array, *, with_products: bool, leverage: Leverage | None = None
    ) -> tuple[Array, Sums]:
        """Give every sample to its nearest subspace, in one pass over the blocks."""
        sums = self.blocks.total(assign_block, self._own_recipe(), bases, with_products)
        return np.empty((0, bases.shape[0]), dtype=np.int64), sums

    def weigh(
        self,
        bases: Array,
        temperature: float,
        *,
        leverage: Leverage | None = None,
        keep_weights: bool = True,
    ) -> tuple[Array | None, Sums]:
        """Share every sample out among the subspaces, in one pass over the blocks."""
        return None, self.blocks.total(weigh_block, self._own_recipe(), bases, temperature)

    def worst_samples(self, bases: Array, turn: int, n_turns: int) -> Array:
        """Return samples with the largest residuals; no more than a thousand are gathered."""
        worst = self.blocks.total(worst_of_block, self._own_recipe(), bases)
        share = self._share_of_worst(bases)
        return worst.samples[turn::n_turns][:share]

    def exact_step(self, bases: Array, labels: Array) -> Array:
        """Replace every basis of one start by leading eigenvectors, for few features only.

        Takes a second pass, from which m×m numbers come back for every subspace.
        """
        scatter = self.blocks.total(scatter_of_block, self._own_recipe(), bases)
        return self.step_on(scatter, bases)

    def step_on(self, scatter: Array, bases: Array) -> Array:
        """Return the leading eigenvectors of A_l for every subspace in turn, given all S_l."""
        updated = np.array(bases)
        for p, matrix in enumerate(scatter):
            matrix = self.data * matrix
            for q, other in enumerate(updated):
                if q != p and self.pull:
                    matrix = matrix + self.pull * (other @ other.T)
            if matrix.any():
                updated[p] = top_eigenvectors(matrix, bases.shape[2])[1]
        return updated

    def _own_recipe(self) -> Recipe:
        # pooled_residual works with another λ, and the learner sets the columns.
        assert isinstance(self.rows, PartedRows)
        return replace(self.recipe, lam=self.lam, n_columns=self.rows.n_columns)


def assign_block(block: Array, recipe: Recipe, bases: Array, with_products: bool) -> Sums | None:
    """Return the sums of the hard assignment of a block."""
    problem = recipe.problem(block)
    return None if problem is None else problem.assign(bases, with_products=with_products)[1]


def weigh_block(block: Array, recipe: Recipe, bases: Array, temperature: float) -> Sums | None:
    """Return the sums of the soft assignment of a block."""
    problem = recipe.problem(block)
    return None if problem is None else problem.weigh(bases, temperature, keep_weights=False)[1]


def scatter_of_block(block: Array, recipe: Recipe, bases: Array) -> Array | None:
    """Return the scatter of the members of every subspace, (n_subspaces, m, m)."""
    problem = recipe.problem(block)
    if problem is None:
        return None
    labels = problem.assign(bases[None], with_products=False)[0][:, 0]
    return block_scatter(problem.rows, lambda which, _: labels[which], len(bases))


def block_scatter(
    rows: Rows, rule: Callable[[slice, np.ndarray], np.ndarray], n_subspaces: int
) -> Array:
    """Return the scatter of every cluster, with the labels that a rule gives to centred rows."""
    n, m = rows.shape
    total = np.zeros((n_subspaces, m, m), dtype=rows.X.dtype)
    for start in range(0, n, rows.size):
        which = slice(start, min(n, start + rows.size))
        samples = rows.centred(which)
        labels = rule(which, samples)
        for p in range(n_subspaces):
            own = samples[labels == p]
            total[p] += own.T @ own
    return total


def worst_of_block(block: Array, recipe: Recipe, bases: Array) -> Worst | None:
    """Return the worst represented samples of a block."""
    problem = recipe.problem(block, with_norms=True)
    if problem is None:
        return None
    residuals = problem.residuals(bases)
    order = np.argsort(-residuals, kind="stable")[:MOST_GATHERED]
    samples = problem.rows.X[order]
    if problem.rows.mean is not None:
        samples = samples - problem.rows.mean
    return Worst(residuals[order], samples)
