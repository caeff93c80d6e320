"""Two sensors of unequal noise, and outliers: what weights and trimming bring.

    python benchmarks/weights.py [first seed] [number of seeds]

Prints the mean d_avg (distance of learned from true subspaces, 0 is perfect) in the paper's
synthetic setting: 650 samples in R^180, five subspaces of dimension 13. Seeds 0 to 19 were used
to choose the method; those that are reported begin with 100.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import average_subspace_distance

SIGMAS = (0.05, 0.5)
"""Norm of the noise of a sample, whose own norm is 1, for the two sensors."""
OUTLIERS = 0.1
"""Fraction of all samples."""


def two_sensors(seed: int, lam: float) -> dict[str, float]:
    """Return d_avg of the clean half alone, of all samples, and of all samples with weights.

    The weights are 1/σ² relative to the better sensor: 1 and .01. 1/σ² itself, 400 and 4, is the
    same with lam 400 times as large.
    """
    data = make_union_of_subspaces(noise=0.0, random_state=seed)
    n, m = data.X.shape
    noisy = np.arange(n) % 2 == 1
    sigma = np.where(noisy, SIGMAS[1], SIGMAS[0])
    noise = np.random.RandomState(1000 + seed).standard_normal((n, m)) / np.sqrt(m)
    X = data.X + sigma[:, None] * noise

    def distance(X: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        model = MiCUSaL(5, 13, lam=lam, random_state=seed).fit(X, sample_weight=sample_weight)
        return average_subspace_distance(model.bases_, data.bases)

    return {
        "clean half alone": distance(X[~noisy]),
        "noisy half alone": distance(X[noisy]),
        "all, no weights": distance(X),
        "all, weights 1/sigma^2": distance(X, (SIGMAS[0] / sigma) ** 2),
    }


def with_outliers(X: np.ndarray, kind: str, rng: np.random.RandomState) -> np.ndarray:
    """Append uniform outliers, as large as the samples: on a sphere, or in a cube or a corner."""
    n, m = X.shape
    n_outliers = round(n * OUTLIERS / (1.0 - OUTLIERS))
    size = np.sqrt(np.mean(np.sum(X**2, axis=1)))
    if kind == "sphere":
        found = rng.standard_normal((n_outliers, m))
        found *= size / np.linalg.norm(found, axis=1, keepdims=True)
    else:
        found = rng.uniform(-1.0 if kind == "cube" else 0.0, 1.0, (n_outliers, m))
        found *= size * np.sqrt(3.0 / m)
    return np.concatenate([X, found])


def outliers(seed: int) -> dict[str, float]:
    """Return d_avg without outliers, and with them, untrimmed and trimmed."""
    data = make_union_of_subspaces(random_state=seed)

    def distance(X: np.ndarray, **options: float) -> float:
        model = MiCUSaL(5, 13, random_state=seed, **options).fit(X)
        return average_subspace_distance(model.bases_, data.bases)

    found = {"no outliers": distance(data.X)}
    for kind in ("sphere", "cube", "corner"):
        X = with_outliers(data.X, kind, np.random.RandomState(2000 + seed))
        found[f"{kind}, trim=0"] = distance(X)
        found[f"{kind}, trim=.1"] = distance(X, trim=OUTLIERS)
    return found


def report(title: str, measure: Callable[[int], dict[str, float]], seeds: range) -> None:
    """Print the mean of every figure, its ratio to that of the first, and its largest ratio."""
    rows = [measure(seed) for seed in seeds]
    print(f"{title}, seeds {seeds[0]} to {seeds[-1]}")
    first = np.array([next(iter(row.values())) for row in rows])
    for name in rows[0]:
        own = np.array([row[name] for row in rows])
        ratio = own.mean() / first.mean()
        print(f"  {name:28s} {own.mean():.4f}  ratio {ratio:.3f}  worst {max(own / first):.3f}")


if __name__ == "__main__":
    begin, number = (int(a) for a in (*sys.argv[1:], *("100", "10")[len(sys.argv) - 1 :]))
    seeds = range(begin, begin + number)
    report("two sensors, lam=4", partial(two_sensors, lam=4.0), seeds)
    report("two sensors, lam=1600", partial(two_sensors, lam=1600.0), seeds)
    report("outliers", outliers, seeds)
