"""Learn what fills a table, and how far each part of it can be trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from polyspan.tables.components import Components, Expected, fit_components
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Encoding
from polyspan.tables.forests import fit_second_stage, try_forest
from polyspan.tables.gaussian import Conditionals, Gaussian, conditionals, fit_gaussian
from polyspan.tables.model import TableModel, weighted

#: Observed entries are predicted by Gaussians that were learned without their rows, in so many
#: parts; with more rows than this number per column the rows hardly matter.
N_PARTS, ROWS_PER_COLUMN = 5, 100
#: Steps of EM from the Gaussian of all rows to that without a part; in small tables a part matters
#: more, and the steps cost less.
PART_STEPS, SMALL_PART_STEPS, SMALL_TABLE = 5, 20, 300
#: How many times more rows, and how many steps of EM, there are for a last improvement.
MORE_ROWS, MORE_STEPS = 4, 2
#: Several Gaussians are learned for tables with at most so many encoded columns, also without each
#: of so many parts.
MOST_SEVERAL, N_SEVERAL_PARTS = 18, 3
#: Rows for each of them, and their largest number.
ROWS_EACH, MOST_GAUSSIANS = 50, 4
#: Bound on rows times columns³ for them.
SEVERAL_WORK = 4e6
#: Bound on rows times columns³ for the rows of EM.
EM_WORK = 1.5e7
#: They are kept if their squared error is at most this many times that of one Gaussian.
NOT_MUCH_WORSE = 1.05
#: It is tried on at most so many rows whether trees help: whether few of them lower the error of a
#: column by this part. Of 98 tables that were tried (docs/evidence/tables.md), it was less where
#: trees gain nothing, but for one in five.
TRIED_ROWS, LEAST_GAIN = 2000, 0.005
#: Rows that are kept to draw Gaussians from.
MOST_KEPT = 2000
#: The weights of a column are drawn to those of the whole table, as if so many of its entries had
#: asked for them.
RIDGE = 5.0
#: The weights of the whole table are drawn to 0, the mean of the columns, by so many entries.
COMMON_RIDGE = 20.0
#: A gain over the whole table of two standard errors, which is this squared, may be chance.
DOUBT = 4.0
#: Errors are cut here for that, in units of the root mean squared error of the mean.
FAR_OUT = 4.0


class Learner:
    """What Gaussians learn from a table, whose rows are in a random order, and a model with that.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_columns)
        NaN where missing; levels of discrete columns are 0, 1, ….
    """

    def __init__(self, table: np.ndarray, encoding: Encoding, rng: np.random.RandomState) -> None:
        self.table, self.encoding, self.rng = table, encoding, rng
        self.standardised, self.scores = encoding.scales(table)
        n, q = self.standardised.shape
        # Most rows that one Gaussian and several are learned from, and the number of these.
        self.em_rows = int(min(n, max(q * 20, EM_WORK / q**3)))
        self.several_rows = int(min(self.em_rows, SEVERAL_WORK / q**3))
        most = MOST_GAUSSIANS if q <= MOST_SEVERAL else 1
        self.n_several = min(most, self.several_rows // ROWS_EACH)
        self.part_steps = SMALL_PART_STEPS if n <= SMALL_TABLE else PART_STEPS
        self.linear, self.ranks = self._gaussian(self.standardised), self._gaussian(self.scores)
        by_linear = self._without_own_rows(self.standardised, self.linear)
        by_ranks = self._without_own_rows(self.scores, self.ranks)
        self.components, several = self._components(by_linear)
        self.expected = Expected(encoding, by_linear, by_ranks, several)
        self.targets = encoding.targets(table, self.standardised)

    def trees_gain(self) -> bool:
        """Tell whether trees predict a column better than the Gaussians alone.

        One round of few trees predicts rows that it has not seen. It has to lower the error of one
        column.
        """
        rng = copy.deepcopy(self.rng)  # where trees help, they are those of a fit without the trial
        for j, target in enumerate(self.targets):
            rows = np.flatnonzero(~np.isnan(self.table[:TRIED_ROWS, j]))
            own = self.expected.members(j, rows)
            by_trees = try_forest(j, target, rows, self.expected, rng)
            without, with_trees = (
                Seen(np.stack(members, axis=-1), target[rows], self.encoding.centre(j))
                for members in (own, [*own, by_trees])
            )
            if with_trees.least_error() < (1.0 - LEAST_GAIN) * without.least_error():
                return True
        return False

    def fit(self, *, trees: bool, tick: Callable[[], None]) -> TableModel:
        """Return all that is learned, with a second stage if there are to be `trees`."""
        tick()
        stage, by_trees = None, None
        if trees:
            stage, by_trees = fit_second_stage(self.targets, self.expected, self.rng, tick)
        weights, donors, errors = self._trust(by_trees)
        return TableModel(
            encoding=self.encoding,
            linear=self.linear,
            ranks=self.ranks,
            components=self.components,
            trees=stage,
            weights=weights,
            donors=donors,
            errors=errors,
            kept=self.table[: min(MOST_KEPT, self.em_rows)],
            n_rows=min(len(self.table), MORE_ROWS * self.em_rows),
            n_table_rows=len(self.table),
        )

    def _several(self, Z: np.ndarray, start: Gaussian) -> Components:
        """Learn several Gaussians from some of the rows."""
        return fit_components(Z[: self.several_rows], start, self.n_several, self.rng)

    def _gaussian(self, Z: np.ndarray) -> Gaussian:
        """Learn from some rows until EM converges, and in a few steps more from more rows."""
        found = fit_gaussian(Z[: self.em_rows])
        if len(Z) > self.em_rows:
            found = fit_gaussian(Z[: MORE_ROWS * self.em_rows], start=found, max_iter=MORE_STEPS)
        return found

    def _without_own_rows(self, Z: np.ndarray, gaussian: Gaussian) -> Conditionals:
        """Return what is expected of entries, of observed ones by Gaussians without their rows."""
        found = conditionals(Z, gaussian, self.encoding.blocks)
        n, q = Z.shape
        if n > ROWS_PER_COLUMN * q or n < 4 * N_PARTS:
            return found
        parts = self.rng.permutation(n) % N_PARTS
        for part in range(N_PARTS):
            own = parts == part
            if unknown_columns(Z[~own]):
                continue
            alone = fit_gaussian(Z[~own], start=gaussian, max_iter=self.part_steps)
            again = conditionals(Z[own], alone, self.encoding.blocks)
            seen = found.observed[own]
            found.expected[own] = np.where(seen, again.expected, found.expected[own])
            found.variances[own] = np.where(seen, again.variances, found.variances[own])
        return found

    def _components(self, single: Conditionals) -> tuple[Components | None, np.ndarray | None]:
        """Learn several Gaussians where there are rows for them, and where they predict as well.

        Returns them, and mean and variance of every entry by Gaussians without its row.
        """
        Z = self.standardised
        if self.n_several < 2:
            return None, None
        parts = self.rng.permutation(len(Z)) % N_SEVERAL_PARTS
        moments = np.empty((2, *Z.shape))
        for part in range(N_SEVERAL_PARTS):
            own = parts == part
            others = Z[~own][: self.several_rows]
            if unknown_columns(others):
                return None, None
            start = fit_gaussian(others, start=self.linear, max_iter=self.part_steps)
            moments[:, own] = self._several(others, start).expect(Z[own], self.encoding)
        several, one = (
            float(np.sum(np.where(single.observed, Z - mean, 0.0) ** 2))
            for mean in (moments[0], single.expected)
        )
        if several > NOT_MUCH_WORSE * one:
            return None, None
        return self._several(Z, self.linear), moments

    def _trust(
        self, by_trees: list[np.ndarray] | None
    ) -> tuple[np.ndarray, tuple[Donors | None, ...], np.ndarray]:
        """Return weights of the members, errors of observed entries, and the errors of columns."""
        where = [np.flatnonzero(~np.isnan(column)) for column in self.table.T]
        seen = []
        for j, rows in enumerate(where):
            members = self.expected.members(j, rows)
            if by_trees is not None:
                members.append(by_trees[j][rows])
            centre = self.encoding.centre(j)
            seen.append(Seen(np.stack(members, axis=-1), self.targets[j][rows], centre))
        weights = stack_weights(seen)
        donors: list[Donors | None] = [None] * len(seen)
        for j, (rows, one) in enumerate(zip(where, seen, strict=True)):
            if not self.encoding.columns[j].n_levels:
                predicted, truth = one.predicted(weights[j])[:, 0], one.truth[:, 0]
                variances = self.expected.variances(j, rows)
                donors[j] = Donors.of(rows, predicted, truth, variances, self.table[rows, j])
        errors = [one.error(own) for one, own in zip(seen, weights, strict=True)]
        return weights, tuple(donors), np.array(errors)


def unknown_columns(Z: np.ndarray) -> bool:
    """Tell whether a column has no entry, so that nothing can be learned of it."""
    return bool(np.isnan(Z).all(axis=0).any())


@dataclass(frozen=True)
class Seen:
    """Observed entries of one column, with predictions that have not seen them."""

    members: np.ndarray
    """(n, n_outputs, n_members)."""
    truth: np.ndarray
    """(n, n_outputs)."""
    centre: np.ndarray
    """(n_outputs,): the prediction without any member."""

    def squares(self, predicted: np.ndarray) -> np.ndarray:
        """Return the squared error of each entry."""
        return np.asarray(np.sum((self.truth - predicted) ** 2, axis=1))

    def predicted(self, weights: np.ndarray) -> np.ndarray:
        """Return the prediction of all members together."""
        return weighted(self.members, weights, self.centre)

    def error(self, weights: np.ndarray) -> float:
        """Return the error of this prediction, relative to that of the centre."""
        left = float(np.mean(self.squares(self.predicted(weights))))
        whole = float(np.mean(self.squares(self.centre)))
        return float(np.sqrt(left / whole)) if whole > 0 else 0.0

    def least_error(self) -> float:
        """Return the error with the best weights for this column."""
        return self.error(stack_weights([self])[0])

    def equations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix and the right side of the equations of least squares."""
        away = (self.members - self.centre[:, None]).reshape(-1, self.members.shape[2])
        # A column counts by its own variance, whatever the number of its levels.
        unit = float(np.mean(self.squares(self.centre))) or 1.0
        return away.T @ away / unit, away.T @ (self.truth - self.centre).ravel() / unit

    def gains(self, weights: np.ndarray) -> np.ndarray:
        """Return by how much the squared error of each entry is below that of the centre."""
        stacked = self.centre + (self.members - self.centre[:, None]) @ weights
        whole, left = self.squares(self.centre), self.squares(stacked)
        # A few entries far out would decide alone whether a gain is chance.
        most = FAR_OUT**2 * float(whole.mean()) or 1.0
        return np.asarray(np.minimum(whole, most) - np.minimum(left, most)) / most


def stack_weights(seen: list[Seen]) -> np.ndarray:
    """Return the weights of the members for every column, by least squares.

    What is left to 1 is the weight of the mean of the column, or of its frequencies.
    """
    equations = [one.equations() for one in seen]
    gram, side = (np.sum(parts, axis=0) for parts in zip(*equations, strict=True))
    common = simplex_weights(gram, side, np.zeros(len(side)), COMMON_RIDGE)
    weights = np.array([simplex_weights(*one, common, RIDGE) for one in equations])
    gains = [one.gains(own) for one, own in zip(seen, weights, strict=True)]
    return weights * _certainty(np.concatenate(gains))


def _certainty(gains: np.ndarray) -> float:
    """Return a factor of the weights, from 0 where a gain may be chance to 1 where it is none."""
    mean, spread = float(gains.mean()), float(gains.std())
    if mean <= 0:
        return 0.0
    error = spread / np.sqrt(len(gains))  # standard error of the mean
    return float(max(0.0, 1.0 - DOUBT * (error / mean) ** 2))


def simplex_weights(
    gram: np.ndarray, side: np.ndarray, centre: np.ndarray, ridge: float
) -> np.ndarray:
    """Minimise wᵀGw - 2bᵀw + ridge ‖w - centre‖² over w ≥ 0 with sum at most 1.

    There are three or four weights, so all sets of those that are not 0 are tried.
    """
    n = len(side)
    gram, side = gram + ridge * np.eye(n), side + ridge * centre
    best, least = np.zeros(n), 0.0
    for size in range(1, n + 1):
        for chosen in combinations(range(n), size):
            some = list(chosen)
            system = gram[np.ix_(some, some)]
            found = np.linalg.solve(system, side[some])
            if found.sum() > 1.0:
                step = np.linalg.solve(system, np.ones(size))
                found = found - (found.sum() - 1.0) / step.sum() * step
            value = float(found @ system @ found - 2.0 * found @ side[some])
            if (found >= 0).all() and value < least:
                best, least = np.zeros(n), value
                best[some] = found
    return best
