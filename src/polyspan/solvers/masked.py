r"""Assignment and sums where entries are missing (design of the majorise–minimise solver).

For sample i and subspace l the coefficients θ minimise
‖[y - D_lθ]_Ω‖² + ρ ‖[D_lθ]_Ωᶜ‖², a least-squares fit of the observed entries with a prior of small
filled-in ones. Filling the missing entries with (1-ρ)D_lθ gives a complete sample ŷ with
D_lᵀŷ = θ, and ‖ŷ - P ŷ‖² (plus a constant) majorises the masked residual for every other
subspace: the complete-data power step on filled samples, weighted by m/|Ω_i|, never raises F2 plus
its prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyspan.arrays import (
    CHUNK_MAX_BYTES,
    Array,
    Rows,
    float64_sum,
    item_bytes,
    namespace,
    transpose,
)
from polyspan.solvers.assignment import Sums, softmax
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.problem import Problem
from polyspan.solvers.small_systems import pairwise_products, solve_packed


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
class MaskedProblem(Problem):
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

    def assign(
        self, bases: Array, *, with_products: bool, leverage: Leverage | None = None
    ) -> tuple[Array, Sums]:
        """Give every sample to the subspace with the smallest masked residual."""
        xp = namespace(bases)
        n_subspaces = bases.shape[1]
        parts, total = [], None
        for chunk, theta, energy in self._fits(bases):
            labels = xp.argmax(energy, axis=2)
            won = xp.max(energy, axis=2)
            every = xp.arange(n_subspaces, dtype=labels.dtype)
            counts = xp.sum(xp.astype(labels[..., None] == every, xp.int64), axis=0)
            energy_sum = float64_sum(won * chunk.weights[:, None], axis=0)
            zeros = xp.zeros_like(energy_sum)
            products = self._member_sums(chunk, bases, theta, labels) if with_products else None
            sums = Sums(counts, energy_sum, zeros, zeros, products=products)
            parts.append(labels)
            total = sums if total is None else total + sums
        assert total is not None
        return xp.concat(parts, axis=0), total

    def weigh(
        self,
        bases: Array,
        temperature: float,
        *,
        leverage: Leverage | None = None,
        keep_weights: bool = True,
    ) -> tuple[Array | None, Sums]:
        """Share every sample out with weights ∝ exp(-r/τ), r the masked residual times m/|Ω|."""
        xp = namespace(bases)
        parts, total = [], None
        for chunk, theta, energy in self._fits(bases):
            gain = energy * chunk.weights[:, None, None]
            shares, log_shares = softmax(gain / temperature)
            products = self._weighted_sums(chunk, bases, theta, shares)
            energy_sum = float64_sum(shares * gain, axis=(0, 2))
            entropy = float64_sum(shares * log_shares, axis=(0, 2))
            counts = xp.sum(shares, axis=0)
            sums = Sums(counts, energy_sum, xp.zeros_like(entropy), entropy, products=products)
            if keep_weights:
                parts.append(shares)
            total = sums if total is None else total + sums
        assert total is not None
        return xp.concat(parts, axis=0) if parts else None, total

    def residuals(self, bases: Array) -> Array:
        """Return the masked residual, times m/|Ω|, to the nearest subspace, for one start."""
        xp = namespace(bases)
        won = [
            xp.max(energy[:, 0, :], axis=1) * chunk.weights
            for chunk, _, energy in self._fits(bases[None, ...])
        ]
        return self.norms - xp.concat(won, axis=0)

    has_holes = True

    def completed(self, bases: Array, labels: Array) -> Problem:
        """Return the filled samples times √(m/|Ω|): what a minimiser of the majoriser sees."""
        xp = namespace(bases)
        assert self.missing is not None
        assert self.weights is not None
        theta = self.own_coefficients(bases, labels)
        values = xp.asarray(self.rows.X, copy=True)
        for p in range(bases.shape[0]):
            own = xp.nonzero(labels == p)[0]
            filled = (1.0 - self.prior) * (xp.take(theta, own, axis=0) @ transpose(bases[p, ...]))
            filled = xp.where(xp.take(self.missing, own, axis=0), filled, 0.0)
            values[own, :] += filled
        values *= xp.sqrt(self.weights)[:, None]
        norms = xp.sum(values * values, axis=1)
        return Problem(
            Rows(values, None, self.rows.size), norms, float(float64_sum(norms)), self.lam
        )

    def own_coefficients(self, bases: Array, labels: Array) -> Array:
        """Return θ of every sample for the basis that it is assigned to."""
        xp = namespace(bases)
        theta = xp.concat([part for part, _ in self.coefficients(bases)], axis=0)
        return xp.take_along_axis(theta, labels[:, None, None], axis=1)[:, 0, :]

    def coefficients(self, bases: Array) -> Iterator[tuple[Array, Array]]:
        """Yield θ (n, n_subspaces, s) and energies (n, n_subspaces) of one start, by chunks."""
        for _, theta, energy in self._fits(bases[None, ...]):
            yield theta[:, 0, ...], energy[:, 0, ...]

    def _fits(self, bases: Array) -> Iterator[tuple[MaskedChunk, Array, Array]]:
        """Yield each chunk with θ (n, n_starts, L, s) and energies bᵀθ (n, n_starts, L)."""
        xp = namespace(bases)
        starts, n_subspaces, m, s = bases.shape
        flat = xp.reshape(bases, (starts * n_subspaces, m, s))
        pairs = pairwise_products(flat)
        inverse = None
        if self.shared is not None:
            inverse = self._inverses(flat, pairs)
        for chunk in self._chunks(flat.shape[0], s):
            n = chunk.values.shape[0]
            right = transpose(flat) @ transpose(chunk.values)  # (k, s, n)
            if inverse is None:
                systems = self._systems(pairs, chunk.missing)
                theta = solve_packed(systems, xp.asarray(right, copy=True))
            else:
                own = xp.take(inverse, chunk.patterns, axis=1)  # (k, n, s, s)
                theta = xp.permute_dims(right, (0, 2, 1))[..., None, :] @ own
                theta = xp.permute_dims(theta[:, :, 0, :], (0, 2, 1))
            energy = xp.sum(right * theta, axis=1)
            theta = xp.reshape(xp.permute_dims(theta, (2, 0, 1)), (n, starts, n_subspaces, s))
            energy = xp.reshape(transpose(energy), (n, starts, n_subspaces))
            yield chunk, theta, energy

    def _systems(self, pairs: Array, missing: Array) -> Array:
        """Return I - (1-ρ) [D]ᵀ[D] over the missing rows, packed: (k, s(s+1)/2, n).

        Since D is orthonormal this is the Gram matrix over the observed rows (plus the prior), and
        where little is missing it is near the identity and loses no digits.
        """
        xp = namespace(pairs)
        k, t, m = pairs.shape
        gram = xp.reshape(xp.reshape(pairs, (k * t, m)) @ transpose(missing), (k, t, -1))
        gram *= -(1.0 - self.prior)
        s = int((2 * t) ** 0.5)
        for i in range(s):
            gram[:, i * s - i * (i - 1) // 2, :] += 1.0
        # Where |Ω| ≤ s and there is no prior the system is singular; such rows are not learned
        # from, but new ones may come: the smallest shift keeps their coefficients finite.
        for i in range(s):
            gram[:, i * s - i * (i - 1) // 2, :] += 4.0 * xp.finfo(gram.dtype).eps
        return gram

    def _inverses(self, flat: Array, pairs: Array) -> Array:
        """Return the inverse of every system of every shared pattern: (k, n_patterns, s, s)."""
        xp = namespace(flat)
        k, _, s = flat.shape
        systems = self._systems(pairs, xp.astype(self.shared, flat.dtype))
        n = systems.shape[2]
        full = xp.empty((k, n, s, s), dtype=flat.dtype)
        position = 0
        for i in range(s):
            for j in range(i, s):
                full[:, :, i, j] = systems[:, position, :]
                full[:, :, j, i] = systems[:, position, :]
                position += 1
        return xp.linalg.inv(full)

    def _chunks(self, k: int, s: int) -> Iterator[MaskedChunk]:
        """Yield rows in chunks whose systems stay within the memory bound."""
        assert self.missing is not None
        assert self.weights is not None
        xp = namespace(self.rows.X)
        n, m = self.rows.shape
        per_row = item_bytes(self.rows.X) * (2 * m + 2 * k * s * (s + 1))
        size = max(1, min(self.rows.size, CHUNK_MAX_BYTES // per_row))
        for start in range(0, n, size):
            which = slice(start, min(n, start + size))
            values = self.rows.X[which, :]
            yield MaskedChunk(
                values,
                xp.astype(self.missing[which, :], values.dtype),
                self.weights[which],
                None if self.patterns is None else self.patterns[which],
            )

    def _member_sums(self, chunk: MaskedChunk, bases: Array, theta: Array, labels: Array) -> Array:
        """Return Σ c ŷθᵀ over the members of every subspace."""
        xp = namespace(bases)
        products = xp.empty_like(bases)
        for r in range(bases.shape[0]):
            for p in range(bases.shape[1]):
                members = xp.nonzero(labels[:, r] == p)[0]
                own = xp.take(theta[:, r, p, :], members, axis=0)
                weighted = own * xp.take(chunk.weights, members)[:, None]
                filled = own @ transpose(bases[r, p, ...])
                filled *= (1.0 - self.prior) * xp.take(chunk.missing, members, axis=0)
                filled += xp.take(chunk.values, members, axis=0)
                products[r, p, ...] = transpose(transpose(weighted) @ filled)
        return products

    def _weighted_sums(
        self, chunk: MaskedChunk, bases: Array, theta: Array, shares: Array
    ) -> Array:
        """Return Σ w c ŷθᵀ over all samples for every subspace."""
        xp = namespace(bases)
        starts, n_subspaces, m, s = bases.shape
        weighted = theta * (shares * chunk.weights[:, None, None])[..., None]
        # The observed entries of all subspaces in one product; the filled ones, which differ
        # from subspace to subspace, in two thin products each.
        products = transpose(chunk.values) @ xp.reshape(weighted, (-1, starts * n_subspaces * s))
        products = xp.reshape(products, (m, starts, n_subspaces, s))
        products = xp.asarray(xp.permute_dims(products, (1, 2, 0, 3)), copy=True)
        for r in range(starts):
            for p in range(n_subspaces):
                filled = theta[:, r, p, :] @ transpose(bases[r, p, ...])
                filled *= chunk.missing
                products[r, p, ...] += (1.0 - self.prior) * (
                    transpose(filled) @ weighted[:, r, p, :]
                )
        return products
