"""Dates in cells of text are read and written back in the form of their column."""

import numpy as np
import pandas as pd
import pytest

from polyspan.cli.dates import DateForm, first_other, form_for, read_dates

FORMS = [
    ["2020-01-31", "1999-12-01"],
    ["2020-01-31 10:30", "0001-12-01 00:00"],
    ["2020-01-31T10:30:59", "9999-12-31T23:59:59"],
    ["2020-01-31T10:30:59Z", "1999-12-01T00:00:00Z"],
    ["2020-01-31 10:30:59.125+02:00", "1999-12-01 00:00:00.000+02:00"],
    ["2020-01-31 10:30:59.123456", "1999-12-01 00:00:00.000001"],
]


@pytest.mark.parametrize("cells", FORMS, ids=lambda cells: cells[0])
def test_dates_are_written_as_they_are_read(cells):
    column = pd.Series([cells[0], None, cells[1]], dtype="str")
    moments, form = read_dates(column)
    assert np.isnat(moments).tolist() == [False, True, False]
    assert form.write(moments[[0, 2]]) == cells
    assert moments[0].astype("datetime64[D]") == np.datetime64(cells[0][:10])


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        (["2020-01-31", "unknown", "x"], 1),
        (["2020-02-30", "2020-01-31"], 0),
        (["2020-01-31", "2020-01-31", "2020-01-31 10:30"], 2),
        (["2020-01-31 10:30", "2020-01-31T10:30"], 1),
        (["2020-01-31T10:30Z", "2020-01-31T10:30+01:00"], 1),
        (["2020-01-31T10:30:00", "2020-01-31T10:30"], 1),
        (["31.01.2020"], 0),
        (["2020-01-31T10:30.5"], 0),
    ],
)
def test_other_columns_stay_text(cells, row):
    column = pd.Series([None, *cells], dtype="str")
    assert read_dates(column) is None
    assert first_other(column) == row + 1


def test_a_fraction_of_a_second_may_be_left_out():
    """As Python does where it is 0."""
    moments, form = read_dates(pd.Series(["2020-01-31 10:30:59", "2020-01-31 10:30:59.250000"]))
    assert form.digits == 6
    assert form.write(moments)[1] == "2020-01-31 10:30:59.250000"


def test_moments_that_no_cell_can_hold_are_the_nearest_that_it_can():
    far = np.array(["12000-01-01", "-0100-01-01"], dtype="datetime64[us]")
    assert DateForm().write(far) == ["9999-12-31", "0001-01-01"]


def test_a_column_without_any_entry_gets_a_time_where_there_is_one():
    days = np.array(["2020-01-31", "2020-02-01"], dtype="datetime64[us]")
    assert form_for(days).write(days) == ["2020-01-31", "2020-02-01"]
    hours = days + np.timedelta64(1, "h")
    assert form_for(hours).write(hours) == ["2020-01-31T01:00:00", "2020-02-01T01:00:00"]
