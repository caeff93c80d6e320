"""Benchmark rows for `SubspaceClustering`: one fit of many features, growth, time and memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
GROWTH = (5000, 16_000, 50_000)


def probe(*arguments: object) -> Row:
    """Fit in a process of its own, so that its peak memory is that of one fit with its data."""
    script = Path(__file__).with_name("clustering_probe.py")
    command = [sys.executable, str(script), *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    names = ("CPU s", "wall s", "peak MB with X", "label error in %")
    return dict(zip(names, map(float, output.stdout.split()), strict=True))


def clustering() -> Iterator[Row]:
    """Fit few samples of many features."""
    yield {"row": "clustering 1000x2000, subspaces"} | probe("subspaces", 1000, 2000)


def clustering_growth() -> Iterator[Row]:
    """Fit more and more samples; the last row of a kind has the exponent of the CPU time."""
    for kind, features in (("subspaces", [784]), ("digits", [])):
        seconds = []
        for n in GROWTH:
            row = probe(kind, n, *features)
            seconds.append(row["CPU s"])
            yield {"row": f"clustering {n}x784, {kind}"} | row
        exponent = np.polyfit(np.log(GROWTH), np.log(seconds), 1)[0]
        yield {"row": f"clustering growth, {kind}", "exponent of N": float(exponent)}


def clustering_large() -> Iterator[Row]:
    """Fit more samples than are clustered: exemplars."""
    yield {"row": "clustering 60000x784, subspaces"} | probe("subspaces", 60_000, 784)
    yield {"row": "clustering 60000x784, digits"} | probe("digits", 60_000)
