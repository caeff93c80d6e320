"""`impute` fills numbers, categories and dates, and leaves everything else as it is."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from mixed_columns import FAST, N, agree, arrow_table, cells, load, save
from polyspan.base.private_sklearn import ProgressBar


def line_of(done, name):
    (line,) = [line for line in done.output.splitlines() if line.startswith(f"{name} ")]
    return line


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_every_column_is_filled_in_its_own_form(run, tmp_path, sep):
    truth, holes = cells()
    if sep == ";":
        truth["price"] = truth["price"].str.replace(".", ",")
        holes["price"] = holes["price"].str.replace(".", ",")
    ending = "tsv" if sep == "\t" else "csv"
    save(holes, f"t.{ending}", sep=sep)
    done = run("impute", f"t.{ending}", "-o", f"f.{ending}", *FAST)
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output
    filled = load(f"f.{ending}", sep=sep)
    assert list(filled.columns) == list(holes.columns)
    seen = holes != ""
    assert agree(filled, holes, seen)
    assert filled["note"].equals(load(f"t.{ending}", sep=sep)["note"])
    number = r"[0-9]+,[0-9]+" if sep == ";" else r"[0-9]+\.[0-9]+"
    for name, form in (
        ("age", "[0-9]+"), ("price", number), ("size", "S|M|L"), ("smoker", "yes|no"),
        ("day", "20[0-9]{2}-[01][0-9]-[0-3][0-9]"), ("flag", "true|false"),
    ):  # fmt: skip
        assert filled[name].str.fullmatch(form).all(), name
        assert (~seen[name]).any()
    for name in ("size", "smoker", "flag"):
        assert (filled[name] == truth[name])[~seen[name]].mean() > 0.7
    off = pd.to_datetime(filled["day"]) - pd.to_datetime(truth["day"])
    assert off.abs().max() < pd.Timedelta(days=30)


def test_the_report_names_every_column(run, tmp_path):
    _, holes = cells()
    holes["never"], holes["same"] = "", "5"
    holes.loc[3, "same"] = ""
    save(holes)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST)
    for name, kind in (
        ("age", "integer"), ("price", "number"), ("size", "category of 3"), ("day", "date"),
        ("flag", "boolean"),
    ):  # fmt: skip
        n = int((holes[name] == "").sum())
        whose = "mean's" if name in ("age", "price", "day") else "frequencies'"
        line = line_of(done, name)
        assert re.search(rf"{kind} +{n} of {n} filled +error \.[0-9]+ of the {whose}$", line), line
    assert "passed through (identifier)" in line_of(done, "id")
    assert re.search(r"passed through \(free text\) +0 of [0-9]+ filled$", line_of(done, "note"))
    assert re.search(r"without any entry +0 of 120 filled$", line_of(done, "never"))
    assert re.search(r"one value +1 of 1 filled$", line_of(done, "same"))
    assert "120 rows written to f.csv" in done.output
    assert run("impute", "t.csv", "-o", "q.csv", *FAST, "-q").stdout == ""


def test_the_report_of_a_wide_table_is_short(run, tmp_path):
    x = np.random.default_rng(0).standard_normal((60, 1)) + np.zeros(60)
    x = x + 0.1 * np.random.default_rng(1).standard_normal(x.shape)
    x[0, 7] = np.nan
    pd.DataFrame(x, columns=[f"c{k}" for k in range(60)]).to_csv("t.csv", index=False)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST)
    assert line_of(done, "c7").split()[1:5] == ["number", "1", "of", "1"]
    assert "and 59 more columns, all complete\n" in done.output
    assert "c8" not in done.output


def test_warnings_of_the_imputer_are_notes_in_words_of_options(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    frame.iloc[3, 0] = np.nan
    frame["text"] = [f"word {k}" for k in range(60)]
    save(frame)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST)
    assert "note: no other column tells anything about 'a'" in done.output
    assert "note: columns that are not used: 'text' (free text)" in done.output
    assert "--types" in done.output
    for word in ("Warning", "warning", "feature_types"):
        assert word not in done.output


def test_what_a_file_keeps_is_not_said_to_be_dropped(run, tmp_path):
    """Empty columns stay in a file; the report names those that are carried over."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    frame["text"] = [None if k == 5 else f"word {k}" for k in range(60)]
    frame["void"] = None
    frame.iloc[3, 0] = np.nan
    save(frame)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST)
    assert pd.read_csv("f.csv").columns.tolist() == ["a", "b", "text", "void"]
    assert "dropped" not in done.output
    assert "stay missing" not in done.output
    assert "'text' (free text)" in done.output


def test_single_values_other_than_numbers_stay_alone(run, tmp_path):
    """A blank cell beside them may mean the opposite."""
    _, holes = cells()
    alone = {"word": "ok", "yes": "true", "since": "2020-01-31"}
    for name, value in alone.items():
        holes[name] = np.where(np.arange(N) % 3, value, "")
    save(holes)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST)
    assert done.exit_code == 0, done.output
    for name in alone:
        assert "passed through (only one value)" in line_of(done, name)
        assert load("f.csv")[name].equals(load("t.csv")[name])
    # Unless they are asked for.
    words = ("--types", "word=category,since=date")
    assert run("impute", "t.csv", "-o", "g.csv", *FAST, *words).exit_code == 0
    assert set(load("g.csv")["word"]) == {"ok"}
    assert set(load("g.csv")["since"]) == {"2020-01-31"}
    assert run("fit", "t.csv", "-o", "m.skops", "-m", "imputer").exit_code == 0


def test_types_are_said(run, tmp_path):
    truth, holes = cells()
    truth["code, old"] = np.where(truth["size"] == "L", "7", "1")
    holes["code, old"] = truth["code, old"].mask(np.arange(N) % 9 == 0, "")
    save(holes)
    words = ("--types", "code, old=category", "--types", "age=skip,4=category,2:3=number")
    done = run("impute", "t.csv", "-o", "f.csv", *FAST, *words)
    assert done.exit_code == 0, done.output
    filled = load("f.csv")
    assert set(filled["code, old"]) == {"1", "7"}
    assert (filled["code, old"] == truth["code, old"]).mean() > 0.9
    assert filled["age"].equals(load("t.csv")["age"])
    assert "category" in line_of(done, "day")
    assert set(filled["day"]) == set(holes["day"]) - {""}
    assert "passed through (as asked)" in line_of(done, "age")
    assert "category of 2" in line_of(done, "code, old")


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (("--types", "size=sort"), 2, ["size", "none of"]),
        (("--types", "size"), 2, ["name=type"]),
        (("--types", "nope=skip"), 1, ["no column 'nope'"]),
        (("--types", "age=skip", "--drop", "age"), 1, ["column age", "left out"]),
        (("--types", "size=number"), 1, ["column size of t.csv", "numbers", "row 0", "=skip"]),
        (("--types", "note=date"), 1, ["column note of t.csv", "2024-01-31", "'text "]),
        (("--types", "age=duration"), 1, ["column age of t.csv", "durations"]),
        (("--method", "trees"), 2, ["trees"]),
        (("--draws", "0"), 2, ["draws"]),
        (("-L", 1, "-s", 1, "--draws", 2), 1, ["RobustMiCUSaL has no --draws"]),
        (("-L", 1, "-s", 1, "--types", "age=skip"), 1, ["has no --types"]),
        (("--types", "age=skip", "--columns", "note", "-o", "f.npy"), 1, ["left out"]),
        (("--columns", "note,size", "-o", "f.npy"), 1, ["f.npy can hold numbers only"]),
    ],
)
def test_mistakes_are_told(run, tmp_path, words, code, parts):
    _, holes = cells()
    holes.loc[0, "size"] = "L"
    save(holes)
    done = run("impute", "t.csv", "-o", "f.csv", *words)
    assert done.exit_code == code, done.output
    for part in parts:
        assert part in done.output
    assert os.listdir(tmp_path) == ["t.csv"]


def test_draws_differ_where_cells_were_missing_and_nowhere_else(run, tmp_path):
    _, holes = cells()
    save(holes)
    done = run("impute", "t.csv", "-o", "f.csv", *FAST, "--draws", 3)
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(tmp_path)) == ["f-1.csv", "f-2.csv", "f-3.csv", "t.csv"]
    tables = [load(f"f-{k}.csv") for k in (1, 2, 3)]
    seen = holes != ""
    for table in tables:
        assert agree(table, holes, seen)
        assert (table["price"] != "").all()
    assert not tables[0].equals(tables[1])
    # All of them are looked for before any work.
    os.remove("f-1.csv")
    done = run("impute", "t.csv", "-o", "f.csv", *FAST, "--draws", 2)
    assert done.exit_code == 4
    assert "f-2.csv exists already" in done.output
    assert "note" not in done.output
    assert not (tmp_path / "f-1.csv").exists()
    run("impute", "t.csv", "-o", "g.csv", *FAST, "--draws", 3)
    assert load("g-3.csv").equals(tables[2])
    run("impute", "t.csv", "-o", "g.csv", *FAST, "--draws", 3, "--seed", 1, "--force")
    assert not load("g-3.csv").equals(tables[2])


def test_draws_of_arrays(run, tmp_path):
    x = np.random.default_rng(0).standard_normal((50, 1)) * np.ones(3)
    x[::7, 1] = np.nan
    np.savez("t.npz", first=x, other=x)
    done = run("impute", "t.npz", "-o", "f.npz", "--key", "first", "--draws", 2, *FAST)
    assert done.exit_code == 0, done.output
    drawn = [np.load(f"f-{k}.npz")["first"] for k in (1, 2)]
    for one in drawn:
        assert np.array_equal(one[~np.isnan(x)], x[~np.isnan(x)])
        assert np.isfinite(one).all()
    assert run("impute", "t.npz", "-o", "g.npz", "--key", "first", *FAST).exit_code == 0


def test_parquet_keeps_its_schema(run, tmp_path):
    before = arrow_table()
    pq.write_table(before, "t.parquet", row_group_size=50)
    done = run("impute", "t.parquet", "-o", "f.parquet", *FAST)
    assert done.exit_code == 0, done.output
    after = pq.read_table("f.parquet")
    assert after.schema.equals(pq.read_schema("t.parquet"), check_metadata=True)
    for name in before.column_names:
        pairs = list(zip(before[name].to_pylist(), after[name].to_pylist(), strict=True))
        assert all(old == new for old, new in pairs if old is not None), name
        assert any(old is None for old, _ in pairs)
        if name not in ("list", "null"):
            assert all(new is not None for _, new in pairs), name
    rows = np.flatnonzero(before["whole"].is_null())
    known = after["single"].to_numpy()[rows], after["whole"].to_numpy()[rows]
    assert np.corrcoef(known)[0, 1] > 0.95
    # Lines have other types; those of a column look alike.
    assert run("impute", "t.parquet", "-o", "f.csv", *FAST).exit_code == 0
    lines = load("f.csv")
    assert lines["whole"].str.fullmatch("-?[0-9]+").all()
    assert lines["day"].str.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}").all()
    assert set(lines["flag"]) == {"True", "False"}
    done = run("impute", "t.parquet", "-o", "f.npy", *FAST)
    assert "not in f.npy, which can hold numbers only: decimal, text, " in done.output
    assert np.load("f.npy").shape == (N, 5)
    assert np.isfinite(np.load("f.npy")).all()


def test_from_lines_to_parquet(run, tmp_path):
    _, holes = cells()
    save(holes)
    assert (
        run("impute", "t.csv", "-o", "f.parquet", *FAST, "--types", "age=category").exit_code == 0
    )
    frame = pd.read_parquet("f.parquet")
    assert pd.api.types.is_integer_dtype(frame["age"].dtype)
    assert pd.api.types.is_float_dtype(frame["price"].dtype)
    assert pd.api.types.is_bool_dtype(frame["flag"].dtype)
    assert frame["day"].str.fullmatch("20[0-9]{2}-[01][0-9]-[0-3][0-9]").all()


def test_a_file_without_names(run, tmp_path):
    _, holes = cells()
    save(holes[["age", "size", "day"]], header=False)
    words = ("--header", "no", "--types", "0=number", *FAST)
    done = run("impute", "t.csv", "-o", "f.csv", *words)
    assert done.exit_code == 0, done.output
    assert "category of 3" in line_of(done, "1")
    filled = load("f.csv", header=None)
    assert filled.shape == (N, 3)
    assert (filled != "").all(axis=None)
    words = ("-m", "imputer", "--header", "no", "--set", "method=subspaces")
    assert run("fit", "t.csv", "-o", "m.skops", *words).exit_code == 0
    words = ("--model", "m.skops", "--header", "no")
    assert run("impute", "t.csv", "-o", "g.csv", *words).exit_code == 0
    assert (load("g.csv", header=None)[1] == filled[1]).mean() > 0.95


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_on_a_terminal(tmp_path, quiet):
    _, holes = cells()
    save(holes, tmp_path / "t.csv")
    ours, theirs = os.openpty()
    words = ["impute", "t.csv", "-o", "f.csv", *FAST, *["-q"] * quiet]
    command = [sys.executable, "-m", "polyspan.cli", *words]
    done = subprocess.run(command, cwd=tmp_path, stderr=theirs, stdout=subprocess.PIPE, check=True)
    os.close(theirs)
    shown = os.read(ours, 2**20).decode()
    os.close(ours)
    # Releases of scikit-learn before 1.9 have no callbacks, and so no bar.
    assert ("SubspaceImputer" in shown) is (not quiet and ProgressBar is not None)
    assert b"SubspaceImputer" not in done.stdout
