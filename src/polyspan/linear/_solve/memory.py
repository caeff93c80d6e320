r"""Learning from a stream: what is remembered of past samples.

For each subspace three sums over its members are kept: Σ w, Σ w z, and the scatter Σ w zzᵀ, with
z = y - reference. A power step needs nothing else, and a batch is added without past samples.
Before each batch everything remembered is multiplied by the forget factor f, so a sample that came
k batches ago has the weight w = f^k.

The scatter is kept as a thin factor of at most `rank` rows, the leading ones: exact where rank is
the number of features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import top_eigenvectors
from polyspan.linear._solve.sums import Sums

# Rows of a factor per dimension of a subspace; the rest of the scatter is noise.
RANK_PER_DIMENSION = 10


@dataclass(frozen=True)
class Memory:
    """Sums over the samples that have passed, about a fixed point."""

    reference: np.ndarray
    """Shape (n_features,)."""
    counts: np.ndarray
    """Weights of the members: (n_subspaces,)."""
    totals: np.ndarray
    """Σ w z: (n_subspaces, n_features)."""
    factors: tuple[np.ndarray, ...]
    """For each subspace rows whose scatter is Σ w zzᵀ, or its leading part."""
    squares: float
    """Σ w ‖z‖² over all samples."""
    rank: int
    """Most rows of a factor."""

    @classmethod
    def empty(cls, reference: np.ndarray, n_subspaces: int, subspace_dim: int) -> Memory:
        """Return a memory without samples."""
        m = len(reference)
        none = np.empty((0, m), dtype=reference.dtype)
        # A point of an affine subspace is one more direction of its members.
        rank = min(m, RANK_PER_DIMENSION * max(subspace_dim, 1))
        zeros = np.zeros((n_subspaces, m))
        return cls(reference, np.zeros(n_subspaces), zeros, (none,) * n_subspaces, 0.0, rank)

    def faded(self, factor: float) -> Memory:
        """Return what is left after everything was multiplied by the forget factor."""
        if factor == 1.0:
            return self
        return replace(
            self,
            counts=factor * self.counts,
            totals=factor * self.totals,
            factors=tuple(np.sqrt(factor) * rows for rows in self.factors),
            squares=factor * self.squares,
        )

    def scaled(self, by: float) -> Memory:
        """Return the memory of the same samples times a number."""
        return replace(
            self,
            reference=by * self.reference,
            totals=by * self.totals,
            factors=tuple(by * rows for rows in self.factors),
            squares=by * (by * self.squares),
        )

    def with_samples(
        self, samples: np.ndarray, weights: np.ndarray, mean: np.ndarray, labels: np.ndarray
    ) -> Memory:
        """Add samples, given relative to `mean`, to the subspaces that they belong to."""
        dtype = self.reference.dtype
        z = (samples + (mean - self.reference)) * np.sqrt(weights)[:, None]
        counts, totals, factors = self.counts.copy(), self.totals.copy(), list(self.factors)
        for p in range(len(counts)):
            own = labels == p
            counts[p] += weights[own].sum()
            totals[p] += np.sqrt(weights[own]) @ z[own]
            rows = np.concatenate([factors[p], z[own].astype(dtype, copy=False)])
            factors[p] = _leading_rows(rows, self.rank)
        squares = self.squares + float(np.sum(z * z, dtype=np.float64))
        return replace(self, counts=counts, totals=totals, factors=tuple(factors), squares=squares)


@dataclass(frozen=True)
class Past:
    """The remembered sums, as one more term of the sums of a batch."""

    memory: Memory
    mean: np.ndarray
    """The present mean, to which samples are relative."""

    @property
    def _shift(self) -> np.ndarray:
        return np.asarray(self.mean - self.memory.reference, dtype=np.float64)

    def squares(self) -> float:
        """Return Σ w ‖y‖², y relative to the mean."""
        shift, memory = self._shift, self.memory
        total = memory.totals.sum(axis=0)
        return float(memory.squares - 2.0 * shift @ total + memory.counts.sum() * (shift @ shift))

    def sums(self, frames: np.ndarray, shape: Any) -> Sums:
        """Return the sums of the past samples for one start, each with the label that it had."""
        bases, points = shape.split(frames[0])
        products = self.products(bases)
        energy = float(np.sum(bases * products, dtype=np.float64))
        counts = self.memory.counts
        totals = self.memory.totals - counts[:, None] * self._shift
        coefficients = np.einsum("lm,lms->ls", totals, bases)
        if points is not None:
            inside = np.einsum("lm,lms->ls", points, bases)
            energy += float(
                np.sum(counts[:, None] * inside**2 - 2.0 * coefficients * inside)
                + np.sum(2.0 * points * totals - counts[:, None] * points**2)
            )
            coefficients = coefficients - counts[:, None] * inside
            products = products - totals[:, :, None] * inside[:, None, :]
        dtype = frames.dtype
        return Sums(
            counts[None],
            np.array([energy]),
            coefficients=coefficients[None].astype(dtype, copy=False),
            products=products[None].astype(dtype, copy=False),
            totals=totals[None].astype(dtype, copy=False),
            mass=counts[None].astype(dtype, copy=False),
        )

    def products(self, bases: np.ndarray) -> np.ndarray:
        """Return S_lD_l, with the scatter about the mean: the shift of it is thin."""
        shift, memory = self._shift, self.memory
        out = np.empty_like(bases)
        for p, (rows, basis) in enumerate(zip(memory.factors, bases, strict=True)):
            total, along = memory.totals[p], shift @ basis
            out[p] = (
                rows.T @ (rows @ basis)
                - np.outer(total - memory.counts[p] * shift, along)
                - np.outer(shift, total @ basis)
            )
        return out


def _leading_rows(rows: np.ndarray, rank: int) -> np.ndarray:
    """Return at most 2·rank rows with (the leading part of) the same scatter.

    Rows accumulate up to twice the rank, so that most batches need no decomposition.
    """
    n, m = rows.shape
    if n <= 2 * rank:
        return rows
    if n < m:
        values, vectors = top_eigenvectors(rows @ rows.T, rank)
        return np.ascontiguousarray(vectors.T @ rows)
    values, vectors = top_eigenvectors(rows.T @ rows, rank)
    return np.ascontiguousarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
