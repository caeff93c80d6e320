"""Fit and predict where rows come in blocks: dask arrays and files larger than memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan._sklearn import check_feature_names, check_n_features, get_output_config
from polyspan.models.checks import check_columns_observed
from polyspan.models.messages import warn_user
from polyspan.models.progress import FitProgress
from polyspan.solvers.share_preparation import Extent, measure_block, prepare_shares
from polyspan.sources import Source, mapped_rows, row_source

Method = TypeVar("Method", bound=Callable[..., Any])

# Of a fitted model what blocks do not need: it is large, or a graph itself, or was checked for all
# of them together.
NOT_SENT = ("labels_", "_stream", "feature_names_in_", "_sklearn_output_config")
INSTEAD = "RobustMiCUSaL, which learns from the observed entries"


def by_blocks(method: Method) -> Method:
    """Let a method of a fitted model, which treats every row by itself, take rows in blocks.

    For a dask array the result is one that is yet to be computed; what is read from a file
    gives an array in memory.
    """

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        source = row_source(X) or mapped_rows(X)
        if source is None:
            return method(self, X)
        check_is_fitted(self)
        check_feature_names(self, source.header, reset=False)
        check_n_features(self, source.X, reset=False)
        if source.lazy and method.__name__ == "transform":
            _check_output(self)
        return map_rows(source, self, method.__name__)

    return call  # type: ignore[return-value]


def map_rows(source: Source, model: Any, method: str) -> Any:
    """Return what a method of a fitted model makes of rows in blocks."""
    light = copy.copy(model)
    for name in list(vars(light)):
        # Callbacks are tied to this process; scikit-learn keeps them under several names.
        if name in NOT_SENT or "callback" in name:
            delattr(light, name)
    return source.map(light, method)


def _check_output(model: Any) -> None:
    container = get_output_config("transform", model)["dense"]
    if container != "default":
        raise ValueError(
            f"transform={container!r} of set_output would gather the distances of a dask array, "
            "which stay lazy: use set_output(transform='default')"
        )


def working_type(source: Source) -> np.dtype[Any]:
    """Return the type to work in: float32 stays, all else becomes float64."""
    return np.dtype(np.float32 if source.dtype == np.float32 else np.float64)


def measure(
    model: Any, source: Source, *, least: int, allow_nan: bool, instead: str = INSTEAD
) -> Extent:
    """Read all rows once; check what a validation would check.

    `instead` names the model for data with NaN.
    """
    check_feature_names(model, source.header, reset=True)
    check_n_features(model, source.X, reset=True)
    m, dtype = source.n_features, working_type(source)
    if m == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={source.X.shape}) while a minimum of 1 is "
            "required."
        )
    extent = source.total(measure_block, dtype, least, None)
    if extent is None:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {m})) while a minimum of 1 is required."
        )
    assert isinstance(extent, Extent)
    if extent.n_infinite:
        raise ValueError(
            f"Input X contains infinity or a value too large for {dtype!r}: "
            f"{extent.n_infinite} entries"
        )
    if extent.n_missing and not allow_nan:
        raise ValueError(
            f"Input X contains NaN: {extent.n_missing} of {extent.n_rows * m} entries are missing. "
            f"{type(model).__name__} needs complete data; use polyspan.{instead}, or impute them "
            "first."
        )
    return extent


def fit_blocks(model: Any, source: Source, y: Any, *, prior: float | None) -> Any:
    """Fit a linear model on rows in blocks and store what was learned.

    `prior` is the weight of filled-in entries of a model that takes NaN, or None.
    """
    option = needs_all_samples(model)
    if option is not None:
        kind = "a dask array" if source.lazy else "a file that is read in slices"
        raise ValueError(
            f"{option} needs all samples in memory, not {kind}: leave it at its default, or pass "
            "an array"
        )
    dim, m = model.subspace_dim, source.n_features
    dtype = working_type(source)
    extent = measure(model, source, least=dim, allow_nan=prior is not None)
    model._check_sizes(extent.n_learned, m)
    holes = extent.n_missing > 0
    if holes:
        check_columns_observed((extent.observed == 0)[None, :])
    if extent.n_learned < extent.n_rows:
        warn_user(
            f"{extent.n_rows - extent.n_learned} of {extent.n_rows} rows have at most "
            f"subspace_dim={dim} observed entries and are not learned from; their label is -1"
        )
    rng = check_random_state(model.random_state)
    given = model._given_start(np.empty((0, m), dtype=dtype))
    prepared = prepare_shares(
        source, extent, float(model.lam), dtype=dtype, center=model.center,
        holes=holes, least=dim, prior=prior or 0.0,
    )  # fmt: skip
    n_starts = model._n_starts()
    progress = FitProgress(model, source.X, y, n_starts, model._max_steps())
    best = model._best_solution(prepared, given, n_starts, rng, progress)
    model._store(prepared, best)
    model.labels_ = map_rows(source, model, "predict")
    progress.end()
    model._warn_about(best)
    return model


def source_for(model: Any, X: Any, *, holes: bool) -> Source | None:
    """Return the rows that a model is to be fitted on in blocks, or None for an array in memory.

    A large mapped file is read in slices where an array in memory would be a copy of it: one that
    may have holes to fill, or of a type that is not worked in.
    """
    source = row_source(X)
    if source is not None or needs_all_samples(model) is not None:
        return source
    copied = holes or getattr(X, "dtype", None) not in (np.float32, np.float64)
    return mapped_rows(X) if copied else None


def needs_all_samples(model: Any) -> str | None:
    """Return the first option of a model that cannot do with sums over samples, or None."""
    for name, value in (
        ("solver", "exact"),
        ("solver", "grouse"),
        ("residual", "loo"),
        ("affine", True),
    ):
        if getattr(model, name, None) == value:
            return f"{name}={value!r}"
    return None
