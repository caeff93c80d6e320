"""Which model fills a table: whole covariances and trees, or subspaces of low dimension."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from polyspan.tables.encoding import Encoding, normalised
from polyspan.tables.forests import N_TREES
from polyspan.tables.learning import fit_table, trees_gain
from polyspan.tables.mixture_fill import Fill
from polyspan.tables.mixture_sizes import choose_fill, sizes_to_try
from polyspan.tables.model import Predicted, TableModel, drawn_levels

#: Smaller tables are left to the subspaces.
LEAST_ROWS = 20
#: Most rows that are learned from: with trees, and without, where more would change little.
MOST_ROWS, MOST_PLAIN_ROWS = 20_000, 5_000
#: Bound on rows times columns³ for whole covariances, and on the same for the rows of EM.
DENSE_WORK, EM_WORK = 2e8, 1.5e7
#: Up to so many columns whole covariances are always affordable.
FEW_COLUMNS = 30
#: Bound on the work of trees, about 45 seconds, and rows that they need at least.
TREE_WORK, LEAST_TREE_ROWS = 4e9, 500
#: With twice as many rows it is tried on so many of them whether trees help.
TRIED_ROWS = 2000


@dataclass(frozen=True)
class SubspaceModel:
    """A table filled by subspaces of low dimension."""

    encoding: Encoding
    fill: Fill
    errors: np.ndarray
    """(n_columns,): of hidden entries; here the same for all columns."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number and dimension of subspaces."""
        return self.fill.sizes

    def predict(self, table: np.ndarray) -> list[Predicted]:
        """Return what is expected of the missing entries of every column."""
        raw = self.encoding.raw(table)
        filled, spread = self.fill.impute(raw), self.fill.standard_deviations(raw)
        out = []
        for j, column in enumerate(self.encoding.columns):
            rows = np.flatnonzero(np.isnan(table[:, j]))
            if not column.n_levels:
                one = column.start
                out.append(Predicted(rows, filled[rows, one], spread[rows, one]))
                continue
            scale = self.encoding.scaling.scale[column.block]
            mean = self.encoding.scaling.mean[column.block]
            standardised = (filled[rows, column.block] - mean) / scale
            variance = np.maximum(spread[rows, column.block] / scale, 1e-3) ** 2
            found = self.encoding.from_standardised(j, standardised, variance)
            out.append(Predicted(rows, normalised(found), np.full(len(rows), np.nan)))
        return out

    def draw(self, table: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the table with missing entries drawn, those of a row together."""
        out = table.copy()
        scaling = self.encoding.scaling
        scores = self.fill.draw_scores(self.encoding.raw(table), rng)
        for j, (found, column) in enumerate(
            zip(self.predict(table), self.encoding.columns, strict=True)
        ):
            one = column.start
            noise = scores[found.rows, one]
            if column.n_levels:
                out[found.rows, j] = drawn_levels(found.values, ndtr(noise))
            else:
                drawn = found.values + found.spread * noise
                out[found.rows, j] = np.clip(drawn, scaling.least[one], scaling.most[one])
        return out


def fit_model(
    table: np.ndarray,
    n_levels: Sequence[int],
    ordered: Sequence[bool],
    *,
    n_subspaces: int | str,
    subspace_dim: int | str,
    n_fits: int,
    method: str,
    rng: np.random.RandomState,
    tick: Callable[[], None],
) -> TableModel | SubspaceModel:
    """Learn from a table without constant columns what fills it.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_columns)
        float64, NaN where missing; levels of discrete columns are 0, 1, ….
    method : {"auto", "subspaces"}
        "subspaces": without trees.
    """
    encoding = Encoding.of(table, n_levels, ordered)
    usable = np.flatnonzero(~np.isnan(table).all(axis=1))
    n, q = len(usable), encoding.columns[-1].stop
    given = n_subspaces != "auto" or subspace_dim != "auto"
    small = n < LEAST_ROWS or q < 2
    if given or small or (q > FEW_COLUMNS and min(n, MOST_ROWS) * q**3 > DENSE_WORK):
        raw = encoding.raw(table)
        sizes = sizes_to_try(len(raw), q, n_subspaces, subspace_dim)
        fill = choose_fill(encoding.scaling, raw, sizes, n_fits, rng)
        return SubspaceModel(encoding, fill, np.full(len(encoding.columns), fill.error))
    tree_rows = affordable_tree_rows(min(n, MOST_ROWS), q, len(encoding.columns))
    trees = method == "auto" and tree_rows >= min(n, LEAST_TREE_ROWS)
    # Rows in a random order, so that the first of them are a sample.
    order = rng.permutation(usable)
    if trees and tree_rows >= 2 * TRIED_ROWS:
        tried = _with_all_columns(table, order, 2 * TRIED_ROWS)
        # A generator of its own: where trees help, they are those of a fit without the trial.
        own, most = copy.deepcopy(rng), _em_rows(TRIED_ROWS, q)
        trees = trees_gain(table[tried], TRIED_ROWS, encoding, own, em_rows=most)
    rows = tree_rows if trees else min(n, MOST_PLAIN_ROWS)
    chosen = _with_all_columns(table, order, rows)
    em_rows = _em_rows(len(chosen), q)
    return fit_table(table[chosen], encoding, rng, em_rows=em_rows, trees=trees, tick=tick)


def _em_rows(n_rows: int, n_encoded: int) -> int:
    return int(min(n_rows, max(n_encoded * 20, EM_WORK / n_encoded**3)))


def affordable_tree_rows(n_rows: int, n_encoded: int, n_columns: int) -> int:
    """Return how many of the rows trees can be learned from in the time they may take."""
    per_row = n_encoded * n_columns * N_TREES * np.log2(max(n_rows, 2))
    return int(min(n_rows, TREE_WORK / per_row))


def _with_all_columns(table: np.ndarray, order: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the first rows in this order, with two values of each column ahead of them."""
    ahead = set()
    for column in table[order].T:
        seen = np.flatnonzero(~np.isnan(column))
        others = seen[column[seen] != column[seen[0]]]
        ahead.update([seen[0], others[0]])
    first = np.array(sorted(ahead), dtype=int)
    rest = np.delete(np.arange(len(order)), first)
    return np.asarray(order[np.concatenate([first, rest])[: max(n_rows, len(first))]])
