r"""Learning from a stream: what is remembered of the samples that have passed.

Of the members of a subspace three sums are kept: how many, Σ w z, and the scatter Σ w zzᵀ, with
z = y - reference. They are all that a power step needs, and adding a batch to them costs nothing
of the past. Before each batch everything remembered is multiplied by the forget factor f, so a
sample that came k batches ago has the weight w = f^k.

The scatter is kept as a thin factor of at most `rank` rows, the leading ones: exact where rank is
the number of features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polyspan.arrays import top_eigenvectors
from polyspan.geometry import closeness
from polyspan.solvers.problem import Problem
from polyspan.solvers.updates import power_update

# Rows of a factor per dimension of a subspace: what of the scatter lies beyond them is noise.
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
        """Return the memory of nothing."""
        m = len(reference)
        none = np.empty((0, m), dtype=reference.dtype)
        rank = min(m, RANK_PER_DIMENSION * subspace_dim)
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

    def products(self, bases: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return S_lD_l, with the scatter about `mean`: the shift of it is thin."""
        shift = (mean - self.reference).astype(np.float64)
        out = np.empty_like(bases)
        for p, (rows, basis) in enumerate(zip(self.factors, bases, strict=True)):
            total, along = self.totals[p], shift @ basis
            out[p] = (
                rows.T @ (rows @ basis)
                - np.outer(total - self.counts[p] * shift, along)
                - np.outer(shift, total @ basis)
            )
        return out

    def squared_norms(self, mean: np.ndarray) -> float:
        """Return Σ w ‖y - mean‖²."""
        shift = (mean - self.reference).astype(np.float64)
        total = self.totals.sum(axis=0)
        return float(self.squares - 2.0 * shift @ total + self.counts.sum() * (shift @ shift))


def _leading_rows(rows: np.ndarray, rank: int) -> np.ndarray:
    """Return at most 2·rank rows with (the leading part of) the same scatter.

    Rows are let pile up to twice the rank, so that most batches cost no decomposition.
    """
    n, m = rows.shape
    if n <= 2 * rank:
        return rows
    if n < m:
        values, vectors = top_eigenvectors(rows @ rows.T, rank)
        return np.ascontiguousarray(vectors.T @ rows)
    values, vectors = top_eigenvectors(rows.T @ rows, rank)
    return np.ascontiguousarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)


@dataclass(frozen=True)
class Absorbed:
    """Where a batch has led to."""

    bases: np.ndarray
    memory: Memory
    history: tuple[float, ...]
    """F1 over the batch and what is remembered, before each step and at the end; never rises."""
    settled: bool


def absorb(
    memory: Memory, batch: Problem, bases: np.ndarray, mean: np.ndarray,
    *, max_steps: int, tol: float,
) -> Absorbed:  # fmt: skip
    """Take power steps on the memory and a batch together, then remember the batch.

    Samples of the batch are assigned anew before each step; what is remembered stays with the
    subspace that it was remembered for.

    Parameters
    ----------
    batch : Problem
        Complete or with holes, centred at `mean`, with its norms.
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    """
    past = memory.squared_norms(mean)
    history: list[float] = []
    settled = False
    for step in range(max_steps + 1):
        labels, sums = batch.assign(bases[None], with_products=True)
        remembered = memory.products(bases, mean)
        energy = float(sums.energy[0]) + float(np.sum(bases * remembered, dtype=np.float64))
        history.append(_objective(batch, bases, past + batch.total - energy))
        if step and history[-2] - history[-1] <= tol * abs(history[-1]):
            settled = True
            break
        if step < max_steps:
            bases = power_update(batch, bases[None], sums.products + remembered)[0]
    own = labels[:, 0]
    complete = batch.completed(bases, own)
    samples = complete.rows.centred(slice(0, len(own)))
    weights = getattr(batch, "weights", None)
    if weights is None:
        weights = np.ones(len(own), dtype=samples.dtype)
    else:  # filled samples come times the root of their weight
        samples = samples / np.sqrt(weights)[:, None]
    return Absorbed(
        bases, memory.with_samples(samples, weights, mean, own), tuple(history), settled
    )


def _objective(problem: Problem, bases: np.ndarray, residual: float) -> float:
    residual = max(residual, 0.0)
    if not problem.pull:
        return residual
    return float(closeness(bases[None])[0]) + problem.lam * residual
