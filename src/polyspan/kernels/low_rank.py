"""A Nyström map: explicit coordinates of rank r in place of an N×N kernel matrix.

By hand because `sklearn.kernel_approximation.Nystroem` draws its landmarks itself and keeps
directions that are rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyspan.arrays import (
    Array,
    chunk_rows,
    is_host,
    item_bytes,
    namespace,
    row_slices,
    zeros,
)
from polyspan.geometry import leading_rank, symmetric_eigen
from polyspan.kernels.functions import Kernel

# Below this share of the largest, an eigenvalue of the landmarks' kernel matrix is rounding.
RANK_TOL = 1e-12


@dataclass(frozen=True)
class NystromMap:
    """φ(x) ≈ whitener ᵀ κ(landmarks, x), so that inner products of coordinates approximate κ."""

    kernel: Kernel
    landmarks: Array
    """Rows of the training data: (n_landmarks, n_features)."""
    whitener: Array
    """(n_landmarks, rank), with whitenerᵀ K whitener = I."""

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Array) -> NystromMap:
        """Build the map from landmarks."""
        xp, n = namespace(landmarks), landmarks.shape[0]
        values, vectors = symmetric_eigen(kernel(landmarks))
        rank = leading_rank(values, RANK_TOL * max(float(values[-1]), 0.0))
        if not rank:  # a kernel that vanishes: one coordinate, which is zero
            return cls(kernel, landmarks, zeros((n, 1), landmarks))
        return cls(kernel, landmarks, vectors[:, n - rank :] / xp.sqrt(values[n - rank :]))

    @property
    def rank(self) -> int:
        """Number of coordinates: the number of landmarks, or fewer where some are alike."""
        return int(self.whitener.shape[1])

    def __call__(self, X: Array) -> Array:
        """Return the coordinates of every row, (n, rank), chunk by chunk."""
        out = zeros((X.shape[0], self.rank), self.whitener)
        wide = X.shape[1] + self.landmarks.shape[0]
        for part in row_slices(X.shape[0], chunk_rows(wide, item_bytes(X), host=is_host(X))):
            out[part, :] = self.kernel(X[part, :], self.landmarks) @ self.whitener
        return out

    def lost(self, X: Array, Z: Array) -> Array:
        """Return κ(x, x) - ‖z‖², what of φ(x) the landmarks do not span, given coordinates Z."""
        xp = namespace(Z)
        return xp.clip(self.kernel.diagonal(X) - xp.vecdot(Z, Z), 0.0, None)
