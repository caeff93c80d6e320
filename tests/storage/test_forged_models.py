"""Model files that were forged or damaged: refused with a message, and nothing in them runs."""

import io
import pickle
import sys
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyspan import MiCUSaL, load_model
from polyspan.storage.archive import FORMAT_VERSION, MANIFEST
from polyspan.storage.models import ModelFileError, model_bytes, model_info
from saved_models import DATA, attributes, fitted, node, rewritten


@pytest.fixture(scope="module")
def content():
    return model_bytes(fitted(MiCUSaL)[0])


def test_a_forged_file_that_changes_nothing_loads(content, tmp_path):
    (tmp_path / "m.skops").write_bytes(rewritten(content))
    assert isinstance(load_model(tmp_path / "m.skops"), MiCUSaL)


@pytest.mark.parametrize(
    ("loader", "name"),
    [
        ("FunctionNode", "posix.system"),
        ("FunctionNode", "numpy.add"),
        ("TypeNode", "subprocess.Popen"),
        ("TypeNode", "polyspan.MiCUSaL"),
        ("ObjectNode", "polyspan.linear.micusal.MiCUSaL"),
        ("ObjectNode", "polyspan.parts.MiCUSaL"),
        ("ObjectNode", "sklearn.preprocessing._data.KernelCenterer"),
        ("ObjectNode", "subprocess.Popen"),
        ("ObjectNode", "sklearn.decomposition._pca.PCA"),
        ("ConstructorFromReduceNode", "polyspan.MiCUSaL"),
        ("MethodNode", "polyspan.MiCUSaL"),
        ("DictNode", "polyspan.MiCUSaL"),
        ("ObjectNode", "sklearn.preprocessing.FunctionTransformer"),
        ("ObjectNode", "sklearn.pipeline.Pipeline"),
        ("ObjectNode", "sklearn.compose.ColumnTransformer"),
        ("DTypeNode", "numpy.ndarray"),
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
        "from pathlib import Path\nPath(__file__).with_name('sprung').touch()\nclass Trap: pass\n",
        encoding="utf-8",
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
        ({"versions": [1]}, r"is damaged: versions=\[1\]"),
        ({"versions": None}, "is damaged: versions=None"),
        ({"format_version": True}, "is damaged: format_version=True"),
        ({"format_version": None}, "is damaged: format_version=None"),
        ({"format_version": [2]}, r"is damaged: format_version=\[2\]"),
        ({"format_version": 2.0}, r"is damaged: format_version=2\.0"),
        ({"format": ["polyspan model"]}, "is not a polyspan model"),
        ({"sha256": 7}, "is damaged: sha256=7"),
        ({"sha256": None}, "is damaged: sha256=None"),
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


def test_versions_of_any_type_are_told_as_text(content, tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(rewritten(content, manifest={"versions": {"numpy": [1], "polyspan": {}}}))
    assert model_info(path).versions == {"numpy": "[1]", "polyspan": "{}"}
    for manifest in (b"[]", b"null", b"\xff\xfe", b"", b"[" * 100_000, b'{"format": NaN'):
        path.write_bytes(members_as_they_are(content, {MANIFEST: manifest}))
        with pytest.raises(ModelFileError):
            load_model(path)


def members_as_they_are(content, changed):
    """Replace members and nothing else: the checksum stays what it was."""
    source, buffer = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in source.namelist():
            archive.writestr(name, changed.get(name, source.read(name)))
    return buffer.getvalue()


def test_the_folder_of_caches_of_a_pipeline_is_refused(tmp_path):
    # joblib unpickles what it finds there when the pipeline is fitted again.
    pipeline = make_pipeline(StandardScaler(), MiCUSaL(2, 2, random_state=0)).fit(DATA.X)

    def cached(tree):
        attributes(tree)["memory"] = {**node("JsonNode", "builtins.str"), "content": '"cache"'}

    path = tmp_path / "m.skops"
    path.write_bytes(rewritten(model_bytes(pipeline), cached))
    with pytest.raises(ModelFileError, match="memory='cache'"):
        load_model(path)


def test_steps_that_do_not_make_a_pipeline_of_ours(tmp_path):
    pipeline = make_pipeline(StandardScaler(), MiCUSaL(2, 2, random_state=0)).fit(DATA.X)
    content = model_bytes(pipeline)

    def steps(tree):
        return attributes(tree)["steps"]["content"]

    def ends_in_a_scaler(tree):
        steps(tree).reverse()

    def not_fitted(tree):
        scaler = steps(tree)[0]["content"][1]
        for name in [name for name in scaler["content"]["content"] if name.endswith("_")]:
            del scaler["content"]["content"][name]

    def a_kernel(tree):
        steps(tree)[0]["content"][1] = node("ObjectNode", "polyspan.parts.Kernel")

    def text(tree):
        attributes(tree)["steps"] = {**node("JsonNode", "builtins.str"), "content": '"steps"'}

    path = tmp_path / "m.skops"
    for change in (ends_in_a_scaler, not_fitted, a_kernel, text):
        path.write_bytes(rewritten(content, change))
        with pytest.raises(ModelFileError, match="is damaged"):
            load_model(path)
