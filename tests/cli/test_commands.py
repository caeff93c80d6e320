"""Options, messages and exit codes of the commands, run in this process."""

import os
import runpy

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyspan import MiCUSaL, load_model, save_model
from polyspan.cli.errors import EXPLAINED
from polyspan.cli.methods import METHODS
from polyspan.storage.models import ESTIMATORS
from support import read_csv

SIZES = ("-L", 2, "-s", 2)


def test_the_help_page_names_commands_and_exit_codes(run):
    page = run("--help")
    assert page.exit_code == 0
    names = ("fit", "predict", "reconstruct", "impute", "info", "cluster", "denoise", "inpaint")
    for name in (*names, "demo", "export"):
        assert f" {name} " in page.output
        one = run(name, "--help")
        assert one.exit_code == 0
        assert "Usage" in one.output
        assert f"polyspan {name}" in one.output
    for code in EXPLAINED:
        assert f" {int(code)}  " in page.output
    assert run("--version").output.startswith("polyspan ")
    assert run("--unknown").exit_code == 2


def test_every_estimator_has_a_name():
    assert set(METHODS.values()) == set(ESTIMATORS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"imputer", "outliers"}))
def test_every_method_fits_predicts_and_shows_itself(run, shelf, tmp_path, method):
    sizes = {"grouse": ("-s", 2), "kernel-pca": ("-s", 2), "robust-kernel-pca": ("-s", 2)}
    sizes["kernel-kmeans"] = sizes["clustering"] = ("-L", 2)
    done = run("fit", shelf / "x.csv", "-o", "m.skops", "-m", method, *sizes.get(method, SIZES))
    assert done.exit_code == 0, done.output
    assert type(load_model("m.skops")) is METHODS[method]
    assert run("predict", "m.skops", shelf / "x.npy", "-o", "l.npy").exit_code == 0
    assert np.load("l.npy").shape == (60,)
    shown = run("info", "m.skops")
    assert shown.exit_code == 0
    for word in (METHODS[method].__name__, "f0, f1, f2", "polyspan", "members"):
        assert word in shown.output


def test_outliers_of_a_table(run, shelf):
    settings = ("-m", "outliers", "--set", "contamination=0.1")
    done = run("fit", shelf / "x.csv", "-o", "m.skops", *settings)
    assert done.exit_code == 0, done.output
    assert run("predict", "m.skops", shelf / "x.csv", "-o", "l.npy").exit_code == 0
    found = np.load("l.npy")
    assert found.shape == (60,)
    assert set(found.tolist()) == {-1, 1}
    assert (found == -1).sum() == 6
    shown = run("info", "m.skops")
    assert shown.exit_code == 0
    assert "SubspaceOutlierDetector" in shown.output
    assert "contamination" in shown.output


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".parquet"])
def test_names_go_from_input_to_output(run, shelf, read, tmp_path, ending):
    data = shelf / f"x{ending}"
    X, names = read(data)
    assert run("fit", data, "-o", "m.skops", *SIZES).exit_code == 0
    assert run("reconstruct", "m.skops", data, "-o", f"r{ending}").exit_code == 0
    values, again = read(tmp_path / f"r{ending}")
    assert again == names
    frame = X if names is None else pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(values, load_model("m.skops").reconstruct(frame))
    assert run("predict", "m.skops", data, "-o", "l.parquet").exit_code == 0
    assert list(pd.read_parquet("l.parquet").columns) == ["label"]


def test_a_missing_file_is_said(run, tmp_path):
    done = run("fit", "none.csv", "-o", "m.skops", *SIZES)
    assert done.exit_code == 3
    assert "none.csv does not exist" in done.output
    assert os.listdir(tmp_path) == []


def test_options_reach_the_estimator(run, shelf):
    done = run(
        "fit", shelf / "x.npy", "-o", "m.skops", "-m", "mckusal", *SIZES, "--kernel", "poly",
        "--gamma", "0.5", "--lam", "inf", "--seed", "7", "--set", "degree=3", "--set",
        "init=gkiop", "--set", "n_init=2", "--quiet",
    )  # fmt: skip
    assert (done.exit_code, done.output) == (0, "")
    model = load_model("m.skops")
    expected = {
        "n_subspaces": 2, "subspace_dim": 2, "kernel": "poly", "gamma": 0.5, "lam": float("inf"),
        "random_state": 7, "degree": 3, "init": "gkiop", "n_init": 2,
    }  # fmt: skip
    assert expected.items() <= model.get_params().items()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-o", "m.skops", "-s", 2), 2, "-L"),
        (("-o", "m.skops", "-L", 2), 2, "subspace_dim"),
        (("-o", "m.skops", *SIZES, "-m", "magic"), 2, "none of micusal"),
        (("-o", "m.skops", *SIZES, "--set", "tol"), 2, "name=value"),
        (("-o", "m.skops", *SIZES, "--header", "maybe"), 2, "'auto', 'yes', 'no'"),
        (SIZES, 2, "--output"),
        (("-o", "m.skops", *SIZES, "--set", "tulip=1"), 1, "has no tulip: it has"),
        (("-o", "m.skops", *SIZES, "-m", "grouse"), 1, "leave -L out"),
        (("-o", "m.skops", *SIZES, "-m", "ssc", "--lam", 3), 1, "has no lam"),
        (("-o", "m.skops", "-L", 2, "-s", 6), 1, "must be smaller than n_features=6"),
        (("-o", "m.skops", *SIZES, "--set", "tol='a'"), 1, "'tol' parameter"),
        (("-o", "m.skops", *SIZES, "--labels-out", "m.skops"), 1, "must end in .npy"),
        (("-o", "m.npy", *SIZES, "--labels-out", "m.npy"), 1, "the same file"),
        (("-o", "m.skops", *SIZES, "--drop", "0:6"), 1, "no column"),
        (("-o", "m.skops", *SIZES, "--key", "X"), 1, "--key is for .npz"),
        (("-o", "no/m.skops", *SIZES), 5, "make it first"),
        (("-o", ".", *SIZES), 5, "is a folder"),
    ],
)
def test_options_that_do_not_fit(run, shelf, tmp_path, words, code, message):
    done = run("fit", shelf / "x.csv", *words)
    assert done.exit_code == code
    assert message in " ".join(done.output.replace("│", " ").split())
    assert os.listdir(tmp_path) == []


def test_existing_output_needs_force(run, shelf, tmp_path):
    for name in ("m.skops", "l.csv"):
        (tmp_path / name).write_text("old", encoding="utf-8")
        words = ("fit", shelf / "x.csv", "-o", "m.skops", *SIZES, "--labels-out", "l.csv")
        done = run(*words)
        assert done.exit_code == 4
        assert f"{name} exists already: --force replaces it" in done.output
        assert (tmp_path / name).read_text(encoding="utf-8") == "old"
        assert os.listdir(tmp_path) == [name]
        assert run(*words, "--force").exit_code == 0
        load_model("m.skops")
        (tmp_path / "m.skops").unlink()
        (tmp_path / "l.csv").unlink()


def test_neither_of_two_outputs_comes_without_the_other(run, shelf, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    done = run("fit", shelf / "x.npy", "-o", "m.skops", *SIZES, "--labels-out", "l.csv")
    assert done.exit_code == 5
    assert "cannot write l.csv: No space left on device" in done.output
    assert os.listdir(tmp_path) == []


def test_missing_entries_are_for_robust_methods(run, shelf):
    done = run("fit", shelf / "holes.csv", "-o", "m.skops", *SIZES)
    assert done.exit_code == 1
    missing = int(np.isnan(np.load(shelf / "holes.npy")).sum())
    assert f"{missing} of 360 entries of" in done.output
    assert "take --method robust," in done.output
    done = run("fit", shelf / "holes.csv", "-o", "m.skops", *SIZES, "-m", "mckusal")
    assert "take --method robust-mckusal," in done.output
    done = run("fit", shelf / "holes.csv", "-o", "m.skops", *SIZES, "-m", "robust")
    assert done.exit_code == 0
    assert f"{missing} ({missing / 360:.1%})" in done.output
    done = run("predict", shelf / "complete.skops", shelf / "holes.csv", "-o", "l.csv")
    assert done.exit_code == 1
    assert "a MiCUSaL needs complete data: fit with --method robust," in done.output
    done = run("reconstruct", shelf / "complete.skops", shelf / "holes.csv", "-o", "l.csv")
    assert done.exit_code == 1
    assert "fit with --method robust," in done.output


def test_a_model_takes_its_columns_by_name(run, shelf, tmp_path):
    frame = pd.read_csv(shelf / "x.csv")
    frame.iloc[:, ::-1].assign(city="Ulm").to_csv(tmp_path / "other.csv", index=False)
    assert run("predict", shelf / "complete.skops", shelf / "x.csv", "-o", "a.csv").exit_code == 0
    done = run("predict", shelf / "complete.skops", "other.csv", "-o", "b.csv")
    assert done.exit_code == 0
    assert "does not know, left out: city" in done.output
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    frame.drop(columns="f3").to_csv(tmp_path / "fewer.csv", index=False)
    done = run("predict", shelf / "complete.skops", "fewer.csv", "-o", "c.csv")
    assert done.exit_code == 1
    assert "lacks 1 of the 6 columns" in done.output
    np.save(tmp_path / "narrow.npy", frame.to_numpy()[:, :4])
    done = run("predict", shelf / "complete.skops", "narrow.npy", "-o", "c.csv")
    assert done.exit_code == 1
    assert "has 4 columns, but the model was fitted to 6 (f0, f1" in done.output
    np.save(tmp_path / "narrow.npy", frame.to_numpy()[:, :1])
    done = run("predict", shelf / "complete.skops", "narrow.npy", "-o", "c.csv")
    assert "has 1 column, but" in done.output
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("ending", [".npy", ".npz", ".csv", ".parquet"])
def test_impute_keeps_what_was_observed(run, shelf, read, tmp_path, ending):
    holes, names = read(shelf / f"holes{ending}")
    words = ("--model", shelf / "robust.skops")
    for options in (SIZES, words):
        done = run("impute", shelf / f"holes{ending}", "-o", f"f{ending}", "--force", *options)
        assert done.exit_code == 0, done.output
        assert "warning" not in done.output
        filled, again = read(tmp_path / f"f{ending}")
        assert again == names
        seen = ~np.isnan(holes)
        np.testing.assert_array_equal(filled[seen], holes[seen])
        assert np.isfinite(filled).all()


def test_impute_keeps_texts_and_the_very_characters(run, tmp_path):
    rng = np.random.RandomState(0)
    lines = ["id;name;a;b;c"]
    for k in range(30):
        x = rng.standard_normal() * np.array([1.0, 2.0, -1.0])
        cells = [f"{value:+.3e}" for value in x]
        if k % 5 == 0:
            cells[k % 3] = ("", "NA", "nan")[k % 3]
        lines.append(";".join([f"{k:04d}", "Müller, K.", *cells]))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run(
        "impute", "t.csv", "-o", "f.csv", "-L", 1, "-s", 1, "--drop", "id,name", "--set",
        "fill_prior=0.0",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    after = (tmp_path / "f.csv").read_text(encoding="utf-8").splitlines()
    assert len(after) == len(lines)
    changed = 0
    for old, new in zip(lines, after, strict=True):
        for a, b in zip(old.split(";"), new.split(";"), strict=True):
            if a in ("", "NA", "nan"):
                changed += 1
                assert np.isfinite(float(b))
            else:
                assert a == b
    assert changed == 6


def test_impute_mixed_columns_of_parquet(run, tmp_path):
    x = np.arange(1.0, 41.0)
    frame = pd.DataFrame(
        {
            "text": ["a"] * 40,
            "single": x.astype(np.float32) / 3,
            "double": 2 * x / 3,
            "whole": pd.array((3 * x).astype(int), dtype="Int64"),
        }
    )
    holes = frame.copy()
    for k, name in enumerate(("single", "double", "whole")):
        holes.loc[k::4, name] = None
    holes.to_parquet(tmp_path / "t.parquet")
    words = ("-L", 1, "-s", 1, "--drop", "text", "--set", "fill_prior=0.0")
    assert run("impute", "t.parquet", "-o", "f.parquet", *words).exit_code == 0
    filled = pd.read_parquet("f.parquet")
    assert list(filled["text"]) == list(frame["text"])
    assert filled["single"].dtype == np.float32
    for name in ("single", "double", "whole"):
        seen = holes[name].notna()
        assert (filled[name][seen] == holes[name][seen]).all()
        np.testing.assert_allclose(filled[name].astype(float), frame[name].astype(float), rtol=1e-4)
    # To a format without text only the numbers go.
    assert run("impute", "t.parquet", "-o", "f.npy", *words).exit_code == 0
    assert np.load("f.npy").shape == (40, 3)


def test_impute_with_odd_options(run, shelf, tmp_path):
    for size in ("-L", "-s"):
        done = run("impute", shelf / "holes.csv", "-o", "f.csv", size, 2)
        assert done.exit_code == 2
        assert "give both -L and -s, or neither" in done.output
    done = run(
        "impute", shelf / "holes.csv", "-o", "f.csv", "--model", shelf / "robust.skops", "-L", 2
    )
    assert done.exit_code == 1
    assert "leave -L out" in done.output
    done = run("impute", shelf / "holes.csv", "-o", "f.csv", "--model", shelf / "complete.skops")
    assert done.exit_code == 1
    assert "a MiCUSaL cannot impute; fit with --method robust or imputer" in done.output
    assert os.listdir(tmp_path) == []
    done = run("impute", shelf / "x.csv", "-o", "f.csv", *SIZES)
    assert "has nothing to fill" in done.output
    assert (tmp_path / "f.csv").read_text(encoding="utf-8") == (shelf / "x.csv").read_text(
        encoding="utf-8"
    )


def test_a_model_that_cannot_do_it_says_so(run, shelf):
    run("fit", shelf / "x.csv", "-o", "k.skops", "-m", "kernel-kmeans", "-L", 2)
    for words in (("predict", "--distances"), ("reconstruct",)):
        done = run(words[0], "k.skops", shelf / "x.csv", "-o", "out.csv", *words[1:])
        assert done.exit_code == 1
        assert "a KernelKMeans cannot" in done.output


def test_warnings_are_single_lines(run, shelf):
    words = ("--set", "max_iter=1", "--set", "tol=0.0", "--set", "init=random", "--set", "n_init=1")
    done = run("fit", shelf / "x.csv", "-o", "m.skops", *SIZES, *words)
    assert done.exit_code == 0
    warned = [line for line in done.output.splitlines() if "warning" in line]
    assert len(warned) == 1
    assert warned[0].startswith("warning: the alternation did not converge to tol=0.0")
    assert ".py" not in done.output


def test_an_error_of_ours_is_told_from_one_of_the_data(run, shelf, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(METHODS["micusal"], "fit", broken)
    done = run("fit", shelf / "x.csv", "-o", "m.skops", *SIZES)
    assert done.exit_code == 70
    assert "unexpected ZeroDivisionError" in done.output
    assert "Traceback" not in done.output
    assert "Traceback" in run("fit", shelf / "x.csv", "-o", "m.skops", *SIZES, "--debug").output


def test_too_little_memory_is_said(run, shelf, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(METHODS["micusal"], "fit", greedy)
    done = run("fit", shelf / "x.csv", "-o", "m.skops", *SIZES)
    assert done.exit_code == 1
    assert "not enough memory: Unable to allocate 9 TiB" in done.output


def test_a_foreign_model_is_refused(run, shelf, tmp_path):
    for content in (b"nothing", (shelf / "x.npz").read_bytes()):
        (tmp_path / "m.skops").write_bytes(content)
        for words in (("info", "m.skops"), ("predict", "m.skops", shelf / "x.csv", "-o", "l.csv")):
            done = run(*words)
            assert done.exit_code == 3
            assert "is not a polyspan model" in done.output
    assert run("info", "none.skops").exit_code == 3
    assert os.listdir(tmp_path) == ["m.skops"]


def test_the_demo_shows_what_annealing_gains(run, tmp_path):
    done = run("demo", "--draws", 1, "--plot", "demo.png")
    assert done.exit_code == 0, done.output
    fractions = {
        line.split("│")[1].strip(): float(line.split("│")[3].strip().rstrip("%"))
        for line in done.output.splitlines()
        if line.count("│") > 3
    }
    assert fractions["MiCUSaL, annealed"] < 5 < fractions["Algorithm 1, 8 starts"]
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("demo", "--plot", "demo.png").exit_code == 4
    assert run("demo", "--plot", "demo.txt").exit_code == 1


def test_models_saved_from_python_work_too(run, shelf, tmp_path):
    save_model(load_model(shelf / "robust.skops"), tmp_path / "copy.skops")
    for model in (shelf / "robust.skops", "copy.skops"):
        done = run("predict", model, shelf / "holes.csv", "-o", "l.csv", "--force")
        assert done.exit_code == 0
    assert len(pd.read_csv("l.csv")) == 60


def test_columns_that_a_model_does_not_know_are_carried_over(run, shelf, tmp_path):
    frame = pd.read_csv(shelf / "holes.csv")
    frame.insert(0, "id", [f"s{k}" for k in range(60)])
    frame.to_csv(tmp_path / "named.csv", index=False)
    done = run("impute", "named.csv", "-o", "f.csv", "--model", shelf / "robust.skops")
    assert "not used, carried over unchanged: id" in done.output
    assert list(pd.read_csv("f.csv")["id"]) == list(frame["id"])
    done = run("impute", "named.csv", "-o", "f.npy", "--model", shelf / "robust.skops")
    assert "left out: id" in done.output


def test_info_shows_sizes_and_lam_even_where_they_are_the_defaults(run, shelf):
    run("fit", shelf / "x.csv", "-o", "m.skops", "-L", 3, "-s", 1)
    shown = {
        line.split()[0]: line.split()[-1] for line in run("info", "m.skops").output.splitlines()
    }
    expected = {"n_subspaces": "3", "subspace_dim": "1", "lam": "4.0"}
    assert expected.items() <= shown.items()


def test_a_pipeline_from_python_predicts_and_is_shown(run, shelf):
    X = read_csv(shelf / "x.csv")
    pipeline = make_pipeline(StandardScaler(), MiCUSaL(2, 2, random_state=0)).fit(X)
    save_model(pipeline, "p.skops")
    shown = run("info", "p.skops").output
    assert "StandardScaler, MiCUSaL" in shown
    assert "n_subspaces" in shown
    assert run("predict", "p.skops", shelf / "x.csv", "-o", "l.csv").exit_code == 0
    assert np.array_equal(read_csv("l.csv")["label"], pipeline.predict(X))
    done = run("reconstruct", "p.skops", shelf / "x.csv", "-o", "r.csv")
    assert done.exit_code == 1
    assert "a Pipeline cannot reconstruct" in done.output


def test_a_model_file_of_another_ending_is_told_to_be_skops(run, shelf):
    done = run("fit", shelf / "x.csv", "-o", "m.pkl", *SIZES)
    assert done.exit_code == 0
    assert "m.pkl will be a skops file" in done.output
    load_model("m.pkl")
    assert "skops file" not in run("fit", shelf / "x.csv", "-o", "m.skops", *SIZES).output


def test_a_model_is_exported(run, shelf):
    done = run("export", shelf / "complete.skops", "-o", "m.py")
    assert done.exit_code == 0, done.output
    assert "MiCUSaL exported to m.py" in done.output
    X = read_csv(shelf / "x.csv")
    labels = runpy.run_path("m.py")["predict"](X)
    np.testing.assert_array_equal(labels, load_model(shelf / "complete.skops").predict(X))
    again = run("export", shelf / "complete.skops", "-o", "m.py")
    assert again.exit_code == 4
    assert "--force" in again.output
    assert run("export", shelf / "complete.skops", "-o", "m.py", "--force", "-q").output == ""


def test_what_is_not_exported(run, shelf, tmp_path):
    run("fit", shelf / "x.csv", "-o", "k.skops", "-m", "mckusal", *SIZES)
    done = run("export", "k.skops", "-o", "k.py")
    assert done.exit_code == 1
    assert "cannot export a MCKUSaL" in done.output
    assert not (tmp_path / "k.py").exists()
    done = run("export", shelf / "complete.skops", "-o", "m.js")
    assert done.exit_code == 1
    assert ".py, .onnx" in done.output
