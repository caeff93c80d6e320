"""Benchmark rows of the kernel models: speed, growth, memory, Table IV and Fig. 7a."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import KernelCenterer

import literal_kernel
import usps
from polyspan import MCKUSaL, RobustMCKUSaL
from polyspan.datasets import mask_entries
from polyspan.kernel._solve.alternation import KernelRules, alternate
from polyspan.kernel._solve.subspaces import gkiop
from polyspan.kernels import Kernel, estimate_kernel
from polyspan.metrics import clustering_error
from polyspan.model_selection import choose_by_noise
from timing import interleaved

Row = dict[str, Any]
SIZE = {"L": 2, "s": 45, "lam": 4.0, "gamma": 0.25}
# The literal algorithm takes minutes to converge. So it and the exact one are timed for these few
# iterations; the low-rank fit runs until it converges.
FEW = {"max_iter": 2, "tol": 0.0, "max_update_iter": 5, "update_tol": 0.0}
SETTINGS = {
    "1,7 Gauss": ((1, 7), {"kernel": "rbf", "gamma": 1 / 8}, 35),
    "1,7 poly": ((1, 7), {"kernel": "poly", "gamma": 1.0, "coef0": 2.0}, 40),
    "1,6 Gauss": ((1, 6), {"kernel": "rbf", "gamma": 1 / 4}, 35),
    "1,6 poly": ((1, 6), {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}, 40),
}


def two_digits(n: int) -> np.ndarray:
    return np.concatenate([usps.load((d,), slice(0, n // 2))[0] for d in (0, 4)])


def kernel() -> Iterator[Row]:
    """Time Algorithm 5 on 2000 digits: literal, exact and low rank, kernel matrix included."""
    X = two_digits(2000)
    seeds = np.array([0, 1])
    L, s, lam, gamma = SIZE.values()
    reached: dict[str, Any] = {}

    def literal() -> None:
        G = literal_kernel.centred(Kernel("rbf", gamma=gamma)(X))
        reached["literal"] = literal_kernel.mckusal(G, seeds.tolist(), L, s, lam, **FEW)

    def exact() -> None:
        G = KernelCenterer().fit_transform(Kernel("rbf", gamma=gamma)(X))
        start = gkiop(G, L, s, seeds)
        reached["exact"] = alternate(G, start, KernelRules(L, s, lam, **FEW))

    def low_rank() -> None:
        model = MCKUSaL(L, s, gamma=gamma, lam=lam, init="gkiop", gkiop_seeds=seeds, low_rank=200)
        _quiet_fit(model.set_params(random_state=0), X)

    seconds = interleaved({"literal": literal, "exact": exact, "low rank": low_rank}, 3)
    labels, history = reached["literal"]
    ours = reached["exact"]
    steps = min(len(history), len(ours.history))
    apart = np.abs(np.array(ours.history[:steps]) / np.array(history[:steps]) - 1).max()
    yield {
        "row": "kernel N=2000, L=2, s=45, exact",
        "ratio": seconds["literal"] / seconds["exact"],
        "literal s": seconds["literal"],
        "outer iterations": float(len(history) - 1),
        "largest difference of F3": float(apart),
        "labels that differ": float(np.mean(labels != ours.labels)),
    }
    yield {
        "row": "kernel N=2000, L=2, s=45, low rank 200",
        "ratio": seconds["literal"] / seconds["low rank"],
        "ours s": seconds["low rank"],
    }


def kernel_estimate() -> Iterator[Row]:
    """Time kernel values of 650 incomplete samples: three products against a loop over pairs."""
    X = mask_entries(two_digits(650), 0.2, random_state=0)
    gamma = SIZE["gamma"]
    seconds = interleaved(
        {
            "loop": lambda: literal_kernel.estimated_kernel(X, gamma),
            "ours": lambda: estimate_kernel(Kernel("rbf", gamma=gamma), X),
        },
        3,
    )
    yield {"row": "kernel values, N=650, 20% missing", "ratio": seconds["loop"] / seconds["ours"]}


def kernel_growth() -> Iterator[Row]:
    """Fit exponents of the time: exact from 1000 to 4000 samples, low rank from 2000 to 11 000."""
    L, s, lam, gamma = SIZE.values()
    X, _ = usps.load((0, 4, 1, 7))
    rng = np.random.RandomState(0)
    X = X[rng.permutation(len(X))]
    sizes = (1000, 1600, 2500, 4000)
    spent = [_per_iteration(X[:n], L, s, lam, gamma) for n in sizes]
    yield {
        "row": f"kernel, exact, one iteration at N={sizes}",
        "exponent": float(np.polyfit(np.log(sizes), np.log(spent), 1)[0]),
        **{f"s at {n}": t for n, t in zip(sizes, spent, strict=True)},
    }
    X, _ = usps.load(tuple(range(10)))
    X = X[rng.permutation(len(X))]
    sizes = (2000, 3500, 6000, 11_000)
    spent = []
    for n in sizes:
        model = MCKUSaL(10, 10, gamma=gamma, low_rank=200, max_iter=30, tol=0.0, random_state=0)
        turns = interleaved({"fit": lambda m=model, n=n: _quiet_fit(m, X[:n])}, 3)
        spent.append(turns["fit"])
    yield {
        "row": f"kernel, low rank 200, ten subspaces, 30 iterations, N={sizes}",
        "exponent": float(np.polyfit(np.log(sizes), np.log(spent), 1)[0]),
        **{f"s at {n}": t for n, t in zip(sizes, spent, strict=True)},
    }


def _quiet_fit(model: MCKUSaL, X: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)


def _per_iteration(X: np.ndarray, L: int, s: int, lam: float, gamma: float) -> float:
    """Time one outer iteration with ten inner ones, so that all sizes do the same iterations."""
    G = KernelCenterer().fit_transform(Kernel("rbf", gamma=gamma)(X))
    start = gkiop(G, L, s, np.array([0, 1]))
    rules = KernelRules(L, s, lam, max_iter=1, max_update_iter=10, update_tol=0.0)
    begin = time.perf_counter()
    alternate(G, start, rules)
    return time.perf_counter() - begin


def kernel_memory() -> Iterator[Row]:
    """Measure the peak memory of a process that fits all 11 000 digits, low rank."""
    script = Path(__file__).with_name("memory_probe.py")
    command = [sys.executable, str(script), "kernel"]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    beyond, size = (float(x) for x in output.stdout.split())
    yield {"row": "memory, 11 000 digits, low rank 300", "MB beyond X": beyond, "MB of X": size}


def table4() -> Iterator[Row]:
    """Measure clustering errors in %, 20 selections: Table IV, and on samples 200 to 1099."""
    for name, (digits, params, s) in SETTINGS.items():
        for rows in (slice(0, 200), slice(200, 1100)):
            errors: dict[str, list[float]] = {}
            for seed in range(20):
                X, y, _ = usps.select(digits, seed, rows, 120)
                common = {**params, "lam": 200.0, "random_state": seed}
                if rows.start == 0:
                    gk = MCKUSaL(2, s, init="gkiop", n_init=20, **common).fit(X)
                    runs = [100 * clustering_error(y, run.labels) for run in gk.runs_]
                    _add(errors, "GKIOP, mean of 20 starts", float(np.mean(runs)))
                    _add(errors, "GKIOP, lowest F3", 100 * clustering_error(y, gk.labels_))
                    _add(errors, "GKIOP, best by the labels", min(runs))
                models = {
                    "spectral": MCKUSaL(2, s, **common),
                    "spectral, loo, s=15": MCKUSaL(2, 15, residual="loo", **common),
                }
                for label, model in models.items():
                    _add(errors, label, 100 * clustering_error(y, model.fit(X).labels_))
                for fraction in (0.1, 0.2):
                    model = RobustMCKUSaL(2, s, **common)
                    model.fit(mask_entries(X, fraction, random_state=seed))
                    label = f"spectral, {fraction:.0%} missing"
                    _add(errors, label, 100 * clustering_error(y, model.labels_))
            where = f"samples {rows.start} to {rows.stop - 1}"
            means = {label: float(np.mean(values)) for label, values in errors.items()}
            yield {"row": f"table IV, {name}, {where}", **means}


def denoising() -> Iterator[Row]:
    """Measure Fig. 7a, digits 0 and 4, twenty selections; kernel PCA is one subspace."""
    levels = (0.2, 0.3, 0.35, 0.4, 0.5)
    errors: dict[str, list[list[float]]] = {}
    chosen = []
    for seed in range(20):
        train, _, test = usps.select((0, 4), seed, slice(0, 200), 120)
        drawn = np.random.RandomState(seed).standard_normal(test.shape) / 16
        common = {"gamma": 0.25, "random_state": seed}
        several = choose_by_noise(
            MCKUSaL(2, **common), train, levels,
            {"subspace_dim": [45, 60, 70, 80], "lam": [4.0, 20.0, 100.0]}, n_splits=5,
            random_state=0,
        ).best_params  # fmt: skip
        one = choose_by_noise(
            MCKUSaL(1, **common), train, levels, {"subspace_dim": [45, 80, 120, 150, 180]},
            n_splits=5, random_state=0,
        ).best_params  # fmt: skip
        chosen.append(several["subspace_dim"])
        models = {
            "MC-KUSaL, lam=4, s=45": MCKUSaL(2, 45, init="gkiop", n_init=3, **common),
            "kernel PCA, s=45": MCKUSaL(1, 45, **common),
            "MC-KUSaL, chosen": MCKUSaL(2, **several, **common),
            "kernel PCA, chosen": MCKUSaL(1, **one, **common),
        }
        for name, model in models.items():
            model.fit(train)
            found = [model.reconstruct(test + np.sqrt(level) * drawn) for level in levels]
            _add(errors, name, [float(np.mean(np.sum((z - test) ** 2, axis=1))) for z in found])
        _add(errors, "kernel PCA, oracle", _oracle(train, test, drawn, levels))
    for name, values in errors.items():
        row = dict(zip((f"{level:g}" for level in levels), np.mean(values, axis=0), strict=True))
        yield {"row": f"denoising, {name}", **{k: float(v) for k, v in row.items()}}
    yield {"row": "denoising, dimension chosen, mean", "s": float(np.mean(chosen))}


def _oracle(
    train: np.ndarray, test: np.ndarray, drawn: np.ndarray, levels: tuple[float, ...]
) -> list[float]:
    """Run kernel PCA with the s that minimises ‖Pφ(z) - φ(x)‖², which needs the clean samples x."""
    out = []
    full = MCKUSaL(1, len(train) - 1, gamma=0.25, lam=1.0, init=np.zeros(len(train), int))
    full = full.set_params(max_iter=1).fit(train)
    E, c = full.coefs_[0], full.members_[0]
    kernel, centerer = Kernel("rbf", gamma=0.25), full._union.centerer
    clean = centerer.transform(kernel(test, train))[:, c] @ E
    for level in levels:
        z = test + np.sqrt(level) * drawn
        noisy = centerer.transform(kernel(z, train))[:, c] @ E
        cost = np.cumsum(noisy**2 - 2 * noisy * clean, axis=1).mean(axis=0)
        s = int(cost.argmin()) + 1
        model = MCKUSaL(1, s, gamma=0.25, random_state=0).fit(train)
        out.append(float(np.mean(np.sum((model.reconstruct(z) - test) ** 2, axis=1))))
    return out


def _add(table: dict[str, list[Any]], name: str, value: Any) -> None:
    table.setdefault(name, []).append(value)
