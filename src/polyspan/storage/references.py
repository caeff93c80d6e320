"""How large the tree of a file becomes, where it names an object or an array more than once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from polyspan.storage.saved_types import nodes_of
from polyspan.storage.structure import StructureError

#: Bytes of arrays that nodes may name together, relative to the file. A model names some arrays
#: twice or three times; code that stacks what one array is named for takes so much.
MOST_NAMED = 10


def check_references(tree: Any, lengths: Mapping[str, int], size: int) -> None:
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
    nodes = list(nodes_of(tree))
    named = sum(_length(node, lengths) for node in nodes)
    by_id = {node.get("__id__") or ("without an id", id(node)): node for node in nodes}
    loaded = sum(_length(node, lengths) for node in by_id.values())
    if loaded > sum(lengths.values()) or named > MOST_NAMED * size:
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
