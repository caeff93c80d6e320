"""Where the rows are: an array in memory, slices of a file, chunks of a dask array.

A solver does not know which of these it has. It passes a task, which is a function of one block of
rows. It gets back the sum of what the task returned over all blocks and, with `keep=True`, the
results that belong to single rows. These results stay where the rows are, and a later task may take
them as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from sklearn import config_context

from polyspan.base.arrays import Array, moved_to, namespace

#: A function of a block of rows and of arguments. It returns (what is summed, results per row).
Task = Callable[..., tuple[Any, Any]]


class Addable:
    """Base of dataclasses whose fields add up over blocks; a field that is None stays None."""

    def __add__(self, other: Self) -> Self:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(None if a is None else a + b for a, b in pairs))


@dataclass(frozen=True)
class ArrayRows:
    """All rows in memory, as one block that is made once."""

    block: Any
    n_rows: int
    like: Array
    """An array with the width, the type, the namespace and the device of the blocks."""
    in_memory = True

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, Any]:
        """Run the task on the one block; return what is summed, and the results per row."""
        return task(self.block, *arguments)

    def take(self, indices: np.ndarray) -> Array:
        """Return a few rows in working coordinates; the indices are in ascending order."""
        return self.block.take(moved_to(indices, self.like))

    def block_of(self, indices: np.ndarray) -> Any:
        """Return the block of some rows; the indices are in ascending order."""
        return self.block.some(moved_to(indices, self.like))

    def weights_of(self, indices: np.ndarray) -> Array | None:
        """Return the weights of a few rows; None: 1 for each."""
        every = self.block.sample_weights
        if every is None:
            return None
        return namespace(every).take(every[0, :], moved_to(indices, self.like))

    def gather(self, results: Array, k: int) -> Array:
        """Return column k of the results, which are in memory."""
        return results[:, k, ...]


@dataclass(frozen=True)
class PerRow:
    """Results that belong to single rows: one part for every block, stored where its rows are."""

    parts: tuple[Any, ...]


class Source(Protocol):
    """Raw rows of a file or a dask array, before they are centred, scaled or filled."""

    X: Any
    header: Any
    """X, or the data frame that X was made from: the names of the features are read from it."""
    lazy: bool
    """Whether results per row are computed only on demand, as dask does."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        found: np.dtype[Any] = np.dtype(self.X.dtype)
        return found

    @property
    def working_type(self) -> np.dtype[Any]:
        """Type to work in: float32 stays, all else becomes float64."""
        return np.dtype(np.float32 if self.dtype == np.float32 else np.float64)

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, PerRow | None]:
        """Return the sum of task(block, *arguments) over all blocks.

        With `keep=True` also return the results per row, else None in their place.
        """

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Gather a few rows; the indices are in ascending order."""

    def row_counts(self) -> list[int]:
        """Return the number of rows of every block."""

    def cut(self, values: np.ndarray) -> PerRow:
        """Return values, one for each row, as results per row."""

    def collect(self, results: PerRow) -> np.ndarray:
        """Return results per row as one array in memory."""

    def map(self, model: Any, method: str) -> Any:
        """Apply a method of a fitted model to all rows and return its results."""

    def gather(self, results: PerRow) -> Any:
        """Return results per row as one array, which is lazy if the source is."""


@dataclass(frozen=True)
class BlockRows:
    """Rows that are not all in memory; each pass makes their blocks anew."""

    source: Source
    observation: Any
    """An `Observation`, which turns raw rows into a block to work on."""
    n_rows: int
    """Number of rows that are learned from."""
    like: Array
    n_left_out: int = 0
    """Number of rows with too few observed entries to learn from, or of weight 0."""
    weights: PerRow | None = None
    """Weights of all rows; None: 1 for each."""
    in_memory = False

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, Any]:
        """Run the task where the blocks are, and sum the results in the order of the blocks."""
        return self.source.reduce(
            run_on_block, task, self.observation, self.weights, *arguments, keep=keep
        )

    def take(self, indices: np.ndarray) -> Array:
        """Return a few rows in working coordinates; indices count only rows learned from."""
        block = self.block_of(indices)
        return block.take(np.arange(len(block.squared_norms())))

    def block_of(self, indices: np.ndarray) -> Any:
        """Return the block of some rows; the indices are in ascending order."""
        weights = self.weights_of(indices)
        return self.observation.block(self.source.take(self._among_all(indices)), weights)

    def weights_of(self, indices: np.ndarray) -> Array | None:
        """Return the weights of a few rows; None: 1 for each."""
        if self.weights is None:
            return None
        return self.source.collect(self.weights)[self._among_all(indices)]

    def _among_all(self, indices: np.ndarray) -> np.ndarray:
        """Return the indices among all rows of rows that are learned from."""
        if not self.n_left_out:
            return indices
        _, learned = self.source.reduce(learned_rows, self.observation, self.weights, keep=True)
        assert learned is not None
        return np.asarray(np.flatnonzero(np.asarray(self.source.gather(learned)))[indices])

    def gather(self, results: PerRow, k: int) -> Any:
        """Return column k of labels per row as one array, -1 for rows not learned from."""
        _, column = self.source.reduce(column_of, results, k, keep=True)
        if self.n_left_out:
            _, column = self.source.reduce(
                label_every_row, self.observation, self.weights, column, keep=True
            )
        assert column is not None
        return self.source.gather(column)


#: Rows that are visited block by block.
Rows = ArrayRows | BlockRows


def learned_rows(
    raw: Array, observation: Any, weights: np.ndarray | None
) -> tuple[None, np.ndarray]:
    """Mark the rows that are learned from by 1, all others by 0. A task."""
    return None, observation.learned(raw, weights).astype(np.int64)


def label_every_row(
    raw: Array, observation: Any, weights: np.ndarray | None, labels: np.ndarray | None
) -> tuple[None, np.ndarray]:
    """Give the label -1 to rows that are not learned from. A task."""
    learned = observation.learned(raw, weights)
    every = np.full(len(learned), -1)
    if labels is not None:
        every[learned] = labels
    return None, every


def run_on_block(
    raw: Array, task: Task, observation: Any, weights: np.ndarray | None, *arguments: Any
) -> tuple[Any, Any]:
    """Make a block of raw rows, with their weights, and run a task on it."""
    block = observation.block(raw, weights)
    return (None, None) if block is None else task(block, *arguments)


def part_for_block(argument: Any, k: int) -> Any:
    """Return an argument for block k: the part of this block where it holds results per row."""
    return argument.parts[k] if isinstance(argument, PerRow) else argument


def sum_parts(parts: Iterable[Any]) -> Any:
    """Sum the results of all blocks; None stands for a block without rows."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def column_of(block: Any, results: Array | None, k: int) -> tuple[None, Array | None]:
    """Return column k of results per row, which belongs to start k. A task."""
    return None, None if results is None else results[:, k, ...]


def called(model: Any, method: str, block: Array) -> Array:
    """Apply a method of a model to a block: the result is an array, whatever `set_output` asks."""
    with config_context(transform_output="default"):
        return getattr(model, method)(block)


def columns_of(block: Any, results: Array, which: Array) -> tuple[None, Array]:
    """Return some columns of results per row. A task."""
    return None, namespace(results).take(results, which, axis=1)
