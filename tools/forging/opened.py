"""A model file taken apart, and put together again with a checksum that fits."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.storage.archive import MANIFEST, SCHEMA, digest


@dataclass
class Opened:
    """The members of a model file, and its tree of objects."""

    members: dict[str, bytes]
    tree: Any
    manifest: dict[str, Any]

    @classmethod
    def of(cls, content: bytes) -> Opened:
        """Take a file apart."""
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            members = {name: source.read(name) for name in source.namelist()}
        tree, manifest = json.loads(members.pop(SCHEMA)), json.loads(members.pop(MANIFEST))
        return cls(members, tree, manifest)

    def content(self) -> bytes:
        """Return the file, whose checksum fits."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, member in self.members.items():
                archive.writestr(name, member)
            archive.writestr(SCHEMA, json.dumps(self.tree))
            archive.writestr(MANIFEST, json.dumps({**self.manifest, "sha256": digest(archive)}))
        return buffer.getvalue()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the dense arrays by the names of their members."""
        names = [name for name in self.members if name.endswith(".npy")]
        return {name: np.load(io.BytesIO(self.members[name])) for name in names}

    def sparse(self) -> list[str]:
        """Return the names of the sparse arrays."""
        return [name for name in self.members if name.endswith(".npz")]

    def put(self, name: str, array: np.ndarray) -> None:
        """Write an array with a header that fits."""
        self.members[name] = npy(array)

    def nodes(self, *loaders: str) -> list[dict[str, Any]]:
        """Return the nodes of the tree that have one of these loaders; all without one."""
        return [node for node in _nodes(self.tree) if not loaders or node["__loader__"] in loaders]

    def used_parameters(self) -> list[tuple[dict[str, Any], str]]:
        """Return the attributes of objects that have a value of JSON, with their names."""
        return [
            (node["content"]["content"], name)
            for node in self.nodes("ObjectNode")
            for name, value in node["content"]["content"].items()
            if value["__loader__"] == "JsonNode"
        ]


def npy(array: np.ndarray) -> bytes:
    """Return the bytes of a file that holds an array."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return the bytes of an array without numbers."""
    buffer = io.BytesIO()
    about = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue()


def plain(value: Any) -> dict[str, Any]:
    """Return the node of a value of JSON."""
    return {
        "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
        "content": value if isinstance(value, str) else json.dumps(value), "is_json": True,
    }  # fmt: skip


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        if "__loader__" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)
