"""Exported Python files predict as the model does, in a process that has NumPy alone."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
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

import polyspan
from polyspan import (
    MCKUSaL,
    MiCUSaL,
    RobustMiCUSaL,
    SubspaceClustering,
    SubspaceImputer,
    SubspaceMixture,
    export_model,
    saved_types,
)
from polyspan.datasets import mask_entries
from polyspan.mixture.prediction import MixturePrediction
from polyspan.union.linear import LinearUnion
from saved_models import DATA, SIZES, fitted

N = 10_000
METHODS = ("predict", "transform", "reconstruct", "impute", "predict_proba", "score_samples")
# Only NumPy and the standard library can be imported; every result of every file is kept.
RUNNER = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top != "numpy" and top not in sys.stdlib_module_names:
            raise ImportError(f"only NumPy is here, not {name}")

sys.meta_path.insert(0, Refuse())
sys.path.append(sys.argv[1])
import importlib.util, json, os
import numpy as np

os.chdir(sys.argv[2])
for refused in ("polyspan", "scipy", "sklearn"):
    try:
        __import__(refused)
    except ImportError:
        continue
    sys.exit(f"{refused} can be imported")
for name, sets in json.load(open("cases.json")).items():
    spec = importlib.util.spec_from_file_location(name, name + ".py")
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    found = {}
    for data in sets:
        X = np.load(data + ".npy")
        for method in sys.argv[3:]:
            if hasattr(model, method):
                found[data + "-" + method] = getattr(model, method)(X)
    np.savez(name + ".npz", **found)
"""


def samples():
    """Complete rows with zeros among them; holes of every number, recurring masks, float32."""
    rng = np.random.RandomState(0)
    X = DATA.X[rng.randint(len(DATA.X), size=N)] + 0.2 * rng.standard_normal((N, 12))
    X[:5] = 0.0
    holes = np.where(rng.rand(N, 12) < rng.rand(N, 1), np.nan, X)
    holes[5] = np.nan
    recurring = np.where((rng.rand(20, 12) < 0.4)[rng.randint(20, size=N)], np.nan, X)
    return {
        "complete": X,
        "single": X[:700].astype(np.float32),
        "huge": X[:50] * 1e200,
        "one": X[7:8],
        "holes": holes,
        "recurring": recurring,
        "single_holes": holes[:700].astype(np.float32),
    }


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


def cases():
    sizes = {"n_subspaces": 2, "subspace_dim": 2, "random_state": 0}
    X = DATA.X + 1.0
    single = X.astype(np.float32)
    holes = mask_entries(DATA.X, 0.2, random_state=0)
    names = [f"f{k}" for k in range(12)]
    rng = np.random.RandomState(1)
    unequal = np.concatenate(
        [rng.standard_normal((40, s)) @ rng.standard_normal((s, 12)) for s in (1, 4)]
    )
    scaled = make_pipeline(StandardScaler(), MinMaxScaler(clip=True), MiCUSaL(**sizes))
    found = {
        "centred": MiCUSaL(**sizes, center=True).fit(X),
        "affine": MiCUSaL(**sizes, affine=True).fit(X),
        "single": MiCUSaL(**sizes).fit(single),
        "affine_single": MiCUSaL(**sizes, affine=True).fit(single),
        "named": MiCUSaL(**sizes).fit(pd.DataFrame(DATA.X, columns=names)),
        "padded": padded(MiCUSaL(**sizes).fit(DATA.X)),
        "ties": twins(MiCUSaL(**sizes).fit(DATA.X)),
        "unequal": SubspaceClustering(2, random_state=0).fit(unequal),
        "holes": RobustMiCUSaL(**sizes).fit(holes),
        "holes_no_prior": RobustMiCUSaL(**sizes, fill_prior=0.0, center=True).fit(holes),
        "holes_affine": RobustMiCUSaL(**sizes, affine=True).fit(holes + 1.0),
        "holes_single": RobustMiCUSaL(**sizes).fit(holes.astype(np.float32)),
        "holes_padded": padded(RobustMiCUSaL(**sizes).fit(holes)),
        "holes_ties": twins(RobustMiCUSaL(**sizes).fit(holes)),
        "mixture": SubspaceMixture(**sizes).fit(holes),
        "mixture_shared": SubspaceMixture(**sizes, affine=False, noise="shared").fit(X),
        "mixture_single": SubspaceMixture(**sizes).fit(single),
        "mixture_padded": padded(SubspaceMixture(**sizes).fit(X)),
        "mixture_round": SubspaceMixture(2, 0, random_state=0).fit(X),
        "unequal_given": MiCUSaL(2, (1, 3), random_state=0).fit(X),
        "holes_unequal": RobustMiCUSaL(2, (1, 3), random_state=0).fit(holes),
        "mixture_unequal": SubspaceMixture(2, (1, 3), random_state=0).fit(holes),
        "mixture_outliers": SubspaceMixture(**sizes, outliers=0.05).fit(holes),
        "mixture_groups": SubspaceMixture(**sizes).fit(X, noise_groups=np.arange(len(X)) % 2),
        "pipeline": scaled.fit(X),
        "pipeline_rows": make_pipeline("passthrough", Normalizer(), MiCUSaL(**sizes)).fit(X),
        "pipeline_holes": make_pipeline(
            RobustScaler(), MaxAbsScaler(), SubspaceMixture(**sizes)
        ).fit(holes),
    }
    for kind in saved_types.ESTIMATORS.values():
        if issubclass(kind, LinearUnion | MixturePrediction):
            found[kind.__name__] = fitted(kind)[0]
    return found


def sets_of(model):
    last = model[-1] if hasattr(model, "steps") else model
    names = ["complete", "single", "one"]
    if not isinstance(last, SubspaceMixture) and last is model and last.bases_.itemsize == 8:
        names.append("huge")
    if last.__sklearn_tags__().input_tags.allow_nan:
        names += ["holes", "recurring", "single_holes"]
    return names


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Everything that exported files return in a process with NumPy alone."""
    folder, models, data = tmp_path_factory.mktemp("exported"), cases(), samples()
    for name, X in data.items():
        np.save(folder / f"{name}.npy", X)
    for name, model in models.items():
        export_model(model, folder / f"{name}.py")
    (folder / "cases.json").write_text(
        json.dumps({k: sets_of(m) for k, m in models.items()}), encoding="utf-8"
    )
    packages = Path(np.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUNNER, packages, folder, *METHODS],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {name: dict(np.load(folder / f"{name}.npz")) for name in models}
    return models, data, found


KINDS = sorted(
    kind.__name__
    for kind in saved_types.ESTIMATORS.values()
    if issubclass(kind, LinearUnion | MixturePrediction)
)
NAMES = [
    "centred", "affine", "single", "affine_single", "named", "padded", "ties", "unequal", "holes",
    "holes_no_prior", "holes_affine", "holes_single", "holes_padded", "holes_ties", "mixture",
    "mixture_shared", "mixture_single", "mixture_padded", "mixture_round", "unequal_given",
    "holes_unequal", "mixture_unequal", "mixture_outliers", "mixture_groups", "pipeline",
    "pipeline_rows", "pipeline_holes", *KINDS,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_model(ran, name):
    models, data, found = ran
    assert set(models) == set(NAMES)
    model, results = models[name], found[name]
    expected = {
        f"{one}-{method}": getattr(model, method)(data[one])
        for one in sets_of(model)
        for method in METHODS
        if hasattr(model, method)
        # The uniform part of the density is not exported.
        and not (method == "score_samples" and hasattr(model, "outlier_weight_"))
    }
    assert results.keys() == expected.keys()
    for key, value in expected.items():
        assert results[key].dtype == value.dtype, key
        if key.endswith("-predict"):
            np.testing.assert_array_equal(results[key], value, err_msg=key)
            continue
        single = value.dtype == np.float32 or "single" in name + key
        size = np.abs(value[np.isfinite(value)]).max(initial=0.0)
        tolerance = (1e-3 if single else 1e-9) * size
        np.testing.assert_allclose(results[key], value, rtol=0, atol=tolerance, err_msg=key)


def test_the_samples_are_of_every_kind(ran):
    models, data, found = ran
    labels = found["holes"]["holes-predict"]
    assert set(labels) == {-1, 0, 1}
    assert set(found["mixture"]["holes-predict"]) == {0, 1}
    assert len(data["complete"]) == N
    assert len(set(models["unequal"].subspace_dims_)) == 2
    assert found["single"]["single-transform"].dtype == np.float32


@pytest.fixture(scope="module")
def model():
    return MiCUSaL(2, 2, random_state=0).fit(DATA.X)


def test_the_file_says_what_it_is_and_holds_no_dangerous_call(tmp_path):
    odd = ['"""', "\\", "a\nb", "'", "naïve", *(f"f{k}" for k in range(7))]
    model = MiCUSaL(2, 2, random_state=0).fit(pd.DataFrame(DATA.X, columns=odd))
    export_model(model, tmp_path / "m.py")
    text = (tmp_path / "m.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    about = ast.get_docstring(tree)
    for words in ("MiCUSaL", f"polyspan {polyspan.__version__}", "12 features", "predict(X)"):
        assert words in about
    assert "2 subspaces of dimension 2" in about
    assert repr('"""') in about
    called = {
        node.func.id for node in ast.walk(tree) if isinstance(getattr(node, "func", None), ast.Name)
    }
    assert not called & {"exec", "eval", "compile", "__import__"}
    assert not re.search(r"pickle\b(?!=False)", text.replace("allow_pickle=False", ""))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported <= {"base64", "csv", "math", "sys", "numpy"}
    assert runpy.run_path(str(tmp_path / "m.py"))["FEATURES"] == odd
    assert max(len(line) for line in text.splitlines()) <= 200


def test_bad_samples_get_clear_errors(model, tmp_path):
    export_model(model, str(tmp_path / "m.py"))
    predict = runpy.run_path(str(tmp_path / "m.py"))["predict"]
    X = DATA.X.copy()
    for bad, words in (
        (X[0], r"shape \(12,\), and MiCUSaL needs rows of 12"),
        (X[:, :5], r"shape \(60, 5\)"),
        (X[:0], "at least one"),
        (X * 1j, "complex"),
    ):
        with pytest.raises(ValueError, match=words):
            predict(bad)
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="1 of 720 entries of X are NaN, and MiCUSaL needs"):
        predict(X)
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="1 entries of X are infinite"):
        predict(X)
    np.testing.assert_array_equal(predict(DATA.X.tolist()), model.predict(DATA.X))


def test_names_of_columns_are_checked(tmp_path):
    frame = pd.DataFrame(DATA.X, columns=[f"f{k}" for k in range(12)])
    model = MiCUSaL(2, 2, random_state=0).fit(frame)
    export_model(model, tmp_path / "m.py")
    predict = runpy.run_path(str(tmp_path / "m.py"))["predict"]
    np.testing.assert_array_equal(predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match=r"the columns of X are .*'f11', 'f10'.* same order"):
        predict(frame[frame.columns[::-1]])


def run_file(path, *arguments):
    return subprocess.run(
        [sys.executable, str(path), *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=path.parent,
    )  # fmt: skip


def test_a_shell_prints_labels(tmp_path):
    names = [f"f{k}" for k in range(12)]
    holes = pd.DataFrame(mask_entries(DATA.X, 0.3, random_state=0), columns=names)
    model = RobustMiCUSaL(2, 2, random_state=0).fit(holes)
    expected = "".join(f"{label}\n" for label in model.predict(holes))
    export_model(model, tmp_path / "m.py")
    holes.insert(3, "id", "x")  # another column, of text
    holes[["id", *names[::-1]]].to_csv(tmp_path / "named.csv", index=False)
    holes[names].to_csv(tmp_path / "bare.csv", index=False, header=False, na_rep="NA")
    np.save(tmp_path / "x.npy", holes[names].to_numpy())
    for data in ("named.csv", "bare.csv", "x.npy"):
        done = run_file(tmp_path / "m.py", data)
        assert (done.returncode, done.stdout) == (0, expected), data + done.stderr
    holes[names[1:]].to_csv(tmp_path / "less.csv", index=False)
    (tmp_path / "text.csv").write_text(
        ",".join("1" * 12) + "\n" + ",".join(["1_0"] * 12) + "\n", encoding="utf-8"
    )
    for data, words in (
        ("less.csv", "no columns ['f0']"),
        ("text.csv", "row 2 of the numbers: '1_0' is no number"),
        ("none.csv", "No such file"),
    ):
        done = run_file(tmp_path / "m.py", data)
        assert done.returncode == 1
        assert words in done.stderr
        assert not done.stdout
    done = run_file(tmp_path / "m.py")
    assert done.returncode == 2
    assert "A RobustMiCUSaL of polyspan" in done.stdout


def lines_of(labels):
    return "".join(f"{label}\n" for label in labels)


def test_the_names_that_pandas_gives_are_no_sample(model, tmp_path):
    export_model(model, tmp_path / "m.py")
    pd.DataFrame(DATA.X).to_csv(tmp_path / "counted.csv", index=False)
    done = run_file(tmp_path / "m.py", "counted.csv")
    assert done.stdout == lines_of(model.predict(DATA.X)), done.stderr
    assert "the first line of counted.csv, 0, 1, 2, 3, …, is read as names" in done.stderr
    pd.DataFrame(DATA.X).to_csv(tmp_path / "indexed.csv")  # a column more than the model takes
    done = run_file(tmp_path / "m.py", "indexed.csv")
    assert (done.returncode, done.stdout) == (1, "")
    named = MiCUSaL(2, 2, random_state=0)
    named.fit(pd.DataFrame(DATA.X, columns=[f"f{k}" for k in range(12)]))
    export_model(named, tmp_path / "named.py")
    done = run_file(tmp_path / "named.py", "counted.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert "counted.csv has no columns ['f0', 'f1'" in done.stderr
    digits = [str(k) for k in range(12)]
    named.fit(pd.DataFrame(DATA.X, columns=digits))
    export_model(named, tmp_path / "named.py", overwrite=True)
    done = run_file(tmp_path / "named.py", "counted.csv")
    assert (done.stdout, done.stderr) == (lines_of(model.predict(DATA.X)), "")


def test_two_columns_are_too_few_to_tell(tmp_path):
    samples = np.concatenate([[[0.0, 1.0]], DATA.X[:, :2]])
    model = MiCUSaL(2, 1, random_state=0).fit(samples)
    export_model(model, tmp_path / "m.py")
    lines = ["0,1", *(f"{a!r},{b!r}" for a, b in samples[1:].tolist())]
    (tmp_path / "x.csv").write_text("\n".join(lines), encoding="utf-8")
    done = run_file(tmp_path / "m.py", "x.csv")
    assert done.stdout == lines_of(model.predict(samples))
    assert "the first line of x.csv, 0, 1, is read as a sample, not as names" in done.stderr


@pytest.mark.parametrize("mark", ["N/A", "#N/A", "<NA>", "None", "", "NaN"])
def test_missing_cells_of_the_first_row_are_no_names(tmp_path, mark):
    holes = mask_entries(DATA.X, 0.2, random_state=0)
    holes[0, 3] = np.nan
    model = RobustMiCUSaL(2, 2, random_state=0).fit(holes)
    export_model(model, tmp_path / "m.py")
    pd.DataFrame(holes).to_csv(tmp_path / "x.csv", index=False, header=False, na_rep=mark)
    done = run_file(tmp_path / "m.py", "x.csv")
    assert (done.stdout, done.stderr) == (lines_of(model.predict(holes)), "")


def test_what_is_odd_in_a_table_is_said(model, tmp_path):
    export_model(model, tmp_path / "m.py")
    rows = [",".join(map(repr, row)) for row in DATA.X.tolist()]
    typo = "1.5x," + rows[0].partition(",")[2]
    (tmp_path / "typo.csv").write_text("\n".join([typo, *rows]), encoding="utf-8")
    done = run_file(tmp_path / "m.py", "typo.csv")
    assert "the first line of typo.csv is read as names, though it has numbers" in done.stderr
    (tmp_path / "long.csv").write_text(
        "\n".join([*rows[:2], rows[2] + ",1", *rows[3:]]), encoding="utf-8"
    )
    done = run_file(tmp_path / "m.py", "long.csv")
    assert done.returncode == 1
    assert "row 3 of the numbers: 13 cells, but 12 in the first line" in done.stderr
    names = [f"f{k}" for k in range(12)]
    named = MiCUSaL(2, 2, random_state=0).fit(pd.DataFrame(DATA.X, columns=names))
    export_model(named, tmp_path / "named.py")
    twice = "\n".join([",".join([*names, "f3"]), *(f"{row},1" for row in rows)])
    (tmp_path / "twice.csv").write_text(twice, encoding="utf-8")
    done = run_file(tmp_path / "named.py", "twice.csv")
    assert done.returncode == 1
    assert "more than one column called 'f3'" in done.stderr


def test_sparse_samples_are_refused(model, tmp_path):
    export_model(model, tmp_path / "m.py")
    predict = runpy.run_path(str(tmp_path / "m.py"))["predict"]
    with pytest.raises(ValueError, match=r"X is a csr_array, a sparse matrix: pass X.toarray"):
        predict(csr_array(DATA.X))


def test_paths(model, tmp_path):
    with pytest.raises(ValueError, match=r"ends in '.joblib'.* \.py .* \.onnx"):
        export_model(model, tmp_path / "m.joblib")
    with pytest.raises(ValueError, match=r"\.py .* \.onnx"):
        export_model(model, "model")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        export_model(model, tmp_path / "none" / "m.py")
    path = tmp_path / "m.PY"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        export_model(model, path)
    assert path.read_text(encoding="utf-8") == "mine"
    export_model(model, path, overwrite=True)
    assert "MiCUSaL" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", [".py", ".onnx"])
def test_a_file_is_written_whole_or_not_at_all(model, tmp_path, monkeypatch, ending):
    path = tmp_path / f"m{ending}"
    path.write_text("old", encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        export_model(model, path, overwrite=True)
    assert path.read_text(encoding="utf-8") == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


class OwnPrediction(MiCUSaL):
    def _nearest(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("ending", [".py", ".onnx"])
def test_models_that_cannot_be_exported(tmp_path, ending):
    path = tmp_path / f"m{ending}"
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


def test_rows_of_a_normalizer_are_complete(tmp_path):
    sizes = {name: SIZES[name] for name in ("n_subspaces", "subspace_dim")}
    pipeline = make_pipeline(Normalizer(), RobustMiCUSaL(**sizes, random_state=0)).fit(DATA.X)
    export_model(pipeline, tmp_path / "m.py")
    predict = runpy.run_path(str(tmp_path / "m.py"))["predict"]
    holes = mask_entries(DATA.X, 0.2, random_state=0)
    for refuses in (pipeline.predict, predict):  # scikit-learn's Normalizer does
        with pytest.raises(ValueError, match="NaN"):
            refuses(holes)
