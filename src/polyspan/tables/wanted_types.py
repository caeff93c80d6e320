"""What the argument `feature_types` says of the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from polyspan.tables.features import TYPES


def wanted_types(feature_types: Any, names: Sequence[Any]) -> list[str | None]:
    """Return what `feature_types` says of every column; None where the values decide.

    Parameters
    ----------
    feature_types : "auto", mapping from names or positions to types, or list of types
    """
    if isinstance(feature_types, str) and feature_types == "auto":
        return [None] * len(names)
    if isinstance(feature_types, Mapping):
        wanted: list[str | None] = [None] * len(names)
        places = {name: j for j, name in enumerate(names)}
        for key, kind in feature_types.items():
            j = _place(key, places)
            if not 0 <= j < len(names):
                raise ValueError(
                    f"feature_types names column {key!r}, which X does not have: its columns are "
                    f"{', '.join(map(repr, list(names)[:10]))}"
                )
            wanted[j] = kind
    else:
        wanted = list(feature_types)
        if len(wanted) != len(names):
            raise ValueError(
                f"feature_types has {len(wanted)} entries and X {len(names)} columns: give one for "
                "each, or a dict for some"
            )
    for name, kind in zip(names, wanted, strict=True):
        if kind not in (None, "auto", *TYPES):
            raise ValueError(
                f"feature_types says {kind!r} of column {name!r}: need one of {', '.join(TYPES)} "
                "or auto"
            )
    return [None if kind == "auto" else kind for kind in wanted]


def _place(key: Any, places: Mapping[Any, int]) -> int:
    """Return the position of a column by its name, or its position; -1 where there is none."""
    is_truth = isinstance(key, bool | np.bool_)
    if is_truth and not any(isinstance(name, bool) for name in places):
        return -1  # True is equal to 1, and no name of column 1
    return places.get(key, int(key) if isinstance(key, Integral) else -1)
