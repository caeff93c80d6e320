"""What `partial_fit` remembers between two batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.arrays import machine_epsilon, power_of_two_scale
from polyspan.union._solve.memory import Memory


@dataclass(frozen=True)
class Stream:
    """What `partial_fit` knows between two batches."""

    n_seen: float
    """Number of samples so far, or the sum of their weights."""
    options: tuple[Any, ...]
    """Values of the parameters that may not change, at the beginning of the stream."""
    sums: np.ndarray
    """Weighted sums of the observed entries of every feature, times `scale`."""
    counts: np.ndarray
    """Sums of the weights of these entries."""
    first: np.ndarray | None = None
    """The first samples with enough observed entries, until there are enough to start from."""
    first_weights: np.ndarray | None = None
    """Weights of `first`; None: 1 for each."""
    n_fitted: int = 0
    """Number of samples in `first` at the last fit."""
    memory: Memory | None = None
    """Sums over past samples times `scale`."""
    scale: float = 1.0
    """A power of two that keeps squares finite."""

    def with_batch(self, X: np.ndarray, weights: np.ndarray | None, forget_factor: float) -> Stream:
        """Apply the forget factor and add a batch, on a scale that suits both."""
        assert self.memory is not None
        missing, eps = np.isnan(X), machine_epsilon(X)
        values = np.where(missing, X.dtype.type(0), X)
        largest = float(np.abs(values).max(initial=0.0))
        scale, sums, memory = self.scale, self.sums, self.memory
        fits = math.isfinite(largest * scale) and power_of_two_scale(largest * scale, eps) >= 1.0
        if not fits:  # the squares of the batch would overflow on this scale
            scale = power_of_two_scale(largest, eps)
            by = scale / self.scale
            sums, memory = by * sums, memory.scaled(by)
        own = True if weights is None else weights[:, None]
        return replace(
            self,
            sums=forget_factor * sums + (own * (values * scale)).sum(axis=0, dtype=np.float64),
            counts=forget_factor * self.counts + (own * ~missing).sum(axis=0),
            memory=memory.faded(forget_factor),
            scale=scale,
        )

    def mean(self, dtype: Any) -> np.ndarray:
        """Return the weighted mean of the observed entries of every feature, times `scale`."""
        return np.asarray(self.sums / np.maximum(self.counts, 1e-300), dtype=dtype)
