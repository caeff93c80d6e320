r"""Rows with missing entries: zeros and a mask, weights m/|Ω|, and the small systems they lead to.

For sample i and subspace l the coefficients θ minimise
‖[y - c_l - D_lθ]_Ω‖² + ρ ‖[c_l + D_lθ]_Ωᶜ‖² (c_l = 0 for linear subspaces), a least-squares fit of
the observed entries with a prior of small filled-in ones. Filling the missing entries with
(1-ρ)(c_l + D_lθ) gives a complete sample ŷ with D_lᵀ(ŷ - c_l) = θ, and its squared residual (plus a
constant) majorises the masked one for every other subspace: the step for complete data on filled
samples, weighted by m/|Ω_i|, never raises F2 plus its prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyspan.base.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    is_host,
    item_bytes,
    members_of,
    namespace,
    restore_order,
    row_slices,
    rows_at_once,
    zeros,
)
from polyspan.data.missing import Holes, recurring_patterns
from polyspan.engine.small_systems import (
    AffineTerms,
    inverses,
    packed_systems,
    pairwise_products,
    solve_packed,
    systems_from_gram,
)
from polyspan.linear._solve.observation import CompleteBlock, as_row
from polyspan.linear._solve.sums import member_mask, totals_of, weighted


@dataclass(frozen=True)
class MaskedBlock:
    """Samples with missing entries, centred, with zeros where nothing was observed."""

    values: Array
    missing: Array
    """Boolean, (n_samples, n_features)."""
    weights: Array
    """m/|Ω_i|."""
    norms: Array
    """Squared norms of the observed entries, times m/|Ω_i|."""
    prior: float = 0.0
    """ρ: 0 is plain least squares, 1 fills with zeros."""
    patterns: Array | None = None
    """For each sample the index of its pattern among `shared`, where few patterns recur."""
    shared: Array | None = None
    """Boolean, (n_patterns, n_features)."""
    sample_weights: Array | None = None
    """Weights of the samples, (1, n); None: 1 for each."""

    offset = None
    """The rows are centred already."""

    @classmethod
    def of(
        cls,
        X: Array,
        mean: Array | None,
        scale: float,
        prior: float,
        too_few: int,
        sample_weights: Array | None = None,
    ) -> MaskedBlock | None:
        """Make a block of rows with NaN; None where no row has more than `too_few` entries.

        Memory: one filled copy of X. `mean` is in the units of X; it is subtracted before X is
        scaled, since far from the rows it could leave the range.
        """
        xp = namespace(X)
        holes = Holes.of(X)
        learned = holes.n_observed > too_few
        if not bool(xp.all(learned)):
            rows = xp.nonzero(learned)[0]
            X, holes = xp.take(X, rows, axis=0), holes.take(rows)
            sample_weights = None if sample_weights is None else xp.take(sample_weights, rows)
        if not X.shape[0]:
            return None
        values = X if mean is None else X - mean
        values = values if scale == 1.0 else values * scale
        values = xp.where(holes.missing, 0.0, values)
        observed = xp.astype(xp.clip(holes.n_observed, 1, None), xp.float64)
        weights = xp.astype(X.shape[1] / observed, X.dtype)
        norms = xp.vecdot(values, values) * weights
        patterns = recurring_patterns(holes.missing)
        own = as_row(sample_weights, values)
        return cls(values, holes.missing, weights, norms, prior, *patterns, own)

    def squared_norms(self) -> Array:
        """Return ‖[y]_Ω‖² m/|Ω| of every sample."""
        return self.norms

    def take(self, rows: Array) -> Array:
        """Return some samples, with zeros where entries are missing."""
        return namespace(self.values).take(self.values, rows, axis=0)

    def some(self, rows: Array) -> MaskedBlock:
        """Return the block of some samples."""
        xp = namespace(self.values)
        values, missing, weights, norms = (
            xp.take(array, rows, axis=0)
            for array in (self.values, self.missing, self.weights, self.norms)
        )
        own = self.sample_weights
        own = None if own is None else xp.take(own, rows, axis=1)
        patterns = recurring_patterns(missing)
        return MaskedBlock(values, missing, weights, norms, self.prior, *patterns, own)

    def fits(self, bases: Array, points: Array | None) -> Iterator[MaskedFit]:
        """Yield how all subspaces fit each chunk; see `CompleteBlock.fits`."""
        xp = namespace(bases)
        starts, n_subspaces, m, s = bases.shape
        flat = xp.reshape(bases, (starts * n_subspaces, m, s))
        pairs = pairwise_products(flat)
        inverse = None
        if self.shared is not None:
            inverse = inverses(
                packed_systems(pairs, xp.astype(self.shared, flat.dtype), self.prior)
            )
        affine = None if points is None else AffineTerms.of(flat, points, self.prior)
        for which in self._slices(flat.shape[0], s):
            values = self.values[which, :]
            missing = xp.astype(self.missing[which, :], values.dtype)
            right = flat.mT @ values.mT  # (k, s, n)
            if affine is not None:
                cross, lift = affine.at(values, missing)
                right = right + cross
            if inverse is None or self.patterns is None:
                systems = packed_systems(pairs, missing, self.prior)
                theta = solve_packed(systems, xp.asarray(right, copy=True))
            else:
                own = xp.take(inverse, self.patterns[which], axis=1)  # (k, n, s, s)
                theta = xp.permute_dims(right, (0, 2, 1))[..., None, :] @ own
                theta = xp.permute_dims(theta[:, :, 0, :], (0, 2, 1))
            gains = xp.sum(right * theta, axis=1)
            if affine is not None:
                gains = gains + lift
            gains = xp.reshape(gains * self.weights[which], (starts, n_subspaces, values.shape[0]))
            theta = xp.reshape(theta, (starts, n_subspaces, s, values.shape[0]))
            yield MaskedFit(self, which, values, missing, bases, points, theta, gains)

    def _slices(self, k: int, s: int) -> list[slice]:
        """Return which rows to visit at once, so that k systems each stay in the memory bound."""
        n, m = self.values.shape
        per_row = item_bytes(self.values) * (2 * m + 2 * k * s * (s + 1))
        bound = CHUNK_MAX_BYTES if is_host(self.values) else DEVICE_CHUNK_BYTES
        return row_slices(n, max(1, min(rows_at_once(self.values), bound // per_row)))

    def filled(
        self, values: Array, missing: Array, basis: Array, point: Array | None, theta: Array
    ) -> Array:
        """Return samples of one subspace with their missing entries filled, ŷ.

        `theta` has the shape (n, subspace_dim).
        """
        filled = theta @ basis.mT
        if point is not None:
            filled += point
        filled *= missing
        filled *= 1.0 - self.prior
        filled += values
        return filled

    def assigned_fits(
        self, bases: Array, points: Array | None, labels: Array
    ) -> Iterator[tuple[list[Array], list[Array]]]:
        """Yield rows and coefficients of the members of every subspace, chunk by chunk.

        Where the labels stand, nothing but the fit of each sample to its own subspace is needed:
        1/L of the systems of an assignment, those of all subspaces eliminated together.

        Parameters
        ----------
        bases : array of shape (n_subspaces, n_features, subspace_dim)
        points : array of shape (n_subspaces, n_features) or None
        labels : array of shape (n_samples,)
        """
        n_subspaces, _, s = bases.shape
        pairs = pairwise_products(bases)
        affine = None if points is None else AffineTerms.of(bases, points, self.prior)
        for which in self._slices(1, s):
            own = labels[which]
            members = [rows + which.start for rows in members_of(own, n_subspaces)]
            systems = zeros((1, pairs.shape[1], own.shape[0]), bases)
            right = zeros((1, s, own.shape[0]), bases)
            slices, begin = [], 0
            for p, rows in enumerate(members):
                values, missing = self.rows(rows)
                here = slice(begin, begin + values.shape[0])
                systems[0, :, here] = pairs[p, ...] @ missing.mT
                right[0, :, here] = bases[p, ...].mT @ values.mT
                if affine is not None:
                    right[0, :, here] += affine.at(values, missing)[0][p, ...]
                slices.append(here)
                begin = here.stop
            solution = solve_packed(systems_from_gram(systems, self.prior), right)[0, ...]
            yield members, [solution[:, here].mT for here in slices]

    def rows(self, rows: Array) -> tuple[Array, Array]:
        """Return values and mask (1 where missing) of some rows."""
        xp = namespace(self.values)
        values = xp.take(self.values, rows, axis=0)
        return values, xp.astype(xp.take(self.missing, rows, axis=0), values.dtype)

    def assigned_coefficients(self, bases: Array, labels: Array) -> Array:
        """Return θ of every sample for the basis that it is assigned to, (n_samples, s)."""
        fits = self.assigned_fits(bases, None, labels)
        return namespace(bases).concat([restore_order(*part) for part in fits], axis=0)

    def completed(
        self, bases: Array, points: Array | None, labels: Array
    ) -> tuple[CompleteBlock, Array]:
        """Return the filled samples and their weights: what a minimiser of the majoriser sees."""
        parts = []
        for members, thetas in self.assigned_fits(bases, points, labels):
            filled = [
                self.filled(
                    *self.rows(rows), bases[p, ...], None if points is None else points[p, :], own
                )
                for p, (rows, own) in enumerate(zip(members, thetas, strict=True))
            ]
            parts.append(restore_order(members, filled))
        values = namespace(bases).concat(parts, axis=0)
        block, weights = CompleteBlock(values, None, rows_at_once(values)), self.weights
        own = self.sample_weights
        return block, weights if own is None else weights * own[0, :]


@dataclass(frozen=True)
class MaskedFit:
    """A chunk of rows with missing entries against all subspaces of all starts."""

    block: MaskedBlock
    which: slice
    values: Array
    missing: Array
    """1 where missing, else 0, in the dtype of the values."""
    bases: Array
    points: Array | None
    coefficients: Array
    """θ: (n_starts, n_subspaces, subspace_dim, n)."""
    gains: Array
    """Weighted squared norm minus weighted residual and prior: (n_starts, n_subspaces, n)."""

    @property
    def weights(self) -> Array:
        """m/|Ω_i| of the rows."""
        return self.block.weights[self.which]

    @property
    def sample_weights(self) -> Array | None:
        """Weights of the rows, (1, n); None: 1 for each."""
        every = self.block.sample_weights
        return None if every is None else every[:, self.which]

    def norms(self) -> Array:
        """Return ‖[y]_Ω‖² m/|Ω| of the rows."""
        return self.block.norms[self.which]

    def member_sums(self, labels: Array, sample_weights: Array | None = None) -> dict[str, Array]:
        """Return what a power step needs of the members, with weights (n_starts or 1, n)."""
        xp = namespace(self.bases)
        starts, n_subspaces, m, s = self.bases.shape
        if not is_host(self.bases):
            members = member_mask(labels, n_subspaces, self.bases.dtype)
            return self.weighted_sums(weighted(members, sample_weights, axis=1))
        products = zeros((starts, n_subspaces, s, m), self.bases)
        affine_sums = {}
        if self.points is not None:
            shapes = {"coefficients": (s,), "totals": (m,), "mass": ()}
            affine_sums = {
                k: zeros((starts, n_subspaces, *v), self.bases) for k, v in shapes.items()
            }
        for r in range(starts):
            for p, members in enumerate(members_of(labels[r, :], n_subspaces)):
                theta = xp.take(self.coefficients[r, p, ...], members, axis=1)
                values = xp.take(self.values, members, axis=0)
                missing = xp.take(self.missing, members, axis=0)
                weights, basis = xp.take(self.weights, members), self.bases[r, p, ...]
                if sample_weights is not None:
                    own = sample_weights[r % sample_weights.shape[0], :]
                    weights = weights * xp.take(own, members)
                point = None if self.points is None else self.points[r, p, :]
                filled = self.block.filled(values, missing, basis, point, theta.mT)
                scaled = theta * weights
                products[r, p, ...] = scaled @ filled
                if affine_sums:
                    affine_sums["coefficients"][r, p, :] = xp.sum(scaled, axis=1)
                    affine_sums["totals"][r, p, :] = weights @ filled
                    affine_sums["mass"][r, p] = xp.sum(weights)
        return {**affine_sums, "products": products.mT}

    def weighted_sums(self, weights: Array) -> dict[str, Array]:
        """Return the same with responsibilities, (n_starts, n_subspaces, n)."""
        xp = namespace(self.bases)
        starts, n_subspaces, m, s = self.bases.shape
        weights = weights * self.weights
        scaled = self.coefficients * weights[:, :, None, :]
        # The observed entries of all subspaces in one product; the filled ones, which differ
        # from subspace to subspace, in two thin products each.
        products = (
            xp.reshape(scaled, (starts * n_subspaces * s, self.values.shape[0])) @ self.values
        )
        products = xp.reshape(products, (starts, n_subspaces, s, m))
        affine_sums = {}
        if self.points is not None:
            totals = totals_of(self.values, weights)
            coefficients, mass = xp.sum(scaled, axis=3), xp.sum(weights, axis=2)
            affine_sums = {"coefficients": coefficients, "totals": totals, "mass": mass}
        kept = 1.0 - self.block.prior
        for r in range(starts):
            for p in range(n_subspaces):
                filled = (self.bases[r, p, ...] @ self.coefficients[r, p, ...]).mT
                if self.points is not None:
                    filled = filled + self.points[r, p, :]
                filled = filled * self.missing
                products[r, p, ...] += kept * (scaled[r, p, ...] @ filled)
                if affine_sums:
                    affine_sums["totals"][r, p, :] += kept * (weights[r, p, :] @ filled)
        return {**affine_sums, "products": products.mT}
