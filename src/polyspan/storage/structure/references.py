"""How large the tree of a file becomes, where it names an object or an array more than once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from polyspan.storage.structure.shapes import StructureError

#: Bytes of arrays that nodes may name together, relative to the file. A model names some arrays
#: twice or three times; code that stacks what one array is named for takes so much.
MOST_NAMED = 10


class _Extent(NamedTuple):
    """What is below a node, each object as often as it is named."""

    nodes: int
    named: int
    """Bytes of arrays."""


def check_references(tree: Any, lengths: Mapping[str, int], size: int) -> None:
    """Refuse a tree that becomes larger in memory than it is in its file, of so many bytes.

    skops writes an object out wherever it occurs, under one id, and loads the first of these. So a
    chain of lists, each with the one before and a stub with its id, would double at each step. And
    an array is read once, under the id that it was saved with: many ids read it many times.

    Parameters
    ----------
    lengths : mapping
        Lengths of the members with arrays.
    """
    nodes = list(_nodes(tree))
    by_id: dict[Any, list[dict[str, Any]]] = {}
    loaded = 0
    for node in nodes:
        by_id.setdefault(_id(node), []).append(node)
    for same in by_id.values():
        loaded += max(_length(node, lengths) for node in same)
    extent = _extent(tree, by_id, lengths, {})
    if extent.nodes > len(nodes):
        raise StructureError("objects in it hold each other again and again")
    if loaded > sum(lengths.values()) or extent.named > MOST_NAMED * size:
        raise StructureError("the same arrays are named in it again and again")


def _nodes(tree: Any) -> Any:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "__loader__" in part:
                yield part
            part = list(part.values())
        if isinstance(part, list):
            waiting.extend(part)


def _id(node: dict[str, Any]) -> Any:
    return node.get("__id__") or ("without an id", id(node))


def _length(node: dict[str, Any], lengths: Mapping[str, int]) -> int:
    return lengths.get(node["file"], 0) if "file" in node else 0


def _extent(
    part: Any,
    by_id: Mapping[Any, list[dict[str, Any]]],
    lengths: Mapping[str, int],
    known: dict[Any, _Extent | None],
) -> _Extent:
    """Return the extent of a part: of an object the largest of all that have its id."""
    if isinstance(part, list):
        return _sum(part, by_id, lengths, known)
    if not isinstance(part, dict):
        return _Extent(0, 0)
    if "__loader__" not in part:
        return _sum(list(part.values()), by_id, lengths, known)
    own = _id(part)
    if own not in known:
        known[own] = None  # as long as what is below is counted
        below = [_sum(list(node.values()), by_id, lengths, known) for node in by_id[own]]
        named = [_length(node, lengths) for node in by_id[own]]
        known[own] = _Extent(
            1 + max(one.nodes for one in below),
            max(one.named + more for one, more in zip(below, named, strict=True)),
        )
    found = known[own]
    if found is None:
        raise StructureError("an object in it holds itself")
    return found


def _sum(
    parts: list[Any],
    by_id: Mapping[Any, list[dict[str, Any]]],
    lengths: Mapping[str, int],
    known: dict[Any, _Extent | None],
) -> _Extent:
    found = [_extent(part, by_id, lengths, known) for part in parts]
    return _Extent(sum(one.nodes for one in found), sum(one.named for one in found))
