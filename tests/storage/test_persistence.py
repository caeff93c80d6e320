"""A saved model predicts the same bits in another process."""

import io
import json
import subprocess
import sys
import zipfile

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

import polyspan
from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMCKUSaL,
    RobustMiCUSaL,
    SubspaceImputer,
    SubspaceMixture,
    SubspaceOutlierDetector,
    baselines,
    load_model,
    save_model,
)
from polyspan.storage.archive import FORMAT_VERSION, MANIFEST
from polyspan.storage.models import ESTIMATORS, model_bytes, model_info
from saved_models import DATA, assert_same, fitted


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
        (MiCUSaL, {"affine": True}, np.float64),
        (RobustMiCUSaL, {"affine": True}, np.float64),
        (RobustMiCUSaL, {"affine": True, "center": False}, np.float32),
        (SubspaceMixture, {}, np.float64),
        (SubspaceMixture, {"affine": False}, np.float32),
        (SubspaceImputer, {"n_fits": 1}, np.float64),
        (SubspaceOutlierDetector, {"contamination": 0.1}, np.float32),
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


@pytest.mark.parametrize("kind", [MCKUSaL, RobustMCKUSaL, baselines.KernelKMeans])
def test_samples_that_lie_in_memory_in_another_way(kind, tmp_path):
    X = np.random.RandomState(0).standard_normal((40, 24))[::2, ::2]
    model, _ = fitted(kind, X)
    save_model(model, tmp_path / "m.skops")
    assert_same(model, load_model(tmp_path / "m.skops"), X)


def test_a_stream_of_affine_subspaces(tmp_path):
    model = MiCUSaL(2, 2, affine=True, random_state=0)
    for rows in np.split(DATA.X, 3):
        model.partial_fit(rows)
    save_model(model, tmp_path / "m.skops")
    assert_same(model, load_model(tmp_path / "m.skops"), DATA.X)


@pytest.mark.parametrize("kind", [MCKUSaL, baselines.KernelKMeans])
def test_a_kernel_model_keeps_its_samples(kind):
    X = DATA.X.copy()
    model, _ = fitted(kind, X)
    expected = model.predict(DATA.X)
    X[:] = 0.0
    np.testing.assert_array_equal(model.predict(DATA.X), expected)


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
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), model.transform(X))


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


def test_info_tells_what_made_the_file(tmp_path):
    path = tmp_path / "m.skops"
    save_model(fitted(MiCUSaL)[0], path)
    info = model_info(path)
    assert info.estimator == "MiCUSaL"
    assert info.format_version == FORMAT_VERSION
    assert info.versions["polyspan"] == polyspan.__version__
    assert set(info.versions) == {"polyspan", "numpy", "scikit-learn"}


def test_without_skops_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r'needs skops: pip install "polyspan\[cli\]"'):
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


@pytest.mark.parametrize("dims", [range(2, 5), pd.Series([2, 3, 4])], ids=["range", "series"])
def test_dimensions_that_no_file_holds_are_named(dims, tmp_path):
    X = np.random.RandomState(0).randn(60, 8)
    model = MiCUSaL(3, dims, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"a tuple or list can be saved: give subspace_dim as one"):
        save_model(model, tmp_path / "m.skops")
    save_model(model.set_params(subspace_dim=tuple(dims)), tmp_path / "m.skops")
