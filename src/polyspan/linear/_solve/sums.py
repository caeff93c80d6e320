"""Assignment (Algorithm 1, steps 3 to 6) and the sums that an update needs, in one pass.

A pass over a block of rows returns sums over its samples: that is what one process, a GPU and a
cluster of workers have in common. All starts of a small problem travel in one product: frames have
the shape (n_starts, n_subspaces, n_features, n_columns).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from polyspan.base.arrays import (
    Array,
    device,
    float64_sum,
    is_host,
    members_of,
    moved_to,
    namespace,
    to_numpy,
    zeros,
)
from polyspan.data.rows import Addable
from polyspan.linear._solve.trimming import trimmed_fits

# Up to this many columns L·s a masked product is faster on an accelerator than moving the rows:
# about 14 operations of double precision take the time of one byte there, and a row of m numbers
# moves 24m bytes (read, written, read again) or costs 2mLs operations.
MASKED_COLUMNS = 128


@dataclass(frozen=True)
class Sums(Addable):
    """Sums over samples, one per start (and per subspace)."""

    counts: Array
    """Members, or their responsibilities, times weights: (n_starts, n_subspaces)."""
    energy: Array
    """Σ w (‖y‖² - r), in double precision: (n_starts,); Σ w ‖D_lᵀy‖² for linear subspaces."""
    entropy: Array = None
    """Σ w log w: (n_starts,); None for hard labels."""
    score: Array | None = None
    """Sum of leave-one-out residuals, where those were minimised: (n_starts,)."""
    changed: Array | None = None
    """Labels that are not as before, where those were given: (n_starts,)."""
    coefficients: Array | None = None
    """Σ w D_lᵀ(y - c_l): (n_starts, n_subspaces, subspace_dim)."""
    products: Array | None = None
    """Σ w y (D_lᵀ(y - c_l))ᵀ: (n_starts, n_subspaces, n_features, subspace_dim)."""
    totals: Array | None = None
    """Σ w y, which affine subspaces need: (n_starts, n_subspaces, n_features)."""
    mass: Array | None = None
    """Σ w, where samples weigh differently (missing entries); None: the counts."""
    squares: Array | None = None
    """Σ w ‖y‖² where some samples take no part: (n_starts,); None: that of all samples."""

    def of_starts(self, which: Array) -> Sums:
        """Return the sums of some starts."""
        xp = namespace(self.energy)
        fields = vars(self).values()
        return Sums(*(None if a is None else xp.take(a, which, axis=0) for a in fields))

    def centred(self, offset: Array | None) -> Sums:
        """Subtract the offset of the rows from the products; projections are centred."""
        if offset is None or self.products is None or self.coefficients is None:
            return self
        outer = offset[:, None] * self.coefficients[:, :, None, :]
        totals = self.totals
        if totals is not None:
            weights = namespace(totals).astype(self.counts, totals.dtype)
            totals = totals - weights[..., None] * offset
        return replace(self, products=self.products - outer, totals=totals)


def assign_block(
    block: Any,
    frames: Array,
    shape: Any,
    with_products: bool,
    leverage: Any = None,
    membership: Array = None,
    trim: float = 0.0,
) -> tuple[Sums, Array]:
    """Assign every row of a block to its nearest subspace. A task.

    Parameters
    ----------
    block : block of an `Observation`
    frames : array of shape (n_starts, n_subspaces, n_features, n_columns)
    shape : Linear or Affine
    with_products : bool
        Whether to sum what a power step needs.
    leverage, membership
        With leave-one-out residuals: `Leverage`, and the labels before, (n_rows, n_starts).
    trim : float
        Fraction of the samples that takes no part in the sums: those with the largest residuals.

    Returns
    -------
    sums : Sums
    labels : array of shape (n_rows, n_starts)
    """
    xp, n_subspaces = namespace(frames), frames.shape[1]

    def nearest(fit: Any, weights: Array | None) -> tuple[Sums, Array]:
        score = changed = None
        if leverage is None:
            labels, gains = xp.argmax(fit.gains, axis=1), xp.max(fit.gains, axis=1)
        else:
            before = membership[fit.which, :].mT
            members = member_mask(before, n_subspaces, frames.dtype)
            residuals = leverage.residuals(fit, members)
            labels = xp.argmin(residuals, axis=1)
            gains = xp.take_along_axis(fit.gains, labels[:, None, :], axis=1)[:, 0, :]
            score = float64_sum(weighted(xp.min(residuals, axis=1), weights), axis=1)
            changed = xp.sum(xp.astype(labels != before, xp.int64), axis=1)
        products = fit.member_sums(labels, weights) if with_products else {}
        energy = float64_sum(weighted(gains, weights), axis=1)
        counts = _count(labels, n_subspaces, weights)
        return Sums(counts, energy, score=score, changed=changed, **products), labels

    total, parts = sum_chunks(block, frames, shape, nearest, trim)
    return total, (parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)).mT


def soft_assign_block(
    block: Any,
    frames: Array,
    shape: Any,
    temperature: float,
    leverage: Any = None,
    membership: Array = None,
    keep: bool = False,
    trim: float = 0.0,
) -> tuple[Sums, Array | None]:
    """Assign every row to all subspaces, with responsibilities w ∝ exp(-r/τ). A task.

    Parameters
    ----------
    block, frames, shape
        As for `assign_block`.
    temperature : float
        τ.
    leverage, membership
        With leave-one-out residuals: `Leverage`, and the responsibilities before.
    keep : bool
        Whether to return the responsibilities.
    trim : float
        Fraction of the samples that takes no part: those with the largest -τ log Σ exp(-r/τ), the
        soft minimum of their residuals.

    Returns
    -------
    sums : Sums
    responsibilities : array of shape (n_rows, n_starts, n_subspaces) or None
    """
    xp = namespace(frames)

    def shared(fit: Any, weights: Array | None) -> tuple[Sums, Array]:
        # ‖y‖² is common to all subspaces: the residual and minus the gain give the same weights.
        gains = fit.gains
        if leverage is not None:
            before = xp.permute_dims(membership[fit.which, ...], (1, 2, 0))
            gains = -leverage.residuals(fit, before)
        responsibilities, logs = softmax(gains / temperature, axis=1)
        own = weighted(responsibilities, weights, axis=1)
        sums = Sums(
            counts=xp.sum(own, axis=2),
            energy=float64_sum(own * fit.gains, axis=(1, 2)),
            entropy=float64_sum(own * logs, axis=(1, 2)),
            **fit.weighted_sums(own),
        )
        return sums, responsibilities if keep else None

    total, parts = sum_chunks(block, frames, shape, shared, trim, temperature)
    return total, xp.permute_dims(xp.concat(parts, axis=-1), (2, 0, 1)) if keep else None


def sum_chunks(
    block: Any,
    frames: Array,
    shape: Any,
    of_chunk: Callable[[Any, Array | None], tuple[Sums, Array]],
    trim: float = 0.0,
    temperature: float = 0.0,
) -> tuple[Sums, list[Array]]:
    """Sum over the chunks of a block what a function of a fit and of its sample weights returns.

    Also return its results per row. With `trim` the weights are 0 for the samples with the largest
    residuals, or soft minima of residuals.
    """
    bases, points = shape.split(frames)
    fits, kept = trimmed_fits(block, bases, points, trim, temperature)
    total, parts = None, []
    for fit in fits:
        weights = fit.sample_weights if kept is None else kept[:, fit.which]
        sums, part = of_chunk(fit, weights)
        if kept is not None:
            sums = replace(sums, squares=float64_sum(weights * fit.norms(), axis=1))
        total = sums if total is None else total + sums
        parts.append(part)
    assert total is not None
    return total.centred(block.offset), parts


def weighted(values: Array, weights: Array | None, axis: int | None = None) -> Array:
    """Multiply values, (n_starts, …, n), by weights of samples, (n_starts or 1, n), or by none.

    `axis` is where the weights lack an axis of the values.
    """
    if weights is None:
        return values
    if axis is not None:
        weights = namespace(weights).expand_dims(weights, axis=axis)
    return values * weights


def _count(labels: Array, n_subspaces: int, weights: Array | None) -> Array:
    """Count the members of every subspace, or sum their weights: (n_starts, n_subspaces)."""
    xp = namespace(labels)
    if weights is not None:
        members = member_mask(labels, n_subspaces, weights.dtype)
        return xp.sum(members * weights[:, None, :], axis=2)
    if not is_host(labels):
        return xp.sum(member_mask(labels, n_subspaces, xp.int64), axis=2)
    # Comparisons, one per count: a sum over a mask costs three times as much.
    counts = [
        [int(xp.count_nonzero(labels[r, :] == p)) for p in range(n_subspaces)]
        for r in range(labels.shape[0])
    ]
    return moved_to(counts, labels, xp.int64)


def softmax(x: Array, axis: int = -1) -> tuple[Array, Array]:
    """Return weights and their logarithms; the largest exponent is 0, so nothing overflows."""
    xp = namespace(x)
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=axis, keepdims=True)
    return powers / total, shifted - xp.log(total)


def member_sums(
    chunk: Array, projections: Array, labels: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return Σ D_lᵀy, (n_starts, L, s), and Y_lᵀ(Y_l D_l), (n_starts, L, m, s), of hard clusters.

    Each sample counts in one cluster only. Masking the projections of the others repeats the whole
    assignment product; gathering the members first costs 1/L of it, but has to move the rows, and
    on an accelerator to wait for their number.

    Parameters
    ----------
    chunk : array of shape (n, n_features)
    projections : array of shape (n_starts, n_subspaces, subspace_dim, n)
    labels : array of shape (n_starts, n)
    weights : array of shape (n_starts or 1, n) or None
        Of the samples; None: 1 for each.
    """
    n_subspaces = projections.shape[1]
    if is_host(chunk):
        return gathered_sums(chunk, projections, labels, weights)
    if n_subspaces * projections.shape[2] <= MASKED_COLUMNS:
        members = weighted(member_mask(labels, n_subspaces, chunk.dtype), weights, axis=1)
        return weighted_sums(chunk, projections, members)
    if weights is not None:
        projections = projections * weights[:, None, None, :]
    return sorted_sums(chunk, projections, labels)


def weighted_sums(chunk: Array, projections: Array, weights: Array) -> tuple[Array, Array]:
    """Return the sums of `member_sums` with any weights, (n_starts, n_subspaces, n)."""
    xp = namespace(chunk)
    starts, n_subspaces, s, n = projections.shape
    own = projections * weights[:, :, None, :]
    products = xp.reshape(own, (starts * n_subspaces * s, n)) @ chunk
    products = xp.reshape(products, (starts, n_subspaces, s, chunk.shape[1]))
    return xp.sum(own, axis=3), products.mT


def gathered_sums(
    chunk: Array, projections: Array, labels: Array, weights: Array | None = None
) -> tuple[Array, Array]:
    """Gather the members of one cluster after the other."""
    xp = namespace(chunk)
    starts, n_subspaces, s, _ = projections.shape
    coefficients = zeros((starts, n_subspaces, s), chunk)
    products = zeros((starts, n_subspaces, s, chunk.shape[1]), chunk)
    for r in range(starts):
        for p, members in enumerate(members_of(labels[r, :], n_subspaces)):
            theirs = xp.take(projections[r, p, ...], members, axis=1)
            if weights is not None:
                theirs = theirs * xp.take(weights[r % weights.shape[0], :], members)
            coefficients[r, p, :] = xp.sum(theirs, axis=1)
            products[r, p, ...] = theirs @ xp.take(chunk, members, axis=0)
    return coefficients, products.mT


def sorted_sums(chunk: Array, projections: Array, labels: Array) -> tuple[Array, Array]:
    """Bring the rows into the order of their labels; only the sizes of clusters are fetched."""
    xp = namespace(chunk)
    own = xp.take_along_axis(projections, labels[:, None, None, :], axis=1)[:, 0, ...]
    starts, n_subspaces, s, _ = projections.shape
    coefficients = zeros((starts, n_subspaces, s), chunk)
    products = zeros((starts, n_subspaces, s, chunk.shape[1]), chunk)
    members = member_mask(labels, n_subspaces, chunk.dtype)
    counts = to_numpy(xp.sum(members, axis=2)).astype(int)
    for r in range(starts):
        # One product for all clusters: each launch costs more than the few numbers summed.
        coefficients[r, ...] = members[r, ...] @ own[r, ...].mT
        order = xp.argsort(labels[r, :])
        rows, theirs = xp.take(chunk, order, axis=0), xp.take(own[r, ...], order, axis=1)
        begin = 0
        for p, count in enumerate(counts[r].tolist()):
            here = slice(begin, begin + count)
            begin = here.stop
            products[r, p, ...] = theirs[:, here] @ rows[here, :]
    return coefficients, products.mT


def member_mask(labels: Array, n_subspaces: int, dtype: Any) -> Array:
    """Return 1 where a sample belongs to a subspace, (..., n_subspaces, n), for labels (..., n)."""
    xp = namespace(labels)
    every = xp.arange(n_subspaces, dtype=labels.dtype, device=device(labels))
    return xp.astype(labels[..., None, :] == every[:, None], dtype)


def totals_of(chunk: Array, weights: Array) -> Array:
    """Return Σ w y, (n_starts, n_subspaces, n_features)."""
    xp = namespace(chunk)
    starts, n_subspaces, n = weights.shape
    flat = xp.reshape(weights, (starts * n_subspaces, n)) @ chunk
    return xp.reshape(flat, (starts, n_subspaces, chunk.shape[1]))
