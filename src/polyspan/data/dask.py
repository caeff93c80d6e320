"""Rows of a dask array: every chunk returns its sums, and the workers add them up.

This file is imported only if X is a dask array. Its tasks run on the scheduler that dask uses:
threads of this process, or the workers of a cluster. The data stay on the workers. If a worker
dies, dask computes its chunks again. The rows are not persisted here: a lazy array is computed
again in every pass, so that it may be larger than the memory of all workers. If it fits in memory,
persist it before the fit. Results per row are persisted because the next pass needs them.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import dask.array
import numpy as np
from dask import compute, delayed, persist
from dask.sizeof import sizeof

from polyspan.base.arrays import Array, limit_threads
from polyspan.data.rows import Addable, PerRow, Source, Task, called, part_for_block, sum_parts

# So many sums are added at a time. They belong to neighbouring chunks, mostly of one worker.
FAN_IN = 4


class DaskRows(Source):
    """Chunks of rows of a dask array."""

    lazy = True

    def __init__(self, X: Any, header: Any = None) -> None:
        self.X = X
        self.header = X if header is None else header
        self._blocks = list(X.to_delayed().ravel())

    def reduce(self, task: Task, *arguments: Any, keep: bool = False) -> tuple[Any, PerRow | None]:
        """Return the sum of task(chunk, *arguments); with `keep` also the results per row.

        Sums are added in the order of the chunks, not in the order in which they arrive: the
        result depends neither on the number of workers nor on workers that die.
        """
        token, name = uuid4().hex, getattr(task, "__name__", "task")
        per_row = [k for k, argument in enumerate(arguments) if isinstance(argument, PerRow)]
        common = [None if k in per_row else a for k, a in enumerate(arguments)]
        # The common arguments are one dask task, so that each worker receives them only once.
        shared = delayed(list, pure=False)(common, dask_key_name=f"bases-{token}")
        parts = [
            delayed(_run, pure=False)(
                task, block, shared, {k: part_for_block(arguments[k], j) for k in per_row}, keep,
                dask_key_name=f"{name}-{token}-{j}",
            )
            for j, block in enumerate(self._blocks)
        ]  # fmt: skip
        sums = [part[0] for part in parts] if keep else parts
        level = 0
        while len(sums) > 1:
            groups = [sums[k : k + FAN_IN] for k in range(0, len(sums), FAN_IN)]
            sums = [
                delayed(sum_parts, pure=False)(group, dask_key_name=f"add-{token}-{level}-{k}")
                for k, group in enumerate(groups)
            ]
            level += 1
        # The chunks run in parallel already; more BLAS threads would slow them down.
        with limit_threads(0.0):
            if not keep:
                return sums[0].compute(), None
            total, *own = persist(sums[0], *(part[1] for part in parts))
            return total.compute(), PerRow(tuple(own))

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Gather a few rows; the indices are in ascending order."""
        # dask may not know the sizes of its chunks. Tuples of one size add up to all sizes.
        ends = np.cumsum(self.row_counts())
        starts = np.concatenate([[0], ends[:-1]])
        parts = [
            delayed(_rows, pure=False)(block, own - start)
            for block, start, end in zip(self._blocks, starts, ends, strict=True)
            if len(own := indices[(indices >= start) & (indices < end)])
        ]
        return np.concatenate(compute(*parts))

    def row_counts(self) -> list[int]:
        """Return the number of rows of every chunk."""
        return list(self.reduce(_row_count)[0])

    def cut(self, values: np.ndarray) -> PerRow:
        """Send values, one for each row, to where the chunks are worked on."""
        parts = np.split(values, np.cumsum(self.row_counts())[:-1])
        return PerRow(tuple(persist(*(delayed(part, pure=False) for part in parts))))

    def collect(self, results: PerRow) -> np.ndarray:
        """Return results per row as one array in memory."""
        return np.concatenate(compute(*results.parts))

    def map(self, model: Any, method: str) -> Any:
        """Apply a method of a fitted model lazily: return a dask array of its results."""
        like = called(model, method, np.zeros((1, self.n_features), dtype=self.dtype))
        sent = delayed(model, pure=False, traverse=False)
        empty = np.empty((0, *like.shape[1:]), dtype=like.dtype)
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (self.X.chunks[0], (like.shape[1],))}
        return self.X.map_blocks(_apply, sent, method, empty, dtype=like.dtype, meta=empty, **shape)

    def gather(self, results: PerRow) -> Any:
        """Return results per row as one lazy array of labels."""
        chunks = [
            dask.array.from_delayed(
                delayed(_labels_or_empty, pure=False)(part), (n,), dtype=np.int64
            )
            for part, n in zip(results.parts, self.X.chunks[0], strict=True)
        ]
        return dask.array.concatenate(chunks)


def _size_of_fields(parts: Any) -> int:
    # Without this dask believes that sums have a few bytes and moves them between workers.
    return sum(int(getattr(value, "nbytes", 64)) for value in vars(parts).values())


sizeof.register(Addable, _size_of_fields)


def _run(task: Task, block: Array, common: list[Any], per_row: dict[int, Any], keep: bool) -> Any:
    own = [per_row.get(k, argument) for k, argument in enumerate(common)]
    found = task(block, *own)
    return found if keep else found[0]


def _labels_or_empty(part: Any) -> Array:
    return np.empty(0, dtype=np.int64) if part is None else part


def _row_count(block: Array) -> tuple[tuple[int], None]:
    return (len(block),), None


def _rows(block: Array, which: np.ndarray) -> Array:
    return np.asarray(block)[which]


def _apply(block: Array, model: Any, method: str, empty: np.ndarray) -> Array:
    return called(model, method, block) if len(block) else empty
