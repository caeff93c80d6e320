"""Check and measure polyspan on an accelerator: `PYTHONPATH=src python benchmarks/gpu.py`.

Without an accelerator it says so and checks tiny sizes on the CPU. Everything is in float64. Times
are medians of wall times between synchronisations, without the first runs. The CPU uses one core.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: a BLAS reads it once

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn needs it for array_api_dispatch

import importlib
import importlib.util
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import sklearn
import torch
from joblib import Parallel, delayed
from sklearn.base import clone

from polyspan import MCKUSaL, MiCUSaL, RobustMiCUSaL, SubspaceMixture
from polyspan.base.arrays import to_numpy
from polyspan.batch import fit_micusal
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.linear._solve.problem import Problem, prepare

LAM = 4.0
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "array-api-compat", "polyspan")


@dataclass(frozen=True)
class Sizes:
    """Sizes of the problems: many small ones, a large one, and one that a CPU core runs as well."""

    problems: int = 1600
    problem: tuple[int, int, int, int] = (180, 650, 5, 13)  # m, N, L, s
    large: tuple[int, int, int, int] = (4096, 200_000, 20, 16)
    medium: tuple[int, int, int, int] = (784, 60_000, 10, 10)
    batch_bytes: int = 5 << 30
    repeats: int = 5


TINY = Sizes(4, (30, 60, 3, 3), (64, 2000, 4, 3), (40, 1500, 3, 4), 1 << 20, 2)


def main() -> None:
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    if not has_gpu:
        print("There is no CUDA device here: tiny sizes are checked on the CPU.\n", flush=True)
    sizes = Sizes() if has_gpu else TINY
    report = {"machine": machine(device), "rows": []}
    for name, move in namespaces(device):
        row = estimators_agree(name, move)
        report["rows"].append(row)
        print(json.dumps(row), flush=True)
    for measure in (many_problems, many_affine_problems, large_iteration, against_a_core):
        row = measure(sizes, device)
        report["rows"].append(row)
        print(json.dumps(row), flush=True)
        if has_gpu:
            torch.cuda.empty_cache()
    print("\n" + table([row for row in report["rows"] if "seconds" in row]) + "\n")
    print(json.dumps(report, indent=2))
    failed = [row["row"] for row in report["rows"] if not row["correct"]]
    if failed:
        raise SystemExit(f"results differ from those of NumPy: {', '.join(failed)}")


def namespaces(device: torch.device) -> list[tuple[str, Callable[[np.ndarray], Any]]]:
    """Return how to move a NumPy array to PyTorch and, where it is installed, to CuPy."""
    found: list[tuple[str, Callable[[np.ndarray], Any]]] = [
        (f"PyTorch, {device.type}", lambda a: torch.asarray(a, device=device))
    ]
    if device.type == "cuda" and importlib.util.find_spec("cupy"):
        cupy = importlib.import_module("cupy")
        found.append((f"CuPy {cupy.__version__}", cupy.asarray))
    return found


def estimators_agree(name: str, move: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """Fit every estimator that takes arrays of this namespace, and compare with NumPy."""
    X = make_union_of_subspaces(
        (60, 60, 60), n_features=40, subspace_dim=3, spread=0.3, noise=0.05, random_state=0
    ).X
    kernel = {"kernel": "rbf", "gamma": 0.5}
    models = [
        (MiCUSaL(3, 3, random_state=0), X),
        (MiCUSaL(3, 3, init="random", random_state=0), X),
        (MiCUSaL(3, 3, solver="exact", random_state=0), X),
        (MiCUSaL(3, 3, affine=True, random_state=0), X),
        (RobustMiCUSaL(3, 3, random_state=0), mask_entries(X, 0.2, random_state=0)),
        (MCKUSaL(3, 3, **kernel, init="spectral", random_state=0), X),
        (MCKUSaL(3, 3, **kernel, init="gkiop", random_state=0), X),
        (MCKUSaL(3, 3, **kernel, low_rank=50, random_state=0), X),
        (SubspaceMixture(3, 3, random_state=0), X),
        (SubspaceMixture(3, 3, random_state=0), mask_entries(X, 0.2, random_state=0)),
    ]
    apart = 0.0
    with sklearn.config_context(array_api_dispatch=True):
        for model, data in models:
            on_device, device_model = move(data), clone(model).fit(move(data))
            model.fit(data)
            for method in ("predict", "transform", "reconstruct", "score"):
                expected = np.asarray(getattr(model, method)(data))
                found = to_numpy(getattr(device_model, method)(on_device))
                error = np.max(np.abs(found - expected)) / np.max(np.abs(expected))
                apart = max(apart, float(error))
    return {
        "row": f"{len(models)} estimators, {name}",
        "largest relative difference of results": apart,
        "correct": apart < 1e-8,
    }


def many_affine_problems(sizes: Sizes, device: torch.device) -> dict[str, Any]:
    """Fit all problems with affine subspaces."""
    return many_problems(sizes, device, affine=True)


def many_problems(sizes: Sizes, device: torch.device, *, affine: bool = False) -> dict[str, Any]:
    """Fit all problems at once, 8 random starts each, and compare a few with single NumPy fits."""
    m, n, n_subspaces, s = sizes.problem
    cluster_sizes = (n // n_subspaces,) * n_subspaces

    def make(seed: int) -> np.ndarray:
        return make_union_of_subspaces(
            cluster_sizes, n_features=m, subspace_dim=s, spread=0.04, noise=0.1, random_state=seed
        ).X

    X = np.stack(Parallel(n_jobs=-1)(delayed(make)(seed) for seed in range(sizes.problems)))
    on_device = torch.asarray(X, device=device)
    options = {"lam": LAM, "init": "random", "n_init": 8, "random_state": 0, "affine": affine}

    def run() -> Any:
        return fit_micusal(on_device, n_subspaces, s, **options, max_bytes=sizes.batch_bytes)

    seconds = timed(run, device, sizes.repeats, warm_up=1)
    fit = run()
    found = fit.objective.cpu().numpy()
    begin = time.perf_counter()
    compared = [0, 1, len(X) - 2, len(X) - 1]
    expected = [MiCUSaL(n_subspaces, s, **options).fit(X[k]).objective_ for k in compared]
    core = (time.perf_counter() - begin) / len(compared) * len(X)
    apart = float(np.max(np.abs(found[compared] / np.array(expected) - 1)))
    return {
        "row": f"{len(X)} {'affine ' if affine else ''}problems of {m}/{n}/{n_subspaces}/{s}, "
        "8 random starts",
        "seconds": seconds,
        "ratio": core / seconds,
        "meaning of ratio": "times one CPU core (four problems, extrapolated)",
        "target": "none" if affine else "seconds <= 1",
        "largest relative difference of F1": apart,
        "converged": float(fit.converged.double().mean()),
        "mean iterations of the best starts": float(fit.n_iter.double().mean()),
        "correct": apart < 1e-6,
    }


def large_iteration(sizes: Sizes, device: torch.device) -> dict[str, Any]:
    """Time one iteration (assignment and power step) against the bare product of the assignment."""
    m, n, n_subspaces, s = sizes.large
    generator = torch.Generator(device).manual_seed(0)
    X = torch.randn((n, m), generator=generator, device=device, dtype=torch.float64)
    bases = draw_bases((1, n_subspaces, m, s), np.random.RandomState(0))
    apart = difference(X[: min(n, 2 * m), :], bases)
    on_device = torch.asarray(bases, device=device)
    wide = on_device[0].permute(1, 0, 2).reshape(m, -1).contiguous()
    problem, _ = prepare(X, LAM, center=True)
    product = timed(lambda: X @ wide, device, sizes.repeats)
    seconds = timed(lambda: iterate(problem, on_device), device, sizes.repeats)
    return {
        "row": f"one iteration of {m}/{n}/{n_subspaces}/{s}",
        "seconds": seconds,
        "ratio": seconds / product,
        "meaning of ratio": "times the bare product X @ W",
        "target": "ratio <= 2",
        "seconds of the bare product": product,
        "assignment alone": timed(
            lambda: problem.assign(on_device, with_products=False), device, sizes.repeats
        ),
        "largest relative difference of the step": apart,
        "correct": apart < 1e-9,
    }


def against_a_core(sizes: Sizes, device: torch.device) -> dict[str, Any]:
    """Time one iteration on the device and on one CPU core; compare F1 after five iterations."""
    m, n, n_subspaces, s = sizes.medium
    X = np.random.RandomState(0).standard_normal((n, m)) * np.linspace(2.0, 0.2, m)
    bases = draw_bases((1, n_subspaces, m, s), np.random.RandomState(1))
    on_device = torch.asarray(X, device=device)
    times, values = {}, {}
    for name, data, where in (("host", X, torch.device("cpu")), ("device", on_device, device)):
        problem, _ = prepare(data, LAM, center=True)
        start = bases if name == "host" else torch.asarray(bases, device=device)
        current = start
        for _ in range(5):
            current = iterate(problem, current)
        _, sums = problem.assign(current, with_products=False)
        values[name] = float(problem.objective(current, sums.energy)[0])
        repeats = sizes.repeats if name == "device" else 3
        times[name] = timed(lambda p=problem, b=start: iterate(p, b), where, repeats)
    apart = abs(values["device"] / values["host"] - 1)
    return {
        "row": f"one iteration of {m}/{n}/{n_subspaces}/{s}",
        "seconds": times["device"],
        "ratio": times["host"] / times["device"],
        "meaning of ratio": "times one CPU core",
        "target": "ratio >= 50",
        "seconds of one CPU core": times["host"],
        "largest relative difference of F1": apart,
        "correct": apart < 1e-9,
    }


def iterate(problem: Problem, bases: Any) -> Any:
    """Assign, fetch the objective and take a power step, as a fit does."""
    _, sums = problem.assign(bases, with_products=True)
    float(problem.objective(bases, sums.energy)[0])
    return problem.shape.step(bases, sums, problem.weights)


def difference(X: torch.Tensor, bases: np.ndarray) -> float:
    """Compare the projections of one step with those of NumPy."""
    spans = []
    for data, start in ((X, torch.asarray(bases, device=X.device)), (X.cpu().numpy(), bases)):
        stepped = iterate(prepare(data, LAM, center=True)[0], start)[0]
        stepped = stepped.cpu().numpy() if isinstance(stepped, torch.Tensor) else stepped
        probe = np.random.RandomState(2).standard_normal((stepped.shape[1], 3))
        spans.append(stepped @ (stepped.transpose(0, 2, 1) @ probe))
    return float(np.max(np.abs(spans[0] - spans[1])) / np.max(np.abs(spans[1])))


def timed(run: Callable[[], Any], device: torch.device, repeats: int, *, warm_up: int = 2) -> float:
    """Return the median seconds of a run."""
    seconds = []
    for turn in range(warm_up + repeats):
        synchronise(device)
        begin = time.perf_counter()
        run()
        synchronise(device)
        if turn >= warm_up:
            seconds.append(time.perf_counter() - begin)
    return float(np.median(seconds))


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def machine(device: torch.device) -> dict[str, str]:
    """Return the device and the versions of the packages."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "none",
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        **versions,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = ["| m/N/L/s, float64 | seconds | ratio | target |", "|---|---|---|---|"]
    for row in rows:
        ratio = f"{row['ratio']:.3g} {row['meaning of ratio']}"
        lines.append(f"| {row['row']} | {row['seconds']:.3g} | {ratio} | {row['target']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
