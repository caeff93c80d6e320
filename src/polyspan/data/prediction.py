"""Methods of a fitted model on rows that are not all in memory: dask arrays, large files."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from sklearn.utils.validation import check_is_fitted

from polyspan.base.private_sklearn import (
    check_feature_names,
    check_feature_names_in,
    check_n_features,
    get_output_config,
    in_container,
)
from polyspan.data.rows import Source
from polyspan.data.sliced import mapped_rows, row_source

Method = TypeVar("Method", bound=Callable[..., Any])

# Attributes of a fitted model that are not sent to the blocks: they are large, or a dask graph, or
# were already checked for all blocks together.
NOT_SENT = (
    "labels_", "trimmed_", "_without_weight", "_stream", "feature_names_in_",
    "_sklearn_output_config",
)  # fmt: skip


# Methods whose result is a table that `set_output` decides about.
FOLLOWS_SET_OUTPUT = ("transform", "reconstruct", "impute")


def as_samples(method: Method) -> Method:
    """Let a method that returns samples like those given follow `set_output`, as transform does.

    The columns have the names of the input features. A frame that is imputed stays a frame.
    """
    as_given = method.__name__ == "impute"

    @wraps(method)
    def call(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        found = method(self, X, *arguments, **options)
        if hasattr(found, "__dask_graph__"):
            return found
        names = check_feature_names_in(self)
        return in_container(found, X, self, names, as_given=as_given)

    return call  # type: ignore[return-value]


def by_blocks(method: Method) -> Method:
    """Let a method of a fitted model take rows in blocks; it must treat every row by itself.

    For a dask array the result is a lazy dask array; for a file it is an array in memory.
    """

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        source = row_source(X) or mapped_rows(X)
        if source is None:
            return method(self, X)
        check_is_fitted(self)
        check_feature_names(self, source.header, reset=False)
        check_n_features(self, source.X, reset=False)
        if source.lazy and method.__name__ in FOLLOWS_SET_OUTPUT:
            _check_output(self)
        return map_rows(source, self, method.__name__)

    return call  # type: ignore[return-value]


def map_rows(source: Source, model: Any, method: str) -> Any:
    """Apply a method of a fitted model to all rows, block by block, and return its results."""
    return source.map(light(model), method)


def light(model: Any) -> Any:
    """Return a fitted model without what is not sent to blocks."""
    sent = copy.copy(model)
    for name in list(vars(sent)):
        # Callbacks work in this process only; scikit-learn stores them under several names.
        if name in NOT_SENT or "callback" in name:
            delattr(sent, name)
    return sent


def _check_output(model: Any) -> None:
    container = get_output_config("transform", model)["dense"]
    if container != "default":
        raise ValueError(
            f"transform={container!r} of set_output would gather what is made of a dask array, "
            "which stays lazy: use set_output(transform='default')"
        )
