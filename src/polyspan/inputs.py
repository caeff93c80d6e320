"""What users pass as arrays: tensors need scikit-learn's switch, tables need columns of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn import get_config

from polyspan.arrays import is_numpy


def package_of(a: Any) -> str | None:
    """Return the package of an array that is not NumPy's, such as "torch"; None for all else.

    Dask arrays are no matter of the switch: they are checked where rows are read.
    """
    if not is_array_api_obj(a) or is_numpy(a) or hasattr(a, "__dask_graph__"):
        return None
    return str(type(a).__module__).partition(".")[0]


def require_dispatch(**arrays: Any) -> None:
    """Refuse arrays of other packages, given by their names, while the switch for them is off."""
    if get_config()["array_api_dispatch"]:
        return
    for name, a in arrays.items():
        package = package_of(a)
        if package is not None:
            raise ValueError(
                f"{name} is an array of {package}, and scikit-learn's array_api_dispatch is off: "
                "add the line sklearn.set_config(array_api_dispatch=True), with "
                'os.environ["SCIPY_ARRAY_API"] = "1" before SciPy is first imported, or pass a '
                "NumPy array"
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
