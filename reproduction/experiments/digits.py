"""Selections of digits for Fig. 7 and Table IV."""

from __future__ import annotations

import numpy as np

from reproduction.experiments.source import REAL, Source
from reproduction.run.records import Params
from reproduction.run.runner import trial_seed

#: Number of training samples of each digit, out of the first 200.
TRAINING = 120


def select(
    params: Params, source: Source, digits: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training samples, their labels, and the remaining samples for testing."""
    groups = source.digits(params.get("data", REAL))
    fraction = 0.6 if params["size"] == "full" else 0.25
    chosen, labels, left = [], [], []
    for k, digit in enumerate(digits):
        X = groups[digit]
        rng = np.random.RandomState(trial_seed("digits", digit, params["draw"]))
        order = rng.permutation(len(X))
        n = TRAINING if len(X) == 200 and params["size"] == "full" else int(fraction * len(X))
        chosen.append(X[order[:n]])
        labels += [k] * n
        rest = order[n:] if params["size"] == "full" else order[n : n + 20]
        left.append(X[rest])
    return np.concatenate(chosen), np.array(labels), np.concatenate(left)


def dimension(params: Params, s: int) -> int:
    """Return s, or less for the small problems of scale "smoke"."""
    return s if params["size"] == "full" else min(s, 12)
