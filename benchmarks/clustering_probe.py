"""Fit `SubspaceClustering` in a process of its own; print CPU s, wall s, peak MB and the error.

    python benchmarks/clustering_probe.py subspaces 60000 784
    python benchmarks/clustering_probe.py digits 60000

"subspaces" are samples near ten subspaces of dimension ten. "digits" are those of USPS, drawn with
replacement, enlarged to 28×28 pixels as those of MNIST, with noise of its own for each sample.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings

import numpy as np

import usps
from memory_probe import resident_mb
from polyspan.clustering import SubspaceClustering
from polyspan.geometry import draw_bases
from polyspan.metrics import clustering_error

N_CLUSTERS = 10
BLOCK = 2000
NOISE = 0.05


def subspaces(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw unit samples in blocks, so that only X itself is large."""
    rng = np.random.default_rng(0)
    bases = draw_bases((N_CLUSTERS, m, 10), np.random.RandomState(0)).astype(np.float32)
    X, labels = np.empty((n, m), dtype=np.float32), rng.integers(N_CLUSTERS, size=n)
    for k in range(0, n, BLOCK):
        own = labels[k : k + BLOCK]
        weights = rng.standard_normal((len(own), 10), dtype=np.float32)
        rows = np.einsum("nms,ns->nm", bases[own], weights)
        rows += NOISE * rng.standard_normal(rows.shape, dtype=np.float32)
        X[k : k + BLOCK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return X, labels


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw digits, enlarge them and add noise, in blocks."""
    known, target = usps.load(tuple(range(10)))
    rng = np.random.default_rng(0)
    places = np.linspace(0, 15, 28)
    left = np.minimum(places.astype(int), 14)
    one = np.zeros((28, 16))
    one[np.arange(28), left] = 1 - (places - left)
    one[np.arange(28), left + 1] = places - left
    enlarge = np.kron(one, one).T.astype(np.float32)
    drawn = rng.integers(len(known), size=n)
    X = np.empty((n, 784), dtype=np.float32)
    for k in range(0, n, BLOCK):
        rows = known[drawn[k : k + BLOCK]].astype(np.float32) @ enlarge
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows += NOISE / 28 * rng.standard_normal(rows.shape, dtype=np.float32)
        X[k : k + BLOCK] = rows
    return X, np.asarray(target)[drawn]


def main() -> None:
    kind, *sizes = sys.argv[1:]
    X, labels = {"subspaces": subspaces, "digits": digits}[kind](*map(int, sizes))
    highest, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            highest[0] = max(highest[0], resident_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # digits do not separate clearly
        model = SubspaceClustering(N_CLUSTERS, random_state=0).fit(X)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    done.set()
    watcher.join()
    print(cpu, wall, highest[0], 100 * clustering_error(labels, model.labels_))


if __name__ == "__main__":
    main()
