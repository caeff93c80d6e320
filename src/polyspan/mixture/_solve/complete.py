"""EM steps on complete data with few features, by m×m covariances.

Also what the other forms of samples have in common with it: what every row counts for, and what a
component without samples keeps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from polyspan.base.arrays import (
    Array,
    float64_sum,
    machine_epsilon,
    namespace,
    row_slices,
    rows_at_once,
)
from polyspan.data.rows import Addable
from polyspan.mixture._solve.gaussians import (
    ExtendedGaussians,
    Gaussians,
    log_densities,
    soft_assign,
)
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage, fit_low_rank

# Responsibilities below this change no sum. Where most samples clearly belong to one component,
# leaving them out saves nearly all of the work.
NEGLIGIBLE_RESPONSIBILITY = 1e-12
# A component whose responsibilities sum to less than this has no samples, and is not updated.
MIN_COUNT = 1e-6
# A learned share of outliers stays between these bounds, so that its logarithm is finite.
LEAST_SHARE, MOST_SHARE = 1e-12, 1.0 - 1e-6


@dataclass(frozen=True)
class RowWeights:
    """Weights of the rows, and their density under a uniform component for outliers."""

    weights: Array | None = None
    """How often every row counts, (n,); None: once."""
    uniform: Array | None = None
    """Logarithm of the uniform density of the observed entries of every row, (n,); None: there is
    no such component."""
    learned: bool = False
    """Whether the share of outliers is learned."""

    def take(self, rows: Array) -> RowWeights:
        """Return those of some rows."""
        return replace(self, weights=_of(self.weights, rows), uniform=_of(self.uniform, rows))

    def of(self, rows: Array | slice) -> Array | None:
        """Return the weights of some rows, or None where every row counts once."""
        return _of(self.weights, rows)

    def assign(
        self, joint: Array, gaussians: Gaussians, rows: Array | slice, beta: float = 1.0
    ) -> tuple[Array, Array | None, float, float]:
        """Soft-assign some rows at the inverse temperature β.

        Returns
        -------
        responsibilities : array of shape (n, n_subspaces)
            Without the weights. Each row sums to 1 minus what the uniform component takes.
        weights : array of shape (n,) or None
        value : float
            The weighted sum of the log-densities.
        outside : float
            The weight that the uniform component takes.
        """
        responsibilities, logs = soft_assign(joint, beta)
        weights, outside = self.of(rows), 0.0
        uniform = _of(self.uniform, rows)
        if uniform is not None:
            assert isinstance(gaussians, ExtendedGaussians)
            taken, logs = outlier_posterior(logs, uniform, gaussians.outlier_share, beta)
            responsibilities = responsibilities * (1.0 - taken)[:, None]
            outside = float(float64_sum(taken if weights is None else taken * weights))
        if weights is not None:
            logs = logs * weights
        return responsibilities, weights, float(float64_sum(logs)), outside

    def total(self, n_rows: int) -> float:
        """Return the sum of the weights of all rows."""
        return float(n_rows) if self.weights is None else float(float64_sum(self.weights))

    def entries(self, observed: Array) -> float:
        """Return the weighted number of observed entries; `observed` is 1 where observed."""
        if self.weights is None:
            return float(float64_sum(observed))
        return float(float64_sum(float64_sum(observed, axis=1) * self.weights))

    def update_share(self, gaussians: Gaussians, counts: Array, outside: float) -> Gaussians:
        """Return the Gaussians with the most likely share of outliers, where it is learned."""
        if not self.learned or self.uniform is None:
            return gaussians
        assert isinstance(gaussians, ExtendedGaussians)
        share = outside / max(float(float64_sum(counts)) + outside, 1e-300)
        return replace(gaussians, outlier_share=min(max(share, LEAST_SHARE), MOST_SHARE))


#: Every row counts once, and there are no outliers.
ONCE = RowWeights()


def outlier_posterior(
    logs: Array, uniform: Array, share: float, beta: float = 1.0
) -> tuple[Array, Array]:
    """Return the probability that rows are outliers, and their log-densities with outliers.

    Parameters
    ----------
    logs, uniform : arrays of shape (n,)
        Log-densities of the rows under the Gaussians, and under the uniform component.
    share : float
        Share of outliers, between 0 and 1.
    beta : float
        Inverse temperature.
    """
    xp = namespace(logs)
    share = min(max(share, LEAST_SHARE), MOST_SHARE)
    inside, outside = logs + math.log(1.0 - share), uniform + math.log(share)
    taken, total = soft_assign(xp.stack([inside, outside], axis=1), beta)
    return taken[:, 1], total


def _of(per_row: Array | None, rows: Array | slice) -> Array | None:
    if per_row is None:
        return None
    return per_row[rows] if isinstance(rows, slice) else namespace(per_row).take(per_row, rows)


@dataclass(frozen=True)
class Moments(Addable):
    """Weighted sums over samples, for every component."""

    counts: Array
    """Σ w, shape (n_subspaces,)."""
    first: Array
    """Σ w x, shape (n_subspaces, n_features)."""
    second: Array
    """Σ w x xᵀ, shape (n_subspaces, n_features, n_features)."""
    outside: float = 0.0
    """The weight that outliers take."""


@dataclass(frozen=True)
class CompleteSamples:
    """Complete samples, with the E and M steps of EM."""

    X: Array
    affine: bool
    rule: NoiseRule
    dims: tuple[int, ...] | None = None
    """Dimensions of the subspaces, where they differ; `bases` are padded with zeros."""
    row_weights: RowWeights = ONCE

    @property
    def values(self) -> Array:
        """The samples."""
        return self.X

    @property
    def n_entries(self) -> float:
        """Weighted number of observed entries."""
        return self.row_weights.total(self.X.shape[0]) * float(self.X.shape[1])

    def expect(self, gaussians: Gaussians, beta: float = 1.0) -> tuple[float, Moments]:
        """Return the log-likelihood (tempered by β) and the sums that an update needs."""
        n_subspaces, _, s = gaussians.bases.shape
        value, total = 0.0, None
        for which in row_slices(self.X.shape[0], rows_at_once(self.X, n_subspaces * (s + 2))):
            rows = self.X[which, :]
            joint = log_densities(rows, gaussians)[0]
            responsibilities, weights, logs, outside = self.row_weights.assign(
                joint, gaussians, which, beta
            )
            value += logs
            part = replace(gather_moments(rows, responsibilities, weights), outside=outside)
            total = part if total is None else total + part
        assert total is not None
        return value, total

    def gather(self, gaussians: Gaussians, responsibilities: Array) -> Moments:
        """Return the sums for given responsibilities."""
        return gather_moments(self.X, responsibilities, self.row_weights.weights)

    def maximise(self, gaussians: Gaussians, sums: Moments, shrinkage: Shrinkage) -> Gaussians:
        """Return the Gaussians that maximise the expected log-likelihood minus the penalty."""
        xp = namespace(sums.first)
        counts = sums.counts
        safe = xp.where(counts > MIN_COUNT, counts, xp.ones_like(counts))
        means = sums.first / safe[:, None] if self.affine else xp.zeros_like(sums.first)
        # Σ w (x - μ)(x - μ)ᵀ; linear subspaces have μ = 0.
        scatter = sums.second
        if self.affine:
            outer = means[:, :, None] * means[:, None, :]
            scatter = scatter - counts[:, None, None] * outer
        weight = shrinkage.weight
        if weight:
            scatter = scatter + weight * shrinkage.dense()
        total = counts + weight
        divisor = xp.where(total > MIN_COUNT, total, xp.ones_like(total))
        covariances = scatter / divisor[:, None, None]
        dims = self.dims or gaussians.bases.shape[2]
        bases, variances, noise = fit_low_rank(covariances, total, dims, self.rule)
        found = {"means": means, "bases": bases, "variances": variances, "noise": noise}
        return updated(self, gaussians, sums, shrinkage, found)


def negligible_responsibility(responsibilities: Array) -> float:
    """Return the responsibility below which a sample does not change a sum."""
    return max(NEGLIGIBLE_RESPONSIBILITY, machine_epsilon(responsibilities))


def gather_moments(rows: Array, responsibilities: Array, weights: Array | None = None) -> Moments:
    """Return the weighted sums of one chunk; `weights` (n,) say how often every row counts."""
    xp = namespace(rows)
    n_subspaces = responsibilities.shape[1]
    belongs = responsibilities > negligible_responsibility(responsibilities)
    if weights is not None:
        responsibilities = responsibilities * weights[:, None]
    first = responsibilities.mT @ rows
    second = []
    for p in range(n_subspaces):
        members = xp.nonzero(belongs[:, p])[0]
        own = xp.take(rows, members, axis=0)
        shares = xp.take(responsibilities[:, p], members)
        second.append((own * shares[:, None]).mT @ own)
    return Moments(xp.sum(responsibilities, axis=0), first, xp.stack(second))


def log_weights_of(counts: Array) -> Array:
    """Return log π_l; a component without samples keeps a tiny weight."""
    xp = namespace(counts)
    tiny = float(xp.finfo(counts.dtype).smallest_normal) * 1e10
    counts = xp.where(counts > tiny, counts, xp.full_like(counts, tiny))
    return xp.log(counts) - xp.log(xp.sum(counts))


def updated(
    samples: Any, gaussians: Gaussians, sums: Any, shrinkage: Shrinkage, found: dict[str, Array]
) -> Gaussians:
    """Return Gaussians with the parameters that were found, and weights by the sums over samples.

    With shrinkage parameters are determined also where a component has no samples.
    """
    new = replace(gaussians, log_weights=log_weights_of(sums.counts), **found)
    new = samples.row_weights.update_share(new, sums.counts, sums.outside)
    return new if shrinkage.weight else restore_empty(new, gaussians, sums.counts, samples.rule)


def restore_empty(new: Gaussians, old: Gaussians, counts: Array, rule: NoiseRule) -> Gaussians:
    """Keep the old parameters of components without samples: the likelihood stays the same."""
    xp = namespace(counts)
    has_samples = counts > MIN_COUNT
    if bool(xp.all(has_samples)):
        return new

    def choose(a: Array, b: Array) -> Array:
        return xp.where(xp.reshape(has_samples, (-1,) + (1,) * (a.ndim - 1)), a, b)

    names = ["means", "bases", "variances", *(["noise"] if rule.kind == "subspace" else [])]
    return replace(new, **{name: choose(getattr(new, name), getattr(old, name)) for name in names})
