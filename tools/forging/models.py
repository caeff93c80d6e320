"""Small models of every class that a file may hold, with the data that their methods are given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import make_pipeline

from polyspan import (
    AdaptiveMiCUSaL,
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.storage import saved_types

ROWS = make_union_of_subspaces(
    (24, 24), n_features=8, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
).X
HOLES = mask_entries(ROWS, 0.1, random_state=0)
SIZES = {
    "n_subspaces": 2, "subspace_dim": 2, "max_subspaces": 3, "max_dim": 3, "n_clusters": 2,
    "n_quantiles": 20, "n_components": 6, "random_state": 0,
}  # fmt: skip
#: Transformers for one pipeline after another; each learns something from what comes before.
CHAINS = (
    ("SimpleImputer", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "PCA"),
    ("KNNImputer", "RobustScaler", "PowerTransformer", "TruncatedSVD"),
    ("QuantileTransformer", "SimpleImputer", "Normalizer", "IncrementalPCA"),
)


@dataclass(frozen=True)
class Example:
    """A fitted model, and data for its methods."""

    model: Any
    X: Any


def sized(kind: type, **parameters: Any) -> Any:
    """Return an estimator of small sizes."""
    known = kind().get_params()
    sizes = {name: value for name, value in SIZES.items() if name in known}
    return kind(**{**sizes, **parameters})


def fitted(kind: type, **parameters: Any) -> Example:
    """Return an estimator that was fitted to a few rows."""
    model = sized(kind, **parameters)
    X = HOLES if model.__sklearn_tags__().input_tags.allow_nan else ROWS
    return Example(model.fit(X), X[:9])


def stream(kind: type, n_batches: int, *, weighted: bool = False, **parameters: Any) -> Example:
    """Return a model in the middle of a stream."""
    model = sized(kind, **parameters)
    X = HOLES if model.__sklearn_tags__().input_tags.allow_nan else ROWS
    for batch in np.split(X, 3)[:n_batches]:
        model.partial_fit(batch, **({"sample_weight": np.ones(len(batch))} if weighted else {}))
    return Example(model, X[:9])


def table(n_rows: int, *, categories: bool = True) -> pd.DataFrame:
    """Return a table of several types with holes."""
    rng = np.random.RandomState(0)
    x = rng.standard_normal(n_rows)
    columns = {
        "size": x + 0.1 * rng.standard_normal(n_rows),
        "age": np.rint(40 + 10 * x),
        "day": pd.Timestamp("2020-06-01") + pd.to_timedelta(np.rint(30 * x), unit="D"),
    }
    if categories:
        kinds = np.where(x > 0.5, "a", np.where(x > -0.5, "b", "c"))
        columns["kind"] = pd.Categorical(kinds)
        columns["grade"] = pd.Categorical(kinds, categories=list("cba"), ordered=True)
    return pd.DataFrame(columns).mask(rng.random_sample((n_rows, len(columns))) < 0.1)


def imputer(n_rows: int, *, categories: bool = True, **parameters: Any) -> Example:
    """Return an imputer of a table."""
    data = table(n_rows, categories=categories)
    return Example(SubspaceImputer(random_state=0, **parameters).fit(data), data[:9])


def precomputed() -> Example:
    """Return a kernel model that was fitted to a matrix, with samples of weight 0."""
    weights = np.ones(len(ROWS))
    weights[::5] = 0.0
    G = ROWS @ ROWS.T
    model = sized(MCKUSaL, kernel="precomputed").fit(G, sample_weight=weights)
    return Example(model, G[:9])


def pipeline(names: tuple[str, ...]) -> Example:
    """Return a pipeline that ends in a model of ours."""
    steps = [sized(kind) for kind in saved_types.TRANSFORMERS.values() if kind.__name__ in names]
    steps.sort(key=lambda step: names.index(type(step).__name__))
    first = VarianceThreshold()
    model = make_pipeline(first, *steps, sized(MiCUSaL)).fit(HOLES)
    return Example(model, HOLES[:9])


def indicators() -> Example:
    """Return a pipeline whose first step says what is missing."""
    kind = saved_types.TRANSFORMERS["sklearn.impute.MissingIndicator"]
    return Example(make_pipeline(kind(), sized(MiCUSaL)).fit(HOLES), HOLES[:9])


def makers() -> Iterator[tuple[str, Callable[[], Example]]]:
    """Yield a name and a function that makes it, for every example."""
    for kind in saved_types.ESTIMATORS.values():
        yield kind.__name__, partial(fitted, kind)
    yield "merges", partial(fitted, AdaptiveMiCUSaL, max_subspaces=6, merge_threshold=0.9)
    yield "unequal", partial(fitted, MiCUSaL, subspace_dim=(1, 3), trim=0.1)
    yield "given start", partial(
        fitted, MiCUSaL, init=np.linalg.qr(np.ones((2, 8, 2)))[0],
        random_state=np.random.RandomState(3),
    )  # fmt: skip
    yield "numbers of NumPy", partial(
        fitted, MiCUSaL, n_subspaces=np.int64(2), max_iter=np.int32(50), lam=np.float32(4.0),
        center=np.bool_(True),
    )  # fmt: skip
    yield "affine stream", partial(stream, MiCUSaL, 3, affine=True)
    yield "first rows", partial(stream, MiCUSaL, 1)
    yield "robust stream", partial(stream, RobustMiCUSaL, 3)
    yield "weighted rows", partial(stream, RobustMiCUSaL, 2, weighted=True)
    yield "low rank", partial(fitted, MCKUSaL, low_rank=12)
    yield "polynomial", partial(fitted, RobustMCKUSaL, kernel="poly", degree=2)
    yield "precomputed", precomputed
    yield "mixture of points", partial(fitted, SubspaceMixture, affine=False, outliers=True)
    yield "judge", partial(fitted, SubspaceOutlierDetector, contamination=0.1)
    yield "trees", partial(imputer, 24)
    yield "components", partial(imputer, 110, categories=False, method="subspaces")
    for k, names in enumerate(CHAINS):
        yield f"pipeline {k}", partial(pipeline, names)
    yield "indicators", indicators


def examples() -> dict[str, Example]:
    """Fit everything that files are forged of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in makers()}
