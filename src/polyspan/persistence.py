"""Model files, saved with skops, so that loading one runs no code from the file.

Needs skops: `pip install skops`.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from array_api_compat import is_array_api_obj
from sklearn.utils.validation import check_is_fitted

from polyspan import saved_types
from polyspan.arrays import is_numpy
from polyspan.checks import import_optional
from polyspan.files import atomic_write, check_target

FORMAT = "polyspan model"
FORMAT_VERSION = 2
MANIFEST = "polyspan.json"
SCHEMA = "schema.json"  # skops's name for the tree of objects

ESTIMATORS = tuple(saved_types.ESTIMATORS.values())
# Attributes that scikit-learn's callbacks set; they are no part of the fitted model.
_CALLBACK_ATTRIBUTES = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


class ModelFileError(ValueError):
    """Raised for a file that is no polyspan model, is damaged, or holds a forbidden type."""


@dataclass(frozen=True)
class ModelInfo:
    """The manifest of a model file."""

    estimator: str
    """Name of the class."""
    format_version: int
    versions: dict[str, str]
    """Versions of polyspan, NumPy and scikit-learn with which it was saved."""
    sha256: str
    """Checksum of the content."""


def save_model(model: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Save a fitted estimator of polyspan.

    The file is a skops archive with a manifest. It is written completely or not at all. It holds
    numbers and names, but no code: callbacks are not saved, and a model whose kernel is a Python
    function is refused. For a model fitted on a dask array, the lazy `labels_` are left out, since
    the file does not hold the data to compute them; `predict` returns them again.

    Parameters
    ----------
    model : estimator of `polyspan` or `polyspan.baselines`, fitted
    path : str or Path
        ".skops" is the usual ending.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

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
    with atomic_write(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | Path) -> Any:
    """Load a model that `save_model` wrote.

    Nothing in the file is executed. It can only create polyspan's own estimators and their
    attributes, arrays, numbers and strings: a file with any other type is refused. The checksum
    detects damage. It does not detect a forged file, but such a file is limited to the same types.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    model : estimator
        Its predictions are bit-equal to those of the saved model. One exception: a kernel model
        rounds the last bit differently for the very array object it was fitted on than for a
        copy; after loading, every array counts as a copy.
    """
    content, tree, _ = _read_checked(Path(path))
    try:
        saved_types.to_import_paths(tree)
        model = _skops().loads(_with_tree(content, tree), trusted=saved_types.trusted_types())
        check_is_fitted(model)
    except Exception as error:  # skops and NumPy raise many types for a damaged tree
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return model


def model_info(path: str | Path) -> ModelInfo:
    """Read the manifest of a model file, after the same checks as `load_model`."""
    return _read_checked(Path(path))[2]


def model_bytes(model: Any) -> bytes:
    """Return the content of a model file."""
    if type(model) not in ESTIMATORS:
        known = ", ".join(kind.__name__ for kind in ESTIMATORS)
        raise TypeError(f"cannot save a {type(model).__name__}: polyspan saves {known}")
    check_is_fitted(model)
    bare = copy.copy(model)  # leaves lazy labels out
    labels = getattr(bare, "labels_", None)
    if is_array_api_obj(labels) and not is_numpy(labels):
        raise TypeError(
            f"cannot save this {type(model).__name__}: its arrays are of "
            f"{type(labels).__module__}, and a model file holds those of NumPy; fit it on NumPy"
        )
    for name in _CALLBACK_ATTRIBUTES:
        bare.__dict__.pop(name, None)
    content = _skops().dumps(bare)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read(SCHEMA))
    unknown = saved_types.to_file_names(tree)
    if unknown:
        raise TypeError(
            f"cannot save this {type(model).__name__}: it holds {', '.join(unknown)}, and a "
            "model file holds no code; use a kernel by its name, or 'precomputed'"
        )
    buffer = io.BytesIO(_with_tree(content, tree))
    with zipfile.ZipFile(buffer, "a") as archive:
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "estimator": saved_types.type_name(tree),
            "versions": {name: version(name) for name in ("polyspan", "numpy", "scikit-learn")},
            "sha256": _digest(archive),
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=2))
    return buffer.getvalue()


def _with_tree(content: bytes, tree: Any) -> bytes:
    """Return an archive with another tree of objects, and without a manifest."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive,
    ):
        for member in source.infolist():
            if member.filename not in (SCHEMA, MANIFEST):
                archive.writestr(member.filename, source.read(member))
        archive.writestr(SCHEMA, json.dumps(tree))
    return buffer.getvalue()


def _read_checked(path: Path) -> tuple[bytes, Any, ModelInfo]:
    """Read a file and check everything that can be checked without creating an object.

    Return the content, the tree of objects with the type names of the file, and the manifest.
    """
    _skops()
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return content, *_check_archive(path, archive, len(content))
    except zipfile.BadZipFile as error:
        if not zipfile.is_zipfile(io.BytesIO(content)) and not content.startswith(b"PK"):
            raise ModelFileError(f"{path} is not a polyspan model") from error
        raise ModelFileError(f"{path} is damaged: {error}") from error
    except (KeyError, ValueError, RecursionError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _check_archive(path: Path, archive: zipfile.ZipFile, size: int) -> tuple[Any, ModelInfo]:
    """Check an archive of `size` bytes: members, manifest, checksum and types, in this order."""
    _check_members(path, archive, size)
    manifest = _check_manifest(path, json.loads(archive.read(MANIFEST)))
    if _digest(archive) != manifest["sha256"]:
        raise ModelFileError(
            f"{path} is damaged: its content does not match its checksum; save or copy it again"
        )
    tree = json.loads(archive.read(SCHEMA))
    if not isinstance(tree, dict):
        raise ModelFileError(f"{path} is damaged: it holds no object")
    refused = sorted(set(saved_types.refused_types(tree)))
    if refused:
        raise ModelFileError(
            f"{path} holds {', '.join(refused)}, which no polyspan model needs: refused, and "
            "nothing was loaded"
        )
    top = saved_types.type_name(tree)
    if top not in saved_types.ESTIMATORS:
        raise ModelFileError(f"{path} holds {top}, which is no estimator of polyspan")
    return tree, ModelInfo(
        top.rpartition(".")[2],
        manifest["format_version"],
        {str(name): str(value) for name, value in manifest["versions"].items()},
        manifest["sha256"],
    )


def _check_members(path: Path, archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive that save_model would not write."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if MANIFEST not in names:
        other = " (skops wrote it, but not polyspan's save_model)" if SCHEMA in names else ""
        raise ModelFileError(f"{path} is not a polyspan model{other}")
    packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    overlapping = sum(max(member.file_size, member.compress_size) for member in members) > size
    if len(set(names)) < len(names) or packed or overlapping:
        # This also refuses a small file that unpacks to a huge one.
        raise ModelFileError(f"{path} is damaged: its archive is not as save_model writes it")


def _check_manifest(path: Path, manifest: Any) -> dict[str, Any]:
    """Refuse a file of another format or version."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a polyspan model")
    made_by = manifest.setdefault("versions", {})
    if not isinstance(made_by, dict):
        raise ModelFileError(f"{path} is damaged: versions={made_by!r}")
    if not isinstance(manifest["format_version"], int) or manifest["format_version"] < 1:
        raise ModelFileError(f"{path} is damaged: format_version={manifest['format_version']!r}")
    if manifest["format_version"] == 1:
        raise ModelFileError(
            f"{path} was written by a development version of polyspan and depends on its "
            "source files: fit and save the model again"
        )
    if manifest["format_version"] > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has the format version {manifest['format_version']} of polyspan "
            f"{made_by.get('polyspan', '?')}; this is polyspan {version('polyspan')}, which reads "
            f"version {FORMAT_VERSION}: upgrade polyspan"
        )
    return manifest


def _digest(archive: zipfile.ZipFile) -> str:
    """Return the SHA-256 of all members but the manifest, with their names and lengths."""
    digest = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {MANIFEST}):
        member = archive.read(name)
        digest.update(f"{name}\0{len(member)}\0".encode())
        digest.update(member)
    return digest.hexdigest()


def _skops() -> Any:
    return import_optional("skops.io", "saving and loading models needs skops: pip install skops")
