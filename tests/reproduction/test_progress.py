"""The remaining time is estimated from similar trials; a bar shows the progress of a run."""

import io
import sys

import pytest

from reproduction.run.progress import expected_seconds, progress_bar
from reproduction.run.records import Record


def record(experiment="table1", method="ours", seconds=1.0, error=None):
    results = None if error else {}
    params = {"method": method} if method else {}
    return Record(experiment, params, results, error, seconds, seconds, {}, None, "")


def test_a_trial_takes_what_others_of_its_method_took():
    known = [record(seconds=1), record(seconds=3), record(method="slow", seconds=1000)]
    expected = expected_seconds(known)
    assert expected("table1", {"method": "ours", "draw": 7}) == 2
    assert expected("table1", {"method": "slow"}) == 1000


def test_unknown_methods_take_the_mean_of_the_known():
    known = [record(method="a", seconds=1), record("fig9", "", seconds=8), record(method="b")]
    failed = record(method="c", seconds=100, error="ValueError: no")
    expected = expected_seconds([*known, failed])
    assert expected("fig9", {}) == 8
    assert expected("table1", {"method": "c"}) == expected("fig1", {}) == 10 / 3
    assert expected_seconds([])("fig1", {}) == expected_seconds([failed])("fig1", {}) == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def show(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")

    def show(stream, *, hidden=False, records=(), total=10):
        monkeypatch.setattr(sys, "stderr", stream)
        expected = expected_seconds([])
        with progress_bar(total, total, expected, hidden=hidden) as report:
            for one in records:
                report(one)
        return stream.getvalue()

    return show


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_bar_counts_trials_and_names_failures_as_they_are(show, stream):
    text = show(stream(), records=[record(), record(error="ValueError: [no] data"), record()])
    assert "3/10, 1 failed" in text
    assert "table1 ours: failed: ValueError: [no] data" in text


def test_the_end_is_reached_whatever_trials_were_expected_to_take(show):
    known = [record(method="a", seconds=1000), record(method="b", seconds=0.001)]
    expected = expected_seconds(known)
    work = sum(expected(one.experiment, one.params) for one in known)
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        with progress_bar(2, work, expected, hidden=False) as report:
            for one in known:
                report(one)
    assert "2/2 0:00:00" in stream.getvalue()


def test_nothing_is_shown_where_that_was_asked_for(show):
    failed = record(error="ValueError: no")
    assert show(Terminal(), hidden=True, records=[record(), failed]) == ""
