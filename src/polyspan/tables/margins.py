"""The distribution of one column: ranks to normal scores, and back by expectations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

#: Nodes and weights of Gauss and Hermite, for expectations over a normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
#: Most values of a column that are kept; of more, evenly spaced ones in their order.
MOST_VALUES = 2000


@dataclass(frozen=True)
class Margin:
    """The observed values of a column, in their order."""

    values: np.ndarray
    """Sorted; values that occur often are there often."""
    distinct: np.ndarray
    scores: np.ndarray
    """The normal score of each distinct value: that of the middle of its ranks."""

    @classmethod
    def of(cls, observed: np.ndarray) -> Margin:
        """Learn from the observed entries of a column."""
        values = np.sort(observed)
        if len(values) > MOST_VALUES:
            values = values[np.linspace(0, len(values) - 1, MOST_VALUES).astype(int)]
        distinct, counts = np.unique(values, return_counts=True)
        ranks = np.cumsum(counts) - counts / 2
        return cls(values, distinct, ndtri(ranks / len(values)))

    def to_scores(self, column: np.ndarray) -> np.ndarray:
        """Return normal scores; values that were not seen lie between their neighbours."""
        return np.where(np.isnan(column), np.nan, np.interp(column, self.distinct, self.scores))

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the values below which these fractions of the column lie."""
        places = probabilities * len(self.values) - 0.5
        return np.asarray(np.interp(places, np.arange(len(self.values)), self.values))

    def expectation(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the expected value of entries whose scores are normal."""
        scores = mean[:, None] + np.sqrt(variance)[:, None] * NODES
        return np.asarray(self.quantiles(ndtr(scores)) @ WEIGHTS)


def level_probabilities(mean: np.ndarray, variance: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return the probability of each ordered level of a latent normal variable.

    Parameters
    ----------
    mean, variance : ndarray of shape (n,)
    cuts : ndarray of shape (n_levels - 1,)
        Rising; a variable between two cuts belongs to the level between them.
    """
    below = ndtr((cuts - mean[:, None]) / np.sqrt(variance)[:, None])
    edges = np.zeros((len(mean), 1))
    return np.diff(np.hstack([edges, below, edges + 1.0]), axis=1)
