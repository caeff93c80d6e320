"""What every row counts for: its weight, and how much of it a uniform component takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from polyspan.base.arrays import Array, float64_sum, namespace
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians, soft_assign

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
