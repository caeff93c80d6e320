"""What is missing in a table: how much, in which patterns, and whether by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan._optional import import_optional
from polyspan.tables.association import (
    Dependence,
    Together,
    missing_together,
    strongest_dependences,
)
from polyspan.tables.column_values import Values, columns_of, values_of
from polyspan.tables.missing_report import report

#: So many patterns and pairs are kept, the most frequent and the most correlated ones.
MOST_PATTERNS, MOST_PAIRS = 10, 20
#: Of more rows so many are drawn to look for columns whose values differ.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class ColumnSummary:
    """One column of a table."""

    name: Any
    kind: str
    """"number", "integer" (whole numbers of any type), "boolean", "category", "ordered category",
    "text", "date", "duration", "other" (objects of other or several types) or "empty"."""
    n_missing: int
    fraction_missing: float
    n_distinct: int
    """Number of distinct observed values."""


@dataclass(frozen=True)
class Pattern:
    """Columns that are missing in the same rows while all others are observed."""

    columns: tuple[Any, ...]
    """Empty for complete rows."""
    n_rows: int


@dataclass(frozen=True, repr=False)
class MissingSummary:
    """The result of `missing_summary`. It prints as a short report."""

    n_rows: int
    n_columns: int
    columns: tuple[ColumnSummary, ...]
    """In the order of the table."""
    n_complete_rows: int
    n_patterns: int
    """Number of distinct patterns, with that of complete rows."""
    patterns: tuple[Pattern, ...]
    """The most frequent ones, at most 10."""
    together: tuple[Together, ...]
    """Pairs of columns that are missing together, the most correlated first, at most 20."""
    dependences: tuple[Dependence, ...]
    """Columns that are missing more often for some values of another column."""

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return sum(column.n_missing for column in self.columns)

    @property
    def fraction_missing(self) -> float:
        """Fraction of all entries that are missing."""
        return self.n_missing / max(self.n_rows * self.n_columns, 1)

    @property
    def empty(self) -> tuple[Any, ...]:
        """Names of columns without any observed entry."""
        return tuple(column.name for column in self.columns if column.n_distinct == 0)

    @property
    def constant(self) -> tuple[Any, ...]:
        """Names of columns whose observed entries are all the same."""
        return tuple(column.name for column in self.columns if column.n_distinct == 1)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per column of the table."""
        pd = import_optional("pandas", "to_frame")
        found = {dependence.column: dependence for dependence in self.dependences}
        rows = [(found.get(column.name), column) for column in self.columns]
        return pd.DataFrame(
            {
                "kind": [column.kind for column in self.columns],
                "n_missing": [column.n_missing for column in self.columns],
                "fraction_missing": [column.fraction_missing for column in self.columns],
                "n_distinct": [column.n_distinct for column in self.columns],
                "differs_in": [d.other if d else None for d, _ in rows],
                "measure": [d.measure if d else None for d, _ in rows],
                "difference": [d.value if d else np.nan for d, _ in rows],
            },
            index=pd.Index([column.name for column in self.columns], name="column"),
        )

    def __str__(self) -> str:
        return report(self)

    def __repr__(self) -> str:
        return (
            f"MissingSummary(n_rows={self.n_rows}, n_columns={self.n_columns}, "
            f"n_missing={self.n_missing}, n_complete_rows={self.n_complete_rows})"
        )


def missing_summary(X: Any) -> MissingSummary:
    """Say what is missing in a table: how much, in which patterns, and whether by chance.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns), or pandas or Polars frame
        Columns of any type. NaN, None, NA and NaT are missing.

    Returns
    -------
    MissingSummary
        The summary: `print` it for a report, or take `to_frame()`. It holds of each column its
        kind, its missing entries and its number of distinct values; complete rows; the most
        frequent `patterns`; `together`, columns that are missing in the same rows; `dependences`,
        columns that are missing more often for some values of another column, with a `hint` in
        words.

    Notes
    -----
    A column is compared with all others by the correlation of its missing entries with their
    values: the difference of their means for numbers, Cramér's V for categories. What is kept is
    beyond chance (p-value below .01 over the number of comparisons) and not tiny (0.2 standard
    deviations, or V = 0.1). Whether the missing values themselves decide what is missing cannot be
    seen in a table. The 200 columns with most missing entries are compared, on 20 000 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import missing_summary
    >>> summary = missing_summary([[1.0, "a"], [np.nan, "b"], [3.5, None], [np.nan, "b"]])
    >>> [(column.kind, column.n_missing) for column in summary.columns]
    [('number', 2), ('text', 1)]
    >>> print(summary)
    4 rows and 2 columns: 3 of 8 entries (37.5 %) are missing; 1 row is complete.
    <BLANKLINE>
    Columns with missing entries:
      column  kind    missing  fraction  distinct values
      0       number        2    50.0 %                2
      1       text          1    25.0 %                2
    <BLANKLINE>
    Rows by what is missing:
      2  0
      1  nothing
      1  1
    """
    table = columns_of(X, "missing_summary")
    n = len(X)
    rows = np.arange(n)
    if n > MOST_ROWS:
        rows = np.sort(np.random.RandomState(0).choice(n, MOST_ROWS, replace=False))
    columns: list[ColumnSummary] = []
    masks, numbers = [np.empty((n, 0), dtype=bool)], [np.empty((len(rows), 0))]
    for column in table:
        found = values_of(column)
        columns.append(_column(column.name, column.missing, found))
        masks.append(column.missing[:, None])
        numbers.append(_in_rows(found, column.missing, rows)[:, None])
    missing, values = np.hstack(masks), np.hstack(numbers)
    names, kinds = [column.name for column in columns], [column.kind for column in columns]
    patterns, n_patterns = _patterns(missing, names)
    return MissingSummary(
        n, len(columns), tuple(columns), int((~missing.any(axis=1)).sum()), n_patterns, patterns,
        tuple(missing_together(missing, names, MOST_PAIRS)),
        tuple(strongest_dependences(missing[rows], kinds, values, names)),
    )  # fmt: skip


def _column(name: Any, missing: np.ndarray, found: Values) -> ColumnSummary:
    lost = int(missing.sum())
    return ColumnSummary(name, found.kind, lost, lost / max(len(missing), 1), found.n_distinct)


def _in_rows(found: Values, missing: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a number for each of some rows, NaN where missing."""
    numbers = np.full(len(missing), np.nan)
    numbers[~missing] = found.numbers
    return np.asarray(numbers[rows])


def _patterns(missing: np.ndarray, names: list[Any]) -> tuple[tuple[Pattern, ...], int]:
    """Return the most frequent patterns, and the number of all."""
    if not missing.size:
        return (), 0
    packed = np.ascontiguousarray(np.packbits(missing, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:MOST_PATTERNS]
    found = tuple(
        Pattern(tuple(names[j] for j in np.flatnonzero(missing[first[k]])), int(counts[k]))
        for k in order
    )
    return found, len(counts)
