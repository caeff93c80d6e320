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


def interleaved(runs: Mapping[str, Run], repeats: int) -> dict[str, float]:
    """Return the median seconds of each run; the runs take turns, so that drift affects all alike.

    The first turn is not timed. Seconds are those of the processor, of all threads: what else runs
    on the machine disturbs them less than it does wall time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            if turn:
                seconds[name].append(time.process_time() - begin)
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
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        names = [line for line in lines if line.startswith("model name")]
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
