"""A saved model predicts the same bits in another process; a file brings no code with it."""

import copy
import io
import json
import pickle
import subprocess
import sys
import zipfile

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

import polyspan
from polyspan import (
    MCKUSaL,
    MiCUSaL,
    SubspaceMixture,
    baselines,
    load_model,
    save_model,
)
from polyspan.datasets import make_union_of_subspaces, mask_entries
from polyspan.persistence import (
    ESTIMATORS,
    FORMAT_VERSION,
    MANIFEST,
    ModelFileError,
    _digest,
    model_bytes,
    model_info,
)

DATA = make_union_of_subspaces(
    (30, 30), n_features=12, subspace_dim=2, spread=0.8, noise=0.02, random_state=0
)
SIZES = {"n_subspaces": 2, "subspace_dim": 2, "max_subspaces": 3, "max_dim": 3, "n_clusters": 2}


def fitted(kind, X=None, **parameters):
    known = kind().get_params()
    sizes = {name: value for name, value in SIZES.items() if name in known}
    if "random_state" in known:
        sizes["random_state"] = 0
    model = kind(**{**sizes, **parameters})
    if X is None:
        X = DATA.X
        if model.__sklearn_tags__().input_tags.allow_nan:
            X = mask_entries(X, 0.1, random_state=0)
    return model.fit(X), X


def outcomes(model, X):
    # BLAS multiplies an array with itself in another order than with a copy: ask about copies.
    X = X.copy()
    names = ("predict", "transform", "reconstruct", "impute", "score_samples")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def assert_same(model, again, X):
    before, after = outcomes(model, X), outcomes(again, X)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name].dtype == after[name].dtype
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_estimator_comes_back_bit_for_bit(kind, tmp_path):
    model, X = fitted(kind)
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert type(again) is kind
    assert repr(again.get_params()) == repr(model.get_params())
    assert_same(model, again, X)
    if hasattr(model, "labels_"):  # an imputer has none
        np.testing.assert_array_equal(again.labels_, model.labels_)


def test_every_public_estimator_is_known():
    public = {
        kind
        for package in (polyspan, baselines)
        for kind in vars(package).values()
        if isinstance(kind, type) and hasattr(kind, "fit")
    }
    assert public <= set(ESTIMATORS)


@pytest.mark.parametrize(
    ("kind", "parameters", "dtype"),
    [
        (MiCUSaL, {"lam": float("inf"), "residual": "loo"}, np.float32),
        (MiCUSaL, {"init": np.linalg.qr(np.ones((2, 12, 2)))[0]}, np.float64),
        (MiCUSaL, {"random_state": np.random.RandomState(3)}, np.float64),
        (MCKUSaL, {"low_rank": 20}, np.float64),
        (MCKUSaL, {"kernel": "poly", "init": "gkiop"}, np.float64),
        (baselines.SparseSubspaceClustering, {"n_subspaces": None}, np.float64),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_other_settings_come_back_too(kind, parameters, dtype, tmp_path):
    model, X = fitted(kind, DATA.X.astype(dtype), **parameters)
    save_model(model, tmp_path / "m.skops")
    assert_same(model, load_model(tmp_path / "m.skops"), X)


def test_fewer_samples_than_features(tmp_path):
    X = np.random.RandomState(0).standard_normal((20, 50))
    model, _ = fitted(MiCUSaL, X)
    save_model(model, tmp_path / "m.skops")
    assert_same(model, load_model(tmp_path / "m.skops"), X)


def test_precomputed_kernel(tmp_path):
    G = DATA.X @ DATA.X.T
    model = MCKUSaL(2, 2, kernel="precomputed", random_state=0).fit(G)
    save_model(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "m.skops").predict(G), model.predict(G))


def test_another_process_gets_the_same_bits(tmp_path):
    model, X = fitted(MCKUSaL)
    save_model(model, tmp_path / "m.skops")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from polyspan import load_model;"
        "folder = sys.argv[1]; model = load_model(folder + '/m.skops');"
        "np.save(folder + '/out.npy', model.transform(np.load(folder + '/X.npy')))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.transform(X.copy()))


def test_names_of_columns_and_output_are_kept(tmp_path):
    X = pd.DataFrame(DATA.X, columns=[f"f{k}" for k in range(12)])
    model = MiCUSaL(2, 2, random_state=0).set_output(transform="pandas").fit(X)
    save_model(model, tmp_path / "m.skops")
    again = load_model(tmp_path / "m.skops")
    assert again.transform(X).equals(model.transform(X))
    assert list(again.feature_names_in_) == list(X.columns)


def test_saving_refuses_what_it_cannot_load(tmp_path):
    path = tmp_path / "m.skops"
    with pytest.raises(NotFittedError):
        save_model(MiCUSaL(2, 2), path)
    with pytest.raises(TypeError, match="cannot save a PCA"):
        save_model(PCA(2).fit(DATA.X), path)
    with pytest.raises(TypeError, match="holds no code"):
        save_model(MCKUSaL(2, 2, kernel=np.dot, random_state=0).fit(DATA.X), path)
    assert not path.exists()
    model, _ = fitted(MiCUSaL)
    save_model(model, path)
    with pytest.raises(FileExistsError):
        save_model(model, path)
    save_model(model, path, overwrite=True)


@pytest.fixture(scope="module")
def content():
    return model_bytes(fitted(MiCUSaL)[0])


def rewritten(content, change=None, manifest=None, compression=zipfile.ZIP_STORED):
    """Forge a file: change the tree or the manifest and make the checksum right again."""
    source = zipfile.ZipFile(io.BytesIO(content))
    members = {name: source.read(name) for name in source.namelist()}
    tree, about = json.loads(members["schema.json"]), json.loads(members[MANIFEST])
    if change is not None:
        tree = change(tree) or tree
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, member in members.items():
            if name not in ("schema.json", MANIFEST):
                archive.writestr(name, member)
        archive.writestr("schema.json", json.dumps(tree))
        about["sha256"] = _digest(archive)
        archive.writestr(MANIFEST, json.dumps({**about, **(manifest or {})}))
    return buffer.getvalue()


def attributes(tree):
    return tree["content"]["content"]


def test_a_forged_file_that_changes_nothing_loads(content, tmp_path):
    (tmp_path / "m.skops").write_bytes(rewritten(content))
    assert isinstance(load_model(tmp_path / "m.skops"), MiCUSaL)


def node(loader, name):
    module, _, kind = name.rpartition(".")
    empty = {"content": {}, "key_types": {"__class__": "list", "__module__": "builtins",
             "__loader__": "ListNode", "content": []}}  # fmt: skip
    return {"__class__": kind, "__module__": module, "__loader__": loader, **empty}


@pytest.mark.parametrize(
    ("loader", "name"),
    [
        ("FunctionNode", "posix.system"),
        ("FunctionNode", "numpy.add"),
        ("TypeNode", "subprocess.Popen"),
        ("TypeNode", "polyspan.MiCUSaL"),
        ("ObjectNode", "polyspan.union.micusal.MiCUSaL"),
        ("ObjectNode", "polyspan.parts.MiCUSaL"),
        ("ObjectNode", "sklearn.preprocessing._data.KernelCenterer"),
        ("ObjectNode", "subprocess.Popen"),
        ("ObjectNode", "sklearn.decomposition._pca.PCA"),
        ("ConstructorFromReduceNode", "polyspan.MiCUSaL"),
        ("MethodNode", "polyspan.MiCUSaL"),
        ("DictNode", "polyspan.MiCUSaL"),
        ("SetNode", "builtins.set"),
        ("NoSuchNode", "builtins.str"),
    ],
)
def test_types_that_no_model_needs_are_refused_by_name(content, tmp_path, loader, name):
    def plant(tree):
        attributes(tree)["lam"] = node(loader, name)

    path = tmp_path / "m.skops"
    path.write_bytes(rewritten(content, plant))
    with pytest.raises(ModelFileError, match=f"holds {name}.*nothing was loaded"):
        load_model(path)


def test_nothing_in_a_file_is_imported_or_run(content, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('sprung').touch()\nclass Trap: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "m.skops"
    for loader in ("ObjectNode", "TypeNode", "FunctionNode", "NdArrayNode"):

        def plant(tree, loader=loader):
            attributes(tree)["lam"] = node(loader, "trap.Trap")

        path.write_bytes(rewritten(content, plant))
        with pytest.raises(ModelFileError, match=r"trap\.Trap"):
            load_model(path)
    path.write_bytes(rewritten(content, lambda tree: node("ObjectNode", "trap.Trap")))
    with pytest.raises(ModelFileError, match=r"trap\.Trap"):
        load_model(path)
    assert "trap" not in sys.modules
    assert not (tmp_path / "sprung").exists()


def test_a_part_alone_is_no_model(content, tmp_path):
    path = tmp_path / "m.skops"
    kernel = "polyspan.parts.Kernel"
    path.write_bytes(rewritten(content, lambda tree: {**node("ObjectNode", kernel), "protocol": 2}))
    with pytest.raises(ModelFileError, match="no estimator of polyspan"):
        load_model(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "m.skops"
    model = fitted(MiCUSaL)[0]
    for foreign in (b"", b"label\n0\n", pickle.dumps(model)):
        path.write_bytes(foreign)
        with pytest.raises(ModelFileError, match="is not a polyspan model"):
            load_model(path)
    np.savez(path.with_suffix(".npz"), X=DATA.X)
    with pytest.raises(ModelFileError, match="is not a polyspan model"):
        load_model(path.with_suffix(".npz"))
    skops.io.dump(model, path)
    with pytest.raises(ModelFileError, match="skops wrote it"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.skops")


def test_manifests_that_do_not_fit(content, tmp_path):
    path = tmp_path / "m.skops"
    newer = {"format_version": FORMAT_VERSION + 1, "versions": {"polyspan": "9.9"}}
    for manifest, message in (
        (newer, r"format version 3 of polyspan 9\.9.*upgrade"),
        ({"format_version": 1}, "written by a development version.*save the model again"),
        ({"format_version": 0}, "is damaged: format_version=0"),
        ({"versions": "2"}, "is damaged: versions='2'"),
        ({"format_version": "1"}, "is damaged: format_version='1'"),
        ({"format": "other"}, "is not a polyspan model"),
        ({"sha256": "0" * 64}, "does not match its checksum"),
    ):
        path.write_bytes(rewritten(content, manifest=manifest))
        with pytest.raises(ModelFileError, match=message):
            load_model(path)
    path.write_bytes(rewritten(content, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(ModelFileError, match="not as save_model writes it"):
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


def test_a_tree_that_does_not_hold_together_is_damaged(content, tmp_path):
    path = tmp_path / "m.skops"

    def unfitted(tree):
        for name in [name for name in attributes(tree) if name.endswith("_")]:
            del attributes(tree)[name]

    def lost(tree):
        attributes(tree)["bases_"]["file"] = "nowhere.npy"

    for change in (unfitted, lost, lambda tree: {**tree, "protocol": 99}, lambda tree: [tree]):
        path.write_bytes(rewritten(content, change))
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(path)


def test_damage_anywhere_is_noticed(content, tmp_path):
    path = tmp_path / "m.skops"
    for fraction in (0.1, 0.5, 0.99):
        path.write_bytes(content[: int(fraction * len(content))])
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


def test_info_tells_what_made_the_file(content, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(content)
    info = model_info(path)
    assert info.estimator == "MiCUSaL"
    assert info.format_version == FORMAT_VERSION
    assert info.versions["polyspan"] == polyspan.__version__
    assert set(info.versions) == {"polyspan", "numpy", "scikit-learn"}


def test_without_skops_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match="pip install skops"):
        save_model(fitted(MiCUSaL)[0], tmp_path / "m.skops")


@pytest.mark.parametrize("kind", [MiCUSaL, SubspaceMixture])
def test_arrays_of_another_namespace_are_named(kind, tmp_path):
    X = array_api_strict.asarray(np.random.RandomState(0).standard_normal((30, 5)))
    with sklearn.config_context(array_api_dispatch=True):
        model = kind(2, 1, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"arrays are of array_api_strict.*fit it on NumPy"):
        save_model(model, tmp_path / "model.skops")


def named(tree):
    """Yield what the nodes of a tree call their types."""
    if isinstance(tree, dict):
        if "__class__" in tree:
            yield f"{tree['__module__']}.{tree['__class__']}"
        tree = list(tree.values())
    if isinstance(tree, list):
        for node in tree:
            yield from named(node)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_a_file_names_no_module_of_the_source(kind):
    archive = zipfile.ZipFile(io.BytesIO(model_bytes(fitted(kind)[0])))
    names = list(named(json.loads(archive.read("schema.json"))))
    for name in names:
        module, _, last = name.rpartition(".")
        assert not any(word.startswith("_") for word in module.split(".")), name
        if module.startswith("polyspan") and module != "polyspan.parts":
            assert module in ("polyspan", "polyspan.baselines")
            assert getattr(sys.modules[module], last) in ESTIMATORS
    assert names[0].rpartition(".")[2] == kind.__name__
    assert json.loads(archive.read(MANIFEST))["estimator"] == names[0]
