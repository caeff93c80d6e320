"""Input tables in the forms that users have: kinds of CSV, Parquet and NumPy files."""

import numpy as np
import pandas as pd
import pytest

from polyspan.cli.errors import Code, CommandError
from polyspan.cli.outputs import write_array
from polyspan.cli.tables import read_table


def csv(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a,b\n1,2\n3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("1,NA\n3,4", None, [[1, np.nan], [3, 4]]),
        ("\ufeffa;b\r\n1;2\r\n\r\n3;4\r\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("a\tb\n-1e-3\t\n+3\tnan\n", ("a", "b"), [[-1e-3, np.nan], [3, np.nan]]),
        ('"a, b",c\n1,null\n 2, 3\n', ("a, b", "c"), [[1, np.nan], [2, 3]]),
        ("a,1\n1,2\n", ("a", "1"), [[1, 2]]),
        ("\n\na;b\n1;2\n", ("a", "b"), [[1, 2]]),
        ("a,b\n1,\n  \n3,4\n", ("a", "b"), [[1, np.nan], [3, 4]]),
        ('"a\nz",b\n1,2\n', ("a\nz", "b"), [[1, 2]]),
        ("True,b\n1,2\n", ("True", "b"), [[1, 2]]),
    ],
)
def test_csv_as_it_comes(tmp_path, text, names, rows):
    table = read_table(csv(tmp_path, text))
    assert table.names == names
    np.testing.assert_array_equal(table.X, np.array(rows, dtype=float))


def test_the_header_can_be_said(tmp_path):
    path = csv(tmp_path, "0,1\n2,3\n")
    assert read_table(path).X.shape == (2, 2)
    assert read_table(path, header="yes").names == ("0", "1")
    path = csv(tmp_path, "a,b\n2,3\n")
    with pytest.raises(CommandError, match="not numbers"):
        read_table(path, header="no")


@pytest.mark.parametrize("index", [True, False])
def test_names_that_pandas_gives_are_no_sample(tmp_path, index):
    """They count 0, 1, 2, …; fewer than three of them might be a row of zeros and ones."""
    X = np.random.RandomState(0).standard_normal((5, 4))
    path = tmp_path / "t.csv"
    pd.DataFrame(X).to_csv(path, index=index)
    table = read_table(path)
    assert table.names[-4:] == ("0", "1", "2", "3")
    np.testing.assert_allclose(table.X[:, -4:], X)
    if not index:
        assert read_table(path, header="no").X.shape == (6, 4)


def test_numbers_keep_their_bits(tmp_path):
    X = np.random.RandomState(0).standard_normal((50, 4)) * 10.0 ** np.arange(-8, 8, 4)
    for ending in (".csv", ".parquet", ".npy", ".npz"):
        path = tmp_path / f"t{ending}"
        write_array(X, path, ["a", "b", "c", "d"], key="X", force=False)
        np.testing.assert_array_equal(read_table(path).X, X)
    write_array(X, tmp_path / "bare.csv", None, key="X", force=False)
    bare = read_table(tmp_path / "bare.csv")
    assert bare.names is None
    np.testing.assert_array_equal(bare.X, X)


def test_single_precision_stays(tmp_path):
    X = np.ones((3, 2), dtype=np.float32)
    np.save(tmp_path / "t.npy", X)
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "t.parquet")
    np.save(tmp_path / "big.npy", X.astype(">f4"))
    np.save(tmp_path / "int.npy", X.astype(int))
    assert read_table(tmp_path / "t.npy").X.dtype == np.float32
    assert read_table(tmp_path / "t.parquet").X.dtype == np.float32
    assert read_table(tmp_path / "big.npy").X.dtype == np.dtype("=f4")
    assert read_table(tmp_path / "int.npy").X.dtype == np.float64


def test_nullable_columns_of_parquet(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.5, None, 2.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    expected = [[1, 1.5], [np.nan, np.nan], [3, 2]]
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").X, expected)


def test_columns_by_name_position_and_range(tmp_path):
    path = csv(tmp_path, 'id,"x, y",a,b\nu,1,2,3\nv,4,5,6\n')
    for options, names in (
        ({"columns": ["b,a"]}, ("b", "a")),
        ({"columns": ["x, y", "b"]}, ("x, y", "b")),
        ({"columns": ["1:3"]}, ("x, y", "a")),
        ({"columns": ["2:"], "drop": ["a"]}, ("b",)),
        ({"drop": ["0"]}, ("x, y", "a", "b")),
        ({"drop": ["id", "id"]}, ("x, y", "a", "b")),
    ):
        assert read_table(path, **options).names == names
    with pytest.raises(CommandError, match=r"no column 'z': its columns are id, x, y, a, b"):
        read_table(path, columns=["z"])
    with pytest.raises(CommandError, match=r"no column .* is left"):
        read_table(path, drop=[":"])


def test_texts_are_named(tmp_path):
    path = csv(tmp_path, "a,b,c\n1,2,x\n3,oops,y\n")
    with pytest.raises(CommandError, match=r"2 columns .*row 1 of b: 'oops'.*--drop b,c") as caught:
        read_table(path)
    assert caught.value.code == Code.DATA


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", Code.UNREADABLE, "is empty"),
        ("\na,b\n\n", Code.DATA, "has a header but no samples"),
        ("a,b\n", Code.DATA, "has a header but no samples"),
        ("a,b\n1,2\n1,2,3\n", Code.UNREADABLE, "line 3: 3 cells, but 2"),
        ("a,b\n1,2\n1\n", Code.UNREADABLE, "line 3: 1 cell, but 2"),
        ("a,b\n1,2,3\n4,5,6\n", Code.UNREADABLE, "line 2: 3 cells, but 2"),
        ("a,b\n0,2,3\n1,5,6\n", Code.UNREADABLE, "line 2: 3 cells, but 2"),
        ("a,b,c\n1,2\n3,4\n", Code.UNREADABLE, "line 2: 2 cells, but 3"),
        ("1,2\n\n3,4,5\n", Code.UNREADABLE, "line 3: 3 cells, but 2"),
        ('a,b\n"1\n",2\n3\n', Code.UNREADABLE, "line 4: 1 cell, but 2"),
        ('a,b\n1,2\n3,"4\n', Code.UNREADABLE, "EOF inside string starting at row 2"),
        ("\n\n", Code.UNREADABLE, "is empty"),
        ("a,a\n1,2\n", Code.DATA, "more than one column called a"),
    ],
)
def test_files_that_are_not_csv(tmp_path, text, code, message):
    with pytest.raises(CommandError, match=message) as caught:
        read_table(csv(tmp_path, text))
    assert caught.value.code == code


def test_a_column_without_a_name_gets_one(tmp_path, capsys):
    path = csv(tmp_path, ",a,b\n0,1,2\n1,3,4\n")
    assert read_table(path).names == ("unnamed_0", "a", "b")
    assert "--drop unnamed_0" in capsys.readouterr().err


def test_other_unreadable_files(tmp_path):
    bad = {
        "latin.csv": "ä,ö\n1,2\n".encode("latin-1"),
        "bad.npy": b"\x93NUMPY but not",
        "bad.npz": b"PK but not",
        "bad.parquet": b"PAR1 but not",
        "data.xlsx": b"",
    }
    for name, content in bad.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CommandError) as caught:
            read_table(tmp_path / name)
        assert caught.value.code == Code.UNREADABLE
        assert name in str(caught.value)
    (tmp_path / "folder.csv").mkdir()
    for name, message in (("folder.csv", "is a folder"), ("none.npy", "does not exist")):
        with pytest.raises(CommandError, match=message) as caught:
            read_table(tmp_path / name)
        assert caught.value.code == Code.UNREADABLE


def test_pickles_in_arrays_are_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").touch, ())

    np.save(tmp_path / "t.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=np.array([[Trap()]], dtype=object))
    for name in ("t.npy", "t.npz"):
        with pytest.raises(CommandError, match="Python objects, which could run code") as caught:
            read_table(tmp_path / name)
        assert caught.value.code == Code.UNREADABLE
    assert not (tmp_path / "sprung").exists()


def test_arrays_of_other_shapes_and_types(tmp_path):
    for values, message in (
        (np.ones(3), r"shape \(3,\): need two dimensions"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((0, 3)), "is empty: 0 rows, 3 columns"),
        (np.ones((2, 2), dtype=complex), "type complex128: need real numbers"),
        (np.array([["a"]]), "need real numbers"),
    ):
        np.save(tmp_path / "t.npy", values)
        with pytest.raises(CommandError, match=message) as caught:
            read_table(tmp_path / "t.npy")
        assert caught.value.code == Code.DATA


def test_several_arrays_need_a_key(tmp_path):
    np.savez(tmp_path / "t.npz", a=np.ones((2, 3)), b=np.zeros((4, 5)))
    with pytest.raises(CommandError, match=r"2 arrays \(a, b\): say which with --key"):
        read_table(tmp_path / "t.npz")
    with pytest.raises(CommandError, match="no array 'c': it holds a, b"):
        read_table(tmp_path / "t.npz", key="c")
    assert read_table(tmp_path / "t.npz", key="b").X.shape == (4, 5)
