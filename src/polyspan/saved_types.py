"""What a model file may hold, and the names by which a file calls it.

A file must outlive the module that a class is written in. So it never names that module: it calls
estimators and classes of other packages by their public names, and what fitted estimators are made
of by names of the form `polyspan.parts.Kernel`, which belong to the format and to no module. The
tables below are all that a file can name; a class may move, or be renamed, and its entry stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import decomposition, feature_selection, impute, preprocessing
from sklearn.pipeline import Pipeline

from polyspan import baselines, kernel, mixture, union
from polyspan.kernel._solve.subspaces import KernelSubspaces
from polyspan.kernel.fitting import KernelRun
from polyspan.kernel.functions import Kernel
from polyspan.kernel.gram import ExactUnion
from polyspan.kernel.nystrom import NystromMap
from polyspan.kernel.prediction import LowRankUnion
from polyspan.mixture.filling import Fill, Scaling
from polyspan.union._solve.memory import Memory
from polyspan.union._solve.merging import Merge
from polyspan.union.streaming import Stream

#: What a file may hold at its top: every public estimator.
ESTIMATORS: dict[str, type] = {
    **{
        f"polyspan.{name}": getattr(family, name)
        for family in (union, kernel, mixture)
        for name in family.__all__
    },
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
    "polyspan.parts.ExactUnion": ExactUnion,
    "polyspan.parts.Fill": Fill,
    "polyspan.parts.Kernel": Kernel,
    "polyspan.parts.KernelRun": KernelRun,
    "polyspan.parts.KernelSubspaces": KernelSubspaces,
    "polyspan.parts.LowRankUnion": LowRankUnion,
    "polyspan.parts.Memory": Memory,
    "polyspan.parts.Merge": Merge,
    "polyspan.parts.NystromMap": NystromMap,
    "polyspan.parts.Scaling": Scaling,
    "polyspan.parts.Stream": Stream,
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
#: Which types each of skops's loaders may make; a loader that is not here is refused, so that no
#: function, method, or constructor call comes out of a file.
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
    "TypeNode": {"builtins.str": str, "builtins.int": int},  # of the keys of a dict
}


def trusted() -> list[str]:
    """Return where all of these types are now, as skops wants to be told."""
    return sorted({_place(kind) for kinds in _ALLOWED.values() for kind in kinds.values()})


def name_of(tree: Any) -> str:
    """Return what a node of a skops tree calls its type."""
    return f"{tree.get('__module__')}.{tree.get('__class__')}"


def refused(tree: Any) -> Iterator[str]:
    """Yield the types, by the names of files, that are not allowed where they stand in a tree."""
    for node in _nodes(tree):
        inside = name_of(node) == PIPELINE and node is not tree
        if inside or name_of(node) not in _allowed_by(node):
            yield name_of(node)


def to_public(tree: Any) -> list[str]:
    """Put the names of files into a tree that skops wrote; return the types that have none."""
    unknown = set()
    for node in _nodes(tree):
        names = {_place(kind): name for name, kind in _allowed_by(node).items()}
        if name_of(node) in names:
            _rename(node, names[name_of(node)])
        else:
            unknown.add(name_of(node))
    return sorted(unknown)


def to_places(tree: Any) -> None:
    """Put the modules in which types are now into a tree of which nothing was refused."""
    for node in _nodes(tree):
        _rename(node, _place(_allowed_by(node)[name_of(node)]))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every part of a tree that says what type it is of."""
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


def _place(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
