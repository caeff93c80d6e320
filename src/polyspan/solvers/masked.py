r"""Assignment and sums where entries are missing (the majorise–minimise solver).

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

from polyspan.arrays import Array, float64_sum, is_host, namespace, one_hot, transpose, zeros
from polyspan.solvers.assignment import Sums, softmax
from polyspan.solvers.leave_one_out import Leverage
from polyspan.solvers.masked_members import completed_problem, own_coefficients
from polyspan.solvers.masked_rows import MaskedChunk, MaskedRows
from polyspan.solvers.problem import Problem
from polyspan.solvers.small_systems import pairwise_products, solve_packed


@dataclass(frozen=True)
class MaskedProblem(MaskedRows):
    """Incomplete data: what a solver asks of it."""

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
            counts = xp.sum(one_hot(labels, n_subspaces, xp.int64), axis=0)
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
        return completed_problem(self, bases, labels)

    def own_coefficients(self, bases: Array, labels: Array) -> Array:
        """Return θ of every sample for the basis that it is assigned to."""
        return own_coefficients(self, bases, labels)

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
        for chunk in self.chunks(flat.shape[0], s):
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
        return self.shift(gram)

    def _inverses(self, flat: Array, pairs: Array) -> Array:
        """Return the inverse of every system of every shared pattern: (k, n_patterns, s, s)."""
        xp = namespace(flat)
        k, _, s = flat.shape
        systems = self._systems(pairs, xp.astype(self.shared, flat.dtype))
        n = systems.shape[2]
        full = zeros((k, n, s, s), flat)
        position = 0
        for i in range(s):
            for j in range(i, s):
                full[:, :, i, j] = systems[:, position, :]
                full[:, :, j, i] = systems[:, position, :]
                position += 1
        return xp.linalg.inv(full)

    def _member_sums(self, chunk: MaskedChunk, bases: Array, theta: Array, labels: Array) -> Array:
        """Return Σ c ŷθᵀ over the members of every subspace."""
        xp = namespace(bases)
        if not is_host(bases):
            return self._weighted_sums(
                chunk, bases, theta, one_hot(labels, bases.shape[1], bases.dtype)
            )
        products = xp.empty_like(bases)
        for r in range(bases.shape[0]):
            for p in range(bases.shape[1]):
                members = xp.nonzero(labels[:, r] == p)[0]
                part = MaskedChunk(
                    xp.take(chunk.values, members, axis=0),
                    xp.take(chunk.missing, members, axis=0),
                    xp.take(chunk.weights, members),
                    None,
                )
                own = xp.take(theta[:, r, p, :], members, axis=0)
                products[r, p, ...] = self.filled_products(part, bases[r, p, ...], own)
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
