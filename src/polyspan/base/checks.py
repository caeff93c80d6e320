"""Checks of data and parameters, and warnings, with one message each.

Data as the user gave them become arrays of their own namespace and device. As in scikit-learn's own
estimators: under `array_api_dispatch` the array that comes in decides where everything happens.
Without it lists, tables and arrays of other packages become NumPy arrays.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan.base.arrays import (
    Array,
    device,
    is_numpy,
    machine_epsilon,
    namespace,
    power_of_two_scale,
    row_slices,
    rows_at_once,
    to_numpy,
)
from polyspan.base.inputs import (
    as_dispatched,
    naming_columns,
    package_of,
    plain_numbers,
    require_dispatch,
)
from polyspan.base.private_sklearn import (
    check_feature_names,
    check_n_features,
    check_same_namespace,
    get_namespace,
)

MISSING_ADVICE = (
    "use polyspan.RobustMiCUSaL, which learns from the observed entries, or impute them first"
)

# Namespaces and devices that are known to have all operations.
_CHECKED_DEVICES: set[tuple[str, str]] = set()


def validate_samples(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    fitted: str,
    method: str = "predict",
    double: bool = False,
) -> Array:
    """Check samples and return them as an array; NaN is allowed, and stands for masked entries.

    Parameters
    ----------
    reset : bool
        Whether this is `fit`, or the first batch of a stream.
    fitted, method : str
        The fitted attribute whose namespace and device X must have, and the method that the
        user called.
    double : bool
        Whether to convert float32 to float64.
    """
    X = plain_numbers(X)
    if isinstance(X, list | tuple) and get_config()["array_api_dispatch"]:
        X = np.asarray(X)  # scikit-learn 1.7 takes no lists with dispatch on
    if hasattr(X, "__dask_graph__"):
        refuse_lazy(estimator, X)
    if getattr(X, "requires_grad", False):
        raise ValueError(
            "X is a tensor that requires gradients, and nothing here is differentiated: pass "
            "X.detach()"
        )
    if package_of(X) is not None:
        X = as_dispatched(X, numpy_only=_numpy_only(estimator, method))
    # A stream may not be fitted yet, if its first batches had too few samples.
    if not reset and method != "partial_fit":
        check_is_fitted(estimator)
        if hasattr(estimator, fitted):  # what a callback sees during a fit has no such array yet
            require_dispatch(fitted, getattr(estimator, fitted))
            check_same_namespace(X, estimator, attribute=fitted, method=method)
    xp, _ = get_namespace(X)
    dtypes = [xp.float64] if double else [xp.float64, xp.float32]
    with naming_columns(X):
        X = validate_data(estimator, X, reset=reset, dtype=dtypes, ensure_all_finite="allow-nan")
    if not is_numpy(X):
        check_device(X)
    return X


def refuse_lazy(estimator: Any, X: Any) -> None:
    """Raise an error for dask arrays and frames, whose rows NumPy would all load into memory."""
    if hasattr(X, "__dask_graph__"):
        raise ValueError(
            f"{type(estimator).__name__} needs all samples in memory here, and X is lazy (dask): "
            "pass X.compute() where that fits"
        )


def _numpy_only(estimator: Any, method: str) -> str:
    """Return who works on NumPy arrays only; empty where arrays of any namespace are taken."""
    streaming = method == "partial_fit"
    if not streaming and get_tags(estimator).array_api_support:
        return ""
    return f"{'partial_fit of ' if streaming else ''}{estimator}"


def check_device(X: Array) -> None:
    """Raise an error where the device lacks an operation that fitting needs."""
    xp, where = namespace(X), device(X)
    kind = (xp.__name__, str(where))  # not all devices can be hashed
    if kind in _CHECKED_DEVICES:
        return
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
    _CHECKED_DEVICES.add(kind)


def refuse_missing(estimator: Any, X: Array, instead: str = MISSING_ADVICE) -> None:
    """Raise an error where entries are missing; `instead` says what the user can do."""
    xp = namespace(X)
    missing = sum(
        int(xp.sum(xp.astype(xp.isnan(X[which, :]), xp.int64)))
        for which in row_slices(X.shape[0], rows_at_once(X))
    )
    if missing:
        raise ValueError(_missing_message(estimator, missing, X.shape[0] * X.shape[1], instead))


def _missing_message(estimator: Any, missing: int, total: int, instead: str) -> str:
    return (
        f"Input X contains NaN: {missing} of {total} entries are missing. "
        f"{type(estimator).__name__} needs complete data; {instead}."
    )


def check_extent(
    estimator: Any, source: Any, extent: Any, *, allow_nan: bool, instead: str = MISSING_ADVICE
) -> None:
    """Raise an error where the first pass over the rows found data that cannot be learned from."""
    m, dtype = source.n_features, source.working_type
    if extent is None:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {m})) while a minimum of 1 is required."
        )
    if extent.n_infinite:
        raise ValueError(
            f"Input X contains infinity or a value too large for {dtype!r}: "
            f"{extent.n_infinite} entries"
        )
    if extent.n_missing and not allow_nan:
        raise ValueError(_missing_message(estimator, extent.n_missing, extent.n_rows * m, instead))


def check_header(estimator: Any, source: Any) -> None:
    """Check and store number and names of the features of rows that are not in memory."""
    check_feature_names(estimator, source.header, reset=True)
    check_n_features(estimator, source.X, reset=True)
    if source.n_features == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={source.X.shape}) while a minimum of 1 is "
            "required."
        )


def first_ten(items: np.ndarray | Sequence[Any]) -> str:
    """Return the first ten of some rows or columns as text, separated by commas."""
    return ", ".join(str(item) for item in items[:10]) + (", …" if len(items) > 10 else "")


def check_subspace_dim(
    subspace_dim: int, n_features: int, dims: tuple[int, ...] | None = None
) -> None:
    """Raise an error if a subspace would be the whole space.

    `dims` are the dimensions of all subspaces where they differ, `subspace_dim` the largest.
    """
    if subspace_dim >= n_features:
        given = f"subspace_dim={subspace_dim} must"
        if dims is not None:
            given = f"subspace_dim={dims} holds {subspace_dim}, which must"
        raise ValueError(
            f"{given} be smaller than n_features={n_features}: "
            "a subspace of full dimension represents every sample"
        )


def check_columns_observed(
    missing: Array, too_few: int = 0, *, weighted: bool = False, trim: float = 0.0
) -> None:
    """Raise an error where a feature was observed in no sample.

    Where rows with at most `too_few` observed entries are not learned from, or (`weighted`) rows of
    weight 0, or (`trim`) rows far from all others, `missing` is that of all others.
    """
    xp = namespace(missing)
    never = np.flatnonzero(to_numpy(xp.all(missing, axis=0)))
    if len(never) == missing.shape[1]:
        raise ValueError("all entries of X are NaN: there is nothing to learn from")
    if len(never):
        where = f" in a row with more than subspace_dim={too_few} entries" if too_few else ""
        where += " in a row with a sample_weight above 0" if weighted else ""
        where += f" but in rows far from all others, which trim={trim} leaves out" if trim else ""
        raise ValueError(
            f"{len(never)} of {missing.shape[1]} columns of X are never observed{where} "
            f"(columns {first_ten(never)}): leave them out"
        )


def warn_left_out(left_out: np.ndarray | int, n: int, dim: int) -> None:
    """Warn about rows with too few observed entries, given their indices or their number."""
    count = left_out if isinstance(left_out, int) else len(left_out)
    if count:
        which = "" if isinstance(left_out, int) else f" (rows {first_ten(left_out)})"
        warn_user(
            f"{count} of {n} rows have at most subspace_dim={dim} observed entries and are not "
            f"learned from{which}; their label is -1"
        )


def check_scale(X: Array) -> None:
    """Raise an error where squares of entries would leave the range of their type."""
    xp = namespace(X)
    sizes = xp.where(xp.isnan(X), xp.zeros_like(X), xp.abs(X))
    largest = float(xp.max(sizes))
    if power_of_two_scale(largest, machine_epsilon(X)) != 1.0:
        raise ValueError(
            f"the largest entry of X is {largest:.3g} in size, and squares would leave the range "
            f"of {X.dtype}: scale X"
        )


def directions_used(ritz: Array, size: int) -> np.ndarray:
    """Return how many directions samples span, by their Ritz values along the last axis."""
    values = np.sqrt(np.maximum(to_numpy(ritz), 0))
    # Millions of float32 samples would make the usual tolerance larger than the values.
    fraction = min(machine_epsilon(ritz) * size, 1e-3)
    return np.asarray((values > values.max(axis=-1, keepdims=True, initial=0) * fraction).sum(-1))


def warn_about_rank(ritz: Array, s: int, size: int, *, centred: bool) -> None:
    """Warn where the samples span fewer directions than a subspace has."""
    used = int(directions_used(ritz, size))
    if used < s:
        warn_user(
            f"the samples{' minus their mean' if centred else ''} span only {used} directions, "
            f"fewer than subspace_dim={s}: the other directions of the bases mean nothing; lower "
            "subspace_dim",
        )


def warn_empty(counts: Array) -> None:
    """Warn about subspaces without samples."""
    empty = np.flatnonzero(to_numpy(counts) == 0)
    if len(empty):
        warn_user(
            f"no sample is assigned to subspaces {empty.tolist()}: lower n_subspaces, or raise "
            "lam or n_init"
        )


# Pipelines and `set_output` call estimators through many modules of these.
_OWN_MODULES = ("polyspan.", "sklearn.", "joblib.")


def warn_unconverged(message: str) -> None:
    """Warn about an iteration that ended before it converged."""
    warn_user(message, ConvergenceWarning)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this package, scikit-learn and joblib."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def lowest_finite(objectives: Sequence[float]) -> float:
    """Return the least objective of all starts, or raise an error where none is finite."""
    finite = [value for value in objectives if math.isfinite(value)]
    if not finite:
        raise ValueError(
            f"the objective of every start is {objectives[0]}: X has entries that are too large or "
            "too small beside others; scale X to entries near 1, and look for gross errors in it"
        )
    return min(finite)
