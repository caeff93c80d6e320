"""The parts of linear models: what `partial_fit` remembers, and what was merged."""

from __future__ import annotations

from typing import Any

from polyspan.saved_structure.shapes import Shapes
from polyspan.union._solve.memory import Memory
from polyspan.union._solve.merging import Merge
from polyspan.union.streaming import Stream


def _memory(one: Memory, see: Shapes) -> None:
    see.floats("reference", one.reference, "features")
    see.floats("counts", one.counts, "subspaces")
    see.floats("totals", one.totals, "subspaces", "features")
    for k, rows in enumerate(see.several("factors", one.factors, "subspaces")):
        see.floats(f"factors[{k}]", rows, None, "features")
    see.number("squares", one.squares)
    see.whole("rank", one.rank, 0, see["features"])


def _stream(one: Stream, see: Shapes) -> None:
    see.number("n_seen", one.n_seen, 0.0)
    see.number("n_fitted", one.n_fitted, 0.0)
    see.number("scale", one.scale, 0.0)
    see.several("options", one.options, 4)
    see.floats("sums", one.sums, "features")
    see.floats("counts", one.counts, "features")
    if one.first is not None:
        see.floats("first", one.first, "rows", "features", finite=False)
        if one.first_weights is not None:
            see.floats("first_weights", one.first_weights, "rows")
    if one.memory is not None or one.first is None:
        if "subspaces" not in see.sizes:  # there are no bases yet
            see.same("memory", one.memory, None)
        see.part("memory", one.memory, Memory, **see.sizes)


def _merge(one: Merge, see: Shapes) -> None:
    see.text("kind", one.kind)
    see.whole("n_left", one.n_left, 0, 2**31)
    see.number("distance", one.distance)


CHECKS: dict[type, Any] = {Memory: _memory, Stream: _stream, Merge: _merge}
