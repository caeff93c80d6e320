"""Columns of a table as columns of numbers: standardised, normal scores, and dummies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from polyspan.base.arrays import one_hot
from polyspan.tables.mixture_fill import Scaling

#: Nodes and weights of Gauss and Hermite, for expectations over a normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
#: Most values of a column that are kept; of more, evenly spaced ones in their order.
MOST_VALUES = 2000
#: Standardised entries are no farther from 0: squares of farther ones may overflow.
FARTHEST = 1e8


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

    def expectation(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the expected value of entries whose scores are normal."""
        scores = mean[:, None] + np.sqrt(variance)[:, None] * NODES
        # The values below which these fractions of the column lie.
        places = ndtr(scores) * len(self.values) - 0.5
        quantiles = np.interp(places, np.arange(len(self.values)), self.values)
        return np.asarray(quantiles @ WEIGHTS)


def level_probabilities(mean: np.ndarray, variance: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return the probability of each ordered level of a latent normal variable.

    Parameters
    ----------
    mean, variance : ndarray of shape (n,)
    cuts : ndarray of shape (n_levels - 1,)
        Rising; a variable between two cuts belongs to the level between them.
    """
    below = ndtr((cuts - mean[:, None]) / np.sqrt(variance)[:, None])
    return np.diff(below, axis=1, prepend=0.0, append=1.0)


@dataclass(frozen=True)
class Column:
    """One column of the table, and its place among the encoded ones."""

    start: int
    stop: int
    n_levels: int
    """Number of levels of a discrete column, whose entries are 0, 1, …; 0 for numbers."""
    margin: Margin | None
    """Of numbers and ordered levels; None for categories, which are encoded as dummies."""
    frequencies: np.ndarray
    """Of the levels; empty for numbers."""
    reference: int = 0
    """The most frequent category, which has no dummy."""

    @property
    def block(self) -> slice:
        """The encoded columns."""
        return slice(self.start, self.stop)

    @property
    def dummies(self) -> np.ndarray:
        """The levels that have a dummy, in their order."""
        return np.delete(np.arange(self.n_levels), self.reference)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become encoded columns.

    A number is one column: standardised, or as a normal score. An ordered level, or one of two,
    is one column too. A category is one dummy for each level but the most frequent one.
    """

    columns: tuple[Column, ...]
    scaling: Scaling
    """Of the encoded columns."""

    @classmethod
    def of(cls, table: np.ndarray, n_levels: Sequence[int], ordered: Sequence[bool]) -> Encoding:
        """Learn the encoding of a table of float64 with NaN, without constant columns."""
        columns: list[Column] = []
        place = 0
        for entries, levels, in_order in zip(table.T, n_levels, ordered, strict=True):
            seen = entries[~np.isnan(entries)]
            single = levels <= 2 or in_order
            frequencies = np.bincount(seen.astype(int), minlength=levels) if levels else seen[:0]
            column = Column(
                place,
                place + (1 if single else levels - 1),
                levels,
                Margin.of(seen) if single else None,
                frequencies / max(1, len(seen)),
                0 if single else int(np.argmax(frequencies)),
            )
            columns.append(column)
            place = column.stop
        partial = cls(tuple(columns), Scaling.of(np.zeros((1, place))))
        return cls(tuple(columns), Scaling.of(partial.raw(table)))

    @property
    def blocks(self) -> list[slice]:
        """The encoded columns of each column."""
        return [column.block for column in self.columns]

    def raw(self, table: np.ndarray) -> np.ndarray:
        """Return encoded columns in their own units."""
        out = np.empty((len(table), self.columns[-1].stop))
        for entries, column in zip(table.T, self.columns, strict=True):
            if column.margin is not None:
                out[:, column.start] = entries
            else:
                found = (entries[:, None] == column.dummies).astype(np.float64)
                out[:, column.block] = np.where(np.isnan(entries)[:, None], np.nan, found)
        return out

    def standardised(self, table: np.ndarray) -> np.ndarray:
        """Return encoded columns, standardised; new entries may be far from all that was seen."""
        return np.asarray(np.clip(self.scaling.standardise(self.raw(table)), -FARTHEST, FARTHEST))

    def scales(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return encoded columns, standardised and as normal scores; dummies have no scores."""
        standardised = self.standardised(table)
        scores = standardised.copy()
        for entries, column in zip(table.T, self.columns, strict=True):
            if column.margin is not None:
                scores[:, column.start] = column.margin.to_scores(entries)
        return standardised, scores

    def targets(self, table: np.ndarray, standardised: np.ndarray) -> list[np.ndarray]:
        """Return what is predicted of every column.

        It is standardised numbers, (n, 1), or indicators of levels, (n, L).
        """
        out = [standardised[:, column.block] for column in self.columns]
        for j, column in enumerate(self.columns):
            if column.n_levels:
                out[j] = one_hot(table[:, j], column.n_levels, np.float64)
        return out

    def centre(self, j: int) -> np.ndarray:
        """Return the prediction of column j that knows nothing of the row."""
        column = self.columns[j]
        return column.frequencies if column.n_levels else np.zeros(1)

    def unscaled(self, j: int, standardised: np.ndarray) -> np.ndarray:
        """Return standardised values of column j in its own units."""
        block = self.columns[j].block
        return np.asarray(standardised * self.scaling.scale[block] + self.scaling.mean[block])

    def scaled(self, j: int, values: np.ndarray) -> np.ndarray:
        """Return values of column j in its own units, standardised."""
        block = self.columns[j].block
        return np.asarray((values - self.scaling.mean[block]) / self.scaling.scale[block])

    def numbers(self, j: int, standardised: np.ndarray) -> np.ndarray:
        """Return standardised values of a column of numbers in its own units, within its range."""
        one = self.columns[j].start
        values = self.unscaled(j, standardised)
        return np.asarray(np.clip(values, self.scaling.least[one], self.scaling.most[one]))

    def from_standardised(self, j: int, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return a prediction of column j, as its targets are, from standardised expectations."""
        column = self.columns[j]
        if not column.n_levels:
            return mean
        values = self.unscaled(j, mean)
        if column.margin is None:
            return self._category(column, values)
        scale = self.scaling.scale[column.start]
        cuts = np.arange(column.n_levels - 1) + 0.5
        return level_probabilities(values[:, 0], variance[:, 0] * scale**2, cuts)

    def from_scores(self, j: int, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the same from expected scores."""
        column = self.columns[j]
        if column.margin is None:
            return self._category(column, self.unscaled(j, mean))
        if column.n_levels:
            below = np.cumsum(column.frequencies)[:-1]
            cuts = ndtri(np.clip(below, 1e-6, 1 - 1e-6))
            return level_probabilities(mean[:, 0], variance[:, 0], cuts)
        return self.scaled(j, column.margin.expectation(mean[:, 0], variance[:, 0])[:, None])

    def to_standardised(self, j: int, prediction: np.ndarray) -> np.ndarray:
        """Return a prediction of column j as expected values of its encoded columns."""
        column = self.columns[j]
        if not column.n_levels:
            return prediction
        if column.margin is None:
            return self.scaled(j, prediction[:, column.dummies])
        return self.scaled(j, prediction @ np.arange(column.n_levels)[:, None])

    @staticmethod
    def _category(column: Column, values: np.ndarray) -> np.ndarray:
        """Return probabilities of all levels, from those of the dummies."""
        out = np.empty((len(values), column.n_levels))
        out[:, column.dummies] = values
        out[:, column.reference] = 1.0 - values.sum(axis=1)
        return normalised(out)


def normalised(probabilities: np.ndarray) -> np.ndarray:
    """Return rows that are not negative and sum to 1."""
    clipped = np.clip(probabilities, 1e-6, None)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))
