"""Read what users pass as a table: numbers for the models, and where entries are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import FLOAT_DTYPES, validate_data

from polyspan.base.checks import first_ten, refuse_lazy
from polyspan.base.inputs import as_dispatched, naming_columns, plain_numbers
from polyspan.base.private_sklearn import get_mask, is_pandas_na, is_scalar_nan
from polyspan.tables.column_values import Entries, columns_of
from polyspan.tables.features import DISCRETE, TYPES, Feature, feature_of
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
    def dtype(self) -> Any:
        """Type of the numbers of an array."""
        return np.float64 if self.array is None else self.array.dtype

    @property
    def unfilled(self) -> np.ndarray:
        """Missing entries of used columns."""
        return np.asarray(self.missing[:, self.used])

    def fills(self, numbers: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return rows and new values of the missing entries of every column.

        Values of discrete columns of an array are their levels.
        """
        rows = [np.flatnonzero(column) for column in self.missing.T]
        values = [np.zeros(len(one)) for one in rows]
        for place, j in enumerate(self.used):
            values[j] = numbers[rows[j], place]
        for j, one in enumerate(self.features):
            if one.kind == "skip":
                rows[j], values[j] = rows[j][:0], values[j][:0]
            elif self.array is not None and (one.kind in DISCRETE or one.kind == "constant"):
                levels = np.array(one.levels, dtype=np.float64)
                values[j] = levels[values[j].astype(int)]
            elif self.array is not None and one.kind != "empty":
                values[j] = np.array(one.objects(values[j]), dtype=np.float64)
        return rows, values


def takes_nan(marker: Any) -> bool:
    """Tell whether NaN, None and NA mark missing entries."""
    return marker is None or is_pandas_na(marker) or is_scalar_nan(marker)


def read_table(model: Any, X: Any, *, reset: bool) -> Table:
    """Check X and return it as numbers; with `reset`, find out what its columns are."""
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
    if is_frame(X):
        return _read_frame(model, X, reset)
    if not reset:
        _check_array_after_frame(model._features)
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X, model.missing_values)
    X = plain_numbers(X, instead="; or give a frame, whose columns may be dates and durations")
    array = _checked_array(model, X, reset)
    missing = np.isnan(array)
    names = list(range(array.shape[1]))
    entries = [
        Entries(j, missing[:, j], array[~missing[:, j], j].astype(np.float64)) for j in names
    ]
    if not reset:
        features = model._features
    elif isinstance(model.feature_types, str):
        features = tuple(_plain_number(one) for one in entries)
    else:
        wanted = wanted_types(model.feature_types, names)
        features = tuple(
            _plain_number(one) if kind is None else feature_of(one, kind)
            for one, kind in zip(entries, wanted, strict=True)
        )
    return Table(features, missing, _numbers(features, entries, len(array)), array)


def _check_array_after_frame(features: tuple[Feature, ...]) -> None:
    for one in features:
        if one.needs_frame:
            before = f"{one.kind}s" if one.kind in ("date", "duration") else repr(one.levels[0])
            raise ValueError(
                f"column {one.name!r} held {before} in fit, and X is an array, which is read as "
                "numbers: give a frame with the columns of fit"
            )


def _unmasked(X: Any, marker: Any) -> np.ndarray:
    """Return a masked array as an array with the mark of missing entries where it is masked."""
    if takes_nan(marker):
        return np.asarray(plain_numbers(X))
    return np.asarray(X.filled(marker))


def _plain_number(entries: Entries) -> Feature:
    """Say what a column of an array is: a number, as in all of scikit-learn."""
    if not len(entries.observed):
        return Feature(entries.name, "empty")
    if (entries.observed == entries.observed[0]).all():
        return Feature(entries.name, "constant", levels=(entries.observed[0].item(),))
    return Feature(entries.name, "number")


def _read_frame(model: Any, X: Any, reset: bool) -> Table:
    seen = Counter(X.columns)
    twice = [repr(name) for name, count in seen.items() if count > 1]
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
    features = None if reset else model._features
    read = X if features is None else in_zones_of_fit(X, features)
    entries = [_marked(one, model.missing_values) for one in columns_of(read)]
    if features is None:
        names = [one.name for one in entries]
        wanted = wanted_types(model.feature_types, names)
        features = tuple(map(feature_of, entries, wanted))
    missing = np.stack([one.missing for one in entries], axis=1)
    return Table(features, missing, _numbers(features, entries, len(missing)), None)


def _marked(entries: Entries, marker: Any) -> Entries:
    """Return a column in which another mark than NaN says what is missing."""
    if takes_nan(marker):
        return entries
    if entries.missing.any():
        raise ValueError(
            f"column {entries.name!r} contains NaN, and missing_values={marker!r}: replace one by "
            "the other"
        )
    marked = np.array([_equals(value, marker) for value in entries.values()], dtype=bool)
    return replace(entries, missing=marked, observed=entries.observed[~marked])


def _equals(value: Any, marker: Any) -> bool:
    same = value == marker  # an array in a cell answers with an array
    return isinstance(same, bool | np.bool_) and bool(same)


def _numbers(features: tuple[Feature, ...], entries: list[Entries], n_samples: int) -> np.ndarray:
    columns = [
        one.numbers(column) for one, column in zip(features, entries, strict=True) if one.is_used
    ]
    return np.stack(columns, axis=1) if columns else np.empty((n_samples, 0))


def _checked_array(model: Any, X: Any, reset: bool) -> np.ndarray:
    """Check an array, and return it with NaN where entries are missing."""
    lenient = takes_nan(model.missing_values)
    given = X
    with naming_columns(given):
        X = check_array(
            _nan_for_none(X) if lenient else X,
            dtype=FLOAT_DTYPES,
            ensure_all_finite="allow-nan" if lenient else True,
            input_name="X",
            estimator=model,
        )
    validate_data(model, given, reset=reset, skip_check_array=True)
    if not lenient:  # otherwise None and pandas' NA are NaN already
        X = np.where(get_mask(X, model.missing_values), X.dtype.type(np.nan), X)
    return np.asarray(X)


def _nan_for_none(X: Any) -> Any:
    """Replace None and pandas' NA, which a table of mixed types holds as objects, by NaN."""
    dtypes = getattr(X, "dtypes", None)
    dtypes = [getattr(X, "dtype", None)] if dtypes is None else list(dtypes)
    if isinstance(X, list | tuple) or any(dtype == np.dtype(object) for dtype in dtypes if dtype):
        table = np.array(X, dtype=object)
        empty = np.frompyfunc(lambda entry: entry is None or is_pandas_na(entry), 1, 1)(table)
        return np.where(np.asarray(empty, dtype=bool), np.nan, table)
    return X


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
