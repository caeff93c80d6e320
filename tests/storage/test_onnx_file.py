"""Exported ONNX graphs predict complete rows as the model does, in onnxruntime."""

import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceMixture,
    export_model,
)
from polyspan.baselines import GROUSE, KSubspaces
from polyspan.datasets import mask_entries
from polyspan.linear.linear_union import LinearUnion
from polyspan.mixture.prediction import MixturePrediction
from polyspan.storage import saved_types
from saved_models import DATA, fitted

SIZES = {"n_subspaces": 2, "subspace_dim": 2, "random_state": 0}
X = DATA.X + 1.0
SINGLE = X.astype(np.float32)
HOLES = mask_entries(X, 0.2, random_state=0)
UNEQUAL = np.concatenate(
    [
        np.random.RandomState(s).standard_normal((40, s))
        @ np.random.RandomState(9 + s).standard_normal((s, 12))
        for s in (1, 4)
    ]
)


def padded(model):
    """Give the last subspace a lower dimension, its basis a column of zeros."""
    model.bases_ = model.bases_.copy()
    model.bases_[-1, :, 1] = 0.0
    if hasattr(model, "variances_"):
        model.variances_ = model.variances_.copy()
        model.variances_[-1, 1] = 0.0
    return model


def twins(model):
    """Make two subspaces equal, so that every sample is a tie."""
    model.bases_ = np.stack([model.bases_[0]] * 2 + [model.bases_[1]])
    return model


MODELS = {
    "linear": MiCUSaL(**SIZES).fit(X),
    "centred": MiCUSaL(**SIZES, center=True).fit(X),
    "affine": MiCUSaL(**SIZES, affine=True).fit(X),
    "single": MiCUSaL(**SIZES).fit(SINGLE),
    "robust": RobustMiCUSaL(**SIZES).fit(X),
    "robust affine": RobustMiCUSaL(**SIZES, affine=True).fit(X),
    "one subspace": GROUSE(2, random_state=0).fit(X),
    "k-subspaces": KSubspaces(**SIZES).fit(X),
    "unequal": SubspaceClustering(2, random_state=0).fit(UNEQUAL),
    "mixture": SubspaceMixture(**SIZES).fit(X),
    "mixture, shared": SubspaceMixture(**SIZES, affine=False, noise="shared").fit(X),
    "mixture, round": SubspaceMixture(2, 0, random_state=0).fit(X),
    "mixture, single": SubspaceMixture(**SIZES).fit(SINGLE),
    "mixture, unequal": SubspaceMixture(2, (1, 3), random_state=0).fit(X),
    "mixture, outliers": SubspaceMixture(**SIZES, outliers=0.05).fit(X),
    "given dimensions": MiCUSaL(2, (1, 3), random_state=0).fit(X),
    "padded": padded(MiCUSaL(**SIZES).fit(DATA.X)),
    "ties": twins(MiCUSaL(**SIZES).fit(DATA.X)),
    "affine, single": MiCUSaL(**SIZES, affine=True).fit(SINGLE),
    "holes": RobustMiCUSaL(**SIZES, fill_prior=0.0, center=True).fit(HOLES),
    "holes, padded": padded(RobustMiCUSaL(**SIZES).fit(HOLES)),
    "holes, unequal": RobustMiCUSaL(2, (1, 3), random_state=0).fit(HOLES),
    "mixture, holes": SubspaceMixture(**SIZES).fit(HOLES),
    "mixture, padded": padded(SubspaceMixture(**SIZES).fit(X)),
    "mixture, groups": SubspaceMixture(**SIZES).fit(X, noise_groups=np.arange(len(X)) % 2),
    "robust pipeline": make_pipeline(
        "passthrough", RobustScaler(), MaxAbsScaler(), SubspaceMixture(**SIZES)
    ).fit(HOLES),
    "pipeline": make_pipeline(StandardScaler(), MinMaxScaler(clip=True), MiCUSaL(**SIZES)).fit(X),
    **{
        norm: make_pipeline(Normalizer(norm), SubspaceMixture(**SIZES)).fit(X)
        for norm in ("l1", "l2", "max")
    },
    **{
        kind.__name__: fitted(kind)[0]
        for kind in saved_types.ESTIMATORS.values()
        if issubclass(kind, LinearUnion | MixturePrediction)
    },
}


def session(model, folder):
    export_model(model, folder / "m.onnx", overwrite=True)
    return onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])


def run(model, folder, rows):
    one = session(model, folder)
    names = [output.name for output in one.get_outputs()]
    return dict(zip(names, one.run(None, {"X": rows}), strict=True))


def new_rows(n):
    rng = np.random.RandomState(1)
    return X[rng.randint(len(X), size=n)] + 0.2 * rng.standard_normal((n, 12))


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_the_model(name, tmp_path):
    model, rows = MODELS[name], new_rows(10_000)
    if "single" in name:
        rows = rows.astype(np.float32)
    found = run(model, tmp_path, rows)
    np.testing.assert_array_equal(found["labels"], model.predict(rows))
    expected = {"distances": model.transform(rows)}
    if hasattr(model, "predict_proba"):
        expected["probabilities"] = model.predict_proba(rows)
        if not hasattr(model, "outlier_weight_"):  # the uniform part is not exported
            expected["log_density"] = model.score_samples(rows)
    assert found.keys() == {"labels", *expected}
    for key, value in expected.items():
        assert found[key].dtype == rows.dtype
        tolerance = (1e-3 if "single" in name else 1e-9) * np.abs(value).max()
        np.testing.assert_allclose(found[key], value, rtol=0, atol=tolerance, err_msg=key)


@pytest.mark.parametrize("name", ["linear", "affine", "robust", "mixture", "l2"])
def test_rows_that_are_not_complete_are_marked(name, tmp_path):
    model, rows = MODELS[name], new_rows(5)
    expected = model.predict(rows)
    rows[1, 3], rows[2, 0], rows[4, 5] = np.nan, np.inf, -np.inf
    found = run(model, tmp_path, rows)
    np.testing.assert_array_equal(found["labels"], [expected[0], -1, -1, expected[3], -1])
    for key in found.keys() - {"labels"}:
        assert np.isnan(found[key][[1, 2, 4]]).all(), key
        assert np.isfinite(found[key][[0, 3]]).all(), key


def test_the_file_says_what_it_is(tmp_path):
    names = [f"f{k}" for k in range(12)]
    model = MiCUSaL(**SIZES).fit(pd.DataFrame(X, columns=names))
    one = session(model, tmp_path)
    (taken,) = one.get_inputs()
    assert (taken.name, taken.type, taken.shape) == ("X", "tensor(double)", ["n_samples", 12])
    about = one.get_modelmeta()
    assert about.producer_name == "polyspan"
    assert "MiCUSaL" in about.description
    assert json.loads(about.custom_metadata_map["features"]) == names
    stored = onnx.load(tmp_path / "m.onnx")
    assert stored.opset_import[0].version == 17
    assert stored.ir_version == 8


def test_paths(tmp_path):
    model = MODELS["linear"]
    with pytest.raises(ValueError, match=r"ends in '.joblib'.* \.onnx .*save_model"):
        export_model(model, tmp_path / "m.joblib")
    with pytest.raises(ValueError, match=r"ends in ''.* \.onnx"):
        export_model(model, "model")
    with pytest.raises(ValueError, match=r"ends in '\.py': .*Python source.* \.onnx .*save_model"):
        export_model(model, tmp_path / "m.py")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_model(model, tmp_path / "none" / "m.onnx")
    path = tmp_path / "m.ONNX"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        export_model(model, path)
    assert path.read_text(encoding="utf-8") == "mine"
    export_model(model, str(path), overwrite=True)
    assert onnx.load(path).producer_name == "polyspan"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    path.write_text("old", encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export_model(MODELS["linear"], path, overwrite=True)
    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


class OwnPrediction(MiCUSaL):
    def _nearest(self, X):
        return np.zeros(len(X))


def test_models_that_cannot_be_exported(tmp_path):
    path = tmp_path / "m.onnx"
    with pytest.raises(TypeError, match=r"cannot export a MCKUSaL, since .* kernel .*MiCUSaL"):
        export_model(MCKUSaL(2, 2, random_state=0).fit(DATA.X), path)
    with pytest.raises(TypeError, match=r"cannot export a SubspaceImputer: .*save_model"):
        export_model(SubspaceImputer(random_state=0), path)
    with pytest.raises(TypeError, match=r"cannot export a PCA.* a model of polyspan is needed$"):
        export_model(PCA().fit(DATA.X), path)
    search = GridSearchCV(MiCUSaL(2, 2, random_state=0), {"lam": [1.0, 4.0]}, cv=2).fit(DATA.X)
    with pytest.raises(TypeError, match=r"a GridSearchCV: .*; export its best_estimator_$"):
        export_model(search, path)
    with pytest.raises(NotFittedError):
        export_model(MiCUSaL(), path)
    with pytest.raises(TypeError, match="has its own _nearest"):
        export_model(OwnPrediction(2, 2, random_state=0).fit(DATA.X), path)
    pipeline = make_pipeline(PCA(6), MiCUSaL(2, 2, random_state=0)).fit(DATA.X)
    with pytest.raises(TypeError, match=r"step 'pca' is a PCA: .* pipeline\[-1\]"):
        export_model(pipeline, path)
    with pytest.raises(TypeError, match="cannot export a MCKUSaL"):
        export_model(make_pipeline(StandardScaler(), MCKUSaL()), path)
    assert not path.exists()
    export_model(pipeline[-1], path)
    assert path.exists()


def test_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'needs onnx: pip install "polyspan\[onnx\]"'):
        export_model(MODELS["linear"], tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
