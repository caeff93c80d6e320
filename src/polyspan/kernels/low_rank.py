"""A Nyström map: explicit coordinates of rank r in place of an N×N kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.arrays import chunk_rows
from polyspan.kernels.functions import Kernel

# Below this share of the largest, an eigenvalue of the landmarks' kernel matrix is rounding.
RANK_TOL = 1e-12


@dataclass(frozen=True)
class NystromMap:
    """φ(x) ≈ whitener ᵀ κ(landmarks, x), so that inner products of coordinates approximate κ."""

    kernel: Kernel
    landmarks: np.ndarray
    """Rows of the training data: (n_landmarks, n_features)."""
    whitener: np.ndarray
    """(n_landmarks, rank), with whitenerᵀ K whitener = I."""

    @classmethod
    def of(cls, kernel: Kernel, landmarks: np.ndarray) -> NystromMap:
        """Build the map from landmarks."""
        values, vectors = scipy.linalg.eigh(kernel(landmarks))
        kept = values > RANK_TOL * max(float(values.max()), 0.0)
        if not kept.any():  # a kernel that vanishes: one coordinate, which is zero
            return cls(kernel, landmarks, np.zeros((len(landmarks), 1)))
        return cls(kernel, landmarks, vectors[:, kept] / np.sqrt(values[kept]))

    @property
    def rank(self) -> int:
        """Number of coordinates: the number of landmarks, or fewer where some are alike."""
        return int(self.whitener.shape[1])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates of every row, (n, rank), chunk by chunk."""
        out = np.empty((len(X), self.rank), dtype=self.whitener.dtype)
        size = chunk_rows(X.shape[1] + len(self.landmarks), X.itemsize)
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            out[part] = self.kernel(X[part], self.landmarks) @ self.whitener
        return out

    def lost(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return κ(x, x) - ‖z‖², what of φ(x) the landmarks do not span, given coordinates Z."""
        squares = np.einsum("nk,nk->n", Z, Z)
        return np.asarray(np.maximum(self.kernel.diagonal(X) - squares, 0.0))
