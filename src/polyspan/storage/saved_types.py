"""Types that a model file may hold, and their names in the file.

A file must still load after a class has moved to another module. So it never names that module: it
has public names for estimators and for classes of other packages, and names of the form
`polyspan.parts.Kernel`, which belong to the file format, for the attributes of fitted estimators. A
file can name only the types in the tables below. If a class moves, its name here stays the same; if
it is renamed, its old name stands in `_NAMES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KernelCenterer

from polyspan.outliers import learning, members
from polyspan.storage import estimators
from polyspan.storage.parts import LAYOUT

ESTIMATORS = estimators.ESTIMATORS
#: What a file may hold at its top besides estimators: it ends in one of them.
PIPELINE = "sklearn.pipeline.Pipeline"
#: What the other steps of a pipeline may be.
TRANSFORMERS: dict[str, type] = {
    f"{'.'.join(kind.__module__.split('.')[:2])}.{kind.__name__}": kind
    for kind in estimators.TRANSFORMERS
}
#: Names of classes that are not theirs in the package.
_NAMES: dict[type, str] = {
    learning.Columns: "polyspan.parts.DetectorColumns",
    learning.Ensemble: "polyspan.parts.DetectorEnsemble",
    members.Member: "polyspan.parts.DetectorMember",
    KernelCenterer: "sklearn.preprocessing.KernelCenterer",
}
#: What fitted estimators are made of.
_PARTS: dict[str, type] = {
    _NAMES.get(kind, f"polyspan.parts.{kind.__name__}"): kind for kind in LAYOUT
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
    for node in nodes_of(tree):
        inside = type_name(node) == PIPELINE and node is not tree
        if inside or type_name(node) not in _allowed_by(node):
            yield type_name(node)


def to_file_names(tree: Any) -> list[str]:
    """Replace import paths by file names in a tree of skops; return the types without one."""
    unknown = set()
    for node in nodes_of(tree):
        names = {_import_path(kind): name for name, kind in _allowed_by(node).items()}
        if type_name(node) in names:
            _rename(node, names[type_name(node)])
        else:
            unknown.add(type_name(node))
    return sorted(unknown)


def to_import_paths(tree: Any) -> None:
    """Replace file names by current import paths in a tree without refused types."""
    for node in nodes_of(tree):
        _rename(node, _import_path(_allowed_by(node)[type_name(node)]))


def nodes_of(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a tree that names a type."""
    if isinstance(tree, list):
        for node in tree:
            yield from nodes_of(node)
    elif isinstance(tree, dict):
        below = list(tree.values())
        if "__class__" in tree or "__loader__" in tree:
            yield tree
        for node in below:
            yield from nodes_of(node)


def _allowed_by(node: dict[str, Any]) -> dict[str, type]:
    return _ALLOWED.get(str(node.get("__loader__")), {})


def _rename(node: dict[str, Any], name: str) -> None:
    node["__module__"], _, node["__class__"] = name.rpartition(".")


def _import_path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"
