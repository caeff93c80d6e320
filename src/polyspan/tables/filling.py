"""Which model fills a table: whole covariances and trees, or subspaces of low dimension."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from polyspan.tables.encoding import Encoding, normalised
from polyspan.tables.forests import N_TREES
from polyspan.tables.learning import Learner
from polyspan.tables.mixture_fill import Fill
from polyspan.tables.mixture_sizes import choose_fill, sizes_to_try
from polyspan.tables.model import Predicted, TableModel, drawn_levels
from polyspan.tables.reading import Table

#: Smaller tables are left to the subspaces.
LEAST_ROWS = 20
#: Most rows that are learned from: with trees, and without, where more would change little.
MOST_ROWS, MOST_PLAIN_ROWS = 20_000, 5_000
#: Bound on rows times columns³ for whole covariances.
DENSE_WORK = 2e8
#: Up to so many columns whole covariances are always affordable.
FEW_COLUMNS = 30
#: Bound on the work of trees, about 45 seconds, and rows that they need at least.
TREE_WORK, LEAST_TREE_ROWS = 4e9, 500
#: From so many rows on it is tried whether trees help; with fewer, chance gains are often as large
#: as `LEAST_GAIN`.
LEAST_TRIED_ROWS = 1000


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
        filled, spread = self.fill.predict(self.encoding.raw(table))
        out = []
        for j, column in enumerate(self.encoding.columns):
            rows = np.flatnonzero(np.isnan(table[:, j]))
            if not column.n_levels:
                one = column.start
                out.append(Predicted(rows, filled[rows, one], spread[rows, one]))
                continue
            scale = self.encoding.scaling.scale[column.block]
            standardised = self.encoding.scaled(j, filled[rows, column.block])
            variance = np.maximum(spread[rows, column.block] / scale, 1e-3) ** 2
            found = self.encoding.from_standardised(j, standardised, variance)
            out.append(Predicted(rows, normalised(found), np.full(len(rows), np.nan)))
        return out

    def draw(self, table: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return the table with missing entries drawn, those of a row together."""
        out = table.copy()
        scaling = self.encoding.scaling
        scores = self.fill.draw_scores(self.encoding.raw(table), rng)
        for j, found in enumerate(self.predict(table)):
            column = self.encoding.columns[j]
            one = column.start
            noise = scores[found.rows, one]
            if column.n_levels:
                out[found.rows, j] = drawn_levels(found.values, ndtr(noise))
            else:
                drawn = found.values + found.spread * noise
                out[found.rows, j] = np.clip(drawn, scaling.least[one], scaling.most[one])
        return out


def fit_model(
    options: Any, given: Table, rng: np.random.RandomState, tick: Callable[[], None]
) -> TableModel | SubspaceModel:
    """Learn from a table what fills it; `options` are those of a `SubspaceImputer`."""
    table, used = given.numbers, [given.features[j] for j in given.used]
    n_levels, ordered = [len(one.levels) for one in used], [one.kind == "ordered" for one in used]
    encoding = Encoding.of(table, n_levels, ordered)
    usable = np.flatnonzero(~np.isnan(table).all(axis=1))
    n, q = len(usable), encoding.columns[-1].stop
    n_subspaces, dim = options.n_subspaces, options.subspace_dim
    small = n < LEAST_ROWS or q < 2
    wide = q > FEW_COLUMNS and min(n, MOST_ROWS) * q**3 > DENSE_WORK
    if n_subspaces != "auto" or dim != "auto" or small or wide:
        sizes = sizes_to_try(len(table), q, n_subspaces, dim)
        fill = choose_fill(encoding.scaling, encoding.raw(table), sizes, options.n_fits, rng)
        return SubspaceModel(encoding, fill, np.full(len(encoding.columns), fill.error))
    tree_rows = affordable_tree_rows(min(n, MOST_ROWS), q, len(encoding.columns))
    trees = options.method == "auto" and tree_rows >= min(n, LEAST_TREE_ROWS)
    # Rows in a random order, so that the first of them are a sample.
    order = rng.permutation(usable)

    def learner(n_rows: int) -> Learner:
        return Learner(table[_with_all_columns(table, order, n_rows)], encoding, copy.deepcopy(rng))

    plain_rows = min(n, MOST_PLAIN_ROWS)
    tried = trees and n >= LEAST_TRIED_ROWS
    found = learner(plain_rows if tried or not trees else tree_rows)
    if tried:
        trees = found.trees_gain()
        if trees and tree_rows != plain_rows:
            found = learner(tree_rows)
    return found.fit(trees=trees, tick=tick)


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
