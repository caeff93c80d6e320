"""What `make bench-compare` concludes from pairs of runs; no test here measures time."""

import math
from itertools import product

import pytest


def interval(low, high, coverage=0.96):
    from paired import Interval

    return Interval((low + high) / 2, low, high, coverage)


def test_the_interval_of_nine_ratios_by_hand():
    from paired import median_interval

    found = median_interval([1.9, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8])
    # 1 - 2 (1 + 9) / 512: the second smallest and the second largest.
    assert found == (1.5, 1.2, 1.8, 1 - 20 / 512)


@pytest.mark.parametrize("n", [6, 7, 9, 12])
def test_the_interval_covers_as_often_as_it_says(n):
    """Over all patterns of signs, which are equally likely, the true median 0 is inside."""
    from paired import median_interval

    inside, total = 0, 0
    for signs in product((-1, 1), repeat=n):
        values = [sign * (1 + i / n) for i, sign in enumerate(signs)]
        found = median_interval(values)
        inside += found.low <= 0 <= found.high
        total += 1
    assert inside / total == pytest.approx(found.coverage)
    assert found.coverage >= 0.95


def test_more_pairs_narrow_the_interval():
    from paired import median_interval

    widths = [
        found.high - found.low
        for found in (median_interval([k / n for k in range(n + 1)]) for n in (8, 32, 128))
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 2


def test_too_few_pairs_decide_nothing():
    from paired import FEWEST_PAIRS, median_interval, verdict

    few = median_interval([2.0] * (FEWEST_PAIRS - 1))
    assert few.coverage < 0.95
    assert verdict(few, 0.05) == "unclear"
    assert verdict(median_interval([2.0] * FEWEST_PAIRS), 0.05) == "slower"
    with pytest.raises(ValueError, match="no ratios"):
        median_interval([])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.06, 1.2, "slower"),
        (1.04, 1.2, "unclear"),
        (0.97, 1.04, "same"),
        (1.01, 1.04, "same"),  # surely slower, but by less than the limit
        (0.8, 0.94, "faster"),
        (0.8, 0.96, "unclear"),
        (0.5, 2.0, "unclear"),
    ],
)
def test_the_verdict_is_that_of_the_whole_interval(low, high, expected):
    from paired import verdict

    assert verdict(interval(low, high), 0.05) == expected


def test_swapping_the_commits_swaps_the_verdict():
    from paired import verdict

    swapped = {"slower": "faster", "faster": "slower", "same": "same", "unclear": "unclear"}
    for low, high in ((1.06, 1.2), (0.97, 1.04), (1.04, 1.2)):
        there, back = interval(low, high), interval(1 / high, 1 / low)
        assert verdict(back, 0.05) == swapped[verdict(there, 0.05)]


def test_the_limit_is_an_option():
    from paired import verdict

    assert verdict(interval(1.06, 1.08), 0.05) == "slower"
    assert verdict(interval(1.06, 1.08), 0.1) == "same"


def test_results_are_compared():
    from paired import complaints, difference

    assert difference(2.0, 2.0) == 0
    assert difference(2.0, 1.6) == pytest.approx(0.25)
    assert math.isnan(difference(math.nan, 1.0))
    said = complaints({}, {"a": 1e-12, "b": 1e-3, "c": math.nan}, 1e-9)
    assert said == ["other results: b; c"]
    assert complaints({"a": "faster", "b": "unclear", "c": "same"}, {"a": 0.0}, 1e-9) == []
    assert complaints({"a": "slower", "b": "same"}, {}, 1e-9) == ["slower: a"]
