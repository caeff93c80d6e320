"""Types that a model file may hold, and their names in the file.

A file must still load after a class has moved to another module. So it never names that module: it
has public names for estimators and for classes of other packages, and names of the form
`polyspan.parts.Kernel`, which belong to the file format, for the attributes of fitted estimators. A
file can name only the types in the tables below. If a class moves or is renamed, its name here
stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import decomposition, feature_selection, impute, preprocessing
from sklearn.pipeline import Pipeline

from polyspan import baselines, clustering, kernel, linear, mixture, outliers, tables
from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitted_unions import ExactUnion, LowRankUnion
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.nystrom import NystromMap
from polyspan.linear._solve.memory import Memory
from polyspan.linear._solve.merging import Merge
from polyspan.linear.streaming import Stream
from polyspan.outliers.learning import Columns, Ensemble
from polyspan.outliers.members import Member
from polyspan.tables.column_types import ColumnType
from polyspan.tables.components import Components
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Column, Encoding, Margin
from polyspan.tables.features import Feature
from polyspan.tables.filling import SubspaceModel
from polyspan.tables.forests import Forest, SecondStage
from polyspan.tables.gaussian import Gaussian
from polyspan.tables.mixture_fill import Fill, Scaling
from polyspan.tables.model import TableModel

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
#: What a file may hold at its top besides: it ends in one of these estimators.
PIPELINE = "sklearn.pipeline.Pipeline"
#: What the other steps of a pipeline may be: transformers that learn arrays and carry no function,
#: no other estimator of free choice, and nothing that is random once they are fitted.
TRANSFORMERS: dict[str, type] = {
    f"sklearn.{family.__name__.rpartition('.')[2]}.{name}": getattr(family, name)
    for family, names in (
        (
            preprocessing,
            ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer",
             "PowerTransformer", "QuantileTransformer"),
        ),
        (impute, ("SimpleImputer", "KNNImputer", "MissingIndicator")),
        (feature_selection, ("VarianceThreshold",)),
        (decomposition, ("PCA", "IncrementalPCA", "TruncatedSVD")),
    )
    for name in names
}  # fmt: skip
#: What fitted estimators are made of.
_PARTS: dict[str, type] = {
    "polyspan.parts.Column": Column,
    "polyspan.parts.ColumnType": ColumnType,
    "polyspan.parts.Components": Components,
    "polyspan.parts.DetectorColumns": Columns,
    "polyspan.parts.DetectorEnsemble": Ensemble,
    "polyspan.parts.DetectorMember": Member,
    "polyspan.parts.Donors": Donors,
    "polyspan.parts.Encoding": Encoding,
    "polyspan.parts.ExactUnion": ExactUnion,
    "polyspan.parts.Feature": Feature,
    "polyspan.parts.Fill": Fill,
    "polyspan.parts.Forest": Forest,
    "polyspan.parts.Gaussian": Gaussian,
    "polyspan.parts.Kernel": Kernel,
    "polyspan.parts.KernelRun": KernelRun,
    "polyspan.parts.KernelSubspaces": KernelSubspaces,
    "polyspan.parts.LowRankUnion": LowRankUnion,
    "polyspan.parts.Margin": Margin,
    "polyspan.parts.Memory": Memory,
    "polyspan.parts.Merge": Merge,
    "polyspan.parts.NystromMap": NystromMap,
    "polyspan.parts.Scaling": Scaling,
    "polyspan.parts.SecondStage": SecondStage,
    "polyspan.parts.Stream": Stream,
    "polyspan.parts.SubspaceModel": SubspaceModel,
    "polyspan.parts.TableModel": TableModel,
    "sklearn.preprocessing.KernelCenterer": preprocessing.KernelCenterer,
}
_ARRAYS: dict[str, type] = {
    "numpy.ndarray": np.ndarray,
    "numpy.bool": np.bool_,
    "numpy.int32": np.int32,
    "numpy.int64": np.int64,
    "numpy.float32": np.float32,
    "numpy.float64": np.float64,
}
#: Types that each of skops's loaders may create. Other loaders are refused, so that a file cannot
#: contain a function, a method or a call of a constructor.
_ALLOWED: dict[str, dict[str, type]] = {
    "ObjectNode": {**ESTIMATORS, **_PARTS, **TRANSFORMERS, PIPELINE: Pipeline},
    "DictNode": {"builtins.dict": dict},
    "ListNode": {"builtins.list": list},
    "TupleNode": {"builtins.tuple": tuple},
    "JsonNode": {"builtins.str": str},
    "NdArrayNode": _ARRAYS,
    "DTypeNode": {"numpy.dtype": np.dtype},
    "SparseMatrixNode": {"scipy.sparse.csr_array": scipy.sparse.csr_array},
    "RandomStateNode": {"numpy.random.RandomState": np.random.RandomState},
    "TypeNode": {"builtins.str": str, "builtins.int": int},  # types of the keys of a dict
}


def trusted_types() -> list[str]:
    """Return the import paths of all allowed types, in the form that skops takes."""
    return sorted({_import_path(kind) for kinds in _ALLOWED.values() for kind in kinds.values()})


def type_name(tree: Any) -> str:
    """Return the type name that a node of a skops tree has."""
    return f"{tree.get('__module__')}.{tree.get('__class__')}"


def refused_types(tree: Any) -> Iterator[str]:
    """Yield the names of the types in a file's tree that are not allowed at their place."""
    for node in _nodes(tree):
        inside = type_name(node) == PIPELINE and node is not tree
        if inside or type_name(node) not in _allowed_by(node):
            yield type_name(node)


def to_file_names(tree: Any) -> list[str]:
    """Replace import paths by file names in a tree of skops; return the types without one."""
    unknown = set()
    for node in _nodes(tree):
        names = {_import_path(kind): name for name, kind in _allowed_by(node).items()}
        if type_name(node) in names:
            _rename(node, names[type_name(node)])
        else:
            unknown.add(type_name(node))
    return sorted(unknown)


def to_import_paths(tree: Any) -> None:
    """Replace file names by current import paths in a tree without refused types."""
    for node in _nodes(tree):
        _rename(node, _import_path(_allowed_by(node)[type_name(node)]))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a tree that names a type."""
    if isinstance(tree, list):
        for node in tree:
            yield from _nodes(node)
    elif isinstance(tree, dict):
        below = list(tree.values())
        if "__class__" in tree or "__loader__" in tree:
            yield tree
        for node in below:
            yield from _nodes(node)


def _allowed_by(node: dict[str, Any]) -> dict[str, type]:
    return _ALLOWED.get(str(node.get("__loader__")), {})


def _rename(node: dict[str, Any], name: str) -> None:
    node["__module__"], _, node["__class__"] = name.rpartition(".")


def _import_path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
