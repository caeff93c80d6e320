"""Fit and predict for minutes, and watch memory, file descriptors and threads: `make soak`."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from kills import MODELS
from polyspan.images import denoise_image

#: Growth after the first fifth that still counts as level: caches fill, the allocator keeps pages.
MEMORY, DESCRIPTORS, THREADS = 40 << 20, 2, 2


def state() -> tuple[int, int, int]:
    """Return resident bytes, open file descriptors and threads of this process."""
    if not Path("/proc/self/status").exists():
        raise SystemExit("soak reads /proc, which only Linux has")
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes, threads = (int(status.split(name)[1].split()[0]) for name in ("VmRSS:", "Threads:"))
    return kilobytes << 10, len(list(Path("/proc/self/fd").iterdir())), threads


def main() -> None:
    """Go round the models until the time is over, and judge what is left behind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    seconds = 60.0 * parser.parse_args().minutes
    picture = np.random.RandomState(0).standard_normal((64, 64)).cumsum(axis=1)
    began, rounds, first = time.monotonic(), 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while (passed := time.monotonic() - began) < seconds:
            for model, X in MODELS.values():
                clone(model).fit(X).transform(X)
            denoise_image(picture)
            rounds += 1
            if first is None and passed > seconds / 5:
                first = state()
    last = state()
    assert first is not None, "not one round in a fifth of the time"
    memory, descriptors, threads = (b - a for a, b in zip(first, last, strict=True))
    print(
        f"{rounds} rounds: memory {first[0] >> 20} to {last[0] >> 20} MiB, descriptors {first[1]} "
        f"to {last[1]}, threads {first[2]} to {last[2]}"
    )
    if memory > MEMORY or descriptors > DESCRIPTORS or threads > THREADS:
        raise SystemExit("something grows")


if __name__ == "__main__":
    main()
