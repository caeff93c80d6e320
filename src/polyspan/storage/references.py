"""How large the tree of a file becomes, where it names an object or an array more than once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from polyspan.storage.saved_types import nodes_of
from polyspan.storage.structure import StructureError

#: Bytes of arrays that nodes may name together, relative to the file. A model names some arrays
#: twice or three times; code that stacks what one array is named for takes so much.
MOST_NAMED = 10


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
    nodes = list(nodes_of(tree))
    by_id: dict[Any, list[dict[str, Any]]] = {}
    for node in nodes:
        by_id.setdefault(_id(node), []).append(node)
    n_nodes, named = _extent(tree, by_id, lengths)
    if n_nodes > len(nodes):
        raise StructureError("objects in it hold each other again and again")
    loaded = sum(max(_length(node, lengths) for node in same) for same in by_id.values())
    if loaded > sum(lengths.values()) or named > MOST_NAMED * size:
        raise StructureError("the same arrays are named in it again and again")


def _extent(
    tree: Any, by_id: Mapping[Any, list[dict[str, Any]]], lengths: Mapping[str, int]
) -> tuple[int, int]:
    """Return how many nodes, and bytes of arrays, a tree has, each as often as it is named.

    Of an object they are the largest of all nodes that have its id.
    """
    known: dict[Any, tuple[int, int] | None] = {}

    def extent(part: Any) -> tuple[int, int]:
        if isinstance(part, list):
            return total(part)
        if not isinstance(part, dict):
            return 0, 0
        if "__loader__" not in part:
            return total(part.values())
        own = _id(part)
        if own not in known:
            known[own] = None  # as long as what is below is counted
            below = [(*total(node.values()), _length(node, lengths)) for node in by_id[own]]
            known[own] = (
                1 + max(n_nodes for n_nodes, _, _ in below),
                max(named + length for _, named, length in below),
            )
        found = known[own]
        if found is None:
            raise StructureError("an object in it holds itself")
        return found

    def total(parts: Iterable[Any]) -> tuple[int, int]:
        found = [extent(part) for part in parts]
        return sum(n_nodes for n_nodes, _ in found), sum(named for _, named in found)

    return extent(tree)


def _id(node: dict[str, Any]) -> Any:
    return node.get("__id__") or ("without an id", id(node))


def _length(node: dict[str, Any], lengths: Mapping[str, int]) -> int:
    return lengths.get(node["file"], 0) if "file" in node else 0
