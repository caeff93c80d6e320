"""Imputation of tables: errors of hidden entries and processor time, one thread.

    python benchmarks/imputation_table.py --set chose --kind numeric --out build/chose.json
    python benchmarks/imputation_table.py --tables Boston wine --methods trees polyspan
    python benchmarks/imputation_table.py --out build/chose.json --summary

Entries are hidden completely at random. The error of numbers is the root of the mean square over
all hidden entries of a table, on columns that are standardised by their complete entries; that of
categories, booleans and strings is given as the part that is filled right (accuracy). Every result
is written as soon as it is there; what the file has is not measured again. The tables and their two
sets are in `table_data.py`, the methods in `imputation_methods.py`.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: a BLAS reads it once

import argparse
import contextlib
import io
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from imputation_methods import METHODS, Fill, available
from imputation_summary import summary
from run import write_whole
from table_data import TABLES, discrete, load
from table_encoding import as_labels, draw_mask, hide
from timing import machine

Record = dict[str, Any]
FRACTIONS = (0.1, 0.3, 0.5)


def score(filled: pd.DataFrame, truth: pd.DataFrame, mask: np.ndarray) -> Record:
    """Return RMSE of the hidden numbers and accuracy of the other hidden entries."""
    others = discrete(truth)
    squares, right = [], []
    for column, hidden in zip(truth, mask.T, strict=True):
        if column in others:
            labels = as_labels(filled[column], truth[column])[hidden]
            right.append(labels == truth[column].to_numpy(dtype=object)[hidden])
        else:
            values = truth[column].to_numpy(dtype=float)
            error = filled[column].to_numpy(dtype=float) - values
            squares.append((error[hidden] / values.std()) ** 2)
    record: Record = {"rmse": float(np.sqrt(np.mean(np.concatenate(squares))))}
    if others:
        record["accuracy"] = float(np.mean(np.concatenate(right)))
    return record


def measure(fill: Fill, truth: pd.DataFrame, mask: np.ndarray) -> Record:
    """Fill a table once; return its errors and seconds, or what was raised."""
    holes = hide(truth, mask)
    start = time.process_time()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            filled = fill(holes)
        spent = time.process_time() - start
        record = score(filled, truth, mask) | {"CPU s": spent}
    except Exception as error:  # a method that fails loses this table, not the whole run
        return {"failed": f"{type(error).__name__}: {error}"[:200]}
    if not np.isfinite(record["rmse"]):
        return {"failed": f"RMSE {record['rmse']}"}
    if "note" in filled.attrs:
        record["note"] = filled.attrs["note"]
    return record


def warm_up(methods: list[str]) -> None:
    """Fill a small table with every method, so that compiling and importing are not timed."""
    truth = load("thresholds").iloc[:60]
    mask = draw_mask(truth.shape, 0.2, 0, "warm")
    for name in methods:
        measure(METHODS[name], truth.iloc[:, :4], mask[:, :4])
        result = measure(METHODS[name], truth, mask)
        if "failed" in result:
            print(f"{name} fails on a small table: {result['failed']}", flush=True)


def cells(options: argparse.Namespace) -> Iterator[tuple[str, float, int]]:
    """Yield the masks that are asked for."""
    for name in options.tables or TABLES:
        table = TABLES[name]
        if options.set not in (None, table.flag) or options.kind not in (None, table.kind):
            continue
        for fraction in options.fractions:
            for seed in range(options.seeds):
                yield name, fraction, seed


def run(options: argparse.Namespace, stored: Record) -> None:
    """Measure what is not stored yet."""
    warm_up(options.methods)
    about = machine()
    for name, fraction, seed in cells(options):
        truth = load(name)
        mask = draw_mask(truth.shape, fraction, seed, name)
        for method in options.methods:
            key = f"{name}|{fraction}|{seed}|{method}"
            if key in stored:
                continue
            stored[key] = record = measure(METHODS[method], truth, mask)
            shown = "; ".join(
                f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items()
            )
            print(f"{name}, {fraction:.0%}, mask {seed}, {method}: {shown}", flush=True)
            text = json.dumps({"machine": about, "fits": stored}, indent=1)
            write_whole(options.out, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=TABLES, metavar="table")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=available())
    parser.add_argument("--fractions", nargs="*", type=float, default=FRACTIONS)
    parser.add_argument("--seeds", type=int, default=3, help="number of masks")
    parser.add_argument("--set", choices=("chose", "fresh"))
    parser.add_argument("--kind", choices=("numeric", "mixed"))
    parser.add_argument("--out", type=Path, default=Path("build/imputation.json"))
    parser.add_argument("--summary", action="store_true", help="print only, measure nothing")
    options = parser.parse_args()
    stored = (
        json.loads(options.out.read_text(encoding="utf-8"))["fits"] if options.out.exists() else {}
    )
    if not options.summary:
        run(options, stored)
    wanted = set(cells(options))
    fits = {}
    for key, record in stored.items():
        name, fraction, seed, method = key.split("|")
        if (name, float(fraction), int(seed)) in wanted and method in options.methods:
            fits[name, float(fraction), int(seed), method] = record
    for kind in ("numeric", "mixed"):
        some = {key: record for key, record in fits.items() if TABLES[key[0]].kind == kind}
        if some:
            print(f"\n## {kind} tables\n\n{summary(some, options.methods)}")


if __name__ == "__main__":
    main()
