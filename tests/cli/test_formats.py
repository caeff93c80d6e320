"""Files of lines, packed or not, and the index of a .parquet file, from input to output."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polyspan.cli.errors import Code, CommandError
from polyspan.cli.outputs import write_array
from polyspan.cli.tables import read_table

SIZES = ("-L", 2, "-s", 2)
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".CSV.GZ")


def lines(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix.lower() == ".gz" else content).decode()


@pytest.mark.parametrize("ending", TEXT)
def test_lines_of_cells_are_read_and_written(run, shelf, tmp_path, ending):
    delimiter = "\t" if "tsv" in ending else ","
    text = (shelf / "holes.csv").read_text(encoding="utf-8").replace(",", delimiter).encode()
    data = tmp_path / f"t{ending}"
    data.write_bytes(gzip.compress(text) if data.suffix.lower() == ".gz" else text)
    np.testing.assert_array_equal(read_table(data).X, read_table(shelf / "holes.csv").X)
    assert run("impute", data, "-o", f"f{ending}", *SIZES).exit_code == 0
    filled = lines(tmp_path / f"f{ending}").splitlines()
    for old, new in zip(text.decode().splitlines(), filled, strict=True):
        for a, b in zip(old.split(delimiter), new.split(delimiter), strict=True):
            assert b
            assert a in ("", b)
    words = ("fit", data, "-m", "robust", *SIZES, "-o", "m.skops", "--labels-out", f"l{ending}")
    assert run(*words).exit_code == 0
    assert lines(tmp_path / f"l{ending}").startswith("label\n")
    done = run("predict", "m.skops", data, "-o", f"d{ending}", "--distances")
    assert done.exit_code == 0, done.output
    assert lines(tmp_path / f"d{ending}").splitlines()[0].count(delimiter) == 1


def test_the_same_table_gives_the_same_packed_bytes(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    for name in ("a.csv.gz", "b.csv.gz"):
        write_array(X, tmp_path / name, ["x", "y"], key="X", force=False)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_from_one_kind_of_lines_to_another(run, tmp_path):
    rows = [f"{k},5;n{k};{2 * k + 1}" for k in range(20)]
    rows[3] = ";n3;7"
    (tmp_path / "t.csv").write_text("\n".join(["a;name;b", *rows]) + "\n", encoding="utf-8")
    words = ("-L", 1, "-s", 1, "--drop", "name", "--set", "fill_prior=0.0")
    for ending, delimiter in ((".tsv", "\t"), (".csv.gz", ";")):
        assert run("impute", "t.csv", "-o", f"f{ending}", *words).exit_code == 0
        filled = lines(tmp_path / f"f{ending}").splitlines()
        assert filled[0] == "a;name;b".replace(";", delimiter)
        assert filled[5:] == [row.replace(";", delimiter) for row in rows[4:]]
        # What was filled in is written as the other cells are.
        assert abs(float(filled[4].split(delimiter)[0].replace(",", ".")) - 3.5) < 1
        assert "," in filled[4].split(delimiter)[0]
    assert run("impute", "f.tsv", "-o", "g.csv", *words).exit_code == 0
    assert lines(tmp_path / "g.csv").splitlines()[1] == '"0,5",n0,1'


def test_a_tsv_file_has_tabs_whatever_else_is_in_it(tmp_path):
    (tmp_path / "t.tsv").write_text("a, b, c; d\te\n1,5\t2\n", encoding="utf-8")
    table = read_table(tmp_path / "t.tsv")
    assert table.names == ("a, b, c; d", "e")
    np.testing.assert_array_equal(table.X, [[1.5, 2]])


def test_damaged_packed_files(tmp_path):
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    for content in (b"a,b\n1,2\n", packed[:-12], packed[:40] + b"xxxx" + packed[44:], b""):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(CommandError, match=r"t\.csv\.gz") as caught:
            read_table(tmp_path / "t.csv.gz")
        assert caught.value.code == Code.UNREADABLE
    (tmp_path / "t.npy.gz").write_bytes(packed)
    with pytest.raises(CommandError, match=r"polyspan reads \.npy.*\.tsv\.gz"):
        read_table(tmp_path / "t.npy.gz")


INDICES = [
    pd.Index([f"r{k}" for k in range(60)], name="id"),
    pd.date_range("2020-01-01", periods=60, name="day"),
    pd.RangeIndex(100, 220, 2),
    pd.Index(np.arange(60)[::-1]),
    pd.MultiIndex.from_product([["a", "b"], range(30)], names=["group", "k"]),
]


@pytest.mark.parametrize("index", INDICES, ids=lambda index: type(index).__name__)
def test_parquet_keeps_its_index(run, shelf, index):
    frame = pd.read_parquet(shelf / "holes.parquet").set_axis(index, axis=0)
    frame.to_parquet("t.parquet")
    frame = pd.read_parquet("t.parquet")  # a file does not know the steps between days
    assert read_table(Path("t.parquet")).names == tuple(frame.columns)
    words = ("fit", "t.parquet", "-m", "robust", *SIZES, "-o", "m.skops", "--labels-out")
    assert run(*words, "l.parquet").exit_code == 0
    assert run("impute", "t.parquet", "-o", "f.parquet", *SIZES).exit_code == 0
    assert run("reconstruct", "m.skops", "t.parquet", "-o", "r.parquet").exit_code == 0
    assert run("predict", "m.skops", "t.parquet", "-o", "p.parquet").exit_code == 0
    for name in ("l", "f", "r", "p"):
        after = pd.read_parquet(f"{name}.parquet")
        pd.testing.assert_index_equal(after.index, frame.index, exact="equiv")
        assert list(after.columns) == (["label"] if name in "lp" else list(frame.columns))
    filled = pd.read_parquet("f.parquet")
    pd.testing.assert_frame_equal(filled[frame.notna()], frame)
    # Lines have no index: it becomes columns.
    assert run("impute", "t.parquet", "-o", "f.csv", *SIZES).exit_code == 0
    columns = [name or f"index_{k}" for k, name in enumerate(index.names)]
    written = pd.read_csv("f.csv")
    assert list(written.columns) == [*columns, *frame.columns]
    assert [str(x) for x in written[columns[-1]]] == [
        str(x).removesuffix(" 00:00:00") for x in index.get_level_values(-1)
    ]


def test_rows_that_are_only_counted_stay_so(run, shelf, tmp_path):
    assert run("impute", shelf / "holes.parquet", "-o", "f.csv", *SIZES).exit_code == 0
    assert list(pd.read_csv("f.csv").columns) == [f"f{k}" for k in range(6)]
    assert os.listdir(tmp_path) == ["f.csv"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_true_and_false_with_blanks_are_filled_as_such(run, tmp_path, ending):
    x = np.linspace(-1, 1, 40)
    frame = pd.DataFrame({"a": x, "b": 2 * x, "up": pd.array(x > 0, dtype="boolean")})
    frame.loc[5::10, "up"] = pd.NA
    if ending == ".csv":
        text = frame.assign(up=frame["up"].map({True: "TRUE", False: "FALSE"}))
        text.to_csv("t.csv", index=False)
    else:
        frame.astype({"up": object}).to_parquet("t.parquet")
    for k, words in enumerate(((), ("-L", 1, "-s", 1))):
        done = run("impute", f"t{ending}", "-o", f"f{k}{ending}", *words)
        assert done.exit_code == 0, done.output
        assert "4 of 4 missing cells filled in 1 column" in done.output
        if ending == ".csv":
            filled = pd.read_csv(f"f{k}.csv", dtype=str)["up"]
            assert set(filled) == {"TRUE", "FALSE"}
            filled = filled == "TRUE"
        else:
            filled = pd.read_parquet(f"f{k}.parquet")["up"]
            assert pd.api.types.is_bool_dtype(filled.dtype)
        assert (filled.to_numpy() == (x > 0)).mean() > 0.9
