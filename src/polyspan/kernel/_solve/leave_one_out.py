"""Labels by leave-one-out residuals in a feature space, from a good start.

A cluster with few samples for its dimension fits any sample that is added to it. So the residual of
a sample is measured to the affine subspace as it would be without this sample: r/(1-h)², with the
leverage h. At first each cluster has its own scale g_l. The scales move to a common one while the
weights w ∝ exp(-(r/g_l + log g_l)/τ) go from soft to hard. No objective is minimised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyspan.base.arrays import (
    Array,
    machine_epsilon,
    moved_to,
    namespace,
    one_hot,
    top_eigenvectors,
    zeros,
)
from polyspan.engine.krylov import leading_subspace
from polyspan.geometry.bases import orthonormal_columns
from polyspan.geometry.matrices import leading_eigen
from polyspan.linear._solve.annealing import temperatures
from polyspan.linear._solve.leave_one_out import SMALLEST_SLACK
from polyspan.linear._solve.sums import softmax

# Soft steps, each at a lower temperature than the last.
STEPS = 20
# First and last temperature τ, in units of the scales, that is of the mean residual.
HOTTEST, COLDEST = 0.1, 0.01
# Most hard steps after the last temperature: labels can repeat in a cycle and never settle.
HARD_STEPS = 10
# Smallest weight of a sample: it changes nothing, but no cluster has a total weight of 0.
SMALLEST_WEIGHT = 1e-12
# Eigenvalues of the kernel matrix below this fraction of the largest are rounding errors.
RANK_TOL = 1e-10


@dataclass(frozen=True)
class LeaveOneOut:
    """Labels, and the sum of leave-one-out residuals that they reach."""

    labels: Array
    criterion: float
    n_iter: int
    """Steps taken, soft and hard."""
    settled: bool
    """Whether the labels stopped changing; otherwise they are the best of all hard steps."""


def explicit_coordinates(G: Array, floor: float) -> Array:
    """Return rows Z with ZZᵀ = G̃, without directions that are rounding errors."""
    values, vectors = leading_eigen(G, RANK_TOL, floor)
    if not values.shape[0]:
        return zeros((G.shape[0], 1), G)
    return vectors * namespace(G).sqrt(values)


def leave_one_out_labels(
    Z: Array, labels: Array, n_subspaces: int, s: int, sample_weights: Array | None = None
) -> LeaveOneOut:
    """Improve labels of samples given by coordinates in the feature space.

    Parameters
    ----------
    Z : array of shape (n_samples, rank)
        Rows with ZZᵀ = G̃.
    labels : array of shape (n_samples,)
        Labels to start from.
    sample_weights : array of shape (n_samples,), default=None
        Of a sample that counts more than once, one copy is left out.
    """
    xp = namespace(Z)
    n = Z.shape[0] if sample_weights is None else float(xp.sum(sample_weights))
    weights = _weights(moved_to(labels, Z), n_subspaces, Z)
    bases: list[Array | None] = [None] * n_subspaces
    for step, tau in enumerate(temperatures(1.0, HOTTEST, COLDEST, STEPS)):
        residuals, bases = _residuals(Z, weights, bases, s, sample_weights)
        counted = _counted(weights, sample_weights)
        scales = xp.sum(counted * residuals, axis=0) / xp.sum(counted, axis=0)
        pooled = float(xp.sum(counted * residuals)) / n
        if pooled <= 0:
            break
        tiny = machine_epsilon(Z) * pooled
        progress = (step + 1) / STEPS
        scales = xp.clip(scales, tiny, None) ** (1.0 - progress) * pooled**progress
        weights, _ = softmax(-(residuals / scales + xp.log(scales)) / tau)
        weights = xp.clip(weights, SMALLEST_WEIGHT, None)
    best, lowest, settled = xp.argmax(weights, axis=1), math.inf, False
    current = best
    n_hard = 0
    while n_hard < HARD_STEPS and not settled:
        n_hard += 1
        hard = _weights(current, n_subspaces, Z)
        residuals, bases = _residuals(Z, hard, bases, s, sample_weights)
        own = xp.take_along_axis(residuals, current[:, None], axis=1)
        criterion = float(xp.sum(_counted(own, sample_weights)))
        if criterion < lowest:
            best, lowest = current, criterion
        moved = xp.argmin(residuals, axis=1)
        settled = bool(xp.all(moved == current))
        current = moved
    return LeaveOneOut(best, lowest, STEPS + n_hard, settled)


def _counted(values: Array, sample_weights: Array | None) -> Array:
    """Return values of samples (rows), each as often as its sample counts."""
    return values if sample_weights is None else values * sample_weights[:, None]


def _residuals(
    Z: Array,
    weights: Array,
    bases: list[Array | None],
    s: int,
    sample_weights: Array | None = None,
) -> tuple[Array, list[Array | None]]:
    """Return r/(1-h)² of every sample to every weighted affine subspace, and the bases."""
    xp = namespace(Z)
    residuals = xp.zeros_like(weights)
    found: list[Array | None] = []
    counted = _counted(weights, sample_weights)
    # What is left out of a sample: one copy, or all of it where it counts less than once.
    left_out = weights if sample_weights is None else xp.minimum(weights, counted)
    for p, old in enumerate(bases):
        w, own = counted[:, p], left_out[:, p]
        total = float(xp.sum(w))
        centred = Z - (w @ Z) / total
        basis, values = _leading(centred, w, old, s)
        projections = centred @ basis
        inside = projections * projections
        r = xp.clip(xp.vecdot(centred, centred) - xp.sum(inside, axis=1), 0.0, None)
        used = values > machine_epsilon(Z) * 10.0 * max(float(xp.max(values)), 0.0)
        inverse = xp.where(used, 1.0 / xp.where(used, values, 1.0), 0.0)
        h = own * xp.sum(inside * inverse, axis=1) + own / total
        residuals[:, p] = r / xp.clip(1.0 - h, SMALLEST_SLACK, 1.0) ** 2
        found.append(basis)
    return residuals, found


def _leading(centred: Array, w: Array, old: Array | None, s: int) -> tuple[Array, Array]:
    """Return the leading directions of a weighted scatter and its variances along them."""
    xp = namespace(centred)
    n, rank = centred.shape
    s = min(s, n, rank)
    weighted = centred * xp.sqrt(w)[:, None]
    if old is None:
        heaviest = xp.flip(xp.argsort(w))[:s]
        old = orthonormal_columns(xp.take(weighted, heaviest, axis=0).mT)
    if rank >= 4 * (s + 1):
        found = leading_subspace(lambda block: weighted.mT @ (weighted @ block), old, max_cycles=20)
        return found.vectors, found.values
    values, vectors = top_eigenvectors(weighted.mT @ weighted, s)
    return vectors, values


def _weights(labels: Array, n: int, like: Array) -> Array:
    return namespace(like).clip(one_hot(labels, n, like.dtype), SMALLEST_WEIGHT, None)
