"""Tables of what `imputation_table.py` has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

#: Table, fraction, seed and method, with what was measured.
Fits = Mapping[tuple[str, float, int, str], dict[str, Any]]
Cell = tuple[str, float, int]
NEAR = 1.02
"""A method is near the best one where its error is at most this times that of the best."""


def summary(fits: Fits, methods: Sequence[str]) -> str:
    """Return all tables in Markdown, of the masks that all methods have been given."""
    found = {key[3] for key in fits}
    methods = [name for name in methods if name in found]
    every = list(dict.fromkeys(key[:3] for key in fits))
    cells = [cell for cell in every if all((*cell, name) in fits for name in methods)]
    lines = [f"{len(cells)} masks of {len(every)} have been given to all methods."]
    for measure in ("rmse", "accuracy"):
        if any(measure in record for record in fits.values()):
            values = _values(fits, cells, methods, measure)
            lines += ["", *_means(values, cells, methods, measure)]
            lines += [
                "",
                *_compared(values, cells, methods, measure, _seconds(fits, cells, methods)),
            ]
    lines += ["", *_remarks(fits, cells, methods)]
    return "\n".join(lines)


def _values(fits: Fits, cells: list[Cell], methods: Sequence[str], measure: str) -> np.ndarray:
    """Return the errors, of shape (cells, methods), NaN where a method failed."""
    return np.array(
        [[fits[*cell, name].get(measure, np.nan) for name in methods] for cell in cells]
    ).reshape(len(cells), len(methods))


def _seconds(fits: Fits, cells: list[Cell], methods: Sequence[str]) -> np.ndarray:
    return np.nansum(_values(fits, cells, methods, "CPU s"), axis=0)


def _row(*entries: Any) -> str:
    return "| " + " | ".join(str(entry) for entry in entries) + " |"


def _means(
    values: np.ndarray, cells: list[Cell], methods: Sequence[str], measure: str
) -> list[str]:
    """Return one line for each table, with the means at each fraction."""
    fractions = sorted({fraction for _, fraction, _ in cells})
    head = " / ".join(f"{fraction:.0%}" for fraction in fractions)
    lines = [_row(f"{measure}, {head} hidden", *methods), "|---" * (len(methods) + 1) + "|"]
    for table in dict.fromkeys(cell[0] for cell in cells):
        parts = []
        for fraction in fractions:
            rows = [i for i, cell in enumerate(cells) if cell[:2] == (table, fraction)]
            parts.append(values[rows].mean(axis=0) if rows else np.full(len(methods), np.nan))
        shown = [" / ".join(f"{part[m]:.3f}" for part in parts) for m in range(len(methods))]
        lines.append(_row(table, *shown))
    return lines


def _compared(
    values: np.ndarray,
    cells: list[Cell],
    methods: Sequence[str],
    measure: str,
    seconds: np.ndarray,
) -> list[str]:
    """Return one line for each method: ranks, first places, nearness to the best, time."""
    more_is_better = measure == "accuracy"
    worst = -np.inf if more_is_better else np.inf
    values = np.where(np.isnan(values), worst, values)
    ranks = np.apply_along_axis(rankdata, 1, -values if more_is_better else values)
    tables = list(dict.fromkeys(cell[0] for cell in cells))
    means = np.array(
        [values[[i for i, c in enumerate(cells) if c[0] == t]].mean(axis=0) for t in tables]
    )
    if more_is_better:
        near = means >= means.max(axis=1, keepdims=True) / NEAR
    else:
        near = means <= means.min(axis=1, keepdims=True) * NEAR
    first = (ranks == ranks.min(axis=1, keepdims=True)).sum(axis=0)
    to_mean = ["–"] * len(methods)
    if "mean" in methods:
        ratios = values / values[:, [list(methods).index("mean")]]
        extreme = ratios.min(axis=0) if more_is_better else ratios.max(axis=0)
        to_mean = [f"{ratio:.2f}" for ratio in extreme]
    time = ["–"] * len(methods)
    if "trees" in methods:
        time = [f"{s / seconds[list(methods).index('trees')]:.2f}" for s in seconds]
    names = ("mean rank", f"first of {len(cells)} masks", f"within 2 % on {len(tables)} tables")
    lines = [_row(measure, *names, "worst ratio to the mean", "CPU over trees'"), "|---" * 6 + "|"]
    for m, name in enumerate(methods):
        lines.append(
            _row(name, f"{ranks[:, m].mean():.2f}", first[m], near[:, m].sum(), to_mean[m], time[m])
        )
    return lines


def _remarks(fits: Fits, cells: list[Cell], methods: Sequence[str]) -> list[str]:
    """Say which methods failed, and which got codes instead of categories."""
    lines = []
    for name in methods:
        records = [fits[*cell, name] for cell in cells]
        failed = [record["failed"] for record in records if "failed" in record]
        noted = sum("note" in record for record in records)
        if failed:
            lines.append(f"{name} failed {len(failed)} times, first: {failed[0]}")
        if noted:
            lines.append(f"{name} refused the table and got codes {noted} times")
    return lines
