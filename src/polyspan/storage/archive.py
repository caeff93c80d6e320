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
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.storage import saved_types
from polyspan.storage.structure import StructureError

FORMAT = "polyspan model"
FORMAT_VERSION = 2
MANIFEST = "polyspan.json"
SCHEMA = "schema.json"  # skops's name for the tree of objects

# skops numbers arrays; sparse ones are archives themselves.
_ARRAY = re.compile(r"[0-9]+\.np[yz]")
# Bytes of a number, where an array has none: data may be converted to the type of an empty array.
_WIDEST = 16
# Bytes of arrays that nodes may name together, relative to the file. A model names some arrays
# twice or three times; code that stacks what one array is named for takes so much.
_MOST_NAMED = 10
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


def arrays_and_tree(content: bytes) -> tuple[dict[str, bytes], Any]:
    """Return the arrays and the tree of objects of an archive that skops has just written."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, json.loads(members.pop(SCHEMA))


def with_manifest(arrays: dict[str, bytes], tree: Any) -> bytes:
    """Return the file: skops's arrays, a tree with the names of files, and a manifest."""
    buffer = io.BytesIO(with_tree(arrays, tree))
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


def with_tree(arrays: dict[str, bytes], tree: Any) -> bytes:
    """Return an archive of arrays and a tree of objects, without a manifest."""
    return _stored({**arrays, SCHEMA: json.dumps(tree).encode()})


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


def read_checked(path: Path) -> tuple[dict[str, bytes], Any, ModelInfo]:
    """Read a file and check everything that can be checked without creating an object.

    Returns its arrays, the tree of objects, with the names that the file has, and the manifest.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # through links; a pipe would wait for ever
        raise ModelFileError(f"{path} is a folder, a pipe or a device, not a model file")
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _checked(archive, len(content))
    except (ModelFileError, StructureError) as error:
        damaged = "is damaged: " if isinstance(error, StructureError) else ""
        raise ModelFileError(f"{path} {damaged}{error}") from error
    except zipfile.BadZipFile as error:
        if not zipfile.is_zipfile(io.BytesIO(content)) and not content.startswith(b"PK"):
            raise ModelFileError(f"{path} is not a polyspan model") from error
        raise ModelFileError(f"{path} is damaged: {error}") from error
    except Exception as error:  # whatever damage makes zipfile, json and NumPy stumble over
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _checked(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, bytes], Any, ModelInfo]:
    """Check a file of so many bytes, from the outside to the inside."""
    names = archive.namelist()
    if MANIFEST not in names:
        other = " (skops wrote it, but not polyspan's save_model)" if SCHEMA in names else ""
        raise ModelFileError(f"is not a polyspan model{other}")
    foreign = [name for name in names if not _ARRAY.fullmatch(name)]
    if sorted(foreign) != sorted((MANIFEST, SCHEMA)) or not _is_stored(archive, size):
        raise StructureError("its archive is not as save_model writes it")
    manifest = _checked_manifest(json.loads(archive.read(MANIFEST)))
    if digest(archive) != manifest["sha256"]:
        raise StructureError("its content does not match its checksum; save or copy it again")
    arrays = {name: archive.read(name) for name in names if name not in foreign}
    for name, member in arrays.items():
        _check_array(name, member, size)
    tree = json.loads(archive.read(SCHEMA))
    if not isinstance(tree, dict):
        raise StructureError("it holds no object")
    refused = sorted(set(saved_types.refused_types(tree)))
    if refused:
        raise ModelFileError(
            f"holds {', '.join(refused)}, which no polyspan model needs: refused, and nothing was "
            "loaded"
        )
    top = saved_types.type_name(tree)
    if top not in (*saved_types.ESTIMATORS, saved_types.PIPELINE):
        raise ModelFileError(f"holds {top}, which is no estimator of polyspan")
    _check_references(tree, {name: len(member) for name, member in arrays.items()}, size)
    versions = {str(name): str(value) for name, value in manifest["versions"].items()}
    written, own = manifest["format_version"], manifest["sha256"]
    return arrays, tree, ModelInfo(top.rpartition(".")[2], written, versions, own)


def _is_stored(archive: zipfile.ZipFile, size: int) -> bool:
    """Tell whether an archive of so many bytes holds no more than that, each member once.

    A small file that unpacks to a huge one needs compression, or members that share their bytes.
    """
    members = archive.infolist()
    names = {member.filename for member in members}
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    total = sum(max(member.file_size, member.compress_size) for member in members)
    return stored and len(names) == len(members) and total <= size


def _check_array(name: str, member: bytes, size: int) -> None:
    """Refuse an array that is pickled, or whose header promises more than is there."""
    if name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(member)) as inner:
            if not _is_stored(inner, len(member)):
                raise StructureError("its archive is not as save_model writes it")
            for part in inner.namelist():
                _check_array(f"{name}/{part}", inner.read(part), size)
        return
    stream = io.BytesIO(member)
    shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    if dtype.hasobject:
        raise ModelFileError(f"holds pickled objects in {name}: refused")
    if stream.tell() + math.prod(shape) * dtype.itemsize != len(member):
        raise StructureError(f"the array {name} is not as long as it says")
    # Without numbers, or with numbers without bytes, an array may be as wide as it likes.
    if not dtype.itemsize or max(shape, default=0) > size:
        raise StructureError(f"{name} is an array of {dtype} of shape {shape}")
    if not math.prod(shape) and dtype.itemsize > _WIDEST:
        raise StructureError(f"{name} is an empty array of {dtype}")


def _check_references(tree: Any, lengths: Mapping[str, int], size: int) -> None:
    """Refuse a tree that becomes larger in memory than it is in its file, of so many bytes.

    skops writes an object out wherever it occurs, under one id, and loads the first of these. So a
    chain of lists, each with the one before and a stub with its id, would double at each step: what
    has one id must be the same everywhere. And an array is read once, under the id that it was
    saved with: many ids read it many times.

    Parameters
    ----------
    lengths : mapping
        Lengths of the members with arrays.
    """
    _check_contents(tree, lengths, {})
    nodes = list(saved_types.nodes_of(tree))
    named = sum(_length(node, lengths) for node in nodes)
    by_id = {node.get("__id__") or ("without an id", id(node)): node for node in nodes}
    loaded = sum(_length(node, lengths) for node in by_id.values())
    if loaded > sum(lengths.values()) or named > _MOST_NAMED * size:
        raise StructureError("the same arrays are named in it again and again")


def _check_contents(part: Any, lengths: Mapping[str, int], known: dict[Any, bytes]) -> bytes:
    """Return a checksum of a part, in which ids do not count, and of arrays only their length.

    A generator has new ids and names of files wherever it occurs.
    """
    found = hashlib.sha256()
    if isinstance(part, list):
        found.update(b"[")
        for one in part:
            found.update(_check_contents(one, lengths, known))
    elif isinstance(part, dict):
        found.update(b"{")
        for name, value in {**part, "__id__": None, "file": _length(part, lengths)}.items():
            found.update(ascii(name).encode() + b":" + _check_contents(value, lengths, known))
    else:
        found.update(ascii(part).encode())
    own = part.get("__id__") if isinstance(part, dict) else None
    if own and known.setdefault(own, found.digest()) != found.digest():
        raise StructureError("objects in it hold each other again and again, or one holds itself")
    return found.digest()


def _length(node: dict[str, Any], lengths: Mapping[str, int]) -> int:
    return lengths.get(node["file"], 0) if "file" in node else 0


def _checked_manifest(manifest: Any) -> dict[str, Any]:
    """Refuse a file of another format or version."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError("is not a polyspan model")
    made_by, written = manifest.setdefault("versions", {}), manifest.get("format_version")
    if not isinstance(made_by, dict):
        raise StructureError(f"versions={made_by!r}")
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise StructureError(f"format_version={written!r}")
    if written == 1:
        raise ModelFileError(
            "was written by a development version of polyspan and names files of its source, "
            "which move: fit and save the model again"
        )
    if written > FORMAT_VERSION:
        raise ModelFileError(
            f"has the format version {written} of polyspan {made_by.get('polyspan', '?')}; this is "
            f"polyspan {version('polyspan')}, which reads version {FORMAT_VERSION}: upgrade "
            "polyspan"
        )
    if not isinstance(manifest.get("sha256"), str):
        raise StructureError(f"sha256={manifest.get('sha256')!r}")
    return manifest


def digest(archive: zipfile.ZipFile) -> str:
    """Return the SHA-256 of all members but the manifest, with their names and lengths."""
    found = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {MANIFEST}):
        member = archive.read(name)
        found.update(f"{name}\0{len(member)}\0".encode())
        found.update(member)
    return found.hexdigest()
