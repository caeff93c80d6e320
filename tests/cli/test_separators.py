"""Numbers as people write them: a column is read where all its cells agree on one reading."""

import numpy as np
import pandas as pd
import pytest

from polyspan.cli.errors import Code, CommandError
from polyspan.cli.separators import Marks
from polyspan.cli.tables import read_table

NAN = np.nan


def csv(tmp_path, *lines, name="t.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (("1,5", "2", "", "-3,25"), [1.5, 2, NAN, -3.25]),
        (("0,125", "0,250"), [0.125, 0.25]),
        (("1,5e3", ",5", "NA", "+7,"), [1500, 0.5, NAN, 7]),
        (("1.234,5", "12", "1.234.567"), [1234.5, 12, 1234567]),
        (("1.234.567", "2.345.678"), [1234567, 2345678]),
        (("1,234,567", "8,900,123"), [1234567, 8900123]),
        (("1,234.5", "6,789.25", "2"), [1234.5, 6789.25, 2]),
        (("1 234,5", "12 345"), [1234.5, 12345]),
        (("1\u202f234", "22\u202f345"), [1234, 22345]),
        (("1'234.5", "2'345'678"), [1234.5, 2345678]),
        (("12,34", "1,234"), [12.34, 1.234]),
        (("True", "", "False"), [1, NAN, 0]),
        (("true", "NA", "FALSE"), [1, NAN, 0]),
        (("0.1", "1.234"), [0.1, 1.234]),
        (("1.234", "5.678"), [1.234, 5.678]),
    ],
)
def test_columns_that_agree_on_a_reading(tmp_path, cells, numbers):
    path = csv(tmp_path, "k;x", *(f"{k};{cell}" for k, cell in enumerate(cells)))
    table = read_table(path)
    np.testing.assert_array_equal(table.X[:, 1], numbers)
    # With a comma between the cells those with commas are quoted.
    pd.read_csv(path, sep=";", dtype=str, keep_default_na=False).to_csv(path, index=False)
    np.testing.assert_array_equal(read_table(path).X[:, 1], numbers)


def test_every_number_goes_to_the_nearest_double(tmp_path):
    numbers = np.random.RandomState(0).standard_normal(200) * 10.0 ** np.arange(-100, 100)
    path = csv(tmp_path, "x", *(repr(float(x)).replace(".", ",") for x in numbers), name="t.tsv")
    np.testing.assert_array_equal(read_table(path).X[:, 0], numbers)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ("1,234", "5,678"),
            r"column x of .* can be read in two ways: '1,234' \(row 0\) is 1.234 with --decimal , "
            r"and 1234 with --thousands ,; say which \(--decimal, --thousands",
        ),
        (
            ("1,5", "2.5"),
            r"column x of .* cannot be read in one way: '1,5' is no number with --decimal \., and "
            r"'2.5' is no number with --decimal ,; mend it",
        ),
        (("1.234,5", "1,234.5"), "column x .* cannot be read in one way.*--decimal, --thousands"),
    ],
)
def test_columns_that_do_not_agree_are_named(tmp_path, cells, message):
    path = csv(tmp_path, "k;x", *(f"{k};{cell}" for k, cell in enumerate(cells)))
    for only_numbers in (False, True):  # fit refuses text, impute passes over it
        with pytest.raises(CommandError, match=message) as caught:
            read_table(path, only_numbers=only_numbers)
        assert caught.value.code == Code.DATA
    assert read_table(path, drop=["x"]).X.shape == (2, 1)


def test_options_say_how_to_read(tmp_path):
    path = csv(tmp_path, "k;x", "1;1,234", "2;5,678")
    for options, numbers in (
        ({"decimal": ","}, [1.234, 5.678]),
        ({"decimal": "."}, [1234, 5678]),
        ({"thousands": ","}, [1234, 5678]),
        ({"thousands": ""}, [1.234, 5.678]),
        ({"thousands": "."}, [1.234, 5.678]),
    ):
        np.testing.assert_array_equal(read_table(path, **options).X[:, 1], numbers)
    # What pandas takes for plain numbers follows the options too.
    path = csv(tmp_path, "k;x", "1;1.234", "2;5.678")
    np.testing.assert_array_equal(read_table(path, decimal=",").X[:, 1], [1234, 5678])
    np.testing.assert_array_equal(read_table(path, decimal=".").X[:, 1], [1.234, 5.678])
    with pytest.raises(CommandError, match=r"column x .*'1.234' is no number with --decimal ,"):
        read_table(path, decimal=",", thousands="")
    # They do not turn numbers into names.
    with pytest.raises(CommandError, match=r"column 1 .*'2.5' is no number with --decimal ,"):
        read_table(csv(tmp_path, "1;2.5", "3;4.5"), decimal=",")


def test_points_among_decimal_commas(tmp_path, capsys):
    path = csv(tmp_path, "a;x", "1,5;1.234", "2,5;5.678")
    with pytest.raises(CommandError, match=r"column x .*is 1.234 with .*1234 with --thousands \."):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, decimal=",").X, [[1.5, 1234], [2.5, 5678]])
    assert "read with decimal commas or thousands separators: a, x\n" in capsys.readouterr().err
    # A column that can only be plain stays so.
    path = csv(tmp_path, "a;x", "1,5;1.25", "2,5;5.678")
    np.testing.assert_array_equal(read_table(path).X, [[1.5, 1.25], [2.5, 5.678]])


@pytest.mark.parametrize(
    ("lines", "names", "rows"),
    [
        (("1,5;2,5;3,5", "4,5;;6,5"), None, [[1.5, 2.5, 3.5], [4.5, NAN, 6.5]]),
        (("NA;1,5", "2,5;3,5"), None, [[NAN, 1.5], [2.5, 3.5]]),
        (("1,5\t2,5\t3,5", "4,5\t5\t6,5"), None, [[1.5, 2.5, 3.5], [4.5, 5, 6.5]]),
        (("a;b, in m, c", "1,5;2", "2,5;3"), ("a", "b, in m, c"), [[1.5, 2], [2.5, 3]]),
        (('"a, b";"c, d"', "1;2", "3;4"), ("a, b", "c, d"), [[1, 2], [3, 4]]),
        (("True,1.5", "False,2.5"), None, [[1, 1.5], [0, 2.5]]),
    ],
)
def test_separators_of_cells_are_told_from_those_of_numbers(tmp_path, lines, names, rows):
    path = csv(tmp_path, *lines)
    table = read_table(path)
    assert table.names == names
    np.testing.assert_array_equal(table.X, rows)


def test_text_stays_text(tmp_path, capsys):
    path = csv(tmp_path, "x;day;time;place;mixed", "1;10.03.2004;18.00.00;Ulm;1,5", "2;;;;no")
    assert read_table(path, only_numbers=True).names == ("x",)
    told = "passed over, since they hold text: day, time, place, mixed (row 1: 'no')\n"
    assert told in capsys.readouterr().err
    with pytest.raises(CommandError, match=r"4 columns .*\(row 0 of day: '10.03.2004'\)"):
        read_table(path)


def test_the_options_are_for_lines_of_cells(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((2, 2)))
    with pytest.raises(CommandError, match=r"--decimal and --thousands are for \.csv"):
        read_table(tmp_path / "t.npy", decimal=",")


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        (Marks(), "-1234567.25"),
        (Marks(","), "-1234567,25"),
        (Marks(",", "."), "-1.234.567,25"),
        (Marks(".", "'"), "-1'234'567.25"),
    ],
)
def test_numbers_are_written_as_they_are_read(marks, text):
    assert marks.write(-1234567.25, whole=True) == text
    assert marks.write(12.0, whole=True) == "12"
    assert marks.write(12.0, whole=False) == f"12{marks.decimal}0"
    for number in (-1234567.25, 0.1 + 0.2, 1e22, 5e-324):
        cells = pd.Series([marks.write(number, whole=False)], dtype="str")
        assert marks.fit(cells).all()
        assert marks.numbers(cells)[0] == number
