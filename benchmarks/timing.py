"""Median times of runs that take turns in one process; peak memory; the machine."""

from __future__ import annotations

import platform
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[], Any]


def interleaved(runs: Mapping[str, Run], repeats: int, *, cpu: bool = False) -> dict[str, float]:
    """Return the median seconds of each run; the runs take turns, so that drift affects all alike.

    The first turn is not timed. `cpu` counts processor time of all threads instead of wall time.
    """
    clock = time.process_time if cpu else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            begin = clock()
            run()
            if turn:
                seconds[name].append(clock() - begin)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def peak_mib(run: Run) -> float:
    """Return the peak memory that Python and NumPy allocated during a run, in MiB."""
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def machine() -> dict[str, str]:
    """Return the processor, the versions of the packages, the commit and the date."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    git = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    here = Path(__file__).parent
    commit = subprocess.run(git, cwd=here, capture_output=True, text=True, check=False)
    return {
        "processor": model,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit-learn": version("scikit-learn"),
        "polyspan": version("polyspan"),
        "commit": commit.stdout.strip() or "unknown",
        "date": time.strftime("%Y-%m-%d"),
    }
