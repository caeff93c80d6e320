"""How far predictions are off: errors of observed entries whose prediction was much the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

#: Donors that are kept for a column, and those that are asked for one entry.
MOST_DONORS, LEAST_ASKED, MOST_ASKED = 2000, 30, 100
#: Number, or fraction, of made-up entries of which nothing is known.
LEAST_IGNORANT, IGNORANT = 10.0, 0.05
LEAST_VARIANCE = 1e-6
#: A column with so few values is filled with values of donors alone.
FEW_VALUES = 20


@dataclass(frozen=True)
class Donors:
    """Observed entries of a column of numbers, in the order of their predictions.

    Predictions and variances are those of the standardised column.
    """

    rows: np.ndarray
    """Rows of the table, which columns have in common."""
    predictions: np.ndarray
    values: np.ndarray
    """In the units of the column."""
    errors: np.ndarray
    """Of the predictions, in units of what was expected of them, after the next two."""
    shifts: np.ndarray
    """Mean of the errors of donors whose prediction is much the same,"""
    scales: np.ndarray
    """and their standard deviation, both drawn to 0 and 1."""
    base: float
    slope: float
    """The variance of an entry is base + slope · variance that the Gaussian says."""
    stepped: bool
    """Whether the column has few values, so that draws are values of donors."""

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        predicted: np.ndarray,
        truth: np.ndarray,
        variances: np.ndarray,
        values: np.ndarray,
    ) -> Donors:
        """Learn from predictions of entries that had not seen them.

        Parameters
        ----------
        rows : ndarray of shape (n,)
            Rising; the table is in a random order.
        predicted, truth, variances : ndarray of shape (n,)
            Standardised.
        values : ndarray of shape (n,)
            The entries in the units of the column.
        """
        squares = (truth - predicted) ** 2
        unit = float(squares.mean()) or 1.0
        # Large errors would decide alone: entries count by what the Gaussian expects.
        weights = 1.0 / np.maximum(variances, 1e-3 * float(variances.mean()) + 1e-300)
        # Some more entries, of which nothing is known, have the variance of the column.
        whole = max(float(truth.var()), LEAST_VARIANCE)
        ignorant = np.sqrt(max(LEAST_IGNORANT, IGNORANT * len(truth))) / whole
        sides = np.append(variances, whole)
        weights = np.append(weights, ignorant)
        design = np.stack([np.ones_like(sides), sides], axis=1) * weights[:, None]
        found = nnls(design, np.append(squares, whole) * weights)[0]
        expected = np.maximum(found[0] + found[1] * variances, 1e-6 * unit)
        # Together they must be right on average.
        factor = float(squares.mean() / expected.mean()) or 1.0
        spread = np.sqrt(factor * expected)
        order = np.argsort(predicted[:MOST_DONORS], kind="stable")
        errors = ((truth - predicted) / spread)[order]
        shifts, scales = _local_moments(errors)
        few = len(np.unique(values)) <= FEW_VALUES
        return cls(
            rows[order], predicted[order], values[order], (errors - shifts) / scales, shifts,
            scales, factor * float(found[0]) + 1e-12 * unit, factor * float(found[1]), bool(few),
        )  # fmt: skip

    def spread(self, variances: np.ndarray) -> np.ndarray:
        """Return the standard deviation of entries, from the variances that the Gaussian says."""
        return np.sqrt(self.base + self.slope * variances)

    def draw(
        self, predicted: np.ndarray, spread: np.ndarray, uniform: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Draw entries: quantiles, given by `uniform`, of what donors of like predictions had.

        Parameters
        ----------
        weights : ndarray of shape (n_rows,)
            How much each row of the table counts: rows are a sample, so these are drawn (Bayesian
            bootstrap). They are the same for all columns, so that columns that are nearly equal
            are nearly equal in draws.

        Returns
        -------
        drawn : ndarray
            Values of donors where these are `stepped`, else standardised numbers.
        """
        if self.stepped:
            return self._nearby_value(predicted, uniform, weights)
        # The shape of the errors is that of all donors: from a few it would differ at random
        # between columns that are nearly equal.
        order = np.argsort(self.errors, kind="stable")
        own = weights[self.rows][order]
        places = (np.cumsum(own) - 0.5 * own) / own.sum()
        errors = np.interp(uniform, places, self.errors[order])
        shift = np.interp(predicted, self.predictions, self.shifts)
        scale = np.interp(predicted, self.predictions, self.scales)
        return np.asarray(predicted + spread * (shift + scale * errors))

    def _nearby_value(
        self, predicted: np.ndarray, uniform: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return values that donors with much the same prediction have."""
        places = np.searchsorted(self.predictions, predicted)
        first, asked = neighbours(places, len(self.predictions))
        near = first[:, None] + np.arange(asked)
        order = np.argsort(self.values[near], axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        sums = np.cumsum(weights[self.rows][near], axis=1)
        at = np.minimum((sums / sums[:, -1:] < uniform[:, None]).sum(axis=1), asked - 1)
        return np.asarray(self.values[near[np.arange(len(near)), at]])


def neighbours(places: np.ndarray, n_donors: int) -> tuple[np.ndarray, int]:
    """Return the first donor that is asked at each place, and how many there are asked."""
    asked = min(n_donors, int(np.clip(n_donors // 10, LEAST_ASKED, MOST_ASKED)))
    return np.clip(places - asked // 2, 0, n_donors - asked), asked


def _local_moments(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of errors, around each of them in their order.

    They are drawn to 0 and 1, as if there were as many errors more that have these.
    """
    first, asked = neighbours(np.arange(len(errors)), len(errors))
    sums, squares = (np.concatenate([[0.0], np.cumsum(errors**k)]) for k in (1, 2))
    means = (sums[first + asked] - sums[first]) / (2 * asked)
    second = (squares[first + asked] - squares[first] + asked) / (2 * asked)
    return means, np.sqrt(np.maximum(second - means**2, 0.01))
