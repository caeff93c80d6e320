"""What the scalers before the last step of a pipeline do to samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.export.standalone.constants import (
    STEPS,
)
from polyspan.export.standalone.samples import _checked


def _samples(X: Any) -> np.ndarray:
    """Check samples, and scale them as the steps of the pipeline do, one after the other."""
    X = _checked(X).copy()
    for action, number in STEPS:
        if action == "subtract":
            X -= number
        elif action == "divide":
            X /= number
        elif action == "multiply":
            X *= number
        elif action == "add":
            X += number
        elif action == "clip":
            X = np.clip(X, number[0], number[1])
        else:  # "divide rows", by a norm of each
            norms = _row_norms(X, number)
            tiny = norms < 10 * np.finfo(X.dtype).eps
            X /= np.where(tiny, np.ones_like(norms), norms)[:, None]
    return np.asarray(X)


def _row_norms(X: np.ndarray, norm: str) -> np.ndarray:
    if norm == "l1":
        return np.asarray(np.abs(X).sum(axis=1))
    if norm == "max":
        return np.asarray(np.abs(X).max(axis=1))
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X)))
