"""Benchmark rows for complete data: each runs ours and the literal algorithm on the same data."""

from __future__ import annotations

import math
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import literal
from polyspan import MiCUSaL
from polyspan.datasets import make_union_of_subspaces
from polyspan.geometry import draw_bases
from polyspan.linear._solve.alternation import Rules, alternate
from polyspan.linear._solve.problem import Problem, prepare
from polyspan.metrics import average_subspace_distance, clustering_error
from timing import interleaved, peak_mib

Row = dict[str, Any]
LAM = 4.0


def make(n: int, m: int, n_subspaces: int, s: int, seed: int = 0) -> np.ndarray:
    sizes = [n // n_subspaces + (p < n % n_subspaces) for p in range(n_subspaces)]
    data = make_union_of_subspaces(
        sizes, n_features=m, subspace_dim=s, test_sizes=[1] * n_subspaces, random_state=seed
    )
    return data.X


def start_of(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return draw_bases(shape, np.random.RandomState(seed))


def iterate(problem: Problem, start: np.ndarray, solver: str, n_iter: int) -> list[float]:
    """Run exactly n_iter iterations of our solver; return the objectives."""
    rules = Rules(solver=solver, max_iter=n_iter, tol=-math.inf)
    return list(alternate(problem, start[None], rules)[0].history)


def per_iteration(
    name: str, shape: tuple[int, int, int, int], solvers: tuple[str, ...], n_iter: int, repeats: int
) -> Iterator[Row]:
    """Time iterations of ours and of the literal algorithm, from the same start."""
    m, n, n_subspaces, s = shape
    X, start = make(n, m, n_subspaces, s), start_of((n_subspaces, m, s))
    problem, working = prepare(X, LAM, center=True, start=start)
    inner = working.to_working(start)
    histories: dict[str, list[float]] = {}

    def run_literal() -> None:
        result = literal.micusal(X, start, LAM, max_iter=n_iter, tol=-math.inf)
        histories["literal"] = result.history

    def run_ours(solver: str) -> None:
        histories[solver] = iterate(problem, inner, solver, n_iter)

    runs: dict[str, Any] = {"literal": run_literal}
    runs |= {solver: (lambda solver=solver: run_ours(solver)) for solver in solvers}
    runs["prepare"] = lambda: prepare(X, LAM, center=True, start=start)
    seconds = interleaved(runs, repeats)
    for solver in solvers:
        ours, theirs = np.array(histories[solver]), np.array(histories["literal"])
        whole = seconds[solver] + seconds["prepare"]
        yield {
            "row": f"{name}, {solver}",
            "ratio": seconds["literal"] / seconds[solver],
            "ratio with preparation": seconds["literal"] / whole,
            "ms per iteration": 1e3 * seconds[solver] / n_iter,
            "largest difference of F1": float(np.abs(ours / theirs - 1).max()),
            "F1 at the end over literal": float(ours[-1] / theirs[-1]),
            "peak MiB": peak_mib(runs[solver]),
        }


def faces() -> Iterator[Row]:
    yield from per_iteration("faces 2016/96/3/9", (2016, 96, 3, 9), ("exact",), 6, 3)


def scene() -> Iterator[Row]:
    shape = (600, 722, 5, 12)
    yield from per_iteration("scene 600/722/5/12", shape, ("exact", "power"), 10, 5)
    yield from to_convergence("scene 600/722/5/12", shape, 5)


def to_convergence(name: str, shape: tuple[int, int, int, int], n_starts: int) -> Iterator[Row]:
    """Time power steps and the literal algorithm to tol 1e-6 from the same starts, one by one."""
    m, n, n_subspaces, s = shape
    X = make(n, m, n_subspaces, s)
    problem, _ = prepare(X, LAM, center=True)
    spent, found = {"literal": 0.0, "power": 0.0}, {"literal": [], "power": []}
    for seed in range(n_starts):
        start = start_of((n_subspaces, m, s), seed)
        begin = time.process_time()
        found["literal"].append(literal.micusal(X, start, LAM).history[-1])
        spent["literal"] += time.process_time() - begin
        begin = time.process_time()
        found["power"].append(alternate(problem, start[None], Rules())[0].objective)
        spent["power"] += time.process_time() - begin
    yield {
        "row": f"{name}, power, {n_starts} starts to convergence",
        "ratio": spent["literal"] / spent["power"],
        "best F1 over literal": min(found["power"]) / min(found["literal"]),
        "mean F1 over literal": float(np.mean(found["power"]) / np.mean(found["literal"])),
    }
    begin = time.process_time()
    model = MiCUSaL(n_subspaces, s, lam=LAM, random_state=0).fit(X)
    seconds = time.process_time() - begin
    yield {
        "row": f"{name}, one annealed start of ours, {n_starts} literal ones",
        "ratio": spent["literal"] / seconds,
        "ratio to one literal start": spent["literal"] / n_starts / seconds,
        "F1 over the best literal": model.objective_ / min(found["literal"]),
    }


def smoke() -> Iterator[Row]:
    """Run the smallest size, for correctness only."""
    yield from per_iteration("smoke 60/90/3/4", (60, 90, 3, 4), ("exact", "power"), 5, 1)


def restarts() -> Iterator[Row]:
    """Run eight random starts to tol 1e-6 on six draws: total CPU time and best objective."""
    found: dict[str, list[float]] = {"literal": [], "float64": [], "float32": []}
    spent: dict[str, list[float]] = {"literal": [], "float64": [], "float32": []}
    memory = 0.0
    for seed in range(6):
        X = make_union_of_subspaces(random_state=seed).X
        starts = start_of((8, 5, 180, 13), seed)
        begin = time.process_time()
        runs = [literal.micusal(X, start, LAM) for start in starts]
        spent["literal"].append(time.process_time() - begin)
        found["literal"].append(min(run.history[-1] for run in runs))
        for name in ("float64", "float32"):
            model = MiCUSaL(5, 13, lam=LAM, init="random", n_init=8, random_state=seed)
            data = X.astype(name)
            if seed == 0:
                model.fit(data)
                memory = max(memory, peak_mib(lambda model=model, data=data: model.fit(data)))
            begin = time.process_time()
            model.fit(data)
            spent[name].append(time.process_time() - begin)
            found[name].append(model.objective_)
    for name in ("float64", "float32"):
        yield {
            "row": f"restarts 180/650/5/13, 8 starts, {name}",
            "ratio": sum(spent["literal"]) / sum(spent[name]),
            "CPU s per fit": float(np.mean(spent[name])),
            "mean best F1 over literal": float(np.mean(found[name]) / np.mean(found["literal"])),
            "peak MiB": memory,
        }


def annealed() -> Iterator[Row]:
    """Run the default, one annealed start, against eight literal starts, on ten draws."""
    ours, theirs, distance, error = [], [], [], []
    for seed in range(10):
        data = make_union_of_subspaces(random_state=seed)
        begin = time.process_time()
        for start in start_of((8, 5, 180, 13), seed):
            literal.micusal(data.X, start, LAM)
        theirs.append(time.process_time() - begin)
        model = MiCUSaL(5, 13, lam=LAM, random_state=seed)
        begin = time.process_time()
        model.fit(data.X)
        ours.append(time.process_time() - begin)
        distance.append(average_subspace_distance(model.bases_, data.bases))
        error.append(clustering_error(data.labels, model.labels_))
    yield {
        "row": "default 180/650/5/13, one annealed start",
        "ratio": sum(theirs) / sum(ours),
        "fraction of the literal CPU time": sum(ours) / sum(theirs),
        "CPU s per fit": float(np.mean(ours)),
        "mean d_avg": float(np.mean(distance)),
        "mean label error": float(np.mean(error)),
    }


def large() -> Iterator[Row]:
    """Time one iteration of a large problem; the literal update is timed for one subspace only."""
    m, n, n_subspaces, s = 4096, 20_000, 20, 10
    X, start = make(n, m, n_subspaces, s), start_of((n_subspaces, m, s))
    Y = X - X.mean(axis=0)
    begin = time.process_time()
    labels, _ = literal.assign(Y, start)
    assignment = time.process_time() - begin
    begin = time.process_time()
    literal.update_one(Y, labels, start.copy(), 0, LAM)
    update = time.process_time() - begin
    del Y
    for dtype in ("float64", "float32"):
        problem, _ = prepare(X.astype(dtype), LAM, center=True)
        bases = start.astype(dtype)
        seconds = interleaved(
            {
                "two": lambda p=problem, b=bases: iterate(p, b, "power", 2),
                "one": lambda p=problem, b=bases: iterate(p, b, "power", 1),
            },
            3,
        )
        ours = seconds["two"] - seconds["one"]
        yield {
            "row": f"large 4096/20000/20/10, power, {dtype}",
            "ratio": (assignment + n_subspaces * update) / ours,
            "ours s per iteration": ours,
            "literal s, assignment": assignment,
            "literal s, update of one subspace (times 20)": update,
            "peak MiB": peak_mib(lambda p=problem, b=bases: iterate(p, b, "power", 1)),
        }


def product() -> Iterator[Row]:
    """Time an iteration and an assignment against the bare product of the data with all bases."""
    m, n, n_subspaces, s = 784, 60_000, 10, 10
    X64, start = make(n, m, n_subspaces, s), start_of((n_subspaces, m, s))
    for dtype in ("float64", "float32"):
        X = X64.astype(dtype)
        problem, _ = prepare(X, LAM, center=True)
        bases = start.astype(dtype)
        stacked = np.ascontiguousarray(bases.transpose(1, 0, 2).reshape(m, -1))
        seconds = interleaved(
            {
                "bare": lambda X=X, stacked=stacked: X @ stacked,
                "assign": lambda p=problem, b=bases: p.assign(b[None], with_products=False),
                "five": lambda p=problem, b=bases: iterate(p, b, "power", 5),
                "one": lambda p=problem, b=bases: iterate(p, b, "power", 1),
            },
            5,
        )
        iteration = (seconds["five"] - seconds["one"]) / 4
        yield {
            "row": f"product 784/60000/10/10, {dtype}",
            "iteration over bare product": iteration / seconds["bare"],
            "assignment over bare product": seconds["assign"] / seconds["bare"],
            "bare s": seconds["bare"],
            "peak MiB": peak_mib(lambda p=problem, b=bases: iterate(p, b, "power", 1)),
        }


def memory() -> Iterator[Row]:
    """Measure the resident memory that a fit of 200 000 × 784 float32 takes beyond X."""
    script = Path(__file__).with_name("memory_probe.py")
    output = subprocess.run(
        [sys.executable, str(script)], check=True, capture_output=True, text=True
    )
    beyond, size = (float(x) for x in output.stdout.split())
    yield {"row": "memory 200000x784 float32", "MB beyond X": beyond, "MB of X": size}


def table2() -> Iterator[Row]:
    """Measure the mean d_avg of Algorithm 1 as printed, eight random starts, on sixty draws."""
    published = {1.0: 0.1552, 2.0: 0.1331, 4.0: 0.1321, 8.0: 0.1378, 20.0: 0.1493, math.inf: 0.1612}
    for lam, paper in published.items():
        values, errors = [], []
        for seed in range(60):
            data = make_union_of_subspaces(random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = MiCUSaL(
                    5, 13, lam=lam, init="random", solver="exact", n_init=8, random_state=seed
                ).fit(data.X)
            values.append(average_subspace_distance(model.bases_, data.bases))
            errors.append(clustering_error(data.labels, model.labels_))
        error = float(np.std(values, ddof=1) / math.sqrt(len(values)))
        yield {
            "row": f"table II, λ={lam:g}",
            "paper": paper,
            "mean d_avg": float(np.mean(values)),
            "standard error": error,
            "mean label error": float(np.mean(errors)),
        }


ROWS = {
    "smoke": smoke,
    "faces": faces,
    "scene": scene,
    "restarts": restarts,
    "annealed": annealed,
    "large": large,
    "product": product,
    "memory": memory,
    "table2": table2,
}
