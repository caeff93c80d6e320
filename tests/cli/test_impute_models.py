"""An imputer in a file fills new rows of the same kind."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixed_columns import FAST, N, agree, arrow_table, cells, load, save
from polyspan import SubspaceImputer, save_model

FIT = ("-m", "imputer", "--set", "method=subspaces")


@pytest.fixture
def fitted(run):
    """A model that was fitted to old.csv, and new rows with blanks, and the same without."""
    truth, holes = cells(n=N + 40)
    save(holes.iloc[:N], "old.csv")
    done = run("fit", "old.csv", "-o", "m.skops", *FIT)
    assert done.exit_code == 0, done.output
    new = holes.iloc[N:].copy()
    new.loc[N : N + 1, ["id", "note"]] = ""
    return done, new, truth.iloc[N:]


def test_fit_says_what_columns_were_taken_for(run, fitted):
    done, _, _ = fitted
    for words in ("age     integer", "size    category of 3", "day     date", "free text"):
        assert words in done.output
    assert "boolean 1, category 2, date 1, integer 1" in run("info", "m.skops").output


def test_new_rows_are_filled(run, fitted):
    _, new, truth = fitted
    new["size"] = new["size"].replace({"M": "XL", "L": "XL", "S": "XL"})
    for name in ("day", "smoker", "flag"):
        new[name] = ""
    new.insert(0, "more", "x")
    save(new)
    done = run("impute", "t.csv", "-o", "f.csv", "--model", "m.skops")
    assert done.exit_code == 0, done.output
    assert "not used, carried over unchanged: more" in done.output
    filled, read = load("f.csv"), load("t.csv")
    assert agree(filled, read, read != "")
    blank = (read["size"] == "").to_numpy()
    assert set(filled["size"][blank]) <= {"S", "M", "L"}
    assert set(filled["size"][~blank]) == {"XL"}
    assert (filled["smoker"].to_numpy() == truth["smoker"].to_numpy()).mean() > 0.8
    assert set(filled["flag"]) == {"True", "False"}
    off = pd.to_datetime(filled["day"]).to_numpy() - pd.to_datetime(truth["day"]).to_numpy()
    assert abs(off).max() < np.timedelta64(30, "D")
    assert (filled["note"] == read["note"]).all()
    words = ("--model", "m.skops", "--draws", 2)
    assert run("impute", "t.csv", "-o", "d.csv", *words).exit_code == 0
    first, second = load("d-1.csv"), load("d-2.csv")
    assert not first.equals(second)
    assert agree(first, second, read != "")
    assert run("impute", "t.csv", "-o", "e.csv", *words, "--seed", 1).exit_code == 0
    assert not load("e-1.csv").equals(first)


def test_categories_that_look_like_numbers_stay_text(run, tmp_path):
    _, holes = cells()
    holes["kind"] = holes["size"].replace({"S": "1", "M": "2", "L": "3+"})
    save(holes, "old.csv")
    assert run("fit", "old.csv", "-o", "m.skops", *FIT).exit_code == 0
    new = holes[holes["kind"].isin(["1", "2"])].copy()
    new.iloc[::3, new.columns.get_loc("kind")] = ""
    save(new)
    assert run("impute", "t.csv", "-o", "f.csv", "--model", "m.skops").exit_code == 0
    filled, read = load("f.csv")["kind"], load("t.csv")["kind"]
    assert set(filled) <= {"1", "2", "3+"}
    assert (filled == read)[read != ""].all()


@pytest.mark.parametrize(
    ("name", "cell", "need"),
    [
        ("age", "old", "numbers"),
        ("day", "01.02.2020", "dates"),
        ("flag", "perhaps", "True and False"),
    ],
)
def test_other_columns_than_those_of_the_model(run, tmp_path, fitted, name, cell, need):
    _, new, _ = fitted
    new.iloc[3, new.columns.get_loc(name)] = cell
    save(new)
    before = sorted(os.listdir(tmp_path))
    done = run("impute", "t.csv", "-o", "f.csv", "--model", "m.skops")
    assert done.exit_code == 1
    for part in (f"column {name} of t.csv must hold {need}", f"row 3 is '{cell}'", "fit again"):
        assert part in done.output
    assert sorted(os.listdir(tmp_path)) == before


def test_what_does_not_fit_a_model(run, tmp_path, fitted):
    _, new, _ = fitted
    save(new.drop(columns="age"))
    done = run("impute", "t.csv", "-o", "f.csv", "--model", "m.skops")
    assert (done.exit_code, "lacks 1 of the 8 columns" in done.output) == (1, True)
    np.save("t.npy", np.ones((3, 8)))
    done = run("impute", "t.npy", "-o", "f.npy", "--model", "m.skops")
    assert (done.exit_code, "size (category), day (date)" in done.output) == (1, True), done.output
    done = run("impute", "old.csv", "-o", "f.csv", "--model", "m.skops", *FAST, "--types", "a=skip")
    assert (done.exit_code, "leave --method, --types out" in done.output) == (1, True)
    done = run("fit", "t.npy", "-o", "n.skops", "-L", 1, "-s", 1, "--types", "0=skip")
    assert (done.exit_code, "--types is for --method imputer" in done.output) == (1, True)


def test_new_rows_of_parquet_may_lack_categories(run, tmp_path):
    table = arrow_table()
    pq.write_table(table, "old.parquet")
    assert run("fit", "old.parquet", "-o", "m.skops", *FIT).exit_code == 0
    only = pa.array(["a"] + [None] * (N - 1), pa.string()).dictionary_encode()
    place = table.schema.get_field_index("category")
    table = table.set_column(place, "category", only)
    pq.write_table(table, "t.parquet")
    done = run("impute", "t.parquet", "-o", "f.parquet", "--model", "m.skops")
    assert done.exit_code == 0, done.output
    after = pq.read_table("f.parquet")
    assert after.schema.equals(table.schema)
    assert set(after["category"].to_pylist()) == {"a", "b"}


def test_a_model_from_python_that_drops_and_adds_columns(run, tmp_path):
    _, holes = cells()
    save(holes.assign(never=""), "t.csv")
    frame = pd.read_csv("t.csv")
    model = SubspaceImputer(add_indicator=True, method="subspaces").set_output(transform="polars")
    save_model(model.fit(frame[["age", "price", "size", "never"]]), "m.skops")
    done = run("impute", "t.csv", "-o", "f.csv", "--model", "m.skops")
    assert done.exit_code == 0, done.output
    filled = load("f.csv")
    assert list(filled.columns) == [*holes.columns, "never"]
    assert (filled[["age", "price", "size"]] != "").all(axis=None)
    assert (filled["never"] == "").all()
