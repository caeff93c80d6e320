"""What users pass as arrays: tensors with and without scikit-learn's switch, tables of numbers."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn import get_config
from sklearn.utils import check_array

from polyspan.base.arrays import device, is_numpy, to_numpy

#: Types of dates and durations in arrays of objects.
TIMES = {
    "dates": (np.datetime64, datetime.date),
    "durations": (np.timedelta64, datetime.timedelta),
}


def package_of(a: Any) -> str | None:
    """Return the package of an array that is not NumPy's, such as "torch"; None for all else.

    Dask arrays are no matter of the switch: they are checked where rows are read.
    """
    if not is_array_api_obj(a) or is_numpy(a) or hasattr(a, "__dask_graph__"):
        return None
    return str(type(a).__module__).partition(".")[0]


THE_SWITCH = (
    "scikit-learn's array_api_dispatch is off: add the line "
    'sklearn.set_config(array_api_dispatch=True), with os.environ["SCIPY_ARRAY_API"] = "1" before '
    "SciPy is first imported, or "
)


def as_dispatched(a: Any, name: str = "X", *, numpy_only: str = "") -> Any:
    """Return an array as scikit-learn's own estimators take it.

    While the switch is off arrays of other packages become NumPy arrays, where NumPy can read them:
    in the memory of the CPU. `numpy_only` says who works on NumPy arrays only, with the switch too.
    """
    package = package_of(a)
    if package is None:
        return a
    if not get_config()["array_api_dispatch"]:
        try:
            return np.asarray(a)
        except Exception as error:  # every framework has its own error class for it
            if not numpy_only:
                raise ValueError(
                    f"{name} is an array of {package} on the device {device(a)}, which NumPy "
                    f"cannot read ({error}), and {THE_SWITCH}pass a NumPy array, of a tensor "
                    f"{name}.numpy(force=True)"
                ) from error
    if numpy_only:
        require_numpy(numpy_only, **{name: a})
    return a


def require_dispatch(name: str, learned: Any) -> None:
    """Refuse to go on with arrays of other packages, learned under the switch, while it is off."""
    package = package_of(learned)
    if package is not None and not get_config()["array_api_dispatch"]:
        raise ValueError(
            f"{name} is an array of {package}, and {THE_SWITCH}fit again to NumPy arrays"
        )


def require_numpy(user: str, **arrays: Any) -> None:
    """Refuse arrays of other packages where NumPy's alone are worked on; `user` says by whom."""
    for name, a in arrays.items():
        package = package_of(a)
        if package is not None:
            raise ValueError(
                f"{user} works on NumPy arrays only, and {name} is an array of {package}: pass a "
                f"NumPy array, of a tensor {name}.numpy(force=True)"
            )


def plain_numbers(X: Any, name: str = "X", instead: str = "") -> Any:
    """Return data with NaN where an array of NumPy was masked; refuse dates and durations.

    NumPy would drop the mask, and take a date for the number of its days or nanoseconds. All else
    is returned as it is. `instead` says what the user can do, besides converting.
    """
    if isinstance(X, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.stack(X)
    if isinstance(X, np.ma.MaskedArray):
        X = _with_nan(X)
    types = _column_types(X)
    _refuse_equal_names([label for label, _ in types], name)
    if any(_is_time(kind) for _, kind in types):
        with naming_columns(X, name):  # and others that are no numbers
            raise ValueError(f"columns of {name} hold dates or durations")
    kind = _time_kind(X)
    if kind is not None:
        since = f"({name} - {name}.min())" if kind == "dates" else name
        raise ValueError(
            f"{name} holds {kind}, which are not taken for numbers: turn them into numbers, such "
            f"as days by {since} / np.timedelta64(1, 'D'){instead}"
        )
    return X


def numbers_of_samples(X: Any, **options: Any) -> np.ndarray:
    """Return samples as an array of NumPy, by `check_array`; its errors then name the columns."""
    X = plain_numbers(X)
    with naming_columns(X):
        return np.asarray(check_array(to_numpy(X) if is_array_api_obj(X) else X, **options))


def _with_nan(X: Any) -> np.ndarray:
    """Return a masked array as a plain one, with NaN where it is masked."""
    if not np.ma.is_masked(X) or X.dtype.kind in "mM":
        return np.asarray(X)
    return np.asarray((X if X.dtype.kind in "fcO" else X.astype(np.float64)).filled(np.nan))


def _time_kind(X: Any) -> str | None:
    """Return whether an array, or rows of a list, hold "dates" or "durations"; else None."""
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of several lengths
            return None
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "mMO":
        return None
    kinds = {type(entry) for entry in X.ravel()} if X.dtype.kind == "O" else {X.dtype.type}
    for kind, types in TIMES.items():
        if any(issubclass(one, types) for one in kinds):
            return kind
    return None


@contextmanager
def naming_columns(X: Any, name: str = "X", instead: str = "") -> Iterator[None]:
    """Name the columns of a table in errors of what turns it into an array of numbers.

    `instead` says what the user can do, besides turning them into numbers.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        # In an array scikit-learn promises a TypeError for what is neither a number nor text.
        stays = isinstance(error, TypeError) and not _column_types(X)
        stays = stays or "feature names" in str(error).lower()
        reasons = {} if stays else _columns_without_numbers(X)
        if not reasons:
            raise
        shown = "; ".join(f"{label!r}: {reason}" for label, reason in list(reasons.items())[:5])
        more = f"; and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        which = "a column" if len(reasons) == 1 else f"{len(reasons)} columns"
        raise ValueError(
            f"{which} of {name} cannot be read as numbers ({shown}{more}): turn into numbers, or "
            f"leave out, what is none{instead}"
        ) from error


def _columns_without_numbers(X: Any) -> dict[Any, str]:
    """Return the columns of a frame, or of an array of objects, that are not numbers, and why."""
    columns = {label: X[label] for label, _ in _column_types(X)}
    table = np.array(X, dtype=object) if isinstance(X, list | tuple) else X
    if isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "OUS":
        columns = dict(enumerate(table.T))
    reasons = {label: _no_numbers(column) for label, column in columns.items()}
    return {label: reason for label, reason in reasons.items() if reason}


def _column_types(X: Any) -> list[tuple[Any, Any]]:
    """Return the names and types of the columns of a pandas or Polars frame; none of others.

    The columns themselves, as objects, take longer than a fit where there are thousands.
    """
    if hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns")):
        return list(zip(X.columns, X.dtypes, strict=True))
    return []


def _refuse_equal_names(labels: list[Any], name: str) -> None:
    """Raise an error where several columns of a table have one name."""
    twice = {label: count for label, count in Counter(labels).items() if count > 1}
    if twice:
        shown = ", ".join(f"{label!r} ({n} times)" for label, n in list(twice.items())[:5])
        more = f", and {len(twice) - 5} more" if len(twice) > 5 else ""
        raise ValueError(
            f"columns of {name} have the same name: {shown}{more}; rename them, or leave out all "
            "but one"
        )


def _is_time(kind: Any) -> bool:
    """Tell the types of dates and durations of NumPy, pandas and Polars."""
    is_temporal = getattr(kind, "is_temporal", None)
    return (is_temporal is not None and is_temporal()) or getattr(kind, "kind", "") in ("m", "M")


def _no_numbers(column: Any) -> str:
    """Return why a column does not hold numbers; empty where it does."""
    kind = column.dtype
    if _is_time(kind):
        return f"its type is {kind}"
    try:
        if hasattr(column, "iloc") and kind != np.dtype(object):
            column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            np.asarray(column).astype(np.float64)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""
