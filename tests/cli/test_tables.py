"""Tables of all formats are read by pandas, and written again."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyspan.cli.errors import Code, CommandError
from polyspan.cli.options import Reading
from polyspan.cli.tables import counts_rows, frame_writer, numbers_of, read_table

PLAIN = Reading()


def written(text, path="t.csv", encoding="utf-8"):
    Path(path).write_bytes(text.encode(encoding))
    return Path(path)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_options_are_those_of_pandas():
    path = written("a;b;day\n1.234,5;x;2024-01-31\n2,5;é;2024-02-01\n", encoding="latin-1")
    how = Reading(sep=";", decimal=",", thousands=".", encoding="latin-1", parse_dates=["day"])
    frame = read_table(path, how).frame
    assert frame["a"].tolist() == [1234.5, 2.5]
    assert frame["b"].tolist() == ["x", "é"]
    assert frame["day"].dtype.kind == "M"
    with pytest.raises(CommandError, match=r"is not in utf-8: .*; give --encoding"):
        read_table(path, PLAIN)


def test_tabs_packed_lines_and_lines_without_names():
    written("1\t2\n3\t4\n", "t.tsv")
    table = read_table(Path("t.tsv"), Reading(header=False))
    assert table.frame.to_dict("list") == {"0": [1, 3], "1": [2, 4]}
    written("1\t2\n3\t4\n", "t.csv")
    assert read_table(Path("t.csv"), Reading(header=False, sep="\\t")).frame.shape == (2, 2)
    Path("t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,\n"))
    assert read_table(Path("t.csv.gz"), PLAIN).frame.isna().sum().sum() == 1


def test_numbers_are_the_nearest_ones():
    values = np.random.default_rng(0).standard_normal(200)
    path = written("a,b\n" + "".join(f"{value!r},1\n" for value in values.tolist()))
    np.testing.assert_array_equal(read_table(path, PLAIN).frame["a"], values)


@pytest.mark.parametrize(
    ("text", "how", "code", "message"),
    [
        ("", PLAIN, Code.UNREADABLE, "t.csv is empty"),
        ("a,b\n", PLAIN, Code.DATA, "no rows"),
        ("a,b,a,b\n1,2,3,4\n", PLAIN, Code.DATA, "several columns called a, b"),
        ("a,b\n1\n", PLAIN, Code.UNREADABLE, "line 2: 1 cell, but 2"),
        ('a,b\n1,"2\n', PLAIN, Code.UNREADABLE, "cannot read t.csv"),
        ("a,b\n1,x\n", Reading(parse_dates=["b"]), Code.DATA, "--parse-dates b"),
        ("a,b\n1,x\n", Reading(parse_dates=["c"]), Code.UNREADABLE, "'c'"),
        ("a,b\n1,2\n", Reading(decimal="ab"), Code.UNREADABLE, "decimal"),
        ("a,b\n1,2\n", Reading(encoding="none"), Code.UNREADABLE, "unknown encoding"),
    ],
)
def test_files_that_cannot_be_read(text, how, code, message):
    with pytest.raises(CommandError, match=message.replace(".", r"\.")) as found:
        read_table(written(text), how)
    assert found.value.code == code


def test_parquet_keeps_types_and_equal_names_are_named():
    table = pa.table({"n": pa.array([2**60 + 1, None], pa.int64()), "t": ["x", None]})
    pq.write_table(table, "t.parquet")
    found = read_table(Path("t.parquet"), PLAIN)
    assert found.frame["n"].iloc[0] == 2**60 + 1
    with open("u.parquet", "wb") as file:
        frame_writer(found.frame, Path("u.parquet"))(file)
    assert pq.read_table("u.parquet").schema.types == table.schema.types
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), "twice.parquet")
    with pytest.raises(CommandError, match="several columns called a: rename them"):
        read_table(Path("twice.parquet"), PLAIN)


def test_arrays():
    np.save("t.npy", np.arange(6, dtype=">f4").reshape(3, 2))
    frame = read_table(Path("t.npy"), PLAIN).frame
    assert list(frame) == ["0", "1"]
    assert set(frame.dtypes) == {np.dtype("f4")}
    np.savez("t.npz", a=np.eye(2), b=np.ones((2, 2)))
    assert read_table(Path("t.npz"), Reading(key="b")).frame.to_numpy().all()
    for how in (PLAIN, Reading(key="c")):
        with pytest.raises(CommandError, match="holds the arrays a, b: choose one by --key"):
            read_table(Path("t.npz"), how)
    for name, X in (("line", np.ones(3)), ("text", np.array([["a"]]))):
        np.save(f"{name}.npy", X)
        with pytest.raises(CommandError, match="need real numbers in two dimensions"):
            read_table(Path(f"{name}.npy"), PLAIN)
    np.save("objects.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(CommandError, match=r"cannot read objects\.npy"):
        read_table(Path("objects.npy"), PLAIN)
    with pytest.raises(CommandError, match=r"polyspan reads \.csv"):
        read_table(Path("t.txt"), PLAIN)


def test_columns_are_chosen_by_name():
    path = written('"a,b",c,d\n1,2,3\n4,5,7\n8,1,2\n')
    assert list(read_table(path, Reading(columns=["d,c"])).chosen) == ["d", "c"]
    assert list(read_table(path, Reading(drop=["a,b", "d"])).chosen) == ["c"]
    with pytest.raises(CommandError, match="has no column 'x': its columns are a,b, c, d"):
        _ = read_table(path, Reading(columns=["x"])).chosen
    with pytest.raises(CommandError, match=r"no column of t\.csv is left"):
        _ = read_table(path, Reading(columns=["c"], drop=["c"])).chosen


def test_what_is_no_number_is_passed_over(capsys):
    path = written("id,a,t,void\n7,1.5,x,\n8,2.5,y,\n9,0.5,z,\n")
    assert list(numbers_of(read_table(path, PLAIN))) == ["a"]
    said = capsys.readouterr().err
    for why in (
        "hold text: t",
        "are empty: void",
        "only count the rows (--columns takes them): id",
    ):
        assert f"passed over, since they {why}" in said
    assert list(numbers_of(read_table(path, Reading(columns=["id,a"])))) == ["id", "a"]
    with pytest.raises(CommandError, match=r"no column of numbers: .* --sep and --decimal"):
        numbers_of(read_table(written("a;b\nx;1,5\n", "u.csv"), Reading(header=True, sep="|")))


@pytest.mark.parametrize(
    ("name", "values", "counts"),
    [
        ("x", [3, 4, 5, 6], True),
        ("x", [3, 5, 4, 6], False),
        ("ID ", [3, 5, 4, 6], True),
        ("Unnamed: 0", [3, 5, 4, 6], True),
        ("id", [3, 5, 5, 6], False),
        ("id", [3.5, 4.5, 5.5, 6.5], False),
        ("id", [3, 4, 5, np.nan], False),
        ("id", [3, 4], False),
    ],
)
def test_what_counts_rows(name, values, counts):
    assert counts_rows(np.array(values, dtype=float), name) is counts


def test_arrays_take_numbers_only(capsys):
    frame = pd.DataFrame({"a": [1.5], "t": ["x"], "b": [2]})
    with open("t.npz", "wb") as file:
        frame_writer(frame, Path("t.npz"))(file)
    assert np.load("t.npz")["X"].tolist() == [[1.5, 2.0]]
    assert "not in t.npz, which can hold numbers only: t" in capsys.readouterr().err
    holes = pd.DataFrame({"n": pd.array([1, None], dtype="int64[pyarrow]")})
    with open("h.npy", "wb") as file:
        frame_writer(holes, Path("h.npy"))(file)
    np.testing.assert_array_equal(np.load("h.npy"), [[1.0], [np.nan]])
    with pytest.raises(CommandError, match=r"t\.npy can hold numbers only: write to \.csv"):
        frame_writer(frame[["t"]], Path("t.npy"))


def test_the_same_table_gives_the_same_packed_bytes_and_lines_end_alike(monkeypatch):
    monkeypatch.setattr(os, "linesep", "\r\n")
    frame = pd.DataFrame({"a": [1.5, 2.0]})
    contents = []
    for _ in range(2):
        with open("t.tsv.gz", "wb") as file:
            frame_writer(frame, Path("t.tsv.gz"))(file)
        contents.append(Path("t.tsv.gz").read_bytes())
        monkeypatch.setattr("time.time", lambda: 1e9)
    assert contents[0] == contents[1]
    assert gzip.decompress(contents[0]) == b"a\n1.5\n2.0\n"
