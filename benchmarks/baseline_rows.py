"""Benchmark rows of the compared systems: the paper's settings, and speed against scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import Lasso, orthogonal_mp_gram

import usps
from polyspan.baselines import (
    KGROUSE,
    BlockSparseDictionary,
    KernelKMeans,
    KSubspaces,
    RobustSparseSubspaceClustering,
    SparseSubspaceClustering,
    ThresholdingSubspaceClustering,
)
from polyspan.baselines.sparse import lasso_codes, omp_codes
from polyspan.datasets import load_extended_yale_b, make_union_of_subspaces, mask_entries
from polyspan.metrics import average_subspace_distance, clustering_error

Row = dict[str, Any]


def baselines() -> Iterator[Row]:
    """Measure d_avg and wrong labels in the paper's synthetic setting, six draws."""
    methods = {
        "K-subspaces, 8 random starts": KSubspaces(5, 13, init="random", solver="exact", n_init=8),
        "K-subspaces, annealed": KSubspaces(5, 13),
        "SSC, alpha 60": SparseSubspaceClustering(5, 13, alpha=60.0),
        "SSC by OMP": SparseSubspaceClustering(5, 13, algorithm="omp"),
        "RSSC": RobustSparseSubspaceClustering(5, 13),
        "RSSC, two-step": RobustSparseSubspaceClustering(5, 13, lam="two-step", noise=0.1**0.5),
        "TSC": ThresholdingSubspaceClustering(5, 13),
        "SAC+BK-SVD": BlockSparseDictionary(5, 13),
    }
    for name, model in methods.items():
        row: Row = {"row": f"baselines, {name}"}
        for spread in (0.04, 0.2):
            found = []
            begin = time.process_time()
            for seed in range(6):
                data = make_union_of_subspaces(spread=spread, random_state=seed)
                _fit(model.set_params(random_state=seed), data.X)
                distance = average_subspace_distance(model.bases_, data.bases)
                found.append((distance, clustering_error(data.labels, model.labels_)))
            distance, wrong = np.mean(found, axis=0)
            row |= {f"d_avg at {spread}": float(distance), f"wrong at {spread}": float(wrong)}
            row["CPU s per fit"] = (time.process_time() - begin) / 6
        yield row
    for step, outer in ((0.1, 4), (1.5, 5)):
        row = {"row": f"baselines, k-GROUSE, step {step}, {outer} outer iterations"}
        for fraction in (0.1, 0.3, 0.5):
            distances = []
            for seed in range(6):
                data = make_union_of_subspaces(random_state=seed)
                X = mask_entries(data.X, fraction, random_state=seed)
                model = KGROUSE(5, 13, step_size=step, max_iter=outer, random_state=seed)
                _fit(model, X)
                distances.append(average_subspace_distance(model.bases_, data.bases))
            row[f"d_avg, {fraction:.0%} missing"] = float(np.mean(distances))
        yield row


def baselines_usps() -> Iterator[Row]:
    """Measure clustering errors of k-means, SSC and kernel k-means on USPS, 20 selections."""
    for digits, alpha, gamma, coef0 in (((1, 7), 20.0, 1 / 8, 2.0), ((1, 6), 10.0, 1 / 4, 1.0)):
        methods = {
            "k-means": KMeans(2, n_init=10),
            "SSC": SparseSubspaceClustering(2, 10, alpha=alpha),
            "kernel k-means, Gauss": KernelKMeans(2, gamma=gamma),
            "kernel k-means, poly": KernelKMeans(2, kernel="poly", gamma=1.0, coef0=coef0),
        }
        row: Row = {"row": f"USPS {digits}, clustering error in %"}
        for name, model in methods.items():
            errors = []
            for seed in range(20):
                X, y, _ = usps.select(digits, seed, slice(0, 200), 120)
                _fit(model.set_params(random_state=seed), X)
                errors.append(100 * clustering_error(y, model.labels_))
            row[name] = float(np.mean(errors))
        yield row


def baselines_faces() -> Iterator[Row]:
    """Measure SSC by OMP on the first subjects of Extended Yale B."""
    for n in (3, 10):
        faces = load_extended_yale_b(range(n), normalize=False, data_home=usps.data_home())
        X, y = faces.X, faces.target
        row: Row = {"row": f"faces, {n} subjects, SSC by OMP"}
        for cut in ("kmeans", "cluster_qr"):
            model = SparseSubspaceClustering(
                n, 9, algorithm="omp", n_nonzero=10, assign_labels=cut, random_state=0
            )
            _fit(model, X)
            row[f"error, {cut}"] = clustering_error(y, model.labels_)
        yield row


def sparse_codes() -> Iterator[Row]:
    """Time the lasso at N=650 and OMP at N=2414 against scikit-learn, column by column."""
    X = make_union_of_subspaces(random_state=0).X
    gram = X @ X.T
    off = np.abs(gram - np.diag(np.diag(gram)))
    weight = off.max(axis=1).min() / 60.0
    lasso_codes(gram[:20, :20].copy(), np.full(20, weight))
    begin = time.perf_counter()
    lasso_codes(gram, np.full(len(X), weight))
    ours = time.perf_counter() - begin
    begin = time.perf_counter()
    columns = range(0, len(X), 13)
    for i in columns:
        others = np.delete(np.arange(len(X)), i)
        model = Lasso(alpha=weight / X.shape[1], fit_intercept=False, tol=1e-6, max_iter=10_000)
        model.fit(X[others].T, X[i])
    theirs = (time.perf_counter() - begin) / len(columns) * len(X)
    yield {"row": "lasso codes, N=650, m=180", "ratio": theirs / ours, "ours s": ours}
    X = np.random.RandomState(0).standard_normal((2414, 2016))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    gram = X @ X.T
    omp_codes(gram[:20, :20].copy(), 3)
    begin = time.perf_counter()
    omp_codes(gram, 10)
    ours = time.perf_counter() - begin
    columns, theirs = range(0, len(X), 60), 0.0
    for i in columns:
        others = np.delete(np.arange(len(X)), i)
        own = np.asfortranarray(gram[np.ix_(others, others)])  # this copy is not timed
        begin = time.perf_counter()
        orthogonal_mp_gram(own, gram[others, i], n_nonzero_coefs=10, copy_Gram=False)
        theirs += (time.perf_counter() - begin) / len(columns) * len(X)
    yield {"row": "OMP codes, N=2414, m=2016, 10 nonzeros", "ratio": theirs / ours, "ours s": ours}


def baselines_memory() -> Iterator[Row]:
    """Measure the resident memory of clusterings of 2414 × 2016 float64, one process each."""
    script = Path(__file__).with_name("memory_probe.py")
    for name in ("tsc", "omp", "ssc"):
        command = [sys.executable, str(script), name]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        beyond, size = (float(x) for x in output.stdout.split())
        yield {"row": f"memory 2414x2016, {name}", "MB beyond X": beyond, "MB of X": size}


def _fit(model: Any, X: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
