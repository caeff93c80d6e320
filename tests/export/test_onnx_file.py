"""Exported ONNX graphs predict complete rows as the model does, in onnxruntime."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from polyspan import MiCUSaL, RobustMiCUSaL, SubspaceClustering, SubspaceMixture, export_model
from polyspan.baselines import GROUSE, KSubspaces
from saved_models import DATA

SIZES = {"n_subspaces": 2, "subspace_dim": 2, "random_state": 0}
X = DATA.X + 1.0
SINGLE = X.astype(np.float32)
UNEQUAL = np.concatenate(
    [
        np.random.RandomState(s).standard_normal((40, s))
        @ np.random.RandomState(9 + s).standard_normal((s, 12))
        for s in (1, 4)
    ]
)
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
    "pipeline": make_pipeline(StandardScaler(), MinMaxScaler(clip=True), MiCUSaL(**SIZES)).fit(X),
    **{
        norm: make_pipeline(Normalizer(norm), SubspaceMixture(**SIZES)).fit(X)
        for norm in ("l1", "l2", "max")
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


def test_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'needs onnx: pip install "polyspan\[onnx\]"'):
        export_model(MODELS["linear"], tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
