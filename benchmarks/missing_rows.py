"""Benchmark rows for missing entries: the compiled sweep, majorise-minimise, whole fits, memory."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polyspan import RobustMiCUSaL
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.geometry import draw_bases
from polyspan.linear._solve.grouse import closeness_step, sweep
from polyspan.linear._solve.masked import MaskedBlock
from polyspan.linear._solve.problem import Problem, prepare
from polyspan.linear._solve.shape import power_step
from polyspan.metrics import average_subspace_distance
from reproduction.experiments import literal as literal_missing
from timing import interleaved

Row = dict[str, Any]
LAM, STEP, SWEEPS = 2.0, 1.5, 100


def setting(m: int, s: int, sizes: tuple[int, ...], fraction: float) -> Problem:
    data = make_union_of_subspaces(sizes, n_features=m, subspace_dim=s, random_state=0)
    X = mask_entries(data.X, fraction, random_state=0)
    return prepare(X, LAM, center=False, holes=True)[0]


def block_of(problem: Problem) -> MaskedBlock:
    block = problem.rows.block
    assert isinstance(block, MaskedBlock)
    return block


def fixed_labels(
    problem: Problem, labels: np.ndarray, bases: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return F2 with the labels fixed, and the products that a power step needs."""
    block = block_of(problem)
    products, energy = np.zeros_like(bases), 0.0
    for members, thetas in block.assigned_fits(bases, None, labels):
        for p, (rows, theta) in enumerate(zip(members, thetas, strict=True)):
            values, missing = block.rows(rows)
            weighted = theta * block.weights[rows, None]
            filled = block.filled(values, missing, bases[p], None, theta)
            products[p] += (weighted.T @ filled).T
            energy += float(np.sum((values @ bases[p]) * weighted))
    return float(problem.objective(bases[None], np.array([energy]))[0]), products[None]


def descend(
    problem: Problem, labels: np.ndarray, bases: np.ndarray, target: float
) -> tuple[float, int]:
    """Take majorise-minimise steps until F2 is at most the target; return F2 and the steps."""
    steps = 0
    reached, products = fixed_labels(problem, labels, bases)
    while reached > target and steps < 1000:
        bases = power_step(bases[None], products, problem.weights)[0]
        reached, products = fixed_labels(problem, labels, bases)
        steps += 1
    return reached, steps


def sweeps(
    problem: Problem, bases: np.ndarray, labels: np.ndarray, n_sweeps: int, literal: bool
) -> np.ndarray:
    """Run the update of one outer iteration of Algorithm 3 for all subspaces."""
    block = block_of(problem)
    bases, values = bases.copy(), block.values
    for p in range(len(bases)):
        members = np.flatnonzero(labels == p)
        others = [bases[q] for q in range(len(bases)) if q != p]
        wide = np.concatenate(others, axis=1)
        basis = bases[p].copy()
        for t in range(1, n_sweeps + 1):
            steps = LAM * STEP / t * block.weights
            if literal:
                basis = literal_missing.closeness_step(basis, others, STEP / t)
                basis = literal_missing.sweep(basis, values, block.missing, members, steps)
            else:
                columns = np.ascontiguousarray(closeness_step(basis, wide, STEP / t).T)
                sweep(columns, values, block.missing, members, steps)
                basis = columns.T
        bases[p] = basis
    return bases


def missing() -> Iterator[Row]:
    """Compare a sweep with the literal one, and majorise-minimise with 100 sweeps, at equal F2."""
    for m, s, sizes in ((180, 13, (150, 100, 150, 100, 150)), (600, 12, (144, 144, 144, 145, 145))):
        for fraction in (0.1, 0.5):
            problem = setting(m, s, sizes, fraction)
            start = draw_bases((len(sizes), m, s), np.random.RandomState(1))
            labels = problem.assign(start[None], with_products=False)[0][:, 0]
            seconds = interleaved(
                {
                    "literal": lambda p=problem, b=start, k=labels: sweeps(
                        p, b, k, 1, literal=True
                    ),
                    "compiled": lambda p=problem, b=start, k=labels: sweeps(
                        p, b, k, 1, literal=False
                    ),
                },
                3,
            )
            # Algorithm 3 keeps the labels fixed during its sweeps: so does majorise-minimise here.
            swept = sweeps(problem, start, labels, SWEEPS, literal=False)
            target, _ = fixed_labels(problem, labels, swept)
            reached, steps = descend(problem, labels, start, target)
            ours = interleaved(
                {"mm": lambda p=problem, b=start, k=labels, f=target: descend(p, k, b, f)}, 7
            )["mm"]
            yield {
                "row": f"missing {fraction:.0%}, {m}/{sum(sizes)}/5/{s}",
                "sweep, literal over compiled": seconds["literal"] / seconds["compiled"],
                "same F2, 100 literal sweeps over mm": SWEEPS * seconds["literal"] / ours,
                "same F2, 100 compiled sweeps over mm": SWEEPS * seconds["compiled"] / ours,
                "mm steps": float(steps),
                "F2 over that of 100 sweeps": reached / target,
            }


def missing_fit() -> Iterator[Row]:
    """Time one default fit and one of Algorithm 3 (5 outer, 100 inner iterations, eight starts)."""
    data = make_union_of_subspaces(random_state=0)
    X = mask_entries(data.X, 0.3, random_state=0)
    models = {
        "default": RobustMiCUSaL(5, 13, random_state=0),
        "grouse": RobustMiCUSaL(
            5, 13, lam=2.0, init="random", solver="grouse", max_iter=5, random_state=0
        ),
    }
    spent, distance = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models.items():
            begin = time.process_time()
            model.fit(X)
            spent[name] = time.process_time() - begin
            distance[name] = average_subspace_distance(model.bases_, data.bases)
    yield {
        "row": "missing 30%, 180/650/5/13, one fit",
        "Algorithm 3, eight starts, over default": spent["grouse"] / spent["default"],
        "Algorithm 3, one start, over default": spent["grouse"] / 8 / spent["default"],
        "default s": spent["default"],
        "default d_avg": distance["default"],
        "Algorithm 3 d_avg": distance["grouse"],
    }


def missing_memory() -> Iterator[Row]:
    """Measure the resident memory of a fit of 100 000 × 256 float32 with 30 % missing."""
    script = Path(__file__).with_name("memory_probe.py")
    command = [sys.executable, str(script), "missing"]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    beyond, size = (float(x) for x in output.stdout.split())
    row = "memory 100000x256 float32, 30% missing"
    yield {"row": row, "MB beyond X": beyond, "MB of X": size}
