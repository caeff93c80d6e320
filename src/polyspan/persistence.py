"""Models in files: saved with skops, so that loading one runs no code that the file brings.

Needs skops: `pip install skops`.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import is_array_api_obj
from sklearn.impute import MissingIndicator
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_is_fitted

from polyspan import baselines, models
from polyspan.arrays import is_numpy
from polyspan.files import check_target, whole_file
from polyspan.kernels import Kernel
from polyspan.kernels.low_rank import NystromMap
from polyspan.models.imputer_choice import Fill, Scaling
from polyspan.models.kernel_starts import KernelRun
from polyspan.models.kernel_unions import ExactUnion, LowRankUnion
from polyspan.models.streaming import Stream
from polyspan.solvers.adaptive import Merge
from polyspan.solvers.kernel_subspaces import KernelSubspaces
from polyspan.solvers.streaming import Memory

FORMAT = "polyspan model"
FORMAT_VERSION = 1
MANIFEST = "polyspan.json"
SCHEMA = "schema.json"  # skops's name for the tree of objects

#: What a file may hold at its top: every public estimator.
ESTIMATORS = tuple(
    getattr(package, name) for package in (models, baselines) for name in package.__all__
)
#: What fitted estimators are made of.
_PARTS = (
    ExactUnion,
    Fill,
    Kernel,
    KernelCenterer,
    KernelRun,
    KernelSubspaces,
    LowRankUnion,
    Memory,
    Merge,
    MissingIndicator,
    NystromMap,
    Stream,
    Scaling,
)
_NUMBERS = (np.bool_, np.int32, np.int64, np.float32, np.float64)
#: Which types each of skops's loaders may make; a loader that is not here is refused, so that no
#: function, method, or constructor call comes out of a file.
_ALLOWED: dict[str, tuple[type, ...]] = {
    "ObjectNode": ESTIMATORS + _PARTS,
    "DictNode": (dict,),
    "ListNode": (list,),
    "TupleNode": (tuple,),
    "JsonNode": (str,),
    "NdArrayNode": (np.ndarray, *_NUMBERS),
    "SparseMatrixNode": (scipy.sparse.csr_array,),
    "RandomStateNode": (np.random.RandomState,),
    "TypeNode": (str, int),  # of the keys of a dict
}
# Set on an estimator by scikit-learn's callbacks: living objects, not what was learned.
_CALLBACK_ATTRIBUTES = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


class ModelFileError(ValueError):
    """A file is no polyspan model, is damaged, or holds what a model may not hold."""


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself."""

    estimator: str
    """Name of the class."""
    format_version: int
    versions: dict[str, str]
    """Of polyspan, NumPy and scikit-learn, when it was saved."""
    sha256: str
    """Of the content."""


def save_model(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Save a fitted estimator of polyspan.

    The file is a skops archive with a manifest. It is written whole or not at all. Callbacks set on
    the estimator are not saved, nor is a kernel that is a Python function: a file holds numbers and
    names, no code. Of a model fitted on a dask array `labels_` are left out, which are yet to be
    computed from data that the file does not hold: `predict` gives them again.

    Parameters
    ----------
    model : estimator of `polyspan` or `polyspan.baselines`, fitted
    path : str or Path
        ".skops" is the usual ending.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.persistence import load_model, save_model
    >>> X = make_union_of_subspaces((40, 40), n_features=15, subspace_dim=2, random_state=0).X
    >>> model = MiCUSaL(2, 2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.skops")
    ...     again = load_model(Path(folder) / "model.skops")
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    check_target(path, overwrite=overwrite)
    content = model_bytes(model)
    with whole_file(path, overwrite=overwrite) as part:
        part.write_bytes(content)


def load_model(path: str | Path) -> Any:
    """Load a model that `save_model` wrote.

    Nothing in the file is executed. It can only create polyspan's own estimators, what those are
    made of, arrays, numbers and strings: a file with any other type is refused. The checksum
    notices damage; someone who forges a file can forge it too, and is held to the same types.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    model : estimator
        Its predictions are bit-equal to those of the one that was saved. (A kernel model that is
        asked about the very array it was fitted to rounds otherwise in the last bit than for a
        copy of it; after loading, every array is such a copy.)
    """
    content, _ = _checked(Path(path))
    trusted = sorted({_name(kind) for kinds in _ALLOWED.values() for kind in kinds})
    try:
        model = _skops().loads(content, trusted=trusted)
        check_is_fitted(model)
    except Exception as error:  # whatever a damaged tree makes skops and NumPy stumble over
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return model


def model_info(path: str | Path) -> ModelInfo:
    """Read what a model file says about itself, after the same checks as `load_model`."""
    return _checked(Path(path))[1]


def model_bytes(model: Any) -> bytes:
    """Return the content of a model file."""
    if type(model) not in ESTIMATORS:
        known = ", ".join(kind.__name__ for kind in ESTIMATORS)
        raise TypeError(f"cannot save a {type(model).__name__}: polyspan saves {known}")
    check_is_fitted(model)
    bare = copy.copy(model)  # without lazy labels
    labels = getattr(bare, "labels_", None)
    if is_array_api_obj(labels) and not is_numpy(labels):
        raise TypeError(
            f"cannot save this {type(model).__name__}: its arrays are of "
            f"{type(labels).__module__}, and a model file holds those of NumPy; fit it on NumPy"
        )
    for name in _CALLBACK_ATTRIBUTES:
        bare.__dict__.pop(name, None)
    buffer = io.BytesIO(_skops().dumps(bare))
    with zipfile.ZipFile(buffer, "a") as archive:
        refused = sorted(_refused(json.loads(archive.read(SCHEMA))))
        if refused:
            raise TypeError(
                f"cannot save this {type(model).__name__}: it holds {', '.join(refused)}, and a "
                "model file holds no code; use a kernel by its name, or 'precomputed'"
            )
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "estimator": type(model).__name__,
            "versions": {name: version(name) for name in ("polyspan", "numpy", "scikit-learn")},
            "sha256": _digest(archive),
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=2))
    return buffer.getvalue()


def _checked(path: Path) -> tuple[bytes, ModelInfo]:
    """Read a file and check everything that can be checked without creating an object."""
    _skops()
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return content, _check(path, archive)
    except zipfile.BadZipFile as error:
        if not zipfile.is_zipfile(io.BytesIO(content)) and not content.startswith(b"PK"):
            raise ModelFileError(f"{path} is not a polyspan model") from error
        raise ModelFileError(f"{path} is damaged: {error}") from error
    except (KeyError, ValueError, RecursionError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _check(path: Path, archive: zipfile.ZipFile) -> ModelInfo:
    names = archive.namelist()
    if MANIFEST not in names:
        other = " (skops wrote it, but not polyspan's save_model)" if SCHEMA in names else ""
        raise ModelFileError(f"{path} is not a polyspan model{other}")
    if len(set(names)) < len(names) or any(
        member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()
    ):
        # Also what a small file that unpacks to a huge one would need.
        raise ModelFileError(f"{path} is damaged: its archive is not as save_model writes it")
    manifest = json.loads(archive.read(MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a polyspan model")
    made_by = manifest.get("versions", {})
    if not isinstance(manifest["format_version"], int) or manifest["format_version"] < 1:
        raise ModelFileError(f"{path} is damaged: format_version={manifest['format_version']!r}")
    if manifest["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has the format version {manifest['format_version']} of polyspan "
            f"{made_by.get('polyspan', '?')}; this is polyspan {version('polyspan')}, which reads "
            f"versions up to {FORMAT_VERSION}: upgrade polyspan"
        )
    if _digest(archive) != manifest["sha256"]:
        raise ModelFileError(
            f"{path} is damaged: its content does not match its checksum; save or copy it again"
        )
    tree = json.loads(archive.read(SCHEMA))
    refused = sorted(_refused(tree))
    if refused:
        raise ModelFileError(
            f"{path} holds {', '.join(refused)}, which no polyspan model needs: refused, and "
            "nothing was loaded"
        )
    top = f"{tree['__module__']}.{tree['__class__']}"
    if top not in {_name(kind) for kind in ESTIMATORS}:
        raise ModelFileError(f"{path} holds {top}, which is no estimator of polyspan")
    return ModelInfo(
        tree["__class__"],
        manifest["format_version"],
        {str(name): str(value) for name, value in made_by.items()},
        manifest["sha256"],
    )


def _refused(tree: Any) -> Iterator[str]:
    """Yield the types in a skops tree that are not allowed where they stand."""
    if isinstance(tree, list):
        for node in tree:
            yield from _refused(node)
    elif isinstance(tree, dict):
        if "__class__" in tree or "__loader__" in tree:
            kind = f"{tree.get('__module__')}.{tree.get('__class__')}"
            loader = str(tree.get("__loader__"))
            if kind not in {_name(allowed) for allowed in _ALLOWED.get(loader, ())}:
                yield kind
        for node in tree.values():
            yield from _refused(node)


def _digest(archive: zipfile.ZipFile) -> str:
    """Return the SHA-256 of all members but the manifest, with their names and lengths."""
    digest = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {MANIFEST}):
        member = archive.read(name)
        digest.update(f"{name}\0{len(member)}\0".encode())
        digest.update(member)
    return digest.hexdigest()


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("saving and loading models needs skops: pip install skops") from error
    return skops.io
