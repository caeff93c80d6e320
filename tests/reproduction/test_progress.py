"""The time left comes from what like trials took; lines and bar say how far a run is."""

import io
import sys
from collections import Counter
from dataclasses import replace

import pytest

from reproduction.run import progress
from reproduction.run.progress import Durations, Lines, Status, shown
from reproduction.run.records import Record


def record(experiment="table1", method="ours", seconds=1.0, error=None):
    results = None if error else {}
    params = {"method": method} if method else {}
    return Record(experiment, params, results, error, seconds, seconds, {}, None, "")


def status(done=3, left=75.0, **changes):
    return replace(Status(done, 10, 0, left, record()), **changes)


def test_durations_are_those_of_the_same_method():
    known = Durations([record(seconds=1), record(seconds=3), record(method="slow", seconds=1000)])
    assert known.of(("table1", "ours")) == 2
    assert known.of(("table1", "slow")) == 1000


def test_unknown_methods_take_the_mean_of_their_experiment_then_of_all():
    known = Durations([record(method="a", seconds=1), record(method="b", seconds=3)])
    known.add(record("fig9", "", seconds=8))
    assert known.of(("table1", "new")) == 2
    assert known.of(("fig1", "")) == 4
    assert Durations().of(("fig1", "")) is None


def test_failed_trials_say_nothing_about_durations():
    assert Durations([record(error="ValueError: no")]).of(("table1", "ours")) is None


def test_time_left_adds_up_over_methods_and_is_shared_by_processes():
    known = Durations([record(method="a", seconds=1), record(method="b", seconds=10)])
    left = Counter({("table1", "a"): 20, ("table1", "b"): 2})
    assert known.left(left, jobs=1) == 40
    assert known.left(left, jobs=2) == 20
    assert known.left(left, jobs=100) == 10, "no run ends before its longest trial"
    assert known.left(Counter({("table1", "a"): 0}), jobs=2) == 0
    assert Durations().left(left, jobs=1) is None


def test_lines_come_now_and_then_and_for_failures_and_the_end():
    now, stream = [0.0], io.StringIO()
    lines = Lines(stream, clock=lambda: now[0])
    lines(status(1))
    assert stream.getvalue() == ""
    now[0] = 11.0
    lines(status(2))
    lines(status(3))
    lines(status(4, failed=1, record=record("fig9", error="ValueError: no")))
    lines(status(10, failed=1))
    assert stream.getvalue().splitlines() == [
        "table1: 2 of 10 trials, 1 min 15 s left",
        "fig9: failed: ValueError: no",
        "table1: 10 of 10 trials, 1 failed",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(monkeypatch, stream, choice, *statuses):
    monkeypatch.setattr(sys, "stderr", stream)
    with shown(choice, 10) as report:
        for one in statuses:
            report(one)
    return stream.getvalue()


def test_nothing_is_shown_unless_asked_for_or_on_a_terminal(monkeypatch):
    assert show(monkeypatch, io.StringIO(), None, status(10)) == ""
    assert show(monkeypatch, Terminal(), False, status(10)) == ""
    assert "10 of 10 trials" in show(monkeypatch, io.StringIO(), True, status(10))


def test_a_callable_gets_every_status(monkeypatch):
    seen = []
    show(monkeypatch, Terminal(), seen.append, status(1), status(2))
    assert [one.done for one in seen] == [1, 2]


@pytest.mark.parametrize("left", [75.0, None])
def test_a_terminal_gets_a_bar(monkeypatch, left):
    monkeypatch.setenv("COLUMNS", "120")
    failed = record(error="ValueError: [no] data")
    text = show(monkeypatch, Terminal(), None, status(3, left), status(4, left, record=failed))
    assert "4/10" in text
    assert ("unknown time left" if left is None else "1 min 1") in text
    assert "table1 ours: failed: ValueError: [no] data" in text


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    monkeypatch.setattr(progress, "_has_rich", lambda: False)
    assert "10 of 10 trials" in show(monkeypatch, Terminal(), None, status(10))


def test_rich_that_is_missing_is_noticed(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert not progress._has_rich()
