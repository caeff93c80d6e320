"""The estimators of polyspan, pipelines that end in one, and what linear models are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.impute import MissingIndicator
from sklearn.pipeline import Pipeline

from polyspan import baselines, clustering, kernel, linear, mixture, outliers, tables
from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.prediction import KernelUnion
from polyspan.linear._solve.memory import Memory
from polyspan.linear._solve.merging import Merge
from polyspan.linear.streaming import Stream
from polyspan.outliers.learning import Columns, Ensemble
from polyspan.storage.structure.kernels import members_and_coefs
from polyspan.storage.structure.shapes import Shapes, StructureError
from polyspan.storage.structure.tables import check_features
from polyspan.storage.structure.transformers import check_names

#: What several estimators have, if they have it: the shape of each array. NaN says "not known".
RECORDS: dict[str, tuple[Any, ...]] = {
    "objective_history_": (None,), "anneal_history_": (None,), "log_likelihood_history_": (None,),
    "dimension_estimates_": (None,), "evidence_": (None,), "cuts_": (None,),
    "confidence_": ("samples",),
}  # fmt: skip
NUMBERS = (
    "objective_", "noise_variance_", "n_iter_", "agreement_", "certainty_", "log_likelihood_",
    "inertia_", "error_", "duality_gap_", "contradiction_", "offset_", "n_samples_seen_", "n_seen_",
    "held_out_error_", "outlier_weight_", "q_", "rank_",
)  # fmt: skip


def _memory(one: Memory, see: Shapes) -> None:
    see.floats("reference", one.reference, "features")
    see.floats("counts", one.counts, "subspaces")
    see.floats("totals", one.totals, "subspaces", "features")
    for k, rows in enumerate(see.several("factors", one.factors, "subspaces")):
        see.floats(f"factors[{k}]", rows, None, "features")
    see.number("squares", one.squares)
    see.whole("rank", one.rank, 0, see["features"])


def _stream(one: Stream, see: Shapes) -> None:
    see.number("n_seen", one.n_seen, 0.0)
    see.number("n_fitted", one.n_fitted, 0.0)
    see.number("scale", one.scale, 0.0)
    see.several("options", one.options, 4)
    see.floats("sums", one.sums, "features")
    see.floats("counts", one.counts, "features")
    if one.first is not None:
        see.floats("first", one.first, "rows", "features", finite=False)
        if one.first_weights is not None:
            see.floats("first_weights", one.first_weights, "rows")
    if one.memory is not None or one.first is None:
        if "subspaces" not in see.sizes:  # there are no bases yet
            see.same("memory", one.memory, None)
        see.part("memory", one.memory, Memory, **see.sizes)


def _merge(one: Merge, see: Shapes) -> None:
    see.text("kind", one.kind)
    see.whole("n_left", one.n_left, 0, 2**31)
    see.number("distance", one.distance)


def _records(one: Any, see: Shapes, n_labels: int) -> None:
    """Check what the fit was like, and the labels: below the number of subspaces."""
    held = vars(one)
    if "labels_" in held:
        see.ints("labels_", one.labels_, "samples", least=-1, below=n_labels)
    for name in ("trimmed_", "_without_weight"):
        if name in held:
            see.flags(name, held[name], "samples")
    for name, shape in RECORDS.items():
        if name in held:
            see.floats(name, held[name], *shape, finite=False)
    for name in NUMBERS:
        if name in held:
            see.number(name, held[name])
    if "affinity_" in held:
        see.same("type of affinity_", type(one.affinity_), scipy.sparse.csr_array)
        see.same("shape of affinity_", one.affinity_.shape, (see["samples"],) * 2)
        one.affinity_.check_format(full_check=True)


def _linear(one: Any, see: Shapes) -> None:
    """Every model with bases and a mean."""
    check_names(one, see)
    held = vars(one)
    if "bases_" in held or "_stream" not in held:
        see.floats("bases_", one.bases_, "subspaces", "features", "dim")
        see.floats("mean_", one.mean_, "features")
        _records(one, see, see["subspaces"])
    if "anchors_" in held:
        see.floats("anchors_", one.anchors_, "subspaces", "features")
    if "_stream" in held:
        known = {name: see.sizes[name] for name in ("features", "subspaces") if name in see.sizes}
        see.part("_stream", one._stream, Stream, **known)
    if "_stream" in held and "subspaces" in known and one._stream.first is None:
        see.same("n_subspaces", one.n_subspaces, see["subspaces"])
    for name in ("n_subspaces_", "n_clusters_"):
        if name in held:
            see.same(name, held[name], see["subspaces"])
    if "subspace_dim_" in held:
        see.whole("subspace_dim_", one.subspace_dim_, 0, see["features"])
    if "merge_history_" in held:
        see.parts("merge_history_", one.merge_history_, None, Merge)


def _clustering(one: Any, see: Shapes) -> None:
    _linear(one, see)
    for name in ("source_", "verdict_"):
        see.text(name, getattr(one, name))
    if not isinstance(one.members_, dict):
        raise StructureError(f"members_ of {see.where} is a {type(one.members_).__name__}")
    for name, column in one.members_.items():
        if not isinstance(column, np.ndarray) or column.shape[:1] == ():
            raise StructureError(f"members_[{name!r}] of {see.where} is not an array")
        see.sizes.setdefault("graphs", len(column))
        see.same(f"length of members_[{name!r}]", len(column), see["graphs"])
    if one.members_:
        see.words("members_['graph']", one.members_["graph"], "graphs")
        see.ints("members_['labels']", one.members_["labels"], "graphs", "samples")
        for name in ("gap", "weight"):
            see.floats(f"members_[{name!r}]", one.members_[name], "graphs", finite=False)


def _mixture(one: Any, see: Shapes) -> None:
    check_names(one, see)
    see.floats("bases_", one.bases_, "subspaces", "features", "dim")
    see.floats("means_", one.means_, "subspaces", "features")
    see.floats("mean_", one.mean_, "features")
    see.floats("weights_", one.weights_, "subspaces")
    see.floats("variances_", one.variances_, "subspaces", "dim")
    see.floats("noise_variances_", one.noise_variances_, "subspaces")
    if "outlier_ranges_" in vars(one):
        see.floats("outlier_ranges_", one.outlier_ranges_, "features")
    if "noise_factors_" in vars(one):
        see.floats("noise_factors_", one.noise_factors_, "groups")
        see.same("length of noise_groups_", np.shape(one.noise_groups_), (see["groups"],))
    _records(one, see, see["subspaces"])


def _kernel_model(one: Any, see: Shapes) -> None:
    check_names(one, see)
    exact = type(one._union) is ExactUnion
    sizes = {} if exact and one._union.kernel is None else {"features": see["features"]}
    inside = see.part("_union", one._union, ExactUnion, LowRankUnion, **sizes)
    see.sizes["subspaces"] = inside["subspaces"]
    members_and_coefs(see, one.members_, one.coefs_)
    see.floats("subspace_distances_", one.subspace_distances_, "subspaces", "subspaces",
               finite=False)  # fmt: skip
    see.parts("runs_", one.runs_, None, KernelRun, subspaces=see["subspaces"])
    for k, history in enumerate(see.several("update_histories_", one.update_histories_)):
        see.floats(f"update_histories_[{k}]", history, None, finite=False)
    _records(one, see, see["subspaces"])


def _kernel_kmeans(one: Any, see: Shapes) -> None:
    check_names(one, see)
    see.floats("_means", one._means, "samples", "clusters")
    see.floats("_mean_squares", one._mean_squares, "clusters")
    if one._fitted_kernel is not None:
        see.part("_fitted_kernel", one._fitted_kernel, Kernel)
        see.floats("_X_fit", one._X_fit, "samples", "features")
    _records(one, see, see["clusters"])


def _detector(one: Any, see: Shapes) -> None:
    check_names(one, see)
    inside = see.part("_columns", one._columns, Columns, features=see["features"])
    see.floats("_center", one._center, inside["used"])
    if one._ensemble is not None:
        see.part("_ensemble", one._ensemble, Ensemble, used=inside["used"])
    _records(one, see, 0)


def _imputer(one: Any, see: Shapes) -> None:
    check_names(one, see)
    check_features(see, one._features, one._model)
    if one.indicator_ is not None:
        see.part("indicator_", one.indicator_, MissingIndicator, features=see["features"])
    _records(one, see, 0)


def _pipeline(one: Pipeline, see: Shapes) -> None:
    """Each step by itself: scikit-learn compares the number of features when data pass."""
    for name, step in one.steps:
        see.text("the name of a step", name)
        if isinstance(step, BaseEstimator):
            see.part(name, step, type(step))


def _check_of(kind: type) -> Callable[[Any, Shapes], None]:
    """Return what is checked of an estimator."""
    if issubclass(kind, KernelUnion):
        return _kernel_model
    return OTHERS.get(kind, _linear)


OTHERS: dict[type, Callable[[Any, Shapes], None]] = {
    clustering.SubspaceClustering: _clustering,
    mixture.SubspaceMixture: _mixture,
    outliers.SubspaceOutlierDetector: _detector,
    tables.SubspaceImputer: _imputer,
    baselines.KernelKMeans: _kernel_kmeans,
}
CHECKS: dict[type, Callable[[Any, Shapes], None]] = {
    Memory: _memory,
    Stream: _stream,
    Merge: _merge,
    Pipeline: _pipeline,
    tables.SubspaceImputer: _imputer,
    **{
        kind: _check_of(kind)
        for family in (linear, kernel, mixture, outliers, clustering, baselines)
        for kind in (getattr(family, name) for name in family.__all__)
    },
}
