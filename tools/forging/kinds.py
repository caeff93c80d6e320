"""Ways to forge a model file: each changes one, and says what it did."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from forging.opened import Opened, header, npy, plain

Kind = Callable[[np.random.RandomState, Opened], str | None]
#: Every way to forge, by name.
KINDS: dict[str, Kind] = {}

FAR = (-1, -2, 7, 1000, 2**16, 2**30, 2**31 - 1, -(2**31), 2**40, 2**62)
ODD_NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e30, 1e300)
ODD_TYPES = ("f2", "f4", ">f8", "c16", "i1", "i2", "u8", "i8", "?", "U4", "S3", "M8[s]")
ODD_VALUES = (
    "10000000000", "1000000000", "2147483648", "1000000", "5000", "1000", "-1", "0", "1", "2.5",
    "NaN", "Infinity", "-Infinity", "1e308", "1e-308", "null", "true", '"x"', '""', "[]", "[1, 2]",
    "{}", "1" * 4000, "[[[]]]", '["a", "b", "c"]', '"anneal"', '"exact"', '"mm"', '"poly"', '"loo"',
    "[1000000000, 1000000000]",
)  # fmt: skip
#: Names that classes have, and that an attribute of the same name would hide.
HIDING = (
    "_parameter_constraints", "predict", "_validate", "__class__", "__dict__", "__sklearn_tags__",
    "get_params", "_prior", "anneal_steps", "init", "solver", "n_subspaces", "affine", "sizes",
    "_takes_missing", "blocks", "is_used", "gaussians", "__setstate__", "_nearest",
)  # fmt: skip


def kind(function: Kind) -> Kind:
    """Register a way to forge under the name of its function."""
    KINDS[function.__name__.replace("_", " ")] = function
    return function


def _one(rng: np.random.RandomState, things: Any) -> Any:
    things = list(things)
    return things[rng.randint(len(things))] if things else None


def _array(rng: np.random.RandomState, file: Opened, kinds: str = "biufU") -> Any:
    """Return the name of an array with numbers, and the array."""
    found = file.arrays().items()
    name = _one(rng, [name for name, array in found if array.size and array.dtype.kind in kinds])
    return name, None if name is None else file.arrays()[name]


@kind
def entries_out_of_bounds(rng: np.random.RandomState, file: Opened) -> str | None:
    """Point anywhere."""
    name, array = _array(rng, file, "iu")
    if array is None:
        return None
    places = rng.randint(array.size, size=_one(rng, (1, 3, array.size)))
    limits = np.iinfo(array.dtype)
    value = int(np.clip(_one(rng, (*FAR, array.size, len(np.atleast_1d(array)))),
                        limits.min, limits.max))  # fmt: skip
    array = array.copy()
    array.flat[places] = value
    file.put(name, array)
    return f"{name}: {len(places)} entries are {value}"


@kind
def cycles(rng: np.random.RandomState, file: Opened) -> str | None:
    """Point to itself, or back."""
    name, array = _array(rng, file, "i")
    if array is None:
        return None
    place = rng.randint(array.size)
    value = _one(rng, (place, 0, rng.randint(place + 1)))
    array = array.copy()
    array.flat[place] = min(value, np.iinfo(array.dtype).max)
    file.put(name, array)
    return f"{name}: entry {place} is {value}"


@kind
def cut_short(rng: np.random.RandomState, file: Opened) -> str | None:
    """Keep the first rows."""
    name, array = _array(rng, file)
    if array is None or array.ndim == 0:
        return None
    axis = rng.randint(array.ndim)
    n_kept = _one(rng, (0, 1, array.shape[axis] // 2, array.shape[axis] - 1))
    file.put(name, np.take(array, np.arange(n_kept), axis=axis))
    return f"{name}: {n_kept} of {array.shape[axis]} along axis {axis}"


@kind
def drawn_out(rng: np.random.RandomState, file: Opened) -> str | None:
    """Repeat rows."""
    name, array = _array(rng, file)
    if array is None or array.ndim == 0:
        return None
    axis = rng.randint(array.ndim)
    more = _one(rng, (1, array.shape[axis], 10))
    file.put(name, np.concatenate([array, np.take(array, np.zeros(more, int), axis=axis)], axis))
    return f"{name}: {more} more along axis {axis}"


@kind
def another_shape(rng: np.random.RandomState, file: Opened) -> str | None:
    """Keep the numbers and change the shape."""
    name, array = _array(rng, file)
    if array is None:
        return None
    shapes = [array.T, array.ravel(), array[None], array[..., None], array.ravel()[0]]
    changed = np.asarray(_one(rng, shapes))
    file.put(name, changed)
    return f"{name}: {changed.shape} for {array.shape}"


@kind
def another_type(rng: np.random.RandomState, file: Opened) -> str | None:
    """Change the type of the numbers."""
    name, array = _array(rng, file)
    if array is None:
        return None
    dtype = _one(rng, ODD_TYPES)
    with np.errstate(all="ignore"):
        try:
            file.put(name, array.astype(dtype))
        except (ValueError, TypeError):
            return None
    return f"{name}: {dtype} for {array.dtype}"


@kind
def odd_numbers(rng: np.random.RandomState, file: Opened) -> str | None:
    """Write what no fit gives."""
    name, array = _array(rng, file, "f")
    if array is None:
        return None
    places = rng.randint(array.size, size=_one(rng, (1, array.size)))
    array, value = array.copy(), _one(rng, ODD_NUMBERS)
    with np.errstate(all="ignore"):
        array.flat[places] = value
    file.put(name, array)
    return f"{name}: {len(places)} numbers are {value}"


@kind
def wide_without_bytes(rng: np.random.RandomState, file: Opened) -> str | None:
    """Promise many numbers that take no bytes."""
    name, _ = _array(rng, file)
    descr, shape = _one(
        rng,
        [("<f8", (0, 2**40)), ("<f8", (2**40, 0)), ("|S0", (2**40,)), ("<U0", (2**33, 3)),
         ("|V0", (2**33,)), ("<i8", (2**20, 0, 2**20))],
    )  # fmt: skip
    file.members[name] = header(descr, shape)
    return f"{name}: {descr} of {shape}"


@kind
def sparse_parts(rng: np.random.RandomState, file: Opened) -> str | None:
    """Change indices, shape, length or format of a sparse array."""
    name = _one(rng, file.sparse())
    if name is None:
        return None
    with zipfile.ZipFile(io.BytesIO(file.members[name])) as source:
        parts = {part: np.load(io.BytesIO(source.read(part))) for part in source.namelist()}
    part = _one(rng, parts)
    array = parts[part].copy()
    if array.dtype.kind in "iu":
        array.flat[rng.randint(array.size, size=_one(rng, (1, array.size)))] = min(
            _one(rng, FAR), np.iinfo(array.dtype).max
        )
    elif array.ndim == 0:
        array = np.array(_one(rng, (b"csc", b"coo", b"bsr", b"dia", b"lil", b"csr")))
    else:
        array = array[: _one(rng, (0, len(array) // 2, len(array) - 1))]
    parts[part] = array
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each, numbers in parts.items():
            archive.writestr(each, npy(numbers))
    file.members[name] = buffer.getvalue()
    return f"{name}: another {part}"


@kind
def members_swapped(rng: np.random.RandomState, file: Opened) -> str | None:
    """Exchange two arrays."""
    names = [name for name in file.members if name.endswith(".npy")]
    if len(names) < 2:
        return None
    a, b = rng.choice(names, 2, replace=False)
    file.members[a], file.members[b] = file.members[b], file.members[a]
    return f"{a} and {b}"


@kind
def one_array_many_times(rng: np.random.RandomState, file: Opened) -> str | None:
    """Name one array by many nodes: a small file that would fill the memory."""
    arrays = [node for node in file.nodes("NdArrayNode") if "file" in node]
    place = _one(rng, file.nodes("ListNode", "TupleNode"))
    if place is None or not arrays:
        return None
    largest = max(arrays, key=lambda node: len(file.members[node["file"]]))
    node = copy.deepcopy(_one(rng, [largest, *arrays]))
    file.put(node["file"], np.zeros(50_000) if rng.randint(2) else file.arrays()[node["file"]])
    n, ids = int(rng.choice([10, 300, 3000])), _one(rng, ("none", "own", "same"))
    place["content"] = [dict(node) for _ in range(n)]
    for k, one in enumerate(place["content"]):
        if ids == "none":
            one.pop("__id__", None)
        elif ids == "own":
            one["__id__"] = 10**12 + k
    return f"{node['file']} named by {n} nodes, ids: {ids}"


@kind
def parts_repeated(rng: np.random.RandomState, file: Opened) -> str | None:
    """Repeat one part of a list or tuple."""
    place = _one(rng, [n for n in file.nodes("ListNode", "TupleNode") if n["content"]])
    if place is None:
        return None
    part = _one(rng, place["content"])
    limit = max(2, 3_000_000 // len(json.dumps(part)))  # of bytes
    n = min(int(rng.choice([2, 20, 1000])), limit)
    whole = [part] * n
    place["content"] = [*place["content"], *whole] if rng.randint(2) else whole
    return f"{n} times one part"


@kind
def parts_lost(rng: np.random.RandomState, file: Opened) -> str | None:
    """Cut a list or tuple, or turn it around."""
    place = _one(rng, [n for n in file.nodes("ListNode", "TupleNode") if n["content"]])
    if place is None:
        return None
    content = place["content"]
    place["content"] = _one(rng, ([], content[:1], content[:-1], content[::-1]))
    return f"{len(place['content'])} of {len(content)} parts"


@kind
def nodes_swapped(rng: np.random.RandomState, file: Opened) -> str | None:
    """Put one node in the place of another, or both in each other's place."""
    nodes = [node for node in file.nodes() if node is not file.tree]
    if rng.randint(2):  # of one loader: these fit best
        loader = _one(rng, nodes)["__loader__"]
        nodes = [node for node in nodes if node["__loader__"] == loader]
    if len(nodes) < 2:
        return None
    a, b = (nodes[k] for k in rng.randint(len(nodes), size=2))
    before, after = copy.deepcopy(a), copy.deepcopy(b)
    a.clear()
    a.update(after)
    if rng.randint(2) and not any(b is node for node in file.nodes()):
        return "one lost"
    if rng.randint(2):
        b.clear()
        b.update(before)
    return f"{before['__loader__']} and {after['__loader__']}"


@kind
def values_changed(rng: np.random.RandomState, file: Opened) -> str | None:
    """Change one value of JSON: a parameter, or a number that was learned."""
    place, name = _one(rng, file.used_parameters())
    value = _one(rng, ODD_VALUES)
    place[name] = plain(value)
    return f"{name}={value[:30]}"


@kind
def inner_values_changed(rng: np.random.RandomState, file: Opened) -> str | None:
    """Change one value within a tuple or dict, such as the state of a generator of numbers."""
    lists = [one["content"] for one in file.nodes("ListNode", "TupleNode")]
    dicts = [list(one["content"].values()) for one in file.nodes("DictNode")]
    nodes = [node for some in lists + dicts for node in some if node["__loader__"] == "JsonNode"]
    node, value = _one(rng, nodes), _one(rng, ODD_VALUES)
    if node is None:
        return None
    before, node["content"] = node["content"], value
    return f"{value[:30]} for {before[:30]}"


@kind
def parts_of_other_kinds(rng: np.random.RandomState, file: Opened) -> str | None:
    """Put a value of JSON where there is an array or an object."""
    nodes = [node for node in file.nodes("NdArrayNode", "ObjectNode", "TupleNode", "DictNode")
             if node is not file.tree]  # fmt: skip
    node, value = _one(rng, nodes), _one(rng, ODD_VALUES)
    if node is None:
        return None
    loader = node["__loader__"]
    node.clear()
    node.update(plain(value))
    return f"{value[:30]} for {loader}"


@kind
def attributes_lost(rng: np.random.RandomState, file: Opened) -> str | None:
    """Delete an attribute."""
    node = _one(rng, file.nodes("ObjectNode"))
    content = node["content"]["content"]
    name = _one(rng, content)
    if name is None:
        return None
    del content[name]
    node["content"]["key_types"]["content"] = node["content"]["key_types"]["content"][1:]
    return f"{name} of {node['__class__']}"


@kind
def attributes_that_hide(rng: np.random.RandomState, file: Opened) -> str | None:
    """Add an attribute that hides one of the class."""
    node, name, value = (
        _one(rng, file.nodes("ObjectNode")),
        _one(rng, HIDING),
        _one(rng, ODD_VALUES),
    )
    content = node["content"]
    keys = content["key_types"]["content"]
    if not keys:
        return None
    content["content"][name] = plain(value)
    content["key_types"]["content"] = [*keys, keys[0]]
    return f"{name}={value[:30]} of {node['__class__']}"


@kind
def shared_again_and_again(rng: np.random.RandomState, file: Opened) -> str | None:
    """Build a chain of lists that each hold the one before twice, by its id."""
    node, chain = _one(rng, file.used_parameters()), plain(0)
    depth = int(rng.choice([10, 40, 80]))
    like = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    chain = {**like, "__id__": 10**13, "content": [plain(0)]}
    for k in range(depth):
        again = {**like, "__id__": 10**13 + k, "content": []}
        chain = {**like, "__id__": 10**13 + k + 1, "content": [chain, again]}
    place, name = node
    place[name] = chain
    return f"{name}: a chain of {depth}"


@kind
def ids_confused(rng: np.random.RandomState, file: Opened) -> str | None:
    """Give a node the id of another."""
    nodes = [node for node in file.nodes() if "__id__" in node]
    a, b = (nodes[k] for k in rng.randint(len(nodes), size=2))
    a["__id__"] = _one(rng, (b["__id__"], 0, None, "x", [1], -1))
    return f"{a['__loader__']} has the id of a {b['__loader__']}"


def forged(rng: np.random.RandomState, content: bytes) -> tuple[bytes, str, str]:
    """Return a forged file, the name of the kind, and what was done."""
    while True:
        file = Opened.of(content)
        name = _one(rng, KINDS)
        done = KINDS[name](rng, file)
        while done is not None and rng.random_sample() < 0.15:  # several at once
            more = _one(rng, KINDS)
            with contextlib.suppress(Exception):  # the tree may no longer be one
                found = KINDS[more](rng, file)
                done += f"; {more}: {found}" if found else ""
        if done is not None:
            return file.content(), name, done
