"""USPS digits for the benchmark: from POLYSPAN_DATA, or the folder `../shared/data`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import scipy.io

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


def load(digits: tuple[int, ...], rows: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of norm 1 and their digits."""
    path = Path(os.environ.get("POLYSPAN_DATA", DEFAULT)) / "usps_all.mat"
    if not path.exists():
        raise SystemExit(f"{path} is missing: set POLYSPAN_DATA to the folder of usps_all.mat")
    data = scipy.io.loadmat(path)["data"].astype(float)
    parts = [data[:, rows, (digit - 1) % 10].T for digit in digits]
    X = np.concatenate(parts)
    labels = np.repeat(digits, [len(part) for part in parts])
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


def select(
    digits: tuple[int, ...], seed: int, rows: slice, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n samples of every digit; return them, their labels, and all the others."""
    rng = np.random.RandomState(seed)
    chosen, left, labels = [], [], []
    for k, digit in enumerate(digits):
        X, _ = load((digit,), rows)
        order = rng.permutation(len(X))
        chosen.append(X[order[:n]])
        left.append(X[order[n:]])
        labels += [k] * n
    return np.concatenate(chosen), np.array(labels), np.concatenate(left)
