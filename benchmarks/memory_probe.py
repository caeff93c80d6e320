"""Fit 200 000 × 784 float32 in a process of its own; print the MB beyond X, and the MB of X."""

from __future__ import annotations

import numpy as np

from polyspan import MiCUSaL
from timing import resident_peak_mb


def main() -> None:
    rng = np.random.default_rng(0)
    X = np.empty((200_000, 784), dtype=np.float32)
    for k in range(0, len(X), 2000):
        X[k : k + 2000] = rng.standard_normal((2000, 784), dtype=np.float32)
    # A small fit first: what the libraries take when first used is not the memory of this fit.
    MiCUSaL(10, 10, random_state=0, max_iter=2, tol=1.0).fit(X[:500])
    before = resident_peak_mb()
    MiCUSaL(10, 10, random_state=0, anneal_steps=5, max_iter=5, tol=1e-3).fit(X)
    print(resident_peak_mb() - before, X.nbytes / 1e6)


if __name__ == "__main__":
    main()
