"""Data as the user gave them, to arrays of their own namespace and device.

As in scikit-learn's own estimators: under `array_api_dispatch` the array that comes in decides
where everything happens, otherwise whatever comes in becomes a NumPy array.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags
from sklearn.utils._array_api import check_same_namespace, get_namespace
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.arrays import Array, device, is_numpy, namespace, row_slices, rows_at_once

# Namespaces and devices that have all operations.
_COMPLETE: set[tuple[str, str]] = set()


def validated(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    method: str = "predict",
    fitted: str = "labels_",
    double: bool = False,
) -> Array:
    """Check samples; NaN passes.

    Parameters
    ----------
    reset : bool
        Whether this is `fit`.
    method, fitted : str
        What the user called, and the attribute whose namespace and device X must share.
    double : bool
        Whether float32 is turned into float64.
    """
    if not reset:
        check_is_fitted(estimator)
        check_same_namespace(X, estimator, attribute=fitted, method=method)
    xp, _ = get_namespace(X)
    dtypes = [xp.float64] if double else [xp.float64, xp.float32]
    X = validate_data(estimator, X, reset=reset, dtype=dtypes, ensure_all_finite="allow-nan")
    if is_numpy(X):
        return X
    if not get_tags(estimator).array_api_support:
        raise ValueError(
            f"{estimator} works on NumPy arrays only, and X is an array of "
            f"{namespace(X).__name__}: switch array_api_dispatch off, or pass a NumPy array"
        )
    check_device(X)
    return X


def count_missing(X: Array) -> int:
    """Return the number of NaN, looked for chunk by chunk."""
    xp = namespace(X)
    return sum(
        int(xp.sum(xp.astype(xp.isnan(X[which, :]), xp.int64)))
        for which in row_slices(X.shape[0], rows_at_once(X))
    )


def check_device(X: Array) -> None:
    """Raise an error where the device lacks an operation that fitting needs."""
    xp, where = namespace(X), device(X)
    kind = (xp.__name__, str(where))  # not all devices can be hashed
    if kind not in _COMPLETE:
        _check_operations(xp, where)
        _COMPLETE.add(kind)


def _check_operations(xp: Any, where: Any) -> None:
    try:
        one = xp.ones((2, 1, 1), dtype=xp.float64, device=where)
    except Exception as error:
        raise ValueError(
            f"the device {where} has no float64 ({error}), in which objectives are summed: "
            "move X to a device that has, such as the CPU"
        ) from error
    for name in ("qr", "cholesky", "inv", "eigh", "svd"):
        try:
            getattr(xp.linalg, name)(one)
        except Exception as error:
            raise ValueError(
                f"the device {where} lacks the operation linalg.{name} ({error}): move X to one "
                "that has it, such as the CPU"
            ) from error
