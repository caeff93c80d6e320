"""What fills a table: Gaussians on two scales, several Gaussians, trees, and weights for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from polyspan.tables.components import Components
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Encoding, normalised
from polyspan.tables.forests import SecondStage, features, round_one
from polyspan.tables.gaussian import (
    Conditionals,
    Gaussian,
    conditional_draws,
    conditionals,
    fit_gaussian,
)

#: Numbers of one array of matrices, for the rows that are predicted at once: 32 megabytes.
NUMBERS_AT_ONCE = 4_000_000
#: Steps of EM from the Gaussian of all rows to one that is drawn.
DRAW_STEPS = 10

Pair = tuple[Gaussian, Gaussian]


@dataclass(frozen=True)
class Predicted:
    """What is expected of the missing entries of one column."""

    rows: np.ndarray
    """Rows in which the column is missing."""
    values: np.ndarray
    """(n_rows,) in the units of the column; of discrete columns probabilities, (n_rows, L)."""
    spread: np.ndarray
    """Standard deviations; of discrete columns NaN."""


@dataclass(frozen=True)
class Expected:
    """What the Gaussians expect of every entry of some rows, observed ones left out."""

    linear: Conditionals
    """Of the standardised columns."""
    ranks: Conditionals
    """Of their normal scores."""
    several: np.ndarray | None
    """(2, n_samples, n_encoded): mean and variance by several Gaussians of standardised columns."""

    def members(self, j: int, rows: np.ndarray, encoding: Encoding) -> list[np.ndarray]:
        """Return the predictions of column j in some rows, as its targets are."""
        block = encoding.columns[j].block
        linear, ranks = self.linear, self.ranks
        found = [
            encoding.from_standardised(
                j, linear.expected[rows, block], linear.variances[rows, block]
            ),
            encoding.from_scores(j, ranks.expected[rows, block], ranks.variances[rows, block]),
        ]
        if self.several is not None:
            mean, variance = self.several[:, rows, block]
            found.append(encoding.from_standardised(j, mean, variance))
        return found

    def variances(self, j: int, rows: np.ndarray, encoding: Encoding) -> np.ndarray:
        """Return the variances of a column of numbers."""
        known = self.linear.variances if self.several is None else self.several[1]
        return np.asarray(known[rows, encoding.columns[j].start])


@dataclass(frozen=True)
class TableModel:
    """All that is learned from a table."""

    encoding: Encoding
    linear: Gaussian
    """Of the standardised columns."""
    ranks: Gaussian
    """Of their normal scores."""
    components: Components | None
    """Several Gaussians of the standardised columns."""
    trees: SecondStage | None
    weights: np.ndarray
    """(n_columns, n_members): of what the Gaussians of both scales, several Gaussians, and trees
    predict, in this order."""
    donors: tuple[Donors | None, ...]
    """None for discrete columns."""
    errors: np.ndarray
    """(n_columns,): error of observed entries, as if they were missing. Numbers: root mean squared,
    over that of the mean; discrete ones: root of the Brier score, over that of the frequencies."""
    kept: np.ndarray
    """Rows of the table that Gaussians are drawn from."""
    n_rows: int
    """Number of rows that the Gaussians were learned from,"""
    n_table_rows: int
    """and that all was."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number and dimension of subspaces: of the largest dimension."""
        number = 1 if self.components is None else len(self.components.weights)
        return number, len(self.linear.mean) - 1

    def expected(self, table: np.ndarray, gaussians: Pair | None = None) -> Expected:
        """Return what is expected of every entry; redrawn Gaussians are those of both scales."""
        encoding, blocks = self.encoding, self.encoding.blocks
        standardised = encoding.standardised(table)
        scores = encoding.scores(table, standardised)
        linear, ranks = gaussians or (self.linear, self.ranks)
        several = None
        if self.components is not None and gaussians is None:
            several = self.components.expect(standardised, encoding)
        return Expected(
            conditionals(standardised, linear, blocks), conditionals(scores, ranks, blocks), several
        )

    def predict(self, table: np.ndarray, gaussians: Pair | None = None) -> list[Predicted]:
        """Return what is expected of the missing entries of every column.

        Parameters
        ----------
        gaussians : pair of Gaussian, default=None
            Redrawn ones. What else predicts stays as it was learned, and its predictions move as
            that of the first Gaussian does.
        """
        incomplete = np.flatnonzero(np.isnan(table).any(axis=1))
        size = max(1, NUMBERS_AT_ONCE // len(self.linear.mean) ** 2)
        parts = []
        # Of a complete table, one part without rows: it has the right shapes.
        for start in range(0, max(1, len(incomplete)), size):
            some = incomplete[start : start + size]
            found = self._predict_rows(table[some], gaussians)
            parts.append([(some[one.rows], one.values, one.spread) for one in found])
        return [
            Predicted(*(np.concatenate([part[j][k] for part in parts]) for k in range(3)))
            for j in range(table.shape[1])
        ]

    def redrawn(self, rng: np.random.RandomState) -> Pair:
        """Return Gaussians as they would be from other rows (Bayesian bootstrap)."""
        weights = rng.standard_gamma(self.n_rows / len(self.kept), len(self.kept))
        standardised = self.encoding.standardised(self.kept)
        scores = self.encoding.scores(self.kept, standardised)
        linear, ranks = (
            fit_gaussian(Z, weights=weights, start=start, max_iter=DRAW_STEPS)
            for Z, start in ((standardised, self.linear), (scores, self.ranks))
        )
        return linear, ranks

    def _predict_rows(self, table: np.ndarray, gaussians: Pair | None) -> list[Predicted]:
        encoding = self.encoding
        base = self.expected(table)
        given = base if gaussians is None else self.expected(table, gaussians)
        improved = base.linear.fills
        if self.trees is not None:
            missing = ~base.linear.observed
            improved = round_one(
                self.trees.first, base.linear.fills, base.ranks.fills, encoding, missing
            )
        out = []
        for j in range(table.shape[1]):
            rows = np.flatnonzero(np.isnan(table[:, j]))
            members = base.members(j, rows, encoding)
            if self.trees is not None:
                linear, ranks = base.linear.expected[rows], base.ranks.expected[rows]
                seen = features(j, improved[rows], linear, ranks, encoding)
                members.append(self.trees.second[j].predict(seen))
            if given is not base:
                new = given.members(j, rows, encoding)
                moved = new[0] - members[0]
                members = [*new, *(one + moved for one in members[2:])]
            out.append(self._combined(j, rows, members, base.variances(j, rows, encoding)))
        return out

    def _combined(
        self, j: int, rows: np.ndarray, members: list[np.ndarray], variances: np.ndarray
    ) -> Predicted:
        """Return the weighted mean of the members, in the units of the column."""
        donors, scaling = self.donors[j], self.encoding.scaling
        weights = self.weights[j]
        centre = self.encoding.centre(j)
        stacked = np.stack(members, axis=-1) @ weights + (1.0 - weights.sum()) * centre
        if donors is None:
            return Predicted(rows, normalised(stacked), np.full(len(rows), np.nan))
        one = self.encoding.columns[j].start
        values = self.encoding.unscaled(j, stacked)[:, 0]
        values = np.clip(values, scaling.least[one], scaling.most[one])
        return Predicted(rows, values, donors.spread(variances) * scaling.scale[one])

    def draw(self, table: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the table with its missing entries drawn.

        The Gaussians are drawn first, as they would be from other rows. Categories are drawn one
        after another, each given those before it. The other entries of a row are drawn together: as
        they are correlated in the Gaussian of the scores, given what is observed. A number is what
        an entry with much the same prediction had, relative to that prediction.
        """
        gaussians = self.redrawn(rng)
        out = table.copy()
        columns = self.encoding.columns
        for j, column in enumerate(columns):
            if column.margin is None and np.isnan(out[:, j]).any():
                found = self.predict(out, gaussians)[j]
                out[found.rows, j] = drawn_levels(found.values, rng.uniform(size=len(found.rows)))
        if not np.isnan(out).any():
            return out
        scores = self.encoding.scores(out, self.encoding.standardised(out))
        uniform = ndtr(conditional_draws(scores, gaussians[1], rng.standard_normal(scores.shape)))
        scaling = self.encoding.scaling
        weights = rng.standard_exponential(self.n_table_rows)
        drawn = out.copy()
        for j, found in enumerate(self.predict(out, gaussians)):
            if not len(found.rows):
                continue
            one, donors = columns[j].start, self.donors[j]
            at = uniform[found.rows, one]
            if donors is None:
                drawn[found.rows, j] = drawn_levels(found.values, at)
            else:
                scale, mean = scaling.scale[one], scaling.mean[one]
                expected = (found.values - mean) / scale
                values = donors.draw(expected, found.spread / scale, at, weights)
                if not donors.stepped:
                    values = np.clip(values * scale + mean, scaling.least[one], scaling.most[one])
                drawn[found.rows, j] = values
        return drawn


def drawn_levels(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return a level for each row, the one at which the sum of probabilities reaches a number."""
    reached = np.cumsum(probabilities, axis=1) < uniform[:, None]
    last = probabilities.shape[1] - 1
    return np.asarray(np.minimum(reached.sum(axis=1), last), dtype=np.float64)
