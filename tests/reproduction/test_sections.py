"""Means, verdicts and claims, by hand."""

import math

import pytest

from reproduction.experiments.tools import (
    by_draw,
    curve,
    curves,
    finished,
    matching,
    mean_value,
    paired,
    value,
)
from reproduction.run.records import Record
from reproduction.sections import (
    CANNOT_TELL,
    DIFFERS,
    DOES_NOT_HOLD,
    HOLDS,
    NEW,
    NOT_REACHABLE,
    Claim,
    Row,
    Section,
    Value,
    compare_means,
    judge,
)


def record(results, error=None, **params):
    return Record(
        experiment="toy", params=params, results=results, error=error, seconds=1.0,
        cpu_seconds=2.0, versions={}, commit=None, started="2026-01-01T00:00:00+00:00",
    )  # fmt: skip


def test_value():
    found = Value.of([1.0, None, 3.0, float("nan")])
    assert (found.mean, found.error, found.n) == (2.0, 1.0, 2)
    assert Value.of([None]) is None
    assert math.isnan(Value.of([5.0]).error)


@pytest.mark.parametrize(
    ("published", "measured", "tolerance", "verdict"),
    [
        (1.0, Value(1.05, 0.01, 9), 0.1, HOLDS),
        (1.0, Value(1.15, 0.01, 9), 0.1, DIFFERS),
        (1.0, Value(1.15, 0.08, 9), 0.1, HOLDS),  # 95 %: ±.18
        (1.0, Value(1.25, 0.5, 9), 0.1, DIFFERS),  # never more than twice the tolerance
        (1.0, Value(1.15, math.nan, 1), 0.1, DIFFERS),
        (None, Value(1.0, 0.1, 2), 0.1, NEW),
        (1.0, None, 0.1, NOT_REACHABLE),
    ],
)
def test_judge(published, measured, tolerance, verdict):
    assert judge(published, measured, tolerance)[0] == verdict


def test_claims_need_a_95_percent_interval_without_0():
    names = ("first", "second")
    assert compare_means("x", [1.0, 1.1, 0.9], [2.0, 2.2, 2.1], names).verdict == HOLDS
    assert compare_means("x", [2.0, 2.2, 2.1], [1.0, 1.1, 0.9], names).verdict == DOES_NOT_HOLD
    assert compare_means("x", [1.0, 3.0], [2.0, 2.1], names).verdict == CANNOT_TELL
    # Two pairs: 12.7 standard errors are needed, not 2.
    assert compare_means("x", [1.0, 1.0], [1.5, 1.9], names).verdict == CANNOT_TELL
    assert compare_means("x", [1.0], [2.0], names).verdict == CANNOT_TELL
    assert compare_means("x", [], [], names).verdict == CANNOT_TELL
    claim = compare_means("x", [1.0, None, 1.5], [2.0, 9.0, 2.4], names)
    assert "over 2 trials" in claim.evidence


RECORDS = [
    record({"a": 1.0, "line": [1.0, 3.0]}, draw=0, method="m", options={"lam": 2.0}),
    record({"a": 3.0, "line": [2.0, 5.0]}, draw=1, method="m", options={"lam": 2.0}),
    record(None, "ValueError: no", draw=2, method="m", options={"lam": 2.0}),
    record({"a": 9.0}, draw=1, method="n"),
]


def test_records_are_picked_by_their_parameters():
    assert len(matching(RECORDS, method="m")) == 2
    assert by_draw(RECORDS, "a", method="m", options={"lam": 2.0}) == {0: 1.0, 1: 3.0}
    assert by_draw(RECORDS, "a", options={"lam": 4.0}) == {}
    assert value(RECORDS, "a", method="m").mean == 2.0
    assert mean_value(RECORDS, "line", method="m").mean == 2.75
    assert paired(RECORDS, "a", {"method": "m"}, {"method": "n"}) == ([3.0], [9.0])


def test_curve_is_the_mean_over_draws():
    line = curve(RECORDS, "m", (0.1, 0.2), "line", where={"method": "m"})
    assert line.y == [1.5, 4.0]
    assert line.error == [0.5, 1.0]
    assert curves(line, curve(RECORDS, "k", (0.1,), "line", where={"method": "k"})) == [line]


def test_finished_counts_costs_and_names_failures():
    section = Section("toy", "t", "Table 0", "text")
    done = finished(section, RECORDS)
    assert (done.n_trials, done.n_failed, done.seconds) == (4, 1, 8.0)
    assert done.failures == ("draw=2, method=m, options={'lam': 2.0}: ValueError: no",)


def test_small_problems_and_other_data_give_no_verdict():
    rows = [
        Row("n", 1.0, Value(1.0, 0.1, 2), verdict=HOLDS),
        Row("k", None, Value(1.0, 0.1, 2)),
        Row("r", None, Value(4.0, 0.1, 2), verdict=HOLDS, published_as="4 to 5"),
    ]
    claims = [Claim("c", HOLDS, "e")]
    section = Section("toy", "t", "Table 0", "text", rows=rows, claims=claims)
    small = finished(section, [record({}, draw=0, size="small")])
    assert [row.verdict for row in small.rows] == [NOT_REACHABLE, NEW, NOT_REACHABLE]
    assert small.claims[0].verdict == CANNOT_TELL
    other = Section("toy", "t", "T", "text", rows=rows, claims=claims, stand_in=True)
    told = finished(other, [record({}, draw=0, size="full")])
    assert told.rows[0].verdict == NOT_REACHABLE
    assert "other data" in told.rows[0].note
    assert told.claims[0].verdict == CANNOT_TELL
