"""What users pass as arrays: tensors with and without scikit-learn's switch, tables of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn import get_config

from polyspan.arrays import device, is_numpy


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


@contextmanager
def naming_columns(X: Any, name: str = "X") -> Iterator[None]:
    """Name the columns of a table in errors of what turns it into an array of numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        reasons = {} if "feature names" in str(error).lower() else _columns_without_numbers(X)
        if not reasons:
            raise
        shown = "; ".join(f"{label!r}: {reason}" for label, reason in list(reasons.items())[:5])
        more = f"; and {len(reasons) - 5} more" if len(reasons) > 5 else ""
        which = "a column" if len(reasons) == 1 else f"{len(reasons)} columns"
        raise ValueError(
            f"{which} of {name} cannot be read as numbers ({shown}{more}): turn into numbers, or "
            "leave out, what is none"
        ) from error


def _columns_without_numbers(X: Any) -> dict[Any, str]:
    """Return the columns of a pandas or Polars frame that are not numbers, and what is wrong."""
    if hasattr(X, "iloc") and hasattr(X, "items"):
        columns = list(X.items())
    elif hasattr(X, "get_columns"):
        columns = [(column.name, column) for column in X.get_columns()]
    else:
        return {}
    reasons = {label: _no_numbers(column) for label, column in columns}
    return {label: reason for label, reason in reasons.items() if reason}


def _no_numbers(column: Any) -> str:
    """Return why a column does not hold numbers; empty where it does."""
    kind = column.dtype
    is_temporal = getattr(kind, "is_temporal", None)
    if (is_temporal is not None and is_temporal()) or getattr(kind, "kind", "") in ("m", "M"):
        return f"its type is {kind}"
    try:
        if hasattr(column, "iloc") and kind != np.dtype(object):
            column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            np.asarray(column.to_numpy()).astype(np.float64)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""
