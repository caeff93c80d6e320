"""Draws of completed tables: coverage of intervals, energy scores, and pooled regressions.

    python benchmarks/draws_table.py entries --set fresh --out build/draws.json
    python benchmarks/draws_table.py entries --tables Boston wine --fractions .3 --seeds 1
    python benchmarks/draws_table.py regression --simulations 500 --out build/regressions.json
    python benchmarks/draws_table.py regression --out build/regressions.json --summary

`entries` hides entries of tables of numbers completely at random. It gives the part of hidden
entries inside the central 90 % interval of 100 draws, the mean width of these intervals, and the
energy score of each row over its hidden entries: smaller is better, and only draws from the right
distribution of all hidden entries of a row together have the smallest. Columns are standardised.
`regression` is described in `draws_regression.py`. Every result is written as soon as it is there;
what the file has is not measured again.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: a BLAS reads it once

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

import draws_regression
from draw_methods import DRAWS, Draw, available
from run import write_whole
from table_data import TABLES, load
from table_encoding import draw_mask
from timing import machine

Record = dict[str, Any]
LEVEL = 0.9
N_DRAWS = 100


def energy_score(draws: np.ndarray, truth: np.ndarray) -> float:
    """Return the energy score of draws of shape (draws, entries)."""
    to_truth = np.linalg.norm(draws - truth, axis=1).mean()
    return float(to_truth - 0.5 * pdist(draws).mean())


def score(draws: np.ndarray, truth: np.ndarray, mask: np.ndarray) -> Record:
    """Return coverage and width of the intervals, and the mean energy score of rows with holes."""
    tails = (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)
    # With this definition of quantiles, draws from the right distribution cover LEVEL exactly.
    low, high = np.quantile(draws[:, mask], tails, axis=0, method="weibull")
    rows = np.flatnonzero(mask.any(axis=1))
    scores = [energy_score(draws[:, i, mask[i]], truth[i, mask[i]]) for i in rows]
    inside = (low <= truth[mask]) & (truth[mask] <= high)
    return {
        "coverage": float(inside.mean()),
        "width": float((high - low).mean()),
        "energy": float(np.mean(scores)),
    }


def measure(draw: Draw, truth: np.ndarray, mask: np.ndarray, seed: int) -> Record:
    """Draw completed tables of one mask; return the scores and the processor time."""
    holes = np.where(mask, np.nan, truth)
    start = time.process_time()
    draws = draw(holes, N_DRAWS, seed)
    spent = time.process_time() - start
    return score(draws, truth, mask) | {"CPU s": spent}


def entries(options: argparse.Namespace, stored: Record) -> None:
    """Measure all tables of numbers that are asked for."""
    about = machine()
    for name in options.tables or TABLES:
        table = TABLES[name]
        if table.kind != "numeric" or options.set not in (None, table.flag):
            continue
        truth = load(name).to_numpy(dtype=float)
        truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
        for fraction in options.fractions:
            for seed in range(options.seeds):
                mask = draw_mask(truth.shape, fraction, seed, name)
                for method in options.methods:
                    key = f"{name}|{fraction}|{seed}|{method}"
                    if key in stored:
                        continue
                    stored[key] = record = measure(DRAWS[method], truth, mask, seed)
                    shown = "; ".join(f"{k} {v:.3f}" for k, v in record.items())
                    print(f"{key.replace('|', ', ')}: {shown}", flush=True)
                    text = json.dumps({"machine": about, "fits": stored}, indent=1)
                    write_whole(options.out, text)


def entries_summary(stored: Record, methods: list[str]) -> str:
    """Return the means of every table and fraction, and of all."""
    cells: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for key, record in stored.items():
        name, fraction, _, method = key.split("|")
        for row in ((name, fraction), ("all", fraction)):
            cells.setdefault(row, {}).setdefault(method, []).append(record)
    methods = [m for m in methods if any(m in found for found in cells.values())]
    lines = [
        "coverage of 90 % intervals / their width / energy score / CPU s",
        "",
        "| table | hidden | " + " | ".join(methods) + " |",
        "|---" * (len(methods) + 2) + "|",
    ]
    for (name, fraction), found in sorted(cells.items(), key=lambda item: item[0][0] == "all"):
        shown = [_cell(found.get(method, [])) for method in methods]
        lines.append(f"| {name} | {float(fraction):.0%} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _cell(records: list[Record]) -> str:
    if not records:
        return "–"
    mean = {key: np.mean([r[key] for r in records]) for key in records[0]}
    scores = f"{mean['coverage']:.3f} / {mean['width']:.2f} / {mean['energy']:.3f}"
    return f"{scores} / {mean['CPU s']:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("entries", "regression"))
    parser.add_argument("--tables", nargs="*", choices=TABLES, metavar="table")
    parser.add_argument("--set", choices=("chose", "fresh"))
    parser.add_argument("--fractions", nargs="*", type=float, default=(0.1, 0.3, 0.5))
    parser.add_argument("--seeds", type=int, default=2, help="number of masks")
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--methods", nargs="*", choices=DRAWS, default=available())
    parser.add_argument("--out", type=Path, default=Path("build/draws.json"))
    parser.add_argument("--summary", action="store_true", help="print only, measure nothing")
    options = parser.parse_args()
    stored = (
        json.loads(options.out.read_text(encoding="utf-8"))["fits"] if options.out.exists() else {}
    )
    if options.part == "entries":
        if not options.summary:
            entries(options, stored)
        print(entries_summary(stored, options.methods))
        return
    if not options.summary:
        about = machine()

        def store() -> None:
            write_whole(options.out, json.dumps({"machine": about, "fits": stored}))

        draws_regression.simulate(options.simulations, options.methods, stored, store)
    print(draws_regression.summary(stored))


if __name__ == "__main__":
    main()
