"""What was filled, column by column, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.checks import first_ten
from polyspan.cli.errors import counted, report, say
from polyspan.cli.formats import FRAMES, ending_of
from polyspan.cli.tables import Table
from polyspan.tables import SubspaceImputer
from polyspan.tables.features import DISCRETE, Feature
from polyspan.tables.imputer import NOT_BETTER

#: Columns that are listed; of more, only those with missing cells and those passed through.
MOST_LINES = 40


def report_columns(
    model: SubspaceImputer,
    names: Sequence[str],
    missing: np.ndarray,
    done: np.ndarray | None = None,
    reasons: Mapping[Any, str] | None = None,
) -> None:
    """Print a line for every column: what it was taken for, what was filled, and how well.

    Parameters
    ----------
    model : SubspaceImputer
        Fitted.
    names : sequence of str
        Of the columns in the file.
    missing, done : boolean array of shape (n_samples, n_features)
        Missing entries, and those that were filled; None where nothing was to be filled yet.
    reasons : mapping
        Why the command passes columns through, by the names that the model knows.
    """
    lines = []
    for j, (name, feature) in enumerate(zip(names, model._features, strict=True)):
        n_missing = int(missing[:, j].sum())
        if done is None or not n_missing:
            filled = f"{n_missing} missing" if n_missing else "complete"
        else:
            filled = f"{int(done[:, j].sum())} of {n_missing} filled"
        why = (reasons or {}).get(feature.name, feature.reason)
        kind = _taken_for(feature, why)
        how = quality(model, feature) if feature.is_used else ""
        lines.append((name, kind, filled, how, bool(n_missing) or not feature.is_used))
    shown = lines if len(lines) <= MOST_LINES else [line for line in lines if line[-1]]
    rows = [line[:-1] for line in shown[:MOST_LINES]]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)]
        report("  ".join(cells).rstrip())
    if len(rows) < len(lines):
        complete = "" if len(shown) > MOST_LINES else ", all complete"
        report(f"and {counted(len(lines) - len(rows), 'more column')}{complete}")


def quality(model: SubspaceImputer, feature: Feature) -> str:
    """Say how well observed entries of a column were predicted as if they were missing."""
    error = model.column_errors_.get(feature.name, float("nan"))
    base = "frequencies" if feature.kind in DISCRETE else "mean"
    if not np.isfinite(error):
        return "error not measured"
    if error >= NOT_BETTER:
        return f"no better than the {base}"
    whose = "frequencies'" if base == "frequencies" else "mean's"
    return f"error {max(error, 0.01):.2f} of the {whose}".replace(" 0.", " .")


def _taken_for(feature: Feature, why: str) -> str:
    """Say what a column was taken for."""
    if feature.kind == "skip":
        return f"passed through ({why})".replace("feature_types says", "asked")
    if feature.kind == "constant":
        return "one value"
    if feature.kind == "empty":
        return "without any entry"
    if feature.kind == "category" and feature.levels:
        return f"category of {len(feature.levels)}"
    return "ordered category" if feature.kind == "ordered" else feature.kind


def tell_filled(
    table: Table,
    names: Sequence[str],
    missing: np.ndarray,
    done: np.ndarray,
    output: Path,
    quiet: bool,
    *,
    listed: bool = True,
    reasons: Sequence[str] = (),
) -> None:
    """Say how many cells were filled, and which cells of the output stay empty.

    Parameters
    ----------
    listed : bool
        Whether to name the columns that were filled.
    reasons : sequence of str
        Why columns are passed through; empty where they are not.
    """
    counts = (missing & done).sum(axis=0)
    if not counts.any():
        say("note", f"{table.path} has nothing to fill: {output} is a copy")
    elif not quiet:
        which = [f"{name} {n}" for name, n in zip(names, counts, strict=True) if n]
        report(
            f"{counts.sum()} of {counted(int(missing.sum()), 'missing cell')} filled in "
            f"{counted(len(which), 'column')}{f': {first_ten(which)}' if listed else ''}"
        )
    left = missing.sum(axis=0) - counts
    never = np.asarray(missing.all(axis=0))
    empty = []
    for k, (name, n) in enumerate(zip(names, left, strict=True)):
        why = "without any entry" if never[k] else (reasons[k] if reasons else "")
        empty += [(int(n), f"{name} {n} ({why or 'could not be filled'})")] if n else []
    if table.frame is not None and ending_of(output) in FRAMES:
        empty += _empty_elsewhere(table)
    if empty:
        total, which = sum(n for n, _ in empty), [text for _, text in empty]
        stay = "stays" if total == 1 else "stay"
        say("note", f"{counted(total, 'cell')} of {output} {stay} empty: {first_ten(which)}")


def _empty_elsewhere(table: Table) -> list[tuple[int, str]]:
    """Return the empty cells of columns that are carried over: how many, and in words."""
    found = []
    for k in sorted(set(range(table.frame.shape[1])) - set(table.used)):
        n = int(table.frame.iloc[:, k].isna().sum())
        found += [(n, f"{table.frame.columns[k]} {n} (left out)")] if n else []
    return found
