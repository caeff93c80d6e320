"""The command `cluster`: what it writes in every format, passes over and refuses."""

import os

import numpy as np
import pandas as pd
import pytest

from polyspan import load_model
from polyspan.clustering import SubspaceClustering
from polyspan.datasets import make_union_of_subspaces
from polyspan.metrics import clustering_error
from support import link_to

DATA = make_union_of_subspaces(
    (25, 25), n_features=9, subspace_dim=2, spread=0.9, noise=0.01, random_state=0
)
NAMES = [f"f{k}" for k in range(9)]


def table(**columns):
    frame = pd.DataFrame(DATA.X.copy(), columns=NAMES)  # before pandas 3 it would share memory
    for name, values in columns.items():
        frame.insert(0, name, values)
    return frame


def test_labels_and_confidence_are_those_of_the_class(run):
    table(id=[f"s{k:03d}" for k in range(50)]).to_csv("t.csv", index=False)
    done = run("cluster", "t.csv", "-o", "labels.csv", "-L", 2, "--seed", 3)
    assert done.exit_code == 0, done.output
    assert "note: passed over, since they hold text: id" in done.output
    assert "50 samples are in 2 clusters. " in done.output
    assert "50 rows written to labels.csv" in done.output
    found = pd.read_csv("labels.csv")
    assert list(found.columns) == ["id", "label", "confidence"]
    assert found["id"].iloc[7] == "s007"
    model = SubspaceClustering(2, random_state=3).fit(DATA.X)
    np.testing.assert_array_equal(found["label"], model.labels_)
    np.testing.assert_allclose(found["confidence"], model.confidence_)
    assert clustering_error(DATA.labels, found["label"].to_numpy()) == 0


def test_every_format_is_read_and_written(run):
    frame = table()
    np.save("t.npy", DATA.X)
    frame.to_csv("t.tsv", sep="\t", index=False)
    frame.to_csv("t.csv.gz", index=False)
    frame.index = pd.Index([f"r{k}" for k in range(50)], name="row")
    frame.to_parquet("t.parquet")
    for data, output in (("t.npy", "a.npy"), ("t.tsv", "b.npz"), ("t.csv.gz", "c.parquet"),
                         ("t.parquet", "d.tsv.gz")):  # fmt: skip
        done = run("cluster", data, "-o", output, "-L", 2, "-q")
        assert done.exit_code == 0, done.output
        assert done.output == ""
    pairs = np.load("a.npy")
    assert pairs.shape == (50, 2)
    np.testing.assert_array_equal(np.load("b.npz")["X"], pairs)
    np.testing.assert_array_equal(pd.read_parquet("c.parquet").to_numpy(), pairs)
    lines = pd.read_csv("d.tsv.gz", sep="\t")
    assert list(lines.columns) == ["row", "label", "confidence"]
    assert lines["row"].iloc[3] == "r3"
    np.testing.assert_allclose(lines[["label", "confidence"]].to_numpy(), pairs)


def test_counters_of_rows_are_passed_over_and_kept_as_they_are_written(run):
    numbers = [f"{k:04d}" for k in range(90, 140)]
    table(label=["x"] * 50, nr=numbers).to_csv("t.csv", index=False)
    done = run("cluster", "t.csv", "-o", "l.csv", "-L", 2)
    assert "since they only count the rows (--columns takes them): nr\n" in done.output
    found = pd.read_csv("l.csv", dtype=str)
    assert list(found.columns) == ["nr", "label", "polyspan_label", "confidence"]
    assert found["nr"].tolist() == numbers
    chosen = run("cluster", "t.csv", "-o", "m.csv", "-L", 2, "--columns", "nr,f0,f1,f2,f3")
    assert "count the rows" not in chosen.output
    # What was not chosen is written beside the labels.
    assert list(pd.read_csv("m.csv"))[:2] == ["label", "f4"]


def test_a_file_without_names_and_with_an_empty_column(run, tmp_path):
    frame = table(nr=range(50))
    frame["never"] = np.nan
    frame["word"] = "w"
    frame.to_csv("t.csv", index=False, header=False)
    done = run("cluster", "t.csv", "-o", "l.csv", "-L", 2, "--no-header")
    assert done.exit_code == 0, done.output
    assert "passed over, since they are empty: 10\n" in done.output
    assert "(--columns takes them): 0\n" in done.output
    names = ["0", "10", "11", "label", "confidence"]
    assert list(pd.read_csv("l.csv").columns) == names


def test_rows_of_norm_one(run):
    X = DATA.X * np.linspace(1, 30, 50)[:, None]
    X[4] = 0
    np.save("t.npy", X)
    assert run("cluster", "t.npy", "-o", "a.npy", "-L", 2, "--unit-norm").exit_code == 0
    np.save("u.npy", X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300))
    assert run("cluster", "u.npy", "-o", "b.npy", "-L", 2, "--unit-norm").exit_code == 0
    np.testing.assert_array_equal(np.load("a.npy")[:, 0], np.load("b.npy")[:, 0])


def test_columns_of_different_units(run):
    units = np.logspace(0, 6, 9)
    np.save("t.npy", DATA.X * units + 5 * units)
    assert run("cluster", "t.npy", "-o", "a.npy", "-L", 2, "--standardize").exit_code == 0
    scaled = (DATA.X - DATA.X.mean(axis=0)) / DATA.X.std(axis=0)
    np.save("u.npy", scaled)
    assert run("cluster", "u.npy", "-o", "b.npy", "-L", 2).exit_code == 0
    np.testing.assert_array_equal(np.load("a.npy")[:, 0], np.load("b.npy")[:, 0])
    # Columns first, then rows.
    assert run("cluster", "t.npy", "-o", "c.npy", "--standardize", "--unit-norm").exit_code == 0
    np.save("v.npy", scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
    assert run("cluster", "v.npy", "-o", "d.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("c.npy")[:, 0], np.load("d.npy")[:, 0])


def test_missing_entries_are_refused_with_the_command_that_fills_them(run, tmp_path):
    frame = table()
    frame.iloc[3, 2] = frame.iloc[5, 2] = frame.iloc[5, 4] = np.nan
    frame.to_csv("t.csv", index=False)
    done = run("cluster", "t.csv", "-o", "l.csv")
    assert done.exit_code == 1
    assert "3 of 450 entries of t.csv are missing (f2 2, f4 1)" in done.output
    assert "polyspan impute t.csv -o filled.csv" in done.output
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_figure_is_written_beside_the_labels_or_nothing_is(run, tmp_path):
    np.save("t.npy", DATA.X)
    words = ("cluster", "t.npy", "-o", "l.csv", "-L", 2)
    done = run(*words, "--plot", "p.png")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "l.csv").unlink()
    assert run(*words, "--plot", "p.png").exit_code == 4
    assert not (tmp_path / "l.csv").exists()
    assert run(*words, "--plot", "p.gif").exit_code == 1
    assert "must end in .png, .pdf, .svg" in run(*words, "--plot", "p.gif").output
    (tmp_path / "p.png").unlink()
    link_to("l.csv", tmp_path / "p.png")
    done = run(*words, "--plot", "p.png")
    assert done.exit_code == 1
    assert "the output is the table of labels itself, l.csv" in done.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("none.csv", "-o", "l.csv"), 3, "none.csv does not exist"),
        (("text.csv", "-o", "l.csv"), 1, "has no column of numbers"),
        (("t.npy", "-o", "t.npy", "--force"), 1, "the output is the table itself"),
        (("t.npy", "-o", "l.csv", "-L", 0), 2, ""),
        (("t.npy", "-o", "l.csv", "-L", 60), 1, "-L 60"),
        (("t.npy", "-o", "l.png"), 1, "must end in"),
    ],
)
def test_what_is_refused(run, tmp_path, words, code, message):
    np.save("t.npy", DATA.X)
    (tmp_path / "text.csv").write_text("a,b\nx,y\nz,w\n", encoding="utf-8")
    done = run("cluster", *words)
    assert done.exit_code == code, done.output
    assert message in done.output
    assert not (tmp_path / "l.csv").exists()


@pytest.mark.parametrize("scaling", [(), ("--standardize",), ("--unit-norm",)])
def test_what_was_learned_labels_other_rows(run, tmp_path, scaling):
    table(id=[f"s{k:03d}" for k in range(50)]).to_csv("t.csv", index=False)
    words = ("cluster", "t.csv", "-o", "labels.csv", "-L", 2, *scaling)
    assert run(*words, "--save-model", "m.skops").exit_code == 0
    new = table().iloc[:20, ::-1].assign(more="x")
    new.to_csv("new.csv", index=False)
    done = run("cluster", "new.csv", "-o", "n.csv", "--model", "m.skops")
    assert done.exit_code == 0, done.output
    found = pd.read_csv("n.csv")
    assert list(found) == ["more", "label"]
    np.testing.assert_array_equal(found["label"], load_model("m.skops").predict(new[NAMES]))
    agree = (found["label"] == pd.read_csv("labels.csv")["label"].iloc[:20]).mean()
    assert agree > 0.9
    done = run("cluster", "new.csv", "-o", "o.csv", "--model", "m.skops", "-L", 3)
    assert (done.exit_code, "leave -L out" in done.output) == (1, True)
    new.drop(columns="f3").to_csv("less.csv", index=False)
    done = run("cluster", "less.csv", "-o", "o.csv", "--model", "m.skops")
    assert (done.exit_code, "lacks 1 of the 9 columns" in done.output) == (1, True)


def test_the_model_of_another_job_is_refused(run, shelf, tmp_path):
    words = ("outliers", shelf / "x.csv", "-o", "o.csv", "--save-model", "m.skops")
    assert run(*words).exit_code == 0
    done = run("cluster", shelf / "x.csv", "-o", "l.csv", "--model", "m.skops")
    assert done.exit_code == 1
    assert "holds a SubspaceOutlierDetector: need a SubspaceClustering" in done.output


def test_summaries_speak_of_options(run, tmp_path):
    np.save("t.npy", np.random.default_rng(0).standard_normal((60, 5)))
    done = run("cluster", "t.npy", "-o", "l.csv")
    assert done.exit_code == 0, done.output
    assert "n_clusters" not in done.output
