"""Fit data larger than the allowed memory; print seconds and peak anonymous memory.

    python benchmarks/large_probe.py memmap   4 GB of float32 in a mapped file, one process
    python benchmarks/large_probe.py holes    1 GB of float32 with NaN in a mapped file
    python benchmarks/large_probe.py dask     5 000 000 × 64 float32, two workers of 600 MB each

The file is written to a temporary folder first (in `TMPDIR`) and removed at the end.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from polyspan import MiCUSaL, RobustMiCUSaL
from polyspan.geometry import draw_bases
from polyspan.metrics import average_subspace_distance

SHAPE = (5, 64, 5)  # L, m, s
SHORT = {"random_state": 0, "anneal_steps": 20, "max_iter": 20, "tol": 1e-4}
LIMIT = 600_000_000


def anonymous_mb(pid: int | str = "self") -> float:
    """Return the anonymous resident memory of a process, in MB of 10⁶ bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return float(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/{pid}/status has no RssAnon: run this on Linux")


class Watch:
    """The peak anonymous memory of some processes while a `with` block runs."""

    def __init__(self, *pids: int | str) -> None:
        self.highest = dict.fromkeys(pids or ("self",), 0.0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            for pid in self.highest:
                self.highest[pid] = max(self.highest[pid], anonymous_mb(pid))

    def __enter__(self) -> Watch:
        self.begin = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.seconds = time.perf_counter() - self.begin
        self._done.set()
        self._thread.join()


def write(path: Path, n: int, missing: float = 0.0) -> np.ndarray:
    """Write samples near five subspaces, block by block; return the bases."""
    n_subspaces, m, s = SHAPE
    rng = np.random.default_rng(0)
    bases = draw_bases(SHAPE, np.random.RandomState(0)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, m))
    for k in range(0, n, 50_000):
        size = min(50_000, n - k)
        labels = rng.integers(n_subspaces, size=size)
        block = 0.05 * rng.standard_normal((size, m), dtype=np.float32)
        for p in range(n_subspaces):
            own = np.flatnonzero(labels == p)
            weights = rng.standard_normal((len(own), s), dtype=np.float32)
            block[own] += weights @ bases[p].T / np.float32(s**0.5)
        if missing:
            block[rng.random(block.shape, dtype=np.float32) < missing] = np.nan
        X[k : k + size] = block
    X.flush()
    return bases


def report(model: Any, bases: np.ndarray, watch: Watch, size: float) -> None:
    memory = ", ".join(f"{value:.0f}" for value in watch.highest.values())
    print(
        f"{size:.2f} GB; {watch.seconds:.0f} s; {len(model.anneal_history_)} temperatures and "
        f"{model.n_iter_} iterations; highest anonymous memory {memory} MB; d_avg "
        f"{average_subspace_distance(model.bases_, bases):.4f}"
    )


def mapped(path: Path, n: int, missing: float) -> None:
    bases = write(path, n, missing)
    X = np.load(path, mmap_mode="r")
    n_subspaces, _, s = SHAPE
    kind = RobustMiCUSaL if missing else MiCUSaL
    with Watch() as watch:
        model = kind(n_subspaces, s, **SHORT).fit(X)
    report(model, bases, watch, X.nbytes / 1e9)


def read_rows(path: Path, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def on_workers(path: Path, n: int) -> None:
    import dask.array as da
    from dask import delayed
    from dask.distributed import Client, LocalCluster

    bases = write(path, n)
    n_subspaces, m, s = SHAPE
    size = 100_000
    parts = [
        da.from_delayed(delayed(read_rows)(path, k, k + size), (min(size, n - k), m), np.float32)
        for k in range(0, n, size)
    ]
    X = da.concatenate(parts)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        before = client.run(os.getpid)
        with Watch(*before.values()) as watch:
            model = MiCUSaL(n_subspaces, s, **SHORT).fit(X)
            counts = da.bincount(model.labels_, minlength=n_subspaces).compute()
        after = client.run(os.getpid)
    report(model, bases, watch, X.nbytes / 1e9)
    print(f"members {counts.tolist()}; no worker was restarted: {before == after}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        if sys.argv[1:] == ["memmap"]:
            mapped(path, 15_700_000, 0.0)
        elif sys.argv[1:] == ["holes"]:
            mapped(path, 4_000_000, 0.3)
        elif sys.argv[1:] == ["dask"]:
            on_workers(path, 5_000_000)
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
