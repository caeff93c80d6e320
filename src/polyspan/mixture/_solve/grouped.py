r"""EM steps on samples in groups of different noise.

A sample of group g has the noise variance :math:`f_g \sigma_l^2` in subspace l: all else is common
to the groups, as in the heteroscedastic PCA of Hong, Gilman, Balzano and Fessler (2021). The
factors are normalised: the mean of log f_g over all observed entries is 0, so that σ_l² is the
geometric mean of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy
from polyspan.data.missing import find_patterns
from polyspan.data.rows import sum_parts
from polyspan.mixture._solve.complete import MIN_COUNT, ONCE, RowWeights, updated
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians
from polyspan.mixture._solve.masked import FactorSums, MaskedSamples, from_factors
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage

# Alternations between the noise of the subspaces and the factors of the groups, in one step of EM.
ALTERNATIONS = 5
# A factor is kept above this: a group without any residual would have none.
LEAST_FACTOR = 1e-8


@dataclass(frozen=True)
class GroupedSamples:
    """Samples in groups, with the E and M steps of EM."""

    values: Array
    """All samples, 0 where missing."""
    parts: tuple[tuple[int, Array, MaskedSamples], ...]
    """Number of the group, indices of its samples, and the samples, of every group that has any."""
    affine: bool
    rule: NoiseRule
    dims: tuple[int, ...] | None = None
    row_weights: RowWeights = ONCE

    @classmethod
    def of(
        cls,
        values: Array,
        observed: Array,
        groups: np.ndarray,
        *,
        affine: bool,
        rule: NoiseRule,
        row_weights: RowWeights,
    ) -> GroupedSamples:
        """Split samples by the numbers of their groups."""
        xp = namespace(values)
        parts = []
        for g in np.unique(groups):
            rows = moved_to(np.flatnonzero(groups == g), values, xp.int64)
            patterns = find_patterns(xp.take(values, rows, axis=0), xp.take(observed, rows, axis=0))
            own = MaskedSamples(patterns, affine, rule, None, row_weights.take(rows))
            parts.append((int(g), rows, own))
        return cls(values, tuple(parts), affine, rule, None, row_weights)

    @property
    def n_entries(self) -> float:
        """Weighted number of observed entries."""
        return sum(part.n_entries for _, _, part in self.parts)

    def expect(
        self, gaussians: Gaussians, beta: float = 1.0
    ) -> tuple[float, tuple[FactorSums, ...]]:
        """Return the log-likelihood of the observed entries and the sums of every group."""
        found = [part.expect(at_group(gaussians, group), beta) for group, _, part in self.parts]
        return sum(value for value, _ in found), tuple(sums for _, sums in found)

    def gather(self, gaussians: Gaussians, responsibilities: Array) -> tuple[FactorSums, ...]:
        """Return the sums of every group for given responsibilities."""
        xp = namespace(responsibilities)
        return tuple(
            part.gather(at_group(gaussians, group), xp.take(responsibilities, rows, axis=0))
            for group, rows, part in self.parts
        )

    def maximise(
        self, gaussians: Gaussians, sums: tuple[FactorSums, ...], shrinkage: Shrinkage
    ) -> Gaussians:
        """Return Gaussians and factors with a higher penalised likelihood.

        Means and factors of the subspaces are updated with the noise fixed: the least-squares
        problem of every feature weights group g by 1/f_g. The noise then follows from the squared
        residuals of every subspace and group.
        """
        assert isinstance(gaussians, ExtendedGaussians)
        scales = 1.0 / self._factors(gaussians)
        total = _weighted_total(sums, scales)
        solver = replace(self.parts[0][2], affine=self.affine, rule=self.rule, dims=self.dims)
        components = range(gaussians.bases.shape[0])
        steps = [solver.step(gaussians, total, shrinkage, p) for p in components]
        xp = namespace(total.right)
        bases, variances = from_factors(xp.stack([step[1] for step in steps]), self.dims)
        fitted = xp.stack([step[4] for step in steps])
        residuals = np.stack([_residuals(part, fitted) for part in sums])
        entries = np.stack([_entries(part) for part in sums])
        # What the shrinkage adds to the residuals has the factor 1.
        added = to_numpy(xp.stack([step[2] for step in steps])) - scales @ residuals
        m = gaussians.bases.shape[1]
        pseudo = (np.maximum(added, 0.0), shrinkage.weight * m * np.ones(len(added)))
        if not shrinkage.weight:
            pseudo = (0 * pseudo[0], pseudo[1])
        noise, factors = self._noise(residuals, entries, pseudo, self._factors(gaussians))
        every = to_numpy(gaussians.noise_factors).astype(np.float64)
        every[[group for group, _, _ in self.parts]] = factors
        found = {
            "means": xp.stack([step[0] for step in steps]),
            "bases": bases,
            "variances": variances,
            "noise": moved_to(noise, bases, bases.dtype),
            "noise_factors": moved_to(every, bases, bases.dtype),
        }
        return updated(self, gaussians, total, shrinkage, found)

    def _factors(self, gaussians: ExtendedGaussians) -> np.ndarray:
        """Return the factors of the groups that have samples."""
        factors = to_numpy(gaussians.noise_factors).astype(np.float64)
        return factors[[group for group, _, _ in self.parts]]

    def _noise(
        self,
        residuals: np.ndarray,
        entries: np.ndarray,
        pseudo: tuple[np.ndarray, np.ndarray],
        factors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return σ_l² and f_g that fit the squared residuals (n_groups, n_subspaces) better."""
        shares = np.array([part.n_entries for _, _, part in self.parts])
        shares = shares / shares.sum()
        counts = entries.sum(axis=1)
        taught = counts > MIN_COUNT  # outliers may take all samples of a group: it keeps its factor

        def noise_of(factors: np.ndarray) -> np.ndarray:
            sums = (residuals / factors[:, None]).sum(axis=0) + pseudo[0]
            return np.asarray(self.rule.estimate(sums, entries.sum(axis=0) + pseudo[1]))

        for _ in range(ALTERNATIONS if taught.sum() > 1 else 0):
            along = (residuals / noise_of(factors)).sum(axis=1)
            level = float(shares[taught] @ np.log(factors[taught]))
            factors = factors.copy()
            factors[taught] = best_factors(along[taught], counts[taught], shares[taught], level)
        return noise_of(factors), factors


def at_group(gaussians: Gaussians, group: int) -> Gaussians:
    """Return the distribution of the samples of one group."""
    assert isinstance(gaussians, ExtendedGaussians)
    assert gaussians.noise_factors is not None
    return replace(gaussians, noise=gaussians.noise * gaussians.noise_factors[group])


def best_factors(
    residuals: np.ndarray, counts: np.ndarray, shares: np.ndarray, level: float
) -> np.ndarray:
    """Return the f_g that minimise Σ_g n_g log f_g + R_g/f_g, with Σ_g c_g log f_g as given.

    In log f_g this is a convex problem with one linear constraint: f_g = R_g/(n_g - μ c_g), and μ
    is the root of the constraint. It is 0 where the counts n_g are in the ratio of the shares c_g,
    up to a common factor; where outliers take entries they are not.
    """
    residuals = np.maximum(residuals, LEAST_FACTOR * counts)
    ratios = counts / shares

    def factors_at(step: float) -> np.ndarray:
        # μ is below all ratios n_g/c_g, by exp(step).
        return np.asarray(residuals / (shares * (ratios - ratios.min() + np.exp(step))))

    middle = float(np.log(ratios.max()))
    step = brentq(
        lambda step: float(shares @ np.log(factors_at(step))) - level, middle - 80, middle + 80
    )
    return factors_at(step)


def _weighted_total(sums: tuple[FactorSums, ...], scales: np.ndarray) -> FactorSums:
    """Return the sums over all groups; those of least-squares problems are weighted by 1/f_g."""
    names = ("systems", "right", "squares")
    total: FactorSums = sum_parts(
        replace(part, **{name: getattr(part, name) * float(scale) for name in names})
        for part, scale in zip(sums, scales, strict=True)
    )
    return total


def _residuals(sums: FactorSums, fitted: Array) -> np.ndarray:
    """Return the expected squared residuals of one group in every subspace."""
    xp = namespace(fitted)
    k = fitted.shape[2]
    systems, right = sums.systems[:, :, :k, :k], sums.right[:, :, :k]
    square = xp.sum(fitted * (systems @ fitted[..., None])[..., 0], axis=(1, 2))
    cross = xp.sum(fitted * right, axis=(1, 2))
    found = to_numpy(xp.sum(sums.squares, axis=1) - 2.0 * cross + square).astype(np.float64)
    return np.asarray(np.maximum(found, 0.0))


def _entries(sums: FactorSums) -> np.ndarray:
    """Return the number of observed entries of one group in every subspace."""
    last = sums.systems.shape[2] - 1
    found = namespace(sums.systems).sum(sums.systems[:, :, last, last], axis=1)
    return np.asarray(to_numpy(found), dtype=np.float64)
