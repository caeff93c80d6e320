"""Benchmark rows of small fits, where what is around the products takes most of the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from timing import interleaved
from workloads import SMALL

Row = dict[str, Any]


def small() -> Iterator[Row]:
    """Time fits of 180 × 20 and a picture of 32 × 32."""
    seconds = interleaved({name: make() for name, make in SMALL.items()}, 15)
    for name, spent in seconds.items():
        yield {"row": name, "CPU ms per fit": 1e3 * spent}
