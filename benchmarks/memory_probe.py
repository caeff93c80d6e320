"""Fit 200 000 × 784 float32 in a process of its own; print the MB beyond X, and the MB of X."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np

from polyspan import MiCUSaL


def resident_mb() -> float:
    """Return the resident size of this process now, in MB of 10⁶ bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("the resident size is read from /proc/self/status, which is not there")


def main() -> None:
    rng = np.random.default_rng(0)
    X = np.empty((200_000, 784), dtype=np.float32)
    for k in range(0, len(X), 2000):
        X[k : k + 2000] = rng.standard_normal((2000, 784), dtype=np.float32)
    before, highest, done = resident_mb(), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            highest[0] = max(highest[0], resident_mb())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    MiCUSaL(10, 10, random_state=0, anneal_steps=5, max_iter=5, tol=1e-3).fit(X)
    done.set()
    watcher.join()
    print(highest[0] - before, X.nbytes / 1e6)


if __name__ == "__main__":
    main()
