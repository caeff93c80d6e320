"""What must hold in the estimators that a model file may hold: ours, pipelines, transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import preprocessing
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline

from polyspan import baselines, clustering, kernel, linear, mixture, outliers, tables
from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.prediction import KernelUnion
from polyspan.linear._solve.merging import Merge
from polyspan.linear.streaming import Stream
from polyspan.outliers.learning import Columns, Ensemble
from polyspan.storage.parts import LAYOUT, imputer_features, spans
from polyspan.storage.structure import (
    Rule,
    Shapes,
    StructureError,
    flags,
    floats,
    ints,
    numbers,
    part,
    parts,
    texts,
    wholes,
)

#: What several estimators have, if they have it. NaN says "not known".
RECORDS: tuple[Rule, ...] = (
    flags("trimmed_ _without_weight", "samples", optional=True),
    floats(
        "objective_history_ anneal_history_ log_likelihood_history_ dimension_estimates_ evidence_ "
        "cuts_",
        None, finite=False, optional=True,
    ),
    floats("confidence_", "samples", finite=False, optional=True),
    numbers(
        "objective_ noise_variance_ n_iter_ agreement_ certainty_ log_likelihood_ inertia_ error_ "
        "duality_gap_ contradiction_ offset_ n_samples_seen_ n_seen_ held_out_error_ "
        "outlier_weight_ q_ rank_ lam_",
        optional=True,
    ),
)  # fmt: skip


def _names(one: Any, see: Shapes) -> None:
    """Check the number of features, and their names."""
    n: Any = getattr(one, "n_features_in_", None)
    see.whole("n_features_in_", n, 1, 2**31)
    see.sizes.setdefault("features", int(n))
    see.same("n_features_in_", n, see["features"])
    if hasattr(one, "feature_names_in_"):
        see.words("feature_names_in_", one.feature_names_in_, "features")


def _labels(one: Any, see: Shapes) -> None:
    """Check labels, which are below the number of subspaces, and the graph that they are of."""
    held = vars(one)
    if "labels_" in held:
        below = see.sizes.get("subspaces", 0)
        see.ints("labels_", one.labels_, "samples", least=-1, below=below)
    if "affinity_" in held:
        see.same("type of affinity_", type(one.affinity_), scipy.sparse.csr_array)
        see.same("shape of affinity_", one.affinity_.shape, (see["samples"],) * 2)
        one.affinity_.check_format(full_check=True)


def _linear(one: Any, see: Shapes) -> None:
    """Every model with bases and a mean."""
    held = vars(one)
    if "bases_" in held or "_stream" not in held:
        see.floats("bases_", one.bases_, "subspaces", "features", "dim")
        see.floats("mean_", one.mean_, "features")
    if "_stream" in held:
        known = {name: see.sizes[name] for name in ("features", "subspaces") if name in see.sizes}
        see.part("_stream", one._stream, Stream, **known)
        if "subspaces" in known and one._stream.first is None:
            see.same("n_subspaces", one.n_subspaces, see["subspaces"])
    for name in ("n_subspaces_", "n_clusters_"):
        if name in held:
            see.same(name, held[name], see["subspaces"])
    if "subspace_dim_" in held:
        see.whole("subspace_dim_", one.subspace_dim_, 0, see["features"])
    if "merge_history_" in held:
        see.parts("merge_history_", one.merge_history_, None, Merge)


def _members(one: Any, see: Shapes) -> None:
    """Graphs that took part in a clustering."""
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


def _groups(one: Any, see: Shapes) -> None:
    if "noise_factors_" in vars(one):
        see.floats("noise_factors_", one.noise_factors_, "groups")
        see.same("length of noise_groups_", np.shape(one.noise_groups_), (see["groups"],))


def _candidates(one: Any, see: Shapes) -> None:
    """Sizes that a mixture was chosen from."""
    table = vars(one).get("candidates_")
    if table is None:
        return
    names = ("log_likelihood", "n_parameters", "bic", "n_subspaces", "subspace_dims")
    see.same("columns of candidates_", tuple(table), names)
    see.words("candidates_['subspace_dims']", table["subspace_dims"], "candidates")
    for name in ("n_subspaces", "n_parameters"):
        see.ints(f"candidates_[{name!r}]", table[name], "candidates")
    for name in ("log_likelihood", "bic"):
        see.floats(f"candidates_[{name!r}]", table[name], "candidates", finite=False)


def _kernel_model(one: Any, see: Shapes) -> None:
    exact = type(one._union) is ExactUnion
    sizes = {} if exact and one._union.kernel is None else {"features": see["features"]}
    see.part("_union", one._union, ExactUnion, LowRankUnion, subspaces=None, **sizes)
    for k, history in enumerate(see.several("update_histories_", one.update_histories_)):
        see.floats(f"update_histories_[{k}]", history, None, finite=False)


def _kernel_kmeans(one: Any, see: Shapes) -> None:
    if one._fitted_kernel is not None:
        see.part("_fitted_kernel", one._fitted_kernel, Kernel)
        see.floats("_X_fit", one._X_fit, "samples", "features")


def _steps(one: Pipeline, see: Shapes) -> None:
    """Each step by itself: scikit-learn compares the number of features when data pass."""
    for name, step in one.steps:
        see.text("the name of a step", name)
        if isinstance(step, BaseEstimator):
            see.part(name, step, type(step))


def _dtypes(one: Any, see: Shapes) -> None:
    held = vars(one)
    for name in ("_fit_dtype", "_fill_dtype"):
        # Data are converted to this type: one of many bytes would take much memory.
        if name in held and (not isinstance(held[name], np.dtype) or held[name].itemsize > 16):
            raise StructureError(f"{name} of {see.where} is {held[name]!r:.40}")


def _numbers(names: str, *shape: str) -> Rule:
    """Return the rule for arrays of a transformer, which some options leave out.

    They may hold NaN, for columns without entries.
    """
    return floats(names, *shape, finite=False, optional=True)


_INDICATOR = part("indicator_", MissingIndicator, optional=True, features="features")
_DIRECTIONS = (
    _numbers("components_", "components", "features"),
    _numbers("explained_variance_ explained_variance_ratio_ singular_values_", "components"),
    _numbers("mean_ var_", "features"),
)
#: Transformers of scikit-learn that a pipeline may hold: they learn arrays and carry no function,
#: no other estimator of free choice, and nothing that is random once they are fitted.
TRANSFORMERS: dict[type, Sequence[Rule]] = {
    preprocessing.StandardScaler: (_numbers("mean_ var_ scale_", "features"),),
    preprocessing.MinMaxScaler: (
        _numbers("min_ scale_ data_min_ data_max_ data_range_", "features"),
    ),
    preprocessing.MaxAbsScaler: (_numbers("scale_ max_abs_", "features"),),
    preprocessing.RobustScaler: (_numbers("center_ scale_", "features"),),
    preprocessing.Normalizer: (),
    preprocessing.PowerTransformer: (
        _numbers("lambdas_", "features"),
        part("_scaler", preprocessing.StandardScaler, optional=True, features="features"),
    ),
    preprocessing.QuantileTransformer: (
        _numbers("references_", "quantiles"),
        _numbers("quantiles_", "quantiles", "features"),
    ),
    SimpleImputer: (_numbers("statistics_", "features"), _INDICATOR),
    KNNImputer: (
        _numbers("_fit_X", "samples", "features"),
        flags("_mask_fit_X", "samples", "features", optional=True),
        flags("_valid_mask", "features", optional=True),
        _INDICATOR,
    ),
    MissingIndicator: (
        ints("features_", None, least=0, below="features"),
        wholes("_n_features", "features", "features"),
    ),
    VarianceThreshold: (_numbers("variances_", "features"),),
    **dict.fromkeys((PCA, IncrementalPCA, TruncatedSVD), _DIRECTIONS),
}
LINEAR: tuple[Rule, ...] = (
    _linear,
    floats("anchors_", "subspaces", "features", optional=True),
)
KERNEL: tuple[Rule, ...] = (
    _kernel_model,
    spans("members_", "coefs_"),
    floats("subspace_distances_", "subspaces", "subspaces", finite=False),
    parts("runs_", None, KernelRun, subspaces="subspaces"),
)
#: Estimators that are neither linear models nor kernel models.
OTHERS: dict[type, Sequence[Rule]] = {
    clustering.SubspaceClustering: (
        *LINEAR,
        texts("source_ verdict_"),
        floats("_axes", "features", None, optional=True),
        part("_mixture", mixture.SubspaceMixture, optional=True, features=None, dim=None),
        _members,
    ),
    mixture.SubspaceMixture: (
        floats("bases_", "subspaces", "features", "dim"),
        floats("means_", "subspaces", "features"),
        floats("mean_", "features"),
        floats("weights_ noise_variances_", "subspaces"),
        floats("variances_", "subspaces", "dim"),
        floats("outlier_ranges_", "features", optional=True),
        _groups,
        _candidates,
    ),
    outliers.SubspaceOutlierDetector: (
        part("_columns", Columns, features="features", used=None),
        floats("_center", "used"),
        part("_ensemble", Ensemble, optional=True, used="used"),
    ),
    tables.SubspaceImputer: (imputer_features, _INDICATOR),
    baselines.KernelKMeans: (
        floats("_means", "samples", "subspaces"),
        floats("_mean_squares", "subspaces"),
        _kernel_kmeans,
    ),
}


def _rules_of(kind: type) -> Sequence[Rule]:
    """Return what must hold in an estimator of ours."""
    own = KERNEL if issubclass(kind, KernelUnion) else OTHERS.get(kind, LINEAR)
    return (_names, *own, _labels, *RECORDS)


#: Types of the object at the top of a file: every public estimator.
ESTIMATORS: dict[str, type] = {
    **{
        f"polyspan.{name}": getattr(family, name)
        for family in (linear, kernel, mixture, outliers, clustering)
        for name in family.__all__
    },
    "polyspan.SubspaceImputer": tables.SubspaceImputer,
    **{f"polyspan.baselines.{name}": getattr(baselines, name) for name in baselines.__all__},
}
#: What must hold in each type that a model file may hold.
CHECKS: dict[type, Sequence[Rule]] = {
    **LAYOUT,
    **{kind: (_names, *rules, _dtypes) for kind, rules in TRANSFORMERS.items()},
    **{kind: _rules_of(kind) for kind in ESTIMATORS.values()},
    Pipeline: (_steps,),
}


def check_structure(model: Any) -> None:
    """Raise a `StructureError` where the parts of a model do not fit each other."""
    Shapes(type(model).__name__, CHECKS).run(model)
