"""Warnings of what an imputer leaves out: columns that it drops, entries that stay missing."""

from __future__ import annotations

from typing import Any

from polyspan.checks import first_ten, warn_user
from polyspan.tables.features import AS_ASKED, Feature
from polyspan.tables.frames import columns_of_frame, holds_numbers, is_frame
from polyspan.tables.reading import Table


def warn_about_empty(features: tuple[Feature, ...]) -> None:
    """Warn of columns without any entry, which `transform` drops."""
    empty = [repr(one.name) for one in features if one.kind == "empty"]
    if empty:
        warn_user(
            f"columns without any observed entry are dropped: {first_ten(empty)}, {len(empty)} of "
            f"{len(features)}; keep_empty_features=True keeps them"
        )


def warn_about_entries(X: Any, table: Table, *, keep_empty: bool) -> None:
    """Warn of entries that `transform` leaves missing, and of observed ones that it drops."""
    left, dropped, total = [], [], 0
    for j, one in enumerate(table.features):
        missing = int(table.missing[:, j].sum())
        observed = len(table.missing) - missing
        if one.kind == "empty" and not keep_empty:
            dropped += [f"{one.name!r} ({observed})"] if observed else []
        elif missing and _stays_missing(X, j, one):
            left.append(f"{missing} in {one.name!r} ({one.reason or 'no entry in fit'})")
            total += missing
    if left:
        warn_user(
            f"{total} entries stay missing: {first_ten(left)}; say in feature_types what these "
            "columns are, or fill or drop them yourself"
        )
    if dropped:
        warn_user(
            "columns that had no entry in fit are dropped, and have entries now: "
            f"{first_ten(dropped)}; fit again, or set keep_empty_features=True"
        )


def _stays_missing(X: Any, j: int, feature: Feature) -> bool:
    """Tell whether nothing is filled into a column, without the user having said so."""
    if feature.kind == "empty":
        return is_frame(X) and not holds_numbers(columns_of_frame(X)[j])
    return feature.kind == "skip" and feature.reason != AS_ASKED
