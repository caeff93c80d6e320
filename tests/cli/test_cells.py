"""Cells keep their quotes and blanks; what is filled in is written like the other cells."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyspan.cli.cells import as_cells, content_of, decimals_of, quoted, split_cells
from polyspan.cli.errors import CommandError

PATH = Path("t.csv")


def test_cells_are_split_as_they_are_written():
    text = 'a,"b, c", d\r\n"x ""y""",,"line\nbreak"\n \n1,2,3'
    assert split_cells(PATH, text, ",") == [
        ["a", '"b, c"', " d"],
        ['"x ""y"""', "", '"line\nbreak"'],
        ["1", "2", "3"],
    ]
    assert split_cells(PATH, "a\tb\n1\t\n", "\t") == [["a", "b"], ["1", ""]]
    assert split_cells(PATH, "", ",") == []


@given(st.lists(st.lists(st.text('ab,"\n ', max_size=4), min_size=2, max_size=2), min_size=1))
def test_what_is_quoted_is_read_again(rows):
    text = "\n".join(",".join(quoted(cell, ",") for cell in row) for row in rows)
    found = split_cells(PATH, text, ",")
    assert [[content_of(cell) for cell in row] for row in found] == rows


def test_lines_of_other_lengths_and_long_separators_are_refused():
    with pytest.raises(CommandError, match=r"t\.csv, line 3: 1 cell, but 2 in the first line"):
        split_cells(PATH, "a,b\n1,2\n3\n4,5\n", ",")
    with pytest.raises(CommandError, match="need one character"):
        split_cells(PATH, "a,b\n", ", ")


@pytest.mark.parametrize(
    ("texts", "decimal", "digits"),
    [
        (["1", "2"], ".", 0), (["1.50", "2.5"], ".", 2), (["1,250"], ",", 3),
        (["1e-5", "2.5"], ".", None), (["1.5 "], ".", 1), ([], ".", 0),
        (["0.12345678901234567"], ".", None),
    ],
)  # fmt: skip
def test_decimals_of_a_column(texts, decimal, digits):
    assert decimals_of(texts, decimal) == digits


@pytest.mark.parametrize(
    ("values", "column", "texts", "written"),
    [
        ([2.0, 0.123456], [1.25, 3.0], ["1.25", "3.0"], ["2.00", "0.12"]),
        ([2.0], [1.0, 3.0], ["1.0", "3.0"], ["2.0"]),
        ([7.0], [1.0, 3.0], ["1", "03"], ["7"]),
        ([0.1], [1e-9], ["1e-9"], ["0.1"]),
        ([True, False], [True, False], ["TRUE", "FALSE"], ["TRUE", "FALSE"]),
        (["a, b", "c"], ["a, b", "d"], ['"a, b"', "d"], ['"a, b"', "c"]),
        (["p,q"], ["d"], ["d"], ['"p,q"']),
    ],
)
def test_what_is_filled_in_is_written_like_the_others(values, column, texts, written):
    found = as_cells(pd.Series(values), pd.Series(column), texts, ".", ",")
    assert found == written


def test_decimal_commas_and_dates():
    column = pd.Series([1.5, 2.25])
    assert as_cells(pd.Series([3.0]), column, ['"1,5"', '"2,25"'], ",", ",") == ['"3,00"']
    assert as_cells(pd.Series([3.0]), column, ["1,5", "2,25"], ",", ";") == ["3,00"]
    days = pd.to_datetime(pd.Series(["2024-03-01", "2024-03-02"]))
    new = pd.to_datetime(pd.Series(["2024-04-05"]))
    assert as_cells(new, days, ["03/01/2024", "03/02/2024"], ".", ",") == ["04/05/2024"]
