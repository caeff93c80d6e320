"""How the entries that are missing hang together with each other, and with observed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc, chdtrc, stdtr

from polyspan.arrays import row_slices
from polyspan.tables.column_values import MEASURED

#: Relations as strong as those found are expected by chance in one table of so many.
CHANCE = 0.01
#: Columns are missing together from this correlation of their indicators on.
TOGETHER = 0.3
#: So many columns, those with most missing entries, are compared with others.
MOST_COLUMNS = 200
#: Both groups of rows that are compared, and a category, have at least so many rows.
LEAST_ROWS = 5
#: The most frequent categories are compared, the others together are one more.
MOST_CATEGORIES = 20
#: From which difference on a relation is worth a word: in standard deviations, and Cramér's V.
LEAST_DIFFERENCE, LEAST_CRAMER = 0.2, 0.1
_BLOCK = 256  # columns of numbers
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Together:
    """Two columns that are missing in the same rows more often than by chance."""

    first: Any
    second: Any
    correlation: float
    """Of the indicators of what is missing; 1 where they are always missing together."""
    n_rows: int
    """Number of rows in which both are missing."""


@dataclass(frozen=True)
class Dependence:
    """A column that is missing more often for some values of another one."""

    column: Any
    other: Any
    measure: str
    """"standardised difference" of the means of `other` in rows with a missing entry of `column`
    and in all others, in standard deviations; "Cramér's V" where `other` holds categories."""
    value: float
    p_value: float
    """By chance alone, before the number of comparisons is taken into account."""

    @property
    def hint(self) -> str:
        """What this means, in one sentence."""
        if self.measure == "Cramér's V":
            found = f"'{self.column}' is missing more often for some '{self.other}' than for others"
            size = f"Cramér's V {self.value:.2f}"
        else:
            side = "higher" if self.value > 0 else "lower"
            found = f"rows without '{self.column}' have {side} '{self.other}'"
            size = f"by {abs(self.value):.2f} standard deviations"
        return f"{found} ({size}): it may not be missing completely at random"


def missing_together(missing: np.ndarray, names: Sequence[Any], most: int) -> list[Together]:
    """Return pairs of columns that are missing together, the most correlated first.

    Parameters
    ----------
    missing : boolean array of shape (n_rows, n_columns)
    names : names of the columns
    most : int
        At most so many pairs.
    """
    n, counts = len(missing), missing.sum(axis=0)
    chosen = most_missing(counts, n, least=1)
    if len(chosen) < 2:
        return []
    both = np.zeros((len(chosen), len(chosen)))
    for rows in row_slices(n, _ROWS_AT_ONCE):
        marks = missing[rows, :][:, chosen].astype(np.float32)  # counts below 2^24 are exact
        both += marks.T @ marks
    share = counts[chosen] / n
    spread = np.sqrt(share * (1.0 - share))
    correlation = (both / n - np.outer(share, share)) / np.outer(spread, spread)
    i, j = np.triu_indices(len(chosen), k=1)
    strong = correlation[i, j] >= TOGETHER
    i, j = i[strong], j[strong]
    few, many = np.minimum(share[i], share[j]), np.maximum(share[i], share[j])
    # The binomial tail is above the exact, hypergeometric one.
    chance = bdtrc(both[i, j] - 1, np.rint(few * n).astype(np.int64), many)
    kept = chance * len(strong) < CHANCE
    i, j = i[kept], j[kept]
    order = np.lexsort((-both[i, j], -correlation[i, j].round(12)))[:most]
    return [
        Together(
            names[chosen[i[k]]], names[chosen[j[k]]], min(float(correlation[i[k], j[k]]), 1.0),
            int(both[i[k], j[k]]),
        )
        for k in order
    ]  # fmt: skip


def most_missing(counts: np.ndarray, n: int, least: int) -> np.ndarray:
    """Return the columns with most missing entries, of those with some missing and some not."""
    order = np.argsort(-counts, kind="stable")
    return order[(counts[order] >= least) & (counts[order] <= n - least)][:MOST_COLUMNS]


def strongest_dependences(
    missing: np.ndarray, kinds: Sequence[str], values: np.ndarray, names: Sequence[Any]
) -> list[Dependence]:
    """Return for each column the other one whose values differ most between two groups of rows.

    In one group the entry of the column is missing, in the other it is not. Columns without a
    difference beyond chance are left out.

    Parameters
    ----------
    missing : boolean array of shape (n_rows, n_columns)
    kinds : kinds of the columns
    values : array of shape (n_rows, n_columns)
        Numbers, or codes of categories; NaN where missing.
    names : names of the columns
    """
    chosen = most_missing(missing.sum(axis=0), len(missing), LEAST_ROWS)
    if not len(chosen):
        return []
    # A column is never compared with itself: its values in one of the groups are missing.
    marks = missing[:, chosen].T.astype(np.float64)
    p = missing.shape[1]
    # One correlation for all kinds of columns, to choose by; what is reported; its p-value.
    strength, reported, chance = (np.zeros((len(chosen), p)) for _ in range(3))
    chance += 1.0
    measured = np.array([kind in MEASURED for kind in kinds], dtype=bool)
    numbers = np.flatnonzero(measured)
    for start in range(0, len(numbers), _BLOCK):
        block = numbers[start : start + _BLOCK]
        found = _differences(marks, values[:, block])
        strength[:, block], reported[:, block], chance[:, block] = found
    for j in np.flatnonzero(~measured):
        strength[:, j], reported[:, j], chance[:, j] = _cramer(marks, values[:, j])
    least = np.where(measured, LEAST_DIFFERENCE, LEAST_CRAMER)
    unlikely = chance * chance.size < CHANCE
    strength = np.where(unlikely & (np.abs(reported) >= least), np.abs(strength), 0.0)
    best = strength.argmax(axis=1)
    return [
        Dependence(
            names[column], names[j], "standardised difference" if measured[j] else "Cramér's V",
            float(reported[k, j]), float(chance[k, j]),
        )
        for k, (column, j) in enumerate(zip(chosen, best, strict=True))
        if strength[k, j] > 0.0
    ]  # fmt: skip


def _differences(
    marks: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return correlations of marks with values, differences of means, and p-values.

    The difference is d = (mean of marked - mean of others) / s, with s of all observed values, and
    the correlation is d √(n₁ n₀) / n.
    """
    seen = np.isfinite(values)
    scaled = np.where(seen, values, 0.0)
    largest = np.abs(scaled).max(axis=0, initial=0.0)
    scaled /= np.where(largest > 0.0, largest, 1.0)  # squares of huge values would overflow
    n = seen.sum(axis=0)
    scaled = np.where(seen, scaled - scaled.sum(axis=0) / np.maximum(n, 1), 0.0)
    spread = np.sqrt((scaled * scaled).sum(axis=0) / np.maximum(n, 1))
    scaled /= np.where(spread > 1e-12, spread, np.inf)
    marked = marks @ seen
    others = n - marked
    enough = (marked >= LEAST_ROWS) & (others >= LEAST_ROWS)
    marked, others = np.where(enough, marked, 1.0), np.where(enough, others, 1.0)
    sums = marks @ scaled  # those of the others are the negative
    difference = np.where(enough, sums / marked + sums / others, 0.0)
    r = np.clip(difference * np.sqrt(marked * others) / np.maximum(n, 1), -1.0, 1.0)
    df = np.maximum(n - 2.0, 1.0)
    t = np.abs(r) * np.sqrt(df / np.maximum(1.0 - r * r, 1e-300))
    return r, difference, np.where(enough, 2.0 * stdtr(df, -t), 1.0)


def _cramer(marks: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Cramér's V of marks and one column, twice, and its p-value.

    V is corrected for its bias (Bergsma 2013): else many categories have a large V by chance.
    """
    nothing = np.zeros(len(marks)), np.zeros(len(marks)), np.ones(len(marks))
    seen = ~np.isnan(codes)
    codes = codes[seen].astype(np.int64)
    counts = np.bincount(codes)
    frequent = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    frequent = frequent[counts[frequent] >= LEAST_ROWS]
    place = np.full(len(counts), len(frequent))
    place[frequent] = np.arange(len(frequent))
    dummies = np.eye(len(frequent) + 1)[place[codes]]
    total = dummies.sum(axis=0)
    dummies, total = dummies[:, total >= LEAST_ROWS], total[total >= LEAST_ROWS]
    n, k = total.sum(), len(total)
    if k < 2:
        return nothing
    marked = marks[:, seen] @ dummies
    sizes = marked.sum(axis=1)
    enough = (sizes >= LEAST_ROWS) & (n - sizes >= LEAST_ROWS)
    share = np.where(enough, sizes / n, 0.5)[:, None]
    chi2 = ((marked - share * total) ** 2 / (share * (1.0 - share) * total)).sum(axis=1)
    chi2 = np.where(enough, chi2, 0.0)
    corrected = np.maximum(chi2 / n - (k - 1) / (n - 1), 0.0)
    v = np.sqrt(np.minimum(corrected / (1.0 - 1.0 / (n - 1)), 1.0))
    return v, v, np.where(enough, chdtrc(k - 1, chi2), 1.0)
