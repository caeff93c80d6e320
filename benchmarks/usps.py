"""USPS digits for the benchmark: from POLYSPAN_DATA, the folder `../shared/data`, or the cache."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from polyspan.datasets import load_usps

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_home() -> Path | None:
    """Return the folder `../shared/data`, or None if POLYSPAN_DATA is set or there is no folder."""
    return None if "POLYSPAN_DATA" in os.environ or not DEFAULT.is_dir() else DEFAULT


def load(digits: tuple[int, ...], rows: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of norm 1 and their digits."""
    try:
        parts = [load_usps(digit, data_home=data_home()).X[rows] for digit in digits]
    except (OSError, ImportError) as error:
        raise SystemExit(str(error)) from error
    return np.concatenate(parts), np.repeat(digits, [len(part) for part in parts])


def select(
    digits: tuple[int, ...], seed: int, rows: slice, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw n samples of every digit; return them, their labels, and the remaining samples."""
    rng = np.random.RandomState(seed)
    chosen, left, labels = [], [], []
    for k, digit in enumerate(digits):
        X, _ = load((digit,), rows)
        order = rng.permutation(len(X))
        chosen.append(X[order[:n]])
        left.append(X[order[n:]])
        labels += [k] * n
    return np.concatenate(chosen), np.array(labels), np.concatenate(left)
