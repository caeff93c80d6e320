"""Learn what fills a table, and how far each part of it can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from polyspan.tables.components import Components, fit_components, n_components
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Encoding
from polyspan.tables.forests import fit_second_stage, try_forest
from polyspan.tables.gaussian import Conditionals, Gaussian, conditionals, fit_gaussian
from polyspan.tables.model import Expected, TableModel

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
#: Bound on rows times columns³ for them.
SEVERAL_WORK = 4e6
#: They are kept if their squared error is at most this many times that of one Gaussian.
NOT_MUCH_WORSE = 1.05
#: Trees are learned from all rows if those of a sample lower the error of a column by this part.
#: On made-up tables it was at most .002 where rows are near subspaces, and .017 or more where a
#: column is a curved function of others.
LEAST_GAIN = 0.005
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


def fit_table(
    table: np.ndarray,
    encoding: Encoding,
    rng: np.random.RandomState,
    *,
    em_rows: int,
    trees: bool,
    tick: Callable[[], None] = lambda: None,
) -> TableModel:
    """Learn from a table.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_columns)
        NaN where missing; levels of discrete columns are 0, 1, …. Rows are in a random order.
    em_rows : int
        Most rows that the Gaussians are learned from.
    trees : bool
        Whether there is a second stage.
    """
    standardised = encoding.standardised(table)
    scores = encoding.scores(table, standardised)
    linear, ranks = (_fit_gaussian(Z, em_rows) for Z in (standardised, scores))
    tick()
    by_linear = _without_own_rows(standardised, linear, encoding, rng)
    by_ranks = _without_own_rows(scores, ranks, encoding, rng)
    several_rows = int(min(em_rows, SEVERAL_WORK / standardised.shape[1] ** 3))
    components, several = _fit_components(
        standardised, several_rows, linear, by_linear, encoding, rng
    )
    expected = Expected(by_linear, by_ranks, several)
    tick()
    targets = _targets(table, standardised, encoding)
    stage, by_trees = None, None
    if trees:
        stage, by_trees = fit_second_stage(encoding, targets, by_linear, by_ranks, rng, tick)
    weights, donors, errors = _trust(table, targets, expected, by_trees, encoding)
    return TableModel(
        encoding=encoding,
        linear=linear,
        ranks=ranks,
        components=components,
        trees=stage,
        weights=weights,
        donors=donors,
        errors=errors,
        kept=table[: min(MOST_KEPT, em_rows)],
        n_rows=min(len(table), MORE_ROWS * em_rows),
        n_table_rows=len(table),
    )


def trees_gain(
    table: np.ndarray,
    n_tried: int,
    encoding: Encoding,
    rng: np.random.RandomState,
    *,
    em_rows: int,
) -> bool:
    """Tell whether trees predict a column of the first rows better than Gaussians of the others.

    One round of few trees predicts rows that it has not seen. It has to lower the error of one
    column.
    """
    standardised = encoding.standardised(table)
    scores = encoding.scores(table, standardised)
    if np.isnan(table[n_tried:]).all(axis=0).any():
        return True  # not known
    learned = [fit_gaussian(Z[n_tried:][:em_rows]) for Z in (standardised, scores)]
    linear, ranks = (
        conditionals(Z[:n_tried], one, encoding.blocks)
        for Z, one in zip((standardised, scores), learned, strict=True)
    )
    several, n_rows = None, int(min(em_rows, SEVERAL_WORK / standardised.shape[1] ** 3))
    if standardised.shape[1] <= MOST_SEVERAL and n_components(n_rows) > 1:
        others = standardised[n_tried:][:n_rows]
        found = fit_components(others, learned[0], n_components(n_rows), rng)
        several = found.expect(standardised[:n_tried], encoding)
    expected = Expected(linear, ranks, several)
    for j, target in enumerate(_targets(table[:n_tried], standardised[:n_tried], encoding)):
        rows = np.flatnonzero(~np.isnan(table[:n_tried, j]))
        own = expected.members(j, rows, encoding)
        by_trees = try_forest(encoding, j, target, linear, ranks, rng)
        without, with_trees = (
            _error_of(np.stack(members, axis=-1), target[rows], encoding.centre(j))
            for members in (own, [*own, by_trees[rows]])
        )
        if with_trees < (1.0 - LEAST_GAIN) * without:
            return True
    return False


def _error_of(members: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    """Return the relative error of one column by the best weights of its members."""
    weights = stack_weights([members], [truth], [centre])[0]
    return _relative_error(members @ weights + (1.0 - weights.sum()) * centre, truth, centre)


def _targets(table: np.ndarray, standardised: np.ndarray, encoding: Encoding) -> list[np.ndarray]:
    """Return what is predicted of every column."""
    return [
        column.targets(entries, standardised[:, column.start])
        for entries, column in zip(table.T, encoding.columns, strict=True)
    ]


def _fit_gaussian(Z: np.ndarray, em_rows: int) -> Gaussian:
    """Learn from some rows until EM converges, and in a few steps more from more rows."""
    found = fit_gaussian(Z[:em_rows])
    if len(Z) > em_rows:
        found = fit_gaussian(Z[: MORE_ROWS * em_rows], start=found, max_iter=MORE_STEPS)
    return found


def _trust(
    table: np.ndarray,
    targets: list[np.ndarray],
    expected: Expected,
    by_trees: list[np.ndarray] | None,
    encoding: Encoding,
) -> tuple[np.ndarray, tuple[Donors | None, ...], np.ndarray]:
    """Return weights of the members, errors of observed entries, and the errors of columns."""
    seen = [np.flatnonzero(~np.isnan(column)) for column in table.T]
    members, truths, centres = [], [], []
    for j, rows in enumerate(seen):
        own = expected.members(j, rows, encoding)
        if by_trees is not None:
            own.append(by_trees[j][rows])
        members.append(np.stack(own, axis=-1))
        truths.append(targets[j][rows])
        centres.append(encoding.centre(j))
    weights = stack_weights(members, truths, centres)
    donors: list[Donors | None] = []
    errors = []
    for j, rows in enumerate(seen):
        stacked = members[j] @ weights[j] + (1.0 - weights[j].sum()) * centres[j]
        errors.append(_relative_error(stacked, truths[j], centres[j]))
        if encoding.columns[j].n_levels:
            donors.append(None)
        else:
            variances = expected.variances(j, rows, encoding)
            truth = truths[j][:, 0]
            donors.append(Donors.of(rows, stacked[:, 0], truth, variances, table[rows, j]))
    return weights, tuple(donors), np.array(errors)


def _without_own_rows(
    Z: np.ndarray, gaussian: Gaussian, encoding: Encoding, rng: np.random.RandomState
) -> Conditionals:
    """Return what is expected of each entry, of observed ones by Gaussians without their rows."""
    found = conditionals(Z, gaussian, encoding.blocks)
    n, q = Z.shape
    if n > ROWS_PER_COLUMN * q or n < 4 * N_PARTS:
        return found
    parts = rng.permutation(n) % N_PARTS
    for part in range(N_PARTS):
        own = parts == part
        others = Z[~own]
        if np.isnan(others).all(axis=0).any():
            continue
        alone = fit_gaussian(others, start=gaussian, max_iter=_part_steps(len(Z)))
        again = conditionals(Z[own], alone, encoding.blocks)
        seen = found.observed[own]
        found.expected[own] = np.where(seen, again.expected, found.expected[own])
        found.variances[own] = np.where(seen, again.variances, found.variances[own])
    return found


def _fit_components(
    Z: np.ndarray,
    n_rows: int,
    pooled: Gaussian,
    single: Conditionals,
    encoding: Encoding,
    rng: np.random.RandomState,
) -> tuple[Components | None, np.ndarray | None]:
    """Learn several Gaussians where there are rows for them, and where they predict as well.

    Returns them, and mean and variance of every entry by Gaussians without its row.
    """
    n, q = Z.shape
    number = n_components(n_rows)
    if number < 2 or q > MOST_SEVERAL:
        return None, None
    parts = rng.permutation(n) % N_SEVERAL_PARTS
    moments = np.empty((2, n, q))
    for part in range(N_SEVERAL_PARTS):
        own = parts == part
        others = Z[~own][:n_rows]
        if np.isnan(others).all(axis=0).any():
            return None, None
        start = fit_gaussian(others, start=pooled, max_iter=_part_steps(len(Z)))
        alone = fit_components(others, start, number, rng)
        moments[:, own] = alone.expect(Z[own], encoding)
    several, one = (
        float(np.sum(np.where(single.observed, Z - mean, 0.0) ** 2))
        for mean in (moments[0], single.expected)
    )
    if several > NOT_MUCH_WORSE * one:
        return None, None
    return fit_components(Z[:n_rows], pooled, number, rng), moments


def _part_steps(n_rows: int) -> int:
    return SMALL_PART_STEPS if n_rows <= SMALL_TABLE else PART_STEPS


def _relative_error(stacked: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    left = float(np.mean(np.sum((stacked - truth) ** 2, axis=1)))
    whole = float(np.mean(np.sum((truth - centre) ** 2, axis=1)))
    return float(np.sqrt(left / whole)) if whole > 0 else 0.0


def stack_weights(
    members: list[np.ndarray], targets: list[np.ndarray], centres: list[np.ndarray]
) -> np.ndarray:
    """Return the weights of the members for every column, by least squares.

    What is left to 1 is the weight of the mean of the column, or of its frequencies.

    Parameters
    ----------
    members : list of arrays of shape (n_j, n_outputs_j, n_members), one per column
        Predictions of observed entries that have not seen them.
    targets : list of arrays of shape (n_j, n_outputs_j)
    centres : list of arrays of shape (n_outputs_j,)
        Prediction without any member.
    """
    grams, sides = [], []
    for found, truth, centre in zip(members, targets, centres, strict=True):
        n_members = found.shape[2]
        away = (found - centre[:, None]).reshape(-1, n_members)
        # A column counts by its own variance, whatever the number of its levels.
        unit = float(np.mean(np.sum((truth - centre) ** 2, axis=1))) or 1.0
        grams.append(away.T @ away / unit)
        sides.append(away.T @ (truth - centre).ravel() / unit)
    n_members = members[0].shape[2]
    common = simplex_weights(sum(grams), sum(sides), np.zeros(n_members), COMMON_RIDGE)
    weights = np.array(
        [simplex_weights(*one, common, RIDGE) for one in zip(grams, sides, strict=True)]
    )
    gains = [_gains(*one) for one in zip(members, targets, centres, weights, strict=True)]
    return weights * _certainty(np.concatenate(gains))


def _gains(
    found: np.ndarray, truth: np.ndarray, centre: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return by how much the squared error of each entry is below that of the centre."""
    stacked = centre + (found - centre[:, None]) @ weights
    whole, left = (np.sum((truth - one) ** 2, axis=1) for one in (centre, stacked))
    # A few entries far out would decide alone whether a gain is chance.
    most = FAR_OUT**2 * float(whole.mean()) or 1.0
    return np.asarray(np.minimum(whole, most) - np.minimum(left, most)) / most


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
