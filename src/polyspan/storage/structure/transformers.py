"""The transformers of scikit-learn that a pipeline in a file may hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from polyspan.storage.structure.shapes import Shapes, StructureError

#: One number for each feature, and for each component.
EACH, COMPONENT = ("features",), ("components",)
DIRECTIONS: dict[str, tuple[Any, ...]] = {
    "components_": ("components", "features"), "explained_variance_": COMPONENT,
    "explained_variance_ratio_": COMPONENT, "singular_values_": COMPONENT, "mean_": EACH,
    "var_": EACH,
}  # fmt: skip
#: The shapes of the arrays of numbers. They may hold NaN, for columns without entries.
SHAPES: dict[type, dict[str, tuple[Any, ...]]] = {
    StandardScaler: {"mean_": EACH, "var_": EACH, "scale_": EACH},
    MinMaxScaler: dict.fromkeys(
        ("min_", "scale_", "data_min_", "data_max_", "data_range_"), EACH
    ),
    MaxAbsScaler: {"scale_": EACH, "max_abs_": EACH},
    RobustScaler: {"center_": EACH, "scale_": EACH},
    Normalizer: {},
    PowerTransformer: {"lambdas_": EACH},
    QuantileTransformer: {"references_": ("quantiles",), "quantiles_": ("quantiles", "features")},
    SimpleImputer: {"statistics_": EACH},
    KNNImputer: {"_fit_X": ("samples", "features")},
    MissingIndicator: {},
    VarianceThreshold: {"variances_": EACH},
    PCA: DIRECTIONS,
    IncrementalPCA: DIRECTIONS,
    TruncatedSVD: DIRECTIONS,
}  # fmt: skip


def _transformer(kind: type, one: Any, see: Shapes) -> None:
    check_names(one, see)
    held = vars(one)
    for name, shape in SHAPES[kind].items():
        if held.get(name) is not None:  # some options leave them out
            see.floats(name, held[name], *shape, finite=False)
    for name, shape in (("_mask_fit_X", ("samples", "features")), ("_valid_mask", EACH)):
        if name in held:
            see.flags(name, held[name], *shape)
    if kind is MissingIndicator:
        see.ints("features_", one.features_, None, least=0, below="features")
        see.same("_n_features", one._n_features, see["features"])
    for name, inside in (("_scaler", StandardScaler), ("indicator_", MissingIndicator)):
        if held.get(name) is not None:
            see.part(name, held[name], inside, features=see["features"])
    for name in ("_fit_dtype", "_fill_dtype"):
        # Data are converted to this type: one of many bytes would take much memory.
        if name in held and (not isinstance(held[name], np.dtype) or held[name].itemsize > 16):
            raise StructureError(f"{name} of {see.where} is {held[name]!r:.40}")


def check_names(one: Any, see: Shapes) -> None:
    """Check the number of features, and their names."""
    n: Any = getattr(one, "n_features_in_", None)
    see.whole("n_features_in_", n, 1, 2**31)
    see.sizes.setdefault("features", int(n))
    see.same("n_features_in_", n, see["features"])
    if hasattr(one, "feature_names_in_"):
        see.words("feature_names_in_", one.feature_names_in_, "features")


CHECKS: dict[type, Callable[[Any, Shapes], None]] = {
    kind: partial(_transformer, kind) for kind in SHAPES
}
