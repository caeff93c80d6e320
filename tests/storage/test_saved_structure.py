"""Files whose types are allowed and whose numbers do not fit each other are refused when loaded."""

import dataclasses
import io
import json
import os
import sys
import zipfile

import numpy as np
import pytest

from polyspan import (
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceOutlierDetector,
    baselines,
    load_model,
    save_model,
)
from polyspan.storage import saved_types
from polyspan.storage.models import ModelFileError, model_bytes
from polyspan.storage.structure import CHECKS, StructureError, check_structure
from polyspan.storage.structure.shapes import Shapes
from polyspan.tables.column_types import ColumnType
from polyspan.tables.donors import Donors
from polyspan.tables.encoding import Column, Encoding
from polyspan.tables.forests import Forest
from saved_models import DATA, attributes, fitted, node, rewritten


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def plain(value):
    return {**node("JsonNode", "builtins.str"), "content": json.dumps(value)}


def refused(path, content, match, **changes):
    path.write_bytes(rewritten(content, **changes))
    with pytest.raises(ModelFileError, match=match):
        load_model(path)


@pytest.fixture(scope="module")
def content():
    return model_bytes(fitted(MiCUSaL)[0])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.skops"


def member(content, name):
    """Return the name of the member that holds an attribute."""
    tree = json.loads(zipfile.ZipFile(io.BytesIO(content)).read("schema.json"))
    return attributes(tree)[name]["file"]


def test_every_type_of_the_format_has_its_check():
    assert set(CHECKS) == set(saved_types._ALLOWED["ObjectNode"].values())


@pytest.fixture(scope="module")
def forest():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((30, 4))
    return Forest.fit(X, X[:, :2] ** 2, 3, 2, 0)


def checked(one, **sizes):
    Shapes("file", CHECKS, **sizes).run(one)


def with_entry(array, place, value):
    changed = array.copy()
    changed.flat[place] = value
    return changed


def test_a_forest_of_ours_is_accepted(forest):
    checked(forest, seen=4, outputs=2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("roots", lambda f: with_entry(f.roots, 1, 10**6)),
        ("roots", lambda f: with_entry(f.roots, 1, -1)),
        ("roots", lambda f: f.roots[:0]),
        ("roots", lambda f: f.roots.astype(np.float64)),
        ("left", lambda f: with_entry(f.left, 0, len(f.features))),
        ("left", lambda f: with_entry(f.left, 0, 0)),
        ("right", lambda f: with_entry(f.right, f.right.argmax(), 1)),
        ("right", lambda f: with_entry(f.right, 0, -5)),
        ("right", lambda f: f.right[:-1]),
        ("left", lambda f: f.left.astype(np.int64)),
        ("features", lambda f: with_entry(f.features, 0, 4)),
        ("features", lambda f: f.features[:-1]),
        ("thresholds", lambda f: f.thresholds[:-1]),
        ("thresholds", lambda f: with_entry(f.thresholds, 0, np.nan)),
        ("values", lambda f: f.values[:-1]),
        ("values", lambda f: f.values[:, :1]),
        ("values", lambda f: f.values.astype(np.float64)),
    ],
)
def test_trees_that_lead_out_of_their_arrays_or_back(forest, name, change):
    forged = dataclasses.replace(forest, **{name: change(forest)})
    with pytest.raises(StructureError):
        checked(forged, seen=4, outputs=2)


def test_tables_whose_parts_do_not_fit():
    table = np.random.RandomState(0).standard_normal((20, 3))
    encoding = Encoding.of(table, [0, 0, 0], [False] * 3)
    checked(encoding, columns=3)
    first, *others = encoding.columns
    for forged in (
        dataclasses.replace(first, stop=2**40),
        dataclasses.replace(first, start=-1),
        dataclasses.replace(first, n_levels=5),
        dataclasses.replace(first, margin=None),
        Column(0, 4, 5, None, np.ones(5) / 5, 7),
    ):
        with pytest.raises(StructureError):
            checked(dataclasses.replace(encoding, columns=(forged, *others)), columns=3)
    rows = np.arange(20)
    donors = Donors.of(rows, table[:, 0], table[:, 1], np.ones(20), table[:, 2])
    checked(donors, rows=20)
    for change in ({"rows": with_entry(donors.rows, 3, 20)}, {"values": donors.values[:-1]}):
        with pytest.raises(StructureError):
            checked(dataclasses.replace(donors, **change), rows=20)
    for name in ("S1000000000", "(10000,10000)f8", "V100000000", "i4," * 100):
        with pytest.raises(StructureError):
            checked(ColumnType(name))
    for name in ("datetime64[us, Europe/Berlin]", "str", "string[pyarrow]", "object", "Int64", ""):
        checked(ColumnType(name))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("bases_", lambda a: a[:, :-1], r"bases_ of MiCUSaL has the shape \(2, 11, 2\)"),
        ("bases_", lambda a: with_entry(a, 3, np.nan), "bases_ of MiCUSaL holds NaN or infinity"),
        ("bases_", lambda a: a.astype("f2"), "bases_ of MiCUSaL is an array of float16"),
        ("bases_", lambda a: a.astype(">f8"), "bases_ of MiCUSaL is an array of >f8"),
        ("mean_", lambda a: a[None], r"mean_ of MiCUSaL has the shape \(1, 12\)"),
        ("labels_", lambda a: with_entry(a, 5, 2**30), "labels_ of MiCUSaL has numbers from 0 to"),
        ("labels_", lambda a: with_entry(a, 5, -2), "and may have from -1 to 1"),
        ("labels_", lambda a: np.zeros((0, 2**40), "i1"), "is an array of int8 of shape"),
        ("labels_", lambda a: np.zeros(0, "S1000"), "is an empty array of"),
    ],
)
def test_arrays_that_do_not_fit(content, path, name, change, message):
    place = member(content, name)
    array = np.load(io.BytesIO(zipfile.ZipFile(io.BytesIO(content)).read(place)))
    refused(path, content, message, more={place: npy(change(array))})


def test_numbers_without_bytes_are_refused(content, path):
    header = io.BytesIO()
    about = {"descr": "|S0", "fortran_order": False, "shape": (1 << 40,)}
    np.lib.format.write_array_header_1_0(header, about)
    more = {member(content, "labels_"): header.getvalue()}
    refused(path, content, "is an array of .* of shape", more=more)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anneal_steps", 10**9),
        ("n_init", 10**9),
        ("max_iter", 10**9),
        ("lam", -1.0),
        ("solver", "none"),
        ("n_subspaces", "many"),
        ("center", 3),
    ],
)
def test_parameters_are_held_to_what_the_class_takes(content, path, name, value):
    change = lambda tree: attributes(tree).update({name: plain(value)})  # noqa: E731
    refused(path, content, f"{name!r} parameter of MiCUSaL must be", change=change)


def test_a_detector_of_constant_columns_is_saved():
    model = SubspaceOutlierDetector().fit(np.ones((30, 3)))
    assert model_bytes(model)


def test_steps_without_end_are_refused_by_a_fit_too():
    for name in ("anneal_steps", "n_init", "max_iter"):
        with pytest.raises(ValueError, match=f"{name!r} parameter of MiCUSaL must be"):
            MiCUSaL(**{name: 10**9}).fit(DATA.X)
    with pytest.raises(ValueError, match="is fewer than n_subspaces"):  # and takes no memory
        MiCUSaL(10**12).partial_fit(DATA.X)
    with pytest.raises(ValueError, match="'n_sweeps' parameter of RobustMiCUSaL must be"):
        RobustMiCUSaL(n_sweeps=10**9).fit(DATA.X)


def test_a_parameter_that_was_set_after_the_fit_is_noticed_when_saved(path):
    model = fitted(MiCUSaL)[0].set_params(lam=-1.0)
    with pytest.raises(ValueError, match="which could not be loaded: The 'lam' parameter"):
        save_model(model, path)
    assert not path.exists()


def test_attributes_that_hide_what_the_class_has(content, path):
    def hiding(tree):
        values = tree["content"]
        values["content"]["_parameter_constraints"] = plain({})
        values["key_types"]["content"].append(values["key_types"]["content"][0])

    refused(path, content, "hides '_parameter_constraints' of its class", change=hiding)


def test_a_generator_that_reads_beyond_its_state(path):
    generator = np.random.RandomState(3)
    model = MiCUSaL(2, 2, random_state=generator).fit(DATA.X)
    check_structure(model)
    state = generator.get_state(legacy=False)
    state["state"]["pos"] = 10**6  # which NumPy takes
    generator.set_state(state)
    with pytest.raises(ValueError, match="random_state is at number 1000000 of 624"):
        check_structure(model)


def test_sparse_arrays_with_indices_out_of_bounds(path):
    content = model_bytes(fitted(baselines.SparseSubspaceClustering)[0])
    name = member(content, "affinity_")
    inner = zipfile.ZipFile(io.BytesIO(zipfile.ZipFile(io.BytesIO(content)).read(name)))
    for part, value in (("indices.npy", 10**6), ("indices.npy", -1), ("indptr.npy", 10**6)):
        array = np.load(io.BytesIO(inner.read(part)))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for each in inner.namelist():
                changed = npy(with_entry(array, 1, value)) if each == part else inner.read(each)
                archive.writestr(each, changed)
        refused(path, content, "is damaged", more={name: buffer.getvalue()})


def test_one_array_under_many_ids_is_read_once_or_not_at_all(content, path):
    place = member(content, "mean_")

    def many(tree, ids):
        one = attributes(tree)["mean_"]
        named = [{**one, "__id__": own} for own in ids(one)]
        attributes(tree)["tol"] = {**node("ListNode", "builtins.list"), "content": named}

    for ids in (
        lambda one: range(1, 200),
        lambda one: [None] * 200,
        lambda one: [one["__id__"]] * 200,
    ):
        more = {place: npy(np.zeros(100_000))}
        change = lambda tree, ids=ids: many(tree, ids)  # noqa: E731
        refused(path, content, "same arrays are named", change=change, more=more)


def test_lists_that_hold_each_other_again_and_again(content, path):
    def chain(tree):
        one = {**node("ListNode", "builtins.list"), "__id__": 1, "content": []}
        for k in range(40):
            stub = {**one, "content": []}
            one = {**one, "__id__": k + 2, "content": [one, stub]}
        attributes(tree)["tol"] = one

    refused(path, content, "hold each other again and again", change=chain)

    def circle(tree):
        stub = {**node("ListNode", "builtins.list"), "__id__": 1, "content": []}
        inner = {**stub, "__id__": 2, "content": [stub]}
        attributes(tree)["tol"] = {**stub, "content": [{**stub, "content": [inner]}]}

    refused(path, content, "holds itself", change=circle)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes on Windows")
def test_a_pipe_does_not_wait_for_ever(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ModelFileError, match="a folder, a pipe or a device"):
            load_model(place)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_to_a_file_is_followed(content, path, tmp_path):
    path.write_bytes(content)
    (tmp_path / "link").symlink_to(path)
    assert isinstance(load_model(tmp_path / "link"), MiCUSaL)
