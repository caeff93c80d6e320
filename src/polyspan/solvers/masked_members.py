"""Samples with holes against their own subspace only: 1/L of the systems of an assignment.

Where the labels stand, nothing but the fit of each sample to the subspace it belongs to is needed.
The systems of all subspaces are then eliminated together, samples in the order of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from polyspan.arrays import (
    Array,
    Rows,
    float64_sum,
    members_of,
    moved_to,
    namespace,
    transpose,
    unsorted,
    zeros,
)
from polyspan.solvers.assignment import Sums
from polyspan.solvers.masked_rows import MaskedChunk, MaskedRows
from polyspan.solvers.problem import Problem
from polyspan.solvers.small_systems import pairwise_products, solve_packed


@dataclass(frozen=True)
class OwnFits:
    """The fits of a chunk of samples, cluster by cluster."""

    members: list[Array]
    """Rows of X that belong to each subspace."""
    chunks: list[MaskedChunk]
    """What they hold."""
    thetas: list[Array]
    """Their coefficients, (n_members, subspace_dim)."""
    energy: Array
    """Of all of them, cluster after cluster: (n,)."""

    def unsorted(self, parts: list[Array]) -> Array:
        """Put what was computed per cluster back into the order of the samples."""
        return unsorted(self.members, parts)


def own_fits(problem: MaskedRows, bases: Array, labels: Array) -> Iterator[OwnFits]:
    """Fit every sample to its own subspace, chunk by chunk.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
    labels : array of shape (n_samples,)
    """
    xp = namespace(bases)
    n_subspaces, _, s = bases.shape
    pairs = pairwise_products(bases)
    for which in problem.slices(1, s):
        own = labels[which]
        members = [rows + which.start for rows in members_of(own, n_subspaces)]
        chunks = [problem.take(rows) for rows in members]
        systems = zeros((1, pairs.shape[1], own.shape[0]), bases)
        right = zeros((1, s, own.shape[0]), bases)
        slices, begin = [], 0
        for p, chunk in enumerate(chunks):
            here = slice(begin, begin + chunk.values.shape[0])
            systems[0, :, here] = pairs[p, ...] @ transpose(chunk.missing)
            right[0, :, here] = transpose(bases[p, ...]) @ transpose(chunk.values)
            slices.append(here)
            begin = here.stop
        solution = solve_packed(problem.shift(systems), xp.asarray(right, copy=True))[0, ...]
        energy = xp.sum(right[0, ...] * solution, axis=0)
        thetas = [transpose(solution[:, here]) for here in slices]
        yield OwnFits(members, chunks, thetas, energy)


def own_coefficients(problem: MaskedRows, bases: Array, labels: Array) -> Array:
    """Return θ of every sample for the basis that it is assigned to, (n_samples, s)."""
    xp = namespace(bases)
    fits = own_fits(problem, bases, labels)
    return xp.concat([part.unsorted(part.thetas) for part in fits], axis=0)


def completed_problem(problem: MaskedRows, bases: Array, labels: Array) -> Problem:
    """Return complete data: the filled samples times √(m/|Ω|)."""
    xp = namespace(bases)
    parts = []
    for fits in own_fits(problem, bases, labels):
        filled = [
            xp.sqrt(chunk.weights)[:, None] * problem.filled(chunk, bases[p, ...], fits.thetas[p])
            for p, chunk in enumerate(fits.chunks)
        ]
        parts.append(fits.unsorted(filled))
    values = xp.concat(parts, axis=0)
    norms = xp.sum(values * values, axis=1)
    rows = Rows(values, None, problem.rows.size)
    return Problem(rows, norms, float(float64_sum(norms)), problem.lam)


def member_sums(problem: MaskedRows, bases: Array, labels: Array) -> Sums:
    """Return the sums of an assignment to given labels, as for one start."""
    xp = namespace(bases)
    products = xp.zeros_like(bases)
    counts = zeros((bases.shape[0],), bases, xp.int64)
    energy = 0.0
    for fits in own_fits(problem, bases, labels):
        weights = xp.concat([chunk.weights for chunk in fits.chunks], axis=0)
        energy += float(float64_sum(fits.energy * weights))
        for p, (chunk, theta) in enumerate(zip(fits.chunks, fits.thetas, strict=True)):
            counts[p] += theta.shape[0]
            products[p, ...] += problem.filled_products(chunk, bases[p, ...], theta)
    total = moved_to([energy], bases, xp.float64)
    zero = xp.zeros_like(total)
    return Sums(counts[None, :], total, zero, zero, products=products[None, ...])
