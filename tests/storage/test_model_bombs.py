"""Model files that would fill the memory, run code or lead out of the archive, and broken ones."""

import copy
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from polyspan import MiCUSaL, baselines, load_model
from polyspan.storage.models import ModelFileError, model_bytes
from saved_models import DATA, attributes, fitted, node, rewritten


@pytest.fixture(scope="module")
def content():
    return model_bytes(fitted(MiCUSaL)[0])


def npy(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def arrays_of(content, ending=".npy"):
    return [name for name in zipfile.ZipFile(io.BytesIO(content)).namelist() if ending in name]


class Trap:
    """Notices being unpickled."""

    sprung = False

    def __setstate__(self, state):
        Trap.sprung = True


def trapped():
    trap = Trap()
    trap.state = 1
    array = np.empty(1, dtype=object)
    array[0] = trap
    return array


def test_pickles_are_refused(content, tmp_path):
    path = tmp_path / "m.skops"
    pickled = npy(trapped(), allow_pickle=True)
    np.load(io.BytesIO(pickled), allow_pickle=True)
    assert Trap.sprung  # the trap works
    Trap.sprung = False
    for name in (*arrays_of(content), "12345.npy"):
        path.write_bytes(rewritten(content, more={name: pickled}))
        with pytest.raises(ModelFileError, match=f"pickled objects in {name}: refused"):
            load_model(path)
        path.write_bytes(rewritten(content, more={name: pickle.dumps(trapped())}))
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(path)
    assert not Trap.sprung


def test_an_array_that_promises_more_than_is_there(content, tmp_path):
    # NumPy would reserve a terabyte before it looks for the data.
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (1 << 37,)}
    np.lib.format.write_array_header_1_0(header, shape)
    path = tmp_path / "m.skops"
    for array in (header.getvalue(), header.getvalue() + bytes(1000)):
        path.write_bytes(rewritten(content, more={arrays_of(content)[0]: array}))
        with pytest.raises(ModelFileError, match="not as long as it says"):
            load_model(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_is_not_unpacked(content, tmp_path, packing, monkeypatch):
    read = zipfile.ZipFile.read

    def small(archive, name, *rest):
        about = name if isinstance(name, zipfile.ZipInfo) else archive.getinfo(name)
        assert about.file_size < 1 << 20, "a large member was read"
        return read(archive, name, *rest)

    bomb = rewritten(content, more={"12345.npy": npy(np.zeros(1 << 21))}, compression=packing)
    path = tmp_path / "m.skops"
    path.write_bytes(bomb)
    assert len(bomb) < 1 << 18
    monkeypatch.setattr(zipfile.ZipFile, "read", small)
    with pytest.raises(ModelFileError, match="not as save_model writes it"):
        load_model(path)


def test_a_bomb_within_a_sparse_array_is_not_unpacked(tmp_path):
    # SciPy packs sparse arrays; in a model file they are not packed, so that this can be checked.
    model = fitted(baselines.SparseSubspaceClustering)[0]
    content = model_bytes(model)
    (name,) = arrays_of(content, ".npz")
    member = zipfile.ZipFile(io.BytesIO(content)).read(name)
    inner = zipfile.ZipFile(io.BytesIO(member))
    assert {part.compress_type for part in inner.infolist()} == {zipfile.ZIP_STORED}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in inner.namelist():
            archive.writestr(part, npy(np.zeros(1 << 21)) if part == "data.npy" else b"")
    path = tmp_path / "m.skops"
    path.write_bytes(rewritten(content, more={name: bomb.getvalue()}))
    with pytest.raises(ModelFileError, match="not as save_model writes it"):
        load_model(path)
    pickled = io.BytesIO()
    with zipfile.ZipFile(pickled, "w") as archive:
        archive.writestr("data.npy", npy(trapped(), allow_pickle=True))
    path.write_bytes(rewritten(content, more={name: pickled.getvalue()}))
    with pytest.raises(ModelFileError, match="pickled objects"):
        load_model(path)


def test_deep_trees_are_damaged(content, tmp_path):
    path = tmp_path / "m.skops"
    deep = b"[" * 200_000 + b"]" * 200_000
    path.write_bytes(rewritten(content, lambda tree: deep))
    with pytest.raises(ModelFileError, match="is damaged: RecursionError"):
        load_model(path)

    def nested(tree):
        attributes(tree)["lam"] = {**node("ListNode", "builtins.list"), "content": ["HERE"]}
        begin, end = json.dumps(attributes(tree)["lam"]).split('"HERE"')
        inside = begin * 5000 + end * 5000
        return json.dumps(tree).replace('"HERE"', inside).encode()

    def within_a_string(tree):
        attributes(tree)["lam"] = {**node("JsonNode", "builtins.str"), "content": deep.decode()}

    for change in (nested, within_a_string):
        path.write_bytes(rewritten(content, change))
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(path)


def test_a_truncated_file_is_noticed_wherever_it_ends(content, tmp_path):
    path = tmp_path / "m.skops"
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        with pytest.raises(ModelFileError):
            load_model(path)


def test_members_that_share_their_bytes_are_refused(content, tmp_path):
    # One array under many names: a small file that unpacks to a huge one, without compression.
    buffer = io.BytesIO(content)
    with zipfile.ZipFile(buffer, "a") as archive:
        largest = max(archive.infolist(), key=lambda member: member.file_size)
        for k in range(20):
            twin = copy.copy(largest)
            twin.filename = twin.orig_filename = f"{k}.npy"
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True  # so that the list of members is written again
    (tmp_path / "m.skops").write_bytes(buffer.getvalue())
    assert len(zipfile.ZipFile(tmp_path / "m.skops").namelist()) > 20
    with pytest.raises(ModelFileError, match="not as save_model writes it"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "name",
    ["../evil.npy", "/tmp/evil.npy", "C:\\evil.npy", "a/1.npy", "1.npy/", "1.pkl", "1.npy\n"],
)
def test_members_with_other_names_are_refused(content, tmp_path, name):
    path = tmp_path / "folder" / "m.skops"
    path.parent.mkdir()
    forged = rewritten(content, more={name: npy(np.zeros(3))})
    assert len(zipfile.ZipFile(io.BytesIO(forged)).namelist()) > 4
    path.write_bytes(forged)
    with pytest.raises(ModelFileError, match="not as save_model writes it"):
        load_model(path)
    assert [file.name for file in tmp_path.rglob("*")] == ["folder", "m.skops"]


def test_an_array_cannot_be_read_from_outside_the_archive(content, tmp_path):
    np.save(tmp_path / "1.npy", np.zeros((2, 12, 2)))
    path = tmp_path / "m.skops"
    for name in ("1.npy", "../1.npy", str(tmp_path / "1.npy"), 1, None, ["1.npy"]):

        def elsewhere(tree, name=name):
            attributes(tree)["bases_"]["file"] = name

        path.write_bytes(rewritten(content, elsewhere))
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(path)


def test_damage_anywhere_is_noticed(content, tmp_path):
    path = tmp_path / "m.skops"
    for share in (0.1, 0.5, 0.99):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ModelFileError):
            load_model(path)
    path.write_bytes(content)
    before = load_model(path).transform(DATA.X)
    noticed = 0
    positions = np.linspace(0, len(content) - 1, 60).astype(int)
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        path.write_bytes(bytes(damaged))
        try:
            # A byte of the archive that says when it was made does no harm.
            np.testing.assert_array_equal(load_model(path).transform(DATA.X), before)
        except ModelFileError:
            noticed += 1
    assert noticed > 0.8 * len(positions)
