"""What fills a table: Gaussians on two scales, several Gaussians, trees, and weights for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from polyspan.tables.components import Components, Expected, Pair
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Encoding, normalised
from polyspan.tables.forests import SecondStage, features, round_one
from polyspan.tables.gaussian import Gaussian, conditional_draws, fit_gaussian

#: Numbers of one array of matrices, for the rows that are predicted at once: 32 megabytes.
NUMBERS_AT_ONCE = 4_000_000
#: Steps of EM from the Gaussian of all rows to one that is drawn.
DRAW_STEPS = 10


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
        columns = (zip(*column, strict=True) for column in zip(*parts, strict=True))
        return [Predicted(*map(np.concatenate, column)) for column in columns]

    def redrawn(self, rng: np.random.RandomState) -> Pair:
        """Return Gaussians as they would be from other rows (Bayesian bootstrap)."""
        weights = rng.standard_gamma(self.n_rows / len(self.kept), len(self.kept))
        scales, starts = self.encoding.scales(self.kept), (self.linear, self.ranks)
        linear, ranks = (
            fit_gaussian(Z, weights=weights, start=start, max_iter=DRAW_STEPS)
            for Z, start in zip(scales, starts, strict=True)
        )
        return linear, ranks

    def _predict_rows(self, table: np.ndarray, gaussians: Pair | None) -> list[Predicted]:
        encoding = self.encoding
        base = Expected.of(table, encoding, (self.linear, self.ranks), self.components)
        redrawn = gaussians and Expected.of(table, encoding, gaussians, None)
        if self.trees is not None:
            fills, latents, missing = base.linear.fills, base.ranks.fills, ~base.linear.observed
            improved = round_one(self.trees.first, fills, latents, encoding, missing)
        out = []
        for j in range(table.shape[1]):
            rows = np.flatnonzero(np.isnan(table[:, j]))
            members = base.members(j, rows)
            if self.trees is not None:
                linear, ranks = base.linear.expected[rows], base.ranks.expected[rows]
                seen = features(j, improved[rows], linear, ranks, encoding)
                members.append(self.trees.second[j].predict(seen))
            if redrawn is not None:
                new = redrawn.members(j, rows)
                moved = new[0] - members[0]
                members = [*new, *(one + moved for one in members[2:])]
            out.append(self._combined(j, rows, members, base.variances(j, rows)))
        return out

    def _combined(
        self, j: int, rows: np.ndarray, members: list[np.ndarray], variances: np.ndarray
    ) -> Predicted:
        """Return the weighted mean of the members, in the units of the column."""
        donors = self.donors[j]
        stacked = weighted(np.stack(members, axis=-1), self.weights[j], self.encoding.centre(j))
        if donors is None:
            return Predicted(rows, normalised(stacked), np.full(len(rows), np.nan))
        scale = self.encoding.scaling.scale[self.encoding.columns[j].start]
        spread = donors.spread(variances) * scale
        return Predicted(rows, self.encoding.numbers(j, stacked[:, 0]), spread)

    def draw(self, table: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the table with its missing entries drawn.

        The Gaussians are drawn first, as they would be from other rows. Categories are drawn one
        after another, each given those before it. The other entries of a row are drawn together: as
        they are correlated in the Gaussian of the scores, given what is observed. A number is what
        an entry with much the same prediction had, relative to that prediction.
        """
        gaussians = self.redrawn(rng)
        out = table.copy()
        for j, column in enumerate(self.encoding.columns):
            if column.margin is None and np.isnan(out[:, j]).any():
                found = self.predict(out, gaussians)[j]
                out[found.rows, j] = drawn_levels(found.values, rng.uniform(size=len(found.rows)))
        if not np.isnan(out).any():
            return out
        scores = self.encoding.scales(out)[1]
        uniform = ndtr(conditional_draws(scores, gaussians[1], rng.standard_normal(scores.shape)))
        weights = rng.standard_exponential(self.n_table_rows)
        drawn = out.copy()
        for j, found in enumerate(self.predict(out, gaussians)):
            one, donors = self.encoding.columns[j].start, self.donors[j]
            at = uniform[found.rows, one]
            if donors is None:
                drawn[found.rows, j] = drawn_levels(found.values, at)
                continue
            expected = self.encoding.scaled(j, found.values)
            spread = found.spread / self.encoding.scaling.scale[one]
            values = donors.draw(expected, spread, at, weights)
            drawn[found.rows, j] = values if donors.stepped else self.encoding.numbers(j, values)
        return drawn


def weighted(members: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the weighted mean of predictions; what is left to 1 is the weight of the centre."""
    return np.asarray(members @ weights + (1.0 - weights.sum()) * centre)


def drawn_levels(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return a level for each row, the one at which the sum of probabilities reaches a number."""
    reached = np.cumsum(probabilities, axis=1) < uniform[:, None]
    last = probabilities.shape[1] - 1
    return np.asarray(np.minimum(reached.sum(axis=1), last), dtype=np.float64)
