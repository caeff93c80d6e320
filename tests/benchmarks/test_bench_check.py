"""The stored baseline and its check (`make bench-check`); measurements are made up."""

import json
import math
from pathlib import Path

import pytest

BASELINE = Path(__file__).parents[2] / "benchmarks" / "baseline.json"
SPEED, PRODUCT = "ratio", "iteration over bare product"


def rows(speed=10.0, product=1.2):
    return {
        "scene": [{"row": "scene, power", SPEED: speed, "ms per iteration": 4.0}],
        "product": [{"row": "product, float32", PRODUCT: product, "peak MiB": 5.0}],
    }


def baseline(*measurements):
    from ratios import collect, entries

    return entries(collect(measurements or [rows()]))


def said_of(findings):
    return {found.key[1]: found.said for found in findings}


def checked(now, **made):
    from ratios import check, collect

    return check(baseline(), collect([now]), made.get("groups", ["scene", "product"]))


def test_only_ratios_are_stored_with_their_spread():
    stored = baseline(rows(10.0), rows(11.0), rows(13.0))
    (product, scene) = stored
    assert scene == {
        "group": "scene",
        "row": "scene, power",
        "value": SPEED,
        "better": "higher",
        "median": 11.0,
        "lowest": 10.0,
        "highest": 13.0,
        "tolerance": 0.45,  # 1.5 times 13 / 10 - 1
    }
    assert product["better"] == "lower"
    assert product["tolerance"] == 0.25  # no spread: the least one


@pytest.mark.parametrize(
    ("speed", "product", "expected"),
    [
        (10.0, 1.2, ("same", "same")),
        (8.1, 1.49, ("same", "same")),  # a little less than a quarter worse
        (7.9, 1.2, ("worse", "same")),
        (10.0, 1.51, ("same", "worse")),
        (12.6, 0.95, ("better", "better")),
        (math.nan, 0.0, ("worse", "worse")),
    ],
)
def test_worse_is_less_of_a_gain_and_more_of_a_cost(speed, product, expected):
    found = said_of(checked(rows(speed, product)))
    assert (found["scene, power"], found["product, float32"]) == expected


def test_results_may_change_less_than_times():
    from ratios import check, collect

    def made(value):
        return collect([{"scene": [{"row": "r", "F1 at the end over literal": value}]}])

    from ratios import entries

    stored = entries(made(1.1))
    assert check(stored, made(1.105), ["scene"])[0].said == "same"
    assert check(stored, made(1.12), ["scene"])[0].said == "worse"


def test_a_row_that_vanished_fails_and_a_new_one_does_not():
    from ratios import failing

    now = rows()
    now["scene"][0]["row"] = "scene, renamed"
    findings = checked(now)
    found = said_of(findings)
    assert found["scene, power"] == "not measured"
    assert found["scene, renamed"] == "not in the baseline"
    assert [wrong.key[1] for wrong in failing(findings)] == ["scene, power"]
    # A group that was not run is not missed.
    assert set(said_of(checked({"product": rows()["product"]}, groups=["product"]))) == {
        "product, float32"
    }


def test_the_median_of_the_measurements_counts():
    from ratios import check, collect

    lucky = collect([rows(10.0), rows(2.0), rows(9.9)])
    assert {found.said for found in check(baseline(), lucky, ["scene", "product"])} == {"same"}


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "baseline.json"
    about = {"machine": {"date": "d", "commit": "c", "processor": "p"}, "ratios": baseline()}
    path.write_text(json.dumps(about), encoding="utf-8")
    return path


def rounds(*found):
    """Return a way to measure that gives one made-up result after another, and what was asked."""
    left, asked = list(found), []

    def run(groups, times):
        asked.append(tuple(groups))
        result = left.pop(0)
        return [{group: result[group] for group in groups}] * times

    return run, asked


def test_only_what_is_worse_twice_fails(stored, capsys):
    import check

    options = ["--baseline", str(stored), "scene", "product"]
    run, asked = rounds(rows(5.0), rows(9.0))
    assert check.main(options, run) == 0
    assert asked == [("scene", "product"), ("scene",)]
    assert check.main(options, rounds(rows(5.0), rows(4.0))[0]) == 1
    out = capsys.readouterr().out
    assert "worse" in out
    assert "4, baseline 10: 150% worse, allowed 25%" in out
    assert "1 of 2 ratios are worse" in out
    assert check.main(options, rounds(rows())[0]) == 0


def test_the_stored_baseline_is_one_of_the_quick_rows():
    from check import QUICK
    from ratios import WATCHED, worse_by

    saved = json.loads(BASELINE.read_text("utf-8"))
    assert {"commit", "date", "processor"} <= saved["machine"].keys()
    assert {entry["group"] for entry in saved["ratios"]} == set(QUICK)
    keys = [(entry["group"], entry["row"], entry["value"]) for entry in saved["ratios"]]
    assert len(keys) == len(set(keys))
    for entry in saved["ratios"]:
        watch = WATCHED[entry["value"]]
        assert entry["better"] == watch.better
        assert entry["lowest"] <= entry["median"] <= entry["highest"]
        assert entry["tolerance"] >= watch.least
        assert worse_by(entry, entry["median"]) == 0
