"""Where the rows are: an array in memory, slices of a file, chunks of a dask array.

A solver never asks which. It hands over a task, a function of a block of rows, and gets back the
sum of what the task returned and, where it asks for them, the results that belong to single rows.
These stay where the rows are, and a later task may take them as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np

from polyspan.arrays import Array, moved_to, namespace

#: A function of a block of rows, with arguments, that returns (what adds up, what is per row).
Task = Callable[..., tuple[Any, Any]]


class Addable:
    """Base of dataclasses whose fields add up over blocks; a field that is None stays None."""

    def __add__(self, other: Self) -> Self:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*(None if a is None else a + b for a, b in pairs))


@dataclass(frozen=True)
class ArrayRows:
    """All rows in memory: one block, made once."""

    block: Any
    n_rows: int
    like: Array
    """An array of the width, the type, the namespace and the device that blocks have."""
    in_memory = True

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, Any]:
        """Run the task on the one block: return what adds up, and the results per row."""
        return task(self.block, *arguments)

    def take(self, indices: np.ndarray) -> Array:
        """Return a few rows as they are worked on, given in ascending order."""
        return self.block.take(moved_to(indices, self.like))

    def gather(self, results: Array, k: int) -> Array:
        """Return column k of the results: they are here."""
        return results[:, k, ...]


@dataclass(frozen=True)
class PerRow:
    """Results that belong to rows, one part for every block, beside the rows themselves."""

    parts: tuple[Any, ...]


class Source(Protocol):
    """Rows as they come, before they are centred, scaled or filled: a file or a dask array."""

    X: Any
    header: Any
    """What the names of the features are read from: X, or the frame that it was."""
    lazy: bool
    """Whether results per row are yet to be computed."""

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
        """Return the sum of task(block, *arguments) over all blocks, and the results per row."""

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Gather a few rows, given in ascending order."""

    def map(self, model: Any, method: str) -> Any:
        """Return what a method of a fitted model makes of the rows."""

    def gather(self, results: PerRow) -> Any:
        """Return results per row as one array, lazy where the source is."""


@dataclass(frozen=True)
class BlockRows:
    """Rows that are not all here; each pass makes blocks of them anew."""

    source: Source
    observation: Any
    """What turns rows as they come into a block to work on, or None where it has none."""
    n_rows: int
    """Rows that are learned from."""
    like: Array
    n_left_out: int = 0
    """Rows that have too few observed entries to be learned from."""
    in_memory = False

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, Any]:
        """Run the task wherever the blocks are, and add up in their order."""
        return self.source.reduce(run_on_block, task, self.observation, *arguments, keep=keep)

    def take(self, indices: np.ndarray) -> Array:
        """Return a few rows as they are worked on, counted among those that are learned from."""
        if self.n_left_out:
            _, learned = self.source.reduce(learned_rows, self.observation, keep=True)
            assert learned is not None
            indices = np.flatnonzero(np.asarray(self.source.gather(learned)))[indices]
        block = self.observation.block(self.source.take(indices))
        return block.take(np.arange(len(block.squared_norms())))

    def gather(self, results: PerRow, k: int) -> Any:
        """Return column k of labels per row as one array, -1 for rows not learned from."""
        _, column = self.source.reduce(column_of, results, k, keep=True)
        if self.n_left_out:
            _, column = self.source.reduce(label_every_row, self.observation, column, keep=True)
        assert column is not None
        return self.source.gather(column)


#: Rows that are visited block by block.
Rows = ArrayRows | BlockRows


def learned_rows(raw: Array, observation: Any) -> tuple[None, np.ndarray]:
    """Tell which rows are learned from, as 0 or 1. A task."""
    return None, observation.learned(raw).astype(np.int64)


def label_every_row(
    raw: Array, observation: Any, labels: np.ndarray | None
) -> tuple[None, np.ndarray]:
    """Give the label -1 to rows that are not learned from. A task."""
    learned = observation.learned(raw)
    every = np.full(len(learned), -1)
    if labels is not None:
        every[learned] = labels
    return None, every


def run_on_block(raw: Array, task: Task, observation: Any, *arguments: Any) -> tuple[Any, Any]:
    """Run a task on rows as they come."""
    block = observation.block(raw)
    return (None, None) if block is None else task(block, *arguments)


def part_for_block(argument: Any, k: int) -> Any:
    """Return what block k needs of an argument: of results per row its own part."""
    return argument.parts[k] if isinstance(argument, PerRow) else argument


def sum_parts(parts: list[Any]) -> Any:
    """Add what is there; None stands for a block without rows."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def column_of(block: Any, results: Array | None, k: int) -> tuple[None, Array | None]:
    """Return one column of results per row: those of one start. A task."""
    return None, None if results is None else results[:, k, ...]


def columns_of(block: Any, results: Array, which: Array) -> tuple[None, Array]:
    """Return some columns of results per row. A task."""
    return None, namespace(results).take(results, which, axis=1)
