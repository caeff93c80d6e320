"""Fit large data in a process of its own; print the MB used beyond X, and the MB of X.

The argument chooses the fit:

    (none)           200 000 × 784 complete samples, float32
    missing          100 000 × 256 samples with 30 % missing, float32
    kernel           all USPS digits by a kernel model of low rank
    ssc, omp, tsc    2414 × 2016 samples by this clustering, float64
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import usps
from polyspan import MCKUSaL, MiCUSaL, RobustMiCUSaL
from polyspan.baselines import SparseSubspaceClustering, ThresholdingSubspaceClustering
from polyspan.datasets import make_union_of_subspaces


def resident_mb() -> float:
    """Return the resident size of this process now, in MB of 10⁶ bytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmRSS: run this on Linux")


def draw(n: int, m: int, missing: float) -> np.ndarray:
    """Draw samples in blocks, so that only X itself is large."""
    rng = np.random.default_rng(0)
    X = np.empty((n, m), dtype=np.float32)
    for k in range(0, n, 2000):
        block = rng.standard_normal((2000, m), dtype=np.float32)
        block[rng.random(block.shape) < missing] = np.nan
        X[k : k + 2000] = block
    return X


def measure(model: Any, X: np.ndarray) -> None:
    before, highest, done = resident_mb(), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            highest[0] = max(highest[0], resident_mb())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    model.fit(X)
    done.set()
    watcher.join()
    print(highest[0] - before, X.nbytes / 1e6)


def main() -> None:
    short = {"random_state": 0, "anneal_steps": 3, "max_iter": 3, "tol": 1e-2}
    if sys.argv[1:] == ["missing"]:
        measure(RobustMiCUSaL(10, 10, **short), draw(100_000, 256, 0.3))
    elif sys.argv[1:] == ["kernel"]:
        X, _ = usps.load(tuple(range(10)))
        measure(MCKUSaL(10, 10, gamma=0.25, lam=100.0, low_rank=300, random_state=0), X)
    elif sys.argv[1:] in (["ssc"], ["omp"], ["tsc"]):
        X = make_union_of_subspaces(
            (64,) * 37 + (46,), n_features=2016, subspace_dim=9, spread=0.2, random_state=0
        ).X
        measure(
            {
                "ssc": SparseSubspaceClustering(38, 9, alpha=20.0, random_state=0),
                "omp": SparseSubspaceClustering(38, 9, algorithm="omp", random_state=0),
                "tsc": ThresholdingSubspaceClustering(38, 9, random_state=0),
            }[sys.argv[1]],
            X,
        )
    else:
        measure(MiCUSaL(10, 10, **short), draw(200_000, 784, 0.0))


if __name__ == "__main__":
    main()
