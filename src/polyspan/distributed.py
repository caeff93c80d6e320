"""Rows of a dask array: every chunk returns its sums, which are added up where they arise.

Imported only where a dask array comes in. Whoever schedules dask's tasks, threads of this process
or the workers of a cluster, schedules these: the data go nowhere, and a worker that dies costs the
recomputation of its chunks. Nothing is persisted here: a lazy array is computed again in every
pass, so that it may be larger than the memory of all workers; persist what fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np
from dask import compute, delayed
from dask.sizeof import sizeof
from sklearn import config_context

from polyspan.arrays import Array, limit_threads
from polyspan.solvers.assignment import Sums
from polyspan.solvers.shares import Recipe, Worst

# Sums of neighbouring chunks, which mostly lie on one worker, are added this many at a time.
FAN_IN = 4


class DaskRows:
    """Chunks of rows of a dask array."""

    lazy = True

    def __init__(self, X: Any, header: Any = None) -> None:
        self.X = X
        self.header = X if header is None else header
        self._blocks = list(X.to_delayed().ravel())

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        found: np.dtype[Any] = np.dtype(self.X.dtype)
        return found

    def total(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of task(chunk, *arguments) over all chunks.

        The order of the additions is that of the chunks, not that of their arrival: the result
        depends neither on the number of workers nor on who dies.
        """
        token = uuid4().hex
        # A task of its own, so that it travels once to each worker and not with each chunk.
        shared = delayed(_held, pure=False)(arguments, dask_key_name=f"bases-{token}")
        parts = [
            delayed(_run, pure=False)(
                task, block, shared, dask_key_name=f"{task.__name__}-{token}-{k}"
            )
            for k, block in enumerate(self._blocks)
        ]
        level = 0
        while len(parts) > 1:
            groups = [parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN)]
            parts = [
                delayed(added, pure=False)(group, dask_key_name=f"add-{token}-{level}-{k}")
                for k, group in enumerate(groups)
            ]
            level += 1
        # Chunks are what runs in parallel; more BLAS threads would get in their way.
        with limit_threads(0.0):
            return parts[0].compute()

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Gather a few rows, given in ascending order."""
        # Tuples add up to one with the number of rows of every chunk, which dask may not know.
        ends = np.cumsum(self.total(_row_count))
        starts = np.concatenate([[0], ends[:-1]])
        parts = [
            delayed(_rows, pure=False)(block, own - start)
            for block, start, end in zip(self._blocks, starts, ends, strict=True)
            if len(own := indices[(indices >= start) & (indices < end)])
        ]
        return np.concatenate(compute(*parts))

    def map(self, model: Any, method: str) -> Any:
        """Return the lazy array of what a method of a fitted model makes of the rows."""
        like = _call(model, method, np.zeros((1, self.n_features), dtype=self.dtype))
        sent = delayed(model, pure=False, traverse=False)
        empty = np.empty((0, *like.shape[1:]), dtype=like.dtype)
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (self.X.chunks[0], (like.shape[1],))}
        return self.X.map_blocks(_apply, sent, method, empty, dtype=like.dtype, meta=empty, **shape)


def _size_of_fields(parts: Any) -> int:
    # Without it dask takes sums for a few bytes and moves them about as if they cost nothing.
    return sum(int(getattr(value, "nbytes", 64)) for value in vars(parts).values())


sizeof.register((Sums, Worst, Recipe), _size_of_fields)


def _held(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments


def _run(task: Callable[..., Any], block: Array, arguments: tuple[Any, ...]) -> Any:
    return task(block, *arguments)


def _row_count(block: Array) -> tuple[int]:
    return (len(block),)


def _rows(block: Array, which: np.ndarray) -> Array:
    return np.asarray(block)[which]


def added(parts: list[Any]) -> Any:
    """Add what is there; None stands for a block without rows."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def _apply(block: Array, model: Any, method: str, empty: np.ndarray) -> Array:
    return _call(model, method, block) if len(block) else empty


def _call(model: Any, method: str, block: Array) -> Array:
    # Blocks become chunks of an array, whatever `transform` may return elsewhere.
    with config_context(transform_output="default"):
        return getattr(model, method)(block)
