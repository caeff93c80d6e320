"""Read what users pass as a table: numbers for the models, and where entries are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data

from polyspan.base.checks import first_ten, refuse_lazy
from polyspan.base.inputs import as_dispatched, naming_columns, plain_numbers
from polyspan.base.private_sklearn import get_mask, is_pandas_na, is_scalar_nan
from polyspan.tables.columns import Entries, columns_of
from polyspan.tables.features import TIMES, TYPES, Feature, feature_of
from polyspan.tables.frames import in_zones_of_fit, is_frame


@dataclass(frozen=True)
class Table:
    """A table as numbers."""

    features: tuple[Feature, ...]
    missing: np.ndarray
    """Boolean, (n_samples, n_features): entries to be filled."""
    numbers: np.ndarray
    """(n_samples, n_used): columns that are used; levels as 0, 1, …. NaN where missing, and for
    levels that were not seen in `fit`."""
    array: np.ndarray | None
    """X itself, with NaN where missing; None for a frame."""

    @property
    def used(self) -> list[int]:
        """Positions of the columns that are used."""
        return [j for j, one in enumerate(self.features) if one.is_used]

    @property
    def has_holes(self) -> bool:
        """Whether entries of used columns are missing."""
        return bool(self.missing[:, self.used].any())

    def fills(self, numbers: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return rows and new numbers of the missing entries of every column."""
        where = self.missing & [one.kind != "skip" for one in self.features]
        rows = [np.flatnonzero(column) for column in where.T]
        values = [np.zeros(len(one)) for one in rows]
        for place, j in enumerate(self.used):
            values[j] = numbers[rows[j], place]
        return rows, values


def takes_nan(marker: Any) -> bool:
    """Tell whether NaN, None and NA mark missing entries."""
    return marker is None or is_pandas_na(marker) or is_scalar_nan(marker)


def read_table(model: Any, X: Any, *, reset: bool) -> Table:
    """Check X and return it as numbers; with `reset`, find out what its columns are."""
    if not reset:
        check_is_fitted(model)
    refuse_lazy(model, X)
    if hasattr(X, "collect_schema") and not is_frame(X):
        raise ValueError(
            f"{type(model).__name__} needs the table in memory, and X is lazy: pass X.collect()"
        )
    if hasattr(X, "to_frame") and len(getattr(X, "shape", ())) == 1:
        raise ValueError(
            f"{type(model).__name__} needs a table, and X is one column: pass X.to_frame()"
        )
    X = as_dispatched(X, numpy_only=type(model).__name__)
    array = None if is_frame(X) else _checked_array(model, X, reset)
    if array is None:
        entries = _entries_of_frame(model, X, reset)
    else:
        entries = [
            Entries(j, np.isnan(column), column[~np.isnan(column)].astype(np.float64))
            for j, column in enumerate(array.T)
        ]
    if reset:
        wanted = wanted_types(model.feature_types, [one.name for one in entries])
        features = tuple(map(feature_of if array is None else _plain_number, entries, wanted))
    else:
        features = model._features
    pairs = zip(features, entries, strict=True)
    columns = [feature.numbers(column) for feature, column in pairs if feature.is_used]
    missing = np.stack([one.missing for one in entries], axis=1)
    numbers = np.stack(columns, axis=1) if columns else np.empty((len(missing), 0))
    return Table(features, missing, numbers, array)


def _check_array_after_frame(features: tuple[Feature, ...]) -> None:
    for one in features:
        numbers = all(isinstance(level, int | float) for level in one.levels)
        if one.kind in TIMES or not numbers:
            before = f"{one.kind}s" if one.kind in TIMES else repr(one.levels[0])
            raise ValueError(
                f"column {one.name!r} held {before} in fit, and X is an array, which is read as "
                "numbers: give a frame with the columns of fit"
            )


def _plain_number(entries: Entries, wanted: str | None) -> Feature:
    """Say what a column of an array is: a number if not told, as in all of scikit-learn."""
    if wanted is not None:
        return feature_of(entries, wanted)
    if not len(entries.observed):
        return Feature(entries.name, "empty")
    if (entries.observed == entries.observed[0]).all():
        return Feature(entries.name, "constant", levels=(entries.observed[0].item(),))
    return Feature(entries.name, "number")


def _entries_of_frame(model: Any, X: Any, reset: bool) -> list[Entries]:
    """Check a frame, and return its columns."""
    twice = [repr(name) for name, count in Counter(X.columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"columns of X have the same name: {first_ten(twice)}; rename or drop all but one"
        )
    validate_data(model, X, reset=reset, skip_check_array=True)
    if X.shape[0] < 1 or X.shape[1] < 1:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape="
            f"{tuple(X.shape)}) while a minimum of 1 is required by {type(model).__name__}."
        )
    read = X if reset else in_zones_of_fit(X, model._features)
    return [_marked(one, model.missing_values) for one in columns_of(read)]


def _marked(entries: Entries, marker: Any) -> Entries:
    """Return a column in which another mark than NaN says what is missing."""
    if takes_nan(marker):
        return entries
    if entries.missing.any():
        raise ValueError(
            f"column {entries.name!r} contains NaN, and missing_values={marker!r}: replace one by "
            "the other"
        )
    same = [value == marker for value in entries.values()]  # of an array in a cell an array
    marked = np.array([isinstance(one, bool | np.bool_) and bool(one) for one in same], dtype=bool)
    return replace(entries, missing=marked, observed=entries.observed[~marked])


def _checked_array(model: Any, X: Any, reset: bool) -> np.ndarray:
    """Check an array, and return it with NaN where entries are missing."""
    if not reset:
        _check_array_after_frame(model._features)
    lenient = takes_nan(model.missing_values)
    if isinstance(X, np.ma.MaskedArray) and not lenient:
        X = X.filled(model.missing_values)
    X = plain_numbers(X, instead="; or give a frame, whose columns may be dates and durations")
    X = _nan_for_none(X) if lenient else X
    with naming_columns(X, instead="; or give a frame, whose columns may hold text"):
        array = check_array(
            X,
            dtype=FLOAT_DTYPES,
            ensure_all_finite="allow-nan" if lenient else True,
            input_name="X",
            estimator=model,
        )
    validate_data(model, X, reset=reset, skip_check_array=True)
    if not lenient:  # otherwise None and pandas' NA are NaN already
        array = np.where(get_mask(array, model.missing_values), array.dtype.type(np.nan), array)
    return np.asarray(array)


def _nan_for_none(X: Any) -> Any:
    """Replace None and pandas' NA, which a table of mixed types holds as objects, by NaN."""
    if not isinstance(X, list | tuple) and getattr(X, "dtype", None) != np.dtype(object):
        return X
    table = np.array(X, dtype=object)
    empty = np.frompyfunc(lambda entry: entry is None or is_pandas_na(entry), 1, 1)(table)
    return np.where(np.asarray(empty, dtype=bool), np.nan, table)


def wanted_types(feature_types: Any, names: Sequence[Any]) -> list[str | None]:
    """Return what `feature_types` says of every column; None where the values decide.

    Parameters
    ----------
    feature_types : "auto", mapping from names or positions to types, or list of types
    """
    wanted: list[str | None] = [None] * len(names)
    if isinstance(feature_types, str):  # "auto"
        return wanted
    if isinstance(feature_types, Mapping):
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
