"""Measure the error of all clustering methods on labelled data that chose nothing.

    python benchmarks/clustering_table.py                     all methods on all data
    python benchmarks/clustering_table.py --data USPS --methods ours k-means
    python benchmarks/clustering_table.py --print             the table of what is stored

Every fit is stored in the output file as it ends; a fit that is stored is not repeated.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: a BLAS reads it once

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering

from clustering_data import DATA, FIRST_SEED, OUTLIER, Data
from polyspan import MiCUSaL, SubspaceClustering, baselines
from polyspan.metrics import clustering_error
from run import write_whole
from timing import machine

Record = dict[str, Any]
#: A method makes an estimator of the number of clusters, a dimension and a seed.
Make = Callable[[int, int, int], Any]
UNKNOWN = "ours, L unknown"


def _graph_method(name: str, **settings: Any) -> Make:
    return lambda L, s, seed: getattr(baselines, name)(L, s, random_state=seed, **settings)


METHODS: dict[str, Make] = {
    "ours": lambda L, s, seed: SubspaceClustering(L, random_state=seed),
    "ours, sparse graphs": lambda L, s, seed: SubspaceClustering(
        L, graphs="sparse", random_state=seed
    ),
    UNKNOWN: lambda L, s, seed: SubspaceClustering(random_state=seed),
    "k-means": lambda L, s, seed: KMeans(L, n_init=10, random_state=seed),
    "spectral, 10 neighbours": lambda L, s, seed: SpectralClustering(
        L, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    ),
    "SSC": _graph_method("SparseSubspaceClustering"),
    "SSC-OMP": _graph_method(
        "SparseSubspaceClustering", algorithm="omp", assign_labels="cluster_qr"
    ),
    "TSC": _graph_method("ThresholdingSubspaceClustering"),
    "EnSC": _graph_method("ElasticNetSubspaceClustering"),
    "LSR": _graph_method("LeastSquaresSubspaceClustering"),
    "EKSS": _graph_method("EnsembleKSubspaces"),
    "RSIM": _graph_method("RobustShapeInteraction"),
    "MiCUSaL": lambda L, s, seed: MiCUSaL(L, s, random_state=seed),
}


def measure(data: Data, method: str, seed: int) -> Record:
    """Fit one method to one draw; return its errors in % and its certainty."""
    X, truth = data.draw(seed)
    counted = truth != OUTLIER
    n_clusters = len(np.unique(truth[counted]))
    model = METHODS[method](n_clusters, data.dim, seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = np.asarray(model.fit(X).labels_)
    record: Record = {
        "error": 100 * clustering_error(truth[counted], labels[counted]),
        "CPU s": time.process_time() - begin,
    }
    if isinstance(model, SubspaceClustering):
        order = np.argsort(-model.confidence_[counted], kind="stable")[: counted.sum() // 2]
        record |= {
            "certainty": model.certainty_,
            "n_clusters": model.n_clusters_,
            "true n_clusters": n_clusters,
            "source": model.source_,
            "error of the surer half": 100
            * _error_of(truth[counted], labels[counted], order, n_clusters),
        }
    return record


def _error_of(truth: np.ndarray, labels: np.ndarray, rows: np.ndarray, n_clusters: int) -> float:
    """Return the error of some samples, with names matched over all of them."""
    from scipy.optimize import linear_sum_assignment

    size = max(n_clusters, int(labels.max()) + 1)
    counts = np.zeros((size, size))
    np.add.at(counts, (labels, truth), 1)
    _, names = linear_sum_assignment(-counts)
    return float(np.mean(names[labels[rows]] != truth[rows]))


def left_to_do(
    stored: Record, data: list[str], methods: list[str], most: int | None = None
) -> Iterator[tuple[str, str, int]]:
    """Yield the fits that are not stored yet, draw by draw, of the first draws or of all."""
    for name in data:
        n_draws = min(DATA[name].n_draws, most or DATA[name].n_draws)
        for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
            for method in methods:
                if f"{name}|{method}|{seed}" not in stored:
                    yield name, method, seed


def table(stored: Record) -> str:
    """Return the mean errors as a Markdown table, with the mean certainty of ours."""
    by_cell: dict[tuple[str, str], list[Record]] = {}
    for key, record in stored.items():
        name, method, _ = key.split("|")
        by_cell.setdefault((name, method), []).append(record)
    methods = [m for m in METHODS if m != UNKNOWN and any(cell[1] == m for cell in by_cell)]
    lines = [
        "| data | draws | " + " | ".join(methods) + " | certainty | surer half | L found |",
        "|---" * (len(methods) + 5) + "|",
    ]
    for name in DATA:
        ours = by_cell.get((name, "ours"), [])
        cells = [_mean(by_cell.get((name, method), []), "error", 1) for method in methods]
        found = by_cell.get((name, UNKNOWN), [])
        right = sum(r["n_clusters"] == r["true n_clusters"] for r in found)
        cells += [_mean(ours, "certainty", 2), _mean(ours, "error of the surer half", 1)]
        cells += [f"{right} of {len(found)}" if found else "–"]
        lines.append(f"| {name} | {len(ours)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(records: list[Record], key: str, places: int) -> str:
    return f"{np.mean([r[key] for r in records]):.{places}f}" if records else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=[""], help="beginnings of names of data")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--draws", type=int, help="most draws of each data set")
    parser.add_argument("--output", type=Path, default=Path("build/clustering.json"))
    parser.add_argument("--print", action="store_true", help="print the table and measure nothing")
    options = parser.parse_args()
    whole = (
        json.loads(options.output.read_text(encoding="utf-8"))
        if options.output.exists()
        else {"fits": {}}
    )
    stored: Record = whole["fits"]
    data = [name for name in DATA if name.startswith(tuple(options.data))]
    if not options.print:
        for name, method, seed in left_to_do(stored, data, options.methods, options.draws):
            stored[f"{name}|{method}|{seed}"] = record = measure(DATA[name], method, seed)
            print(f"{name}, {method}, seed {seed}: {record['error']:.2f} %", flush=True)
            text = json.dumps({"machine": machine(), "fits": stored}, indent=1)
            write_whole(options.output, text)
    print(table(stored))


if __name__ == "__main__":
    main()
