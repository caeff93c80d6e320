"""Data as the user gave them, to arrays of their own namespace and device.

As in scikit-learn's own estimators: under `array_api_dispatch` the array that comes in decides
where everything happens, otherwise whatever comes in becomes a NumPy array.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan._sklearn import check_same_namespace, get_namespace, is_numpy_namespace
from polyspan.arrays import Array, device, is_numpy, namespace, row_slices, rows_at_once

# Namespaces and devices that have all operations.
_COMPLETE: set[tuple[str, str]] = set()


def validated(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    fitted: str,
    method: str = "predict",
    double: bool = False,
) -> Array:
    """Check samples; NaN passes.

    Parameters
    ----------
    reset : bool
        Whether this is `fit`, or the first batch of a stream.
    fitted, method : str
        The attribute whose namespace and device X must share, and what the user called.
    double : bool
        Whether float32 is turned into float64.
    """
    refuse_lazy(estimator, X)
    if getattr(X, "requires_grad", False):
        raise ValueError(
            "X is a tensor that requires gradients, and nothing here is differentiated: pass "
            "X.detach()"
        )
    # A stream may have begun with too few samples to fit.
    if not reset and method != "partial_fit":
        check_is_fitted(estimator)
        check_same_namespace(X, estimator, attribute=fitted, method=method)
    xp, _ = get_namespace(X)
    if not is_numpy_namespace(xp):
        _check_support(estimator, xp, method)
    dtypes = [xp.float64] if double else [xp.float64, xp.float32]
    X = validate_data(estimator, X, reset=reset, dtype=dtypes, ensure_all_finite="allow-nan")
    if not is_numpy(X):
        check_device(X)
    return X


def refuse_lazy(estimator: Any, X: Any) -> None:
    """Raise an error for dask arrays and frames, of which NumPy would gather all rows unasked."""
    if hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"{type(estimator).__name__} needs all samples in memory here, and X is lazy (dask): "
            "pass X.compute() where that fits"
        )


def _check_support(estimator: Any, xp: Any, method: str) -> None:
    streaming = method == "partial_fit"
    if streaming or not get_tags(estimator).array_api_support:
        raise ValueError(
            f"{'partial_fit of ' if streaming else ''}{estimator} works on NumPy arrays only, and "
            f"X is an array of {xp.__name__}: switch array_api_dispatch off, or pass a NumPy array"
        )


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
