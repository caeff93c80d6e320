"""`impute` fills columns of all kinds, and leaves every other cell as it is written."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from mixed_columns import FAST, N, agree, arrow_table, cells, load, save
from polyspan import SubspaceImputer, load_model, save_model


def ran(run, *words, **more):
    done = run("impute", *words, **more)
    assert done.exit_code == 0, done.output
    return done


def lines(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_every_column_is_filled_in_its_own_form(run, tmp_path, sep):
    truth, holes = cells()
    if sep == ";":
        truth["price"] = truth["price"].str.replace(".", ",")
        holes["price"] = holes["price"].str.replace(".", ",")
    ending = "tsv" if sep == "\t" else "csv"
    how = ["--sep", ";", "--decimal", ","] if sep == ";" else []
    save(holes, f"t.{ending}", sep=sep)
    ran(run, f"t.{ending}", "-o", f"f.{ending}", "--parse-dates", "day", *how, *FAST)
    filled = load(f"f.{ending}", sep=sep)
    assert list(filled.columns) == list(holes.columns)
    seen = holes != ""
    assert agree(filled, holes, seen)
    assert filled["note"].equals(load(f"t.{ending}", sep=sep)["note"])
    number = r"[0-9]+,[0-9]{2}" if sep == ";" else r"[0-9]+\.[0-9]{2}"
    for name, form in (
        ("age", "[0-9]+"), ("price", number), ("size", "S|M|L"), ("smoker", "yes|no"),
        ("day", "20[0-9]{2}-[01][0-9]-[0-3][0-9]"), ("flag", "true|false"),
    ):  # fmt: skip
        assert filled[name].str.fullmatch(form).all(), name
        assert (~seen[name]).any()
    for name in ("size", "smoker", "flag"):
        assert (filled[name] == truth[name])[~seen[name]].mean() > 0.7


def test_other_cells_keep_their_quotes_blanks_and_digits(run, tmp_path):
    rows = [f'"s, {k}", {k}.0,{2 * k}.50,0{k % 3}' for k in range(40)]
    rows[3] = '"s ""3""",,6.50,00'
    rows[5] = "s5, 5.0,,02"
    text = "\r\n".join(['"na me",a , b,code', *rows]) + "\r\n"
    Path("t.csv").write_bytes(text.encode())
    ran(run, "t.csv", "-o", "f.csv")
    before, after = lines("t.csv"), lines("f.csv")
    assert [k for k in range(41) if before[k] != after[k]] == [4, 6]
    assert after[4].startswith('"s ""3""",')
    assert after[4].endswith(",6.50,00")
    assert len(after[4].split(",")[1].partition(".")[2]) == 1
    assert len(after[6].split(",")[2].partition(".")[2]) == 2
    assert b"\r\n" in Path("f.csv").read_bytes()


def test_whole_floats_stay_floats_in_all_formats(run, tmp_path):
    x = np.arange(40.0)
    frame = pd.DataFrame({"a": x, "b": 2 * x + 1})
    frame.loc[3, "a"] = np.nan
    save(frame)
    ran(run, "t.csv", "-o", "f.csv")
    assert all("." in cell for line in lines("f.csv")[1:] for cell in line.split(","))
    ran(run, "t.csv", "-o", "f.tsv")
    assert all("." in cell for line in lines("f.tsv")[1:] for cell in line.split("\t"))
    ran(run, "t.csv", "-o", "f.parquet")
    assert {str(kind) for kind in pd.read_parquet("f.parquet").dtypes} == {"float64"}


def test_the_summary_and_what_stays_empty(run, tmp_path):
    _, holes = cells()
    holes["never"] = ""
    save(holes)
    done = ran(run, "t.csv", "-o", "f.csv", *FAST)
    n_holes = int((holes == "").to_numpy().sum())
    left = {name: int((holes[name] == "").sum()) for name in ("day", "note", "never")}
    said = " ".join(done.output.split())
    assert f"{n_holes - sum(left.values())} of {n_holes} missing cells filled: age " in said
    which = ", ".join(f"{name} {n}" for name, n in left.items())
    assert f"note: {sum(left.values())} cells of f.csv left empty: {which}" in said
    assert "SubspaceImputer: 8 columns" in said
    assert "120 rows written to f.csv" in said
    assert "columns that are not used: 'id' (identifier)" in said
    assert "--types says otherwise" in said
    assert "feature_types" not in said
    assert ran(run, "t.csv", "-o", "q.csv", *FAST, "-q").stdout == ""
    save(holes[["age"]].replace("", "1").assign(b=range(N)), "u.csv")
    assert "nothing to fill: g.csv is a copy" in ran(run, "u.csv", "-o", "g.csv").output
    assert Path("g.csv").read_bytes() == Path("u.csv").read_bytes()


def test_types_are_said(run, tmp_path):
    truth, holes = cells()
    truth["code"] = np.where(truth["size"] == "L", "07", "01")
    holes["code"] = truth["code"].mask(np.arange(N) % 9 == 0, "")
    save(holes)
    done = ran(run, "t.csv", "-o", "f.csv", *FAST, "--types", "code=category,age=skip")
    filled = load("f.csv")
    assert set(filled["code"]) == {"01", "07"}
    assert filled["age"].equals(load("t.csv")["age"])
    assert "code category" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--types", "size=sort"), 1, "--types says 'sort' of column 'size'"),
        (("--types", "size"), 2, "name=type"),
        (("--types", "nope=skip"), 1, "--types names column 'nope'"),
        (("--types", "size=number"), 1, "--types says 'number' of column 'size'"),
        (("--types", "age=skip", "--drop", "age"), 1, "names column 'age'"),
        (("--method", "trees"), 2, "trees"),
        (("--draws", "0"), 2, "draws"),
        (("--draws", "2", "-o", "-"), 1, "--draws writes several tables"),
        (("--columns", "note,size", "-o", "f.npy"), 1, "not in f.npy"),
        (("-o", "t.csv", "--force"), 1, "the output is the table itself, t.csv"),
        (("--save-model", "t.csv", "--force"), 1, "the output is the table itself"),
        (("--model", "none.skops"), 3, "none.skops does not exist"),
        (("--model", "t.csv"), 3, "t.csv is not a polyspan"),
    ],
)
def test_mistakes_are_told(run, tmp_path, words, code, message):
    _, holes = cells()
    if "f.npy" in words:
        holes = holes[["note", "size"]]
        code, message = 1, "f.npy can hold numbers only"
    save(holes)
    before = Path("t.csv").read_bytes()
    done = run("impute", "t.csv", "-o", "f.csv", *words)
    assert done.exit_code == code, done.output
    assert message in " ".join(done.output.split())
    assert os.listdir(tmp_path) == ["t.csv"]
    assert Path("t.csv").read_bytes() == before


def test_draws_differ_where_cells_were_missing_and_nowhere_else(run, tmp_path):
    _, holes = cells()
    save(holes)
    ran(run, "t.csv", "-o", "f.csv", *FAST, "--draws", 3)
    assert sorted(os.listdir(tmp_path)) == ["f-1.csv", "f-2.csv", "f-3.csv", "t.csv"]
    tables = [load(f"f-{k}.csv") for k in (1, 2, 3)]
    for table in tables:
        assert agree(table, holes, holes != "")
        assert (table["price"] != "").all()
    assert not tables[0].equals(tables[1])
    # All of them are looked for before any work.
    os.remove("f-1.csv")
    done = run("impute", "t.csv", "-o", "f.csv", *FAST, "--draws", 2)
    assert done.exit_code == 4
    assert "f-2.csv exists already" in done.output
    assert not (tmp_path / "f-1.csv").exists()
    ran(run, "t.csv", "-o", "g.csv", *FAST, "--draws", 3, "--seed", 1)
    assert not load("g-3.csv").equals(tables[2])


def test_arrays_are_filled(run, shelf, tmp_path):
    ran(run, shelf / "holes.npy", "-o", "f.npy", *FAST)
    before, after = np.load(shelf / "holes.npy"), np.load("f.npy")
    seen = ~np.isnan(before)
    np.testing.assert_array_equal(after[seen], before[seen])
    assert np.median(np.abs(after - np.load(shelf / "x.npy"))[~seen]) < 0.15
    ran(run, shelf / "holes.npz", "-o", "f.csv", *FAST)
    assert list(pd.read_csv("f.csv")) == [str(k) for k in range(6)]


def test_parquet_keeps_its_types(run, tmp_path):
    before = arrow_table()
    pq.write_table(before, "t.parquet")
    ran(run, "t.parquet", "-o", "f.parquet", *FAST, "--save-model", "m.skops")
    after = pq.read_table("f.parquet")
    for name in before.column_names:
        if name == "list":
            continue
        assert after.schema.field(name).type == before.schema.field(name).type, name
        pairs = list(zip(before[name].to_pylist(), after[name].to_pylist(), strict=True))
        assert all(old == new for old, new in pairs if old is not None), name
        if name != "null":
            assert all(new is not None for _, new in pairs), name
    ran(run, "t.parquet", "-o", "g.parquet", "--model", "m.skops")
    assert pq.read_table("g.parquet").equals(after)


def test_what_was_learned_fills_other_rows(run, tmp_path):
    _, holes = cells()
    save(holes)
    words = ("--parse-dates", "day")
    ran(run, "t.csv", "-o", "f.csv", *FAST, *words, "--save-model", "m.skops")
    assert isinstance(load_model("m.skops"), SubspaceImputer)
    ran(run, "t.csv", "-o", "g.csv", "--model", "m.skops", *words)
    assert load("g.csv").equals(load("f.csv"))
    truth, other = cells(seed=1, n=30)
    save(other.assign(more="x"), "new.csv")
    done = ran(run, "new.csv", "-o", "h.csv", "--model", "m.skops", *words)
    filled = load("h.csv")
    assert agree(filled[list(other)], other, other != "")
    assert (filled["size"] == truth["size"]).mean() > 0.8
    assert set(filled["more"]) == {"x"}
    assert "30 rows written to h.csv" in done.output
    # A column without any entry is filled from the others.
    save(other.assign(age=""), "void.csv")
    ran(run, "void.csv", "-o", "i.csv", "--model", "m.skops", *words)
    assert load("i.csv")["age"].str.fullmatch(r"[0-9]+(\.0)?").all()


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({"age": "old"}, (), "'age'"),
        ({}, ("--method", "subspaces"), "leave --method out"),
        ({}, ("--types", "age=skip"), "leave --types out"),
        ({"drop": "age"}, (), "lacks 1 of the 8 columns that the model was fitted to: age"),
    ],
)
def test_rows_that_do_not_fit_a_model(run, tmp_path, change, words, message):
    _, holes = cells()
    save(holes)
    ran(run, "t.csv", "-o", "f.csv", *FAST, "--save-model", "m.skops", "-q")
    other = holes.drop(columns=change["drop"]) if "drop" in change else holes.assign(**change)
    save(other, "new.csv")
    done = run("impute", "new.csv", "-o", "g.csv", "--model", "m.skops", *words)
    assert done.exit_code == 1, done.output
    assert message in " ".join(done.output.split())
    assert not Path("g.csv").exists()


def test_a_text_in_a_column_of_whole_numbers_is_named(run, tmp_path):
    save(pd.DataFrame({"n": range(0, 120, 2), "x": np.arange(60) * 1.5}))
    ran(run, "t.csv", "-o", "f.csv", "--save-model", "m.skops")
    save(pd.DataFrame({"n": ["4", "many", ""], "x": [1.0, 2.0, 3.0]}), "new.csv")
    done = run("impute", "new.csv", "-o", "g.csv", "--model", "m.skops")
    assert done.exit_code == 1
    assert "'n'" in done.output
    assert "'many'" in done.output


def test_a_model_from_python_that_drops_and_adds_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 1)) + 0.1 * rng.standard_normal((60, 2)))
    frame.columns = ["a", "b"]
    frame["void"] = np.nan
    frame.loc[3, "a"] = np.nan
    save_model(SubspaceImputer(add_indicator=True).fit(frame), "m.skops")
    save(frame)
    ran(run, "t.csv", "-o", "f.csv", "--model", "m.skops")
    filled = pd.read_csv("f.csv")
    assert list(filled) == ["a", "b", "void"]
    assert filled["void"].isna().all()
    assert filled["a"].notna().all()


def test_a_table_without_any_entry(run, tmp_path):
    Path("t.csv").write_text("a,b\n,\n,\n", encoding="utf-8")
    done = run("impute", "t.csv", "-o", "f.csv")
    assert (done.exit_code, "t.csv has no entry at all" in done.output) == (1, True)


def test_from_the_standard_input_to_the_standard_output(run, shelf, tmp_path):
    content = (shelf / "holes.csv").read_bytes()
    done = ran(run, "-", "-o", "-", *FAST, input=content)
    ran(run, shelf / "holes.csv", "-o", "f.csv", *FAST)
    assert done.stdout_bytes == Path("f.csv").read_bytes()
    assert "60 rows written to -" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["f.csv"]
