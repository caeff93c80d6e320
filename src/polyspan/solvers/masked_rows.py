"""Rows with holes: zeros and a mask, weights m/|Ω|, and the small systems that they lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from polyspan.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    namespace,
    row_slices,
    transpose,
)
from polyspan.solvers.problem import Problem


@dataclass(frozen=True)
class MaskedChunk:
    """Rows with holes: zeros where nothing was observed."""

    values: Array
    """Shape (n, n_features)."""
    missing: Array
    """1 where missing, else 0, in the dtype of the values."""
    weights: Array
    """m/|Ω_i|: shape (n,)."""
    patterns: Array | None
    """Row of `shared` that holds the pattern of each sample, or None."""


@dataclass(frozen=True)
class MaskedRows(Problem):
    """Incomplete data; `norms` and `total` are of the observed entries, times m/|Ω_i|."""

    missing: Array | None = None
    """Boolean, (n_samples, n_features)."""
    weights: Array | None = None
    """m/|Ω_i|."""
    prior: float = 0.0
    """ρ: 0 is plain least squares, 1 fills with zeros."""
    patterns: Array | None = None
    """For each sample the index of its pattern among `shared`, where few patterns recur."""
    shared: Array | None = None
    """Boolean, (n_patterns, n_features)."""

    def slices(self, k: int, s: int) -> Iterator[slice]:
        """Yield which rows to visit at once, so that k systems each stay in the memory bound."""
        n, m = self.rows.shape
        per_row = item_bytes(self.rows.X) * (2 * m + 2 * k * s * (s + 1))
        bound = CHUNK_MAX_BYTES if is_host(self.rows.X) else DEVICE_CHUNK_BYTES
        size = max(1, min(self.rows.size, bound // per_row))
        yield from row_slices(n, size)

    def chunks(self, k: int, s: int) -> Iterator[MaskedChunk]:
        """Yield rows in chunks whose systems stay within the memory bound."""
        for which in self.slices(k, s):
            yield self._chunk(partial(_rows, which))

    def take(self, rows: Array) -> MaskedChunk:
        """Return some rows."""
        xp = namespace(rows)
        return self._chunk(lambda a: xp.take(a, rows, axis=0))

    def _chunk(self, part: Callable[[Array], Array]) -> MaskedChunk:
        values = self.rows.X
        missing = namespace(values).astype(part(self.missing), values.dtype)
        patterns = None if self.patterns is None else part(self.patterns)
        return MaskedChunk(part(values), missing, part(self.weights), patterns)

    def shift(self, gram: Array) -> Array:
        """Turn packed [D]ᵀ[D] over the missing rows into the systems, in place."""
        xp = namespace(gram)
        gram *= -(1.0 - self.prior)
        s = int((2 * gram.shape[1]) ** 0.5)
        # Where |Ω| ≤ s and there is no prior the system is singular; such rows are not learned
        # from, but new ones may come: the smallest shift keeps their coefficients finite.
        unit = 1.0 + 4.0 * xp.finfo(gram.dtype).eps
        for i in range(s):
            gram[:, i * s - i * (i - 1) // 2, :] += unit
        return gram

    def filled(self, chunk: MaskedChunk, basis: Array, theta: Array) -> Array:
        """Return samples of one subspace with their holes filled, ŷ."""
        filled = theta @ transpose(basis)
        filled *= chunk.missing
        filled *= 1.0 - self.prior
        filled += chunk.values
        return filled

    def filled_products(self, chunk: MaskedChunk, basis: Array, theta: Array) -> Array:
        """Return Σ c ŷθᵀ over samples of one subspace."""
        weighted = theta * chunk.weights[:, None]
        return transpose(transpose(weighted) @ self.filled(chunk, basis, theta))


def _rows(which: slice, a: Array) -> Array:
    return a[which, ...]
