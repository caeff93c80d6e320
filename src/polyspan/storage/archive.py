"""The archive of a model file: how it is written, and all that is checked before it is loaded.

A file is a zip archive without compression: skops's tree of objects, one member for every array,
and a manifest. Nothing is unpacked to the disk, and nothing here creates an object of the tree.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import stat
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.storage import saved_types
from polyspan.storage.structure import StructureError
from polyspan.storage.structure.references import check_references

FORMAT = "polyspan model"
FORMAT_VERSION = 2
MANIFEST = "polyspan.json"
SCHEMA = "schema.json"  # skops's name for the tree of objects

# skops numbers arrays; sparse ones are archives themselves.
_ARRAY = re.compile(r"[0-9]+\.np[yz]")
# Bytes of a number, where an array has none: data may be converted to the type of an empty array.
_WIDEST = 16
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


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


def tree_of(content: bytes) -> Any:
    """Return the tree of objects of an archive that skops has just written."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return json.loads(archive.read(SCHEMA))


def with_manifest(content: bytes, tree: Any) -> bytes:
    """Return the file: skops's arrays, a tree with the names of files, and a manifest."""
    buffer = io.BytesIO(with_tree(content, tree))
    with zipfile.ZipFile(buffer, "a") as archive:
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "estimator": saved_types.type_name(tree),
            "versions": {name: version(name) for name in ("polyspan", "numpy", "scikit-learn")},
            "sha256": digest(archive),
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=2))
    return buffer.getvalue()


def with_tree(content: bytes, tree: Any) -> bytes:
    """Return an archive with another tree of objects, and without a manifest."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        members = {
            member.filename: source.read(member)
            for member in source.infolist()
            if member.filename not in (SCHEMA, MANIFEST)
        }
    return _stored({**members, SCHEMA: json.dumps(tree).encode()})


def _stored(members: dict[str, bytes]) -> bytes:
    """Return an archive without compression, also inside: SciPy packs sparse arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, member in members.items():
            if name.endswith(".npz"):
                with zipfile.ZipFile(io.BytesIO(member)) as inner:
                    member = _stored({part: inner.read(part) for part in inner.namelist()})
            archive.writestr(name, member)
    return buffer.getvalue()


def read_checked(path: Path) -> tuple[bytes, Any, ModelInfo]:
    """Read a file and check everything that can be checked without creating an object.

    Returns the content, the tree of objects, with the names that the file has, and the manifest.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # through links; a pipe would wait for ever
        raise ModelFileError(f"{path} is a folder, a pipe or a device, not a model file")
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return content, *_check(path, archive, len(content))
    except ModelFileError:
        raise
    except zipfile.BadZipFile as error:
        if not zipfile.is_zipfile(io.BytesIO(content)) and not content.startswith(b"PK"):
            raise ModelFileError(f"{path} is not a polyspan model") from error
        raise ModelFileError(f"{path} is damaged: {error}") from error
    except Exception as error:  # whatever damage makes zipfile, json and NumPy stumble over
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _check(path: Path, archive: zipfile.ZipFile, size: int) -> tuple[Any, ModelInfo]:
    """Check a file of so many bytes, from the outside to the inside."""
    _check_members(path, archive, size)
    manifest = _check_manifest(path, json.loads(archive.read(MANIFEST)))
    if digest(archive) != manifest["sha256"]:
        raise ModelFileError(
            f"{path} is damaged: its content does not match its checksum; save or copy it again"
        )
    lengths = {}
    for name in archive.namelist():
        if name not in (SCHEMA, MANIFEST):
            member = archive.read(name)
            lengths[name] = len(member)
            _check_array(path, name, member, size)
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
    if top not in (*saved_types.ESTIMATORS, saved_types.PIPELINE):
        raise ModelFileError(f"{path} holds {top}, which is no estimator of polyspan")
    try:
        check_references(tree, lengths, size)
    except StructureError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from error
    return tree, ModelInfo(
        top.rpartition(".")[2],
        manifest["format_version"],
        {str(name): str(value) for name, value in manifest["versions"].items()},
        manifest["sha256"],
    )


def _check_members(path: Path, archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive that save_model would not write."""
    names = archive.namelist()
    if MANIFEST not in names:
        other = " (skops wrote it, but not polyspan's save_model)" if SCHEMA in names else ""
        raise ModelFileError(f"{path} is not a polyspan model{other}")
    foreign = [name for name in names if not _ARRAY.fullmatch(name)]
    if sorted(foreign) != sorted((MANIFEST, SCHEMA)) or not _is_stored(archive, size):
        raise ModelFileError(f"{path} is damaged: its archive is not as save_model writes it")


def _is_stored(archive: zipfile.ZipFile, size: int) -> bool:
    """Tell whether an archive of so many bytes holds no more than that, each member once.

    A small file that unpacks to a huge one needs compression, or members that share their bytes.
    """
    members = archive.infolist()
    names = {member.filename for member in members}
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    total = sum(max(member.file_size, member.compress_size) for member in members)
    return stored and len(names) == len(members) and total <= size


def _check_array(path: Path, name: str, member: bytes, size: int) -> None:
    """Refuse an array that is pickled, or whose header promises more than is there."""
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(member)) as inner:
            if not _is_stored(inner, len(member)):
                raise ModelFileError(
                    f"{path} is damaged: its archive is not as save_model writes it"
                )
            for part in inner.namelist():
                _check_array(path, f"{name}/{part}", inner.read(part), size)
        return
    stream = io.BytesIO(member)
    shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.hasobject:
        raise ModelFileError(f"{path} holds pickled objects in {name}: refused")
    if stream.tell() + math.prod(shape) * dtype.itemsize != len(member):
        raise ModelFileError(f"{path} is damaged: the array {name} is not as long as it says")
    # Without numbers, or with numbers without bytes, an array may be as wide as it likes.
    if not dtype.itemsize or max(shape, default=0) > size:
        raise ModelFileError(f"{path} is damaged: {name} is an array of {dtype} of shape {shape}")
    if not math.prod(shape) and dtype.itemsize > _WIDEST:
        raise ModelFileError(f"{path} is damaged: {name} is an empty array of {dtype}")


def _check_manifest(path: Path, manifest: Any) -> dict[str, Any]:
    """Refuse a file of another format or version."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a polyspan model")
    made_by = manifest.setdefault("versions", {})
    if not isinstance(made_by, dict):
        raise ModelFileError(f"{path} is damaged: versions={made_by!r}")
    written = manifest.get("format_version")
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise ModelFileError(f"{path} is damaged: format_version={written!r}")
    if written == 1:
        raise ModelFileError(
            f"{path} was written by a development version of polyspan and names files of its "
            "source, which move: fit and save the model again"
        )
    if written > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has the format version {written} of polyspan "
            f"{made_by.get('polyspan', '?')}; this is polyspan {version('polyspan')}, which reads "
            f"version {FORMAT_VERSION}: upgrade polyspan"
        )
    if not isinstance(manifest.get("sha256"), str):
        raise ModelFileError(f"{path} is damaged: sha256={manifest.get('sha256')!r}")
    return manifest


def digest(archive: zipfile.ZipFile) -> str:
    """Return the SHA-256 of all members but the manifest, with their names and lengths."""
    found = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {MANIFEST}):
        member = archive.read(name)
        found.update(f"{name}\0{len(member)}\0".encode())
        found.update(member)
    return found.hexdigest()
