"""What pairs of runs say: the median of their ratios, an interval around it, and a verdict.

Nothing here measures or prints, so tests can check all of it without a clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

Verdict = Literal["faster", "slower", "same", "unclear", "not timed"]
CONFIDENCE = 0.95
#: With fewer pairs no interval of order statistics covers the median with this confidence.
FEWEST_PAIRS = 6


class Interval(NamedTuple):
    """The median of some ratios and an interval that covers the true median."""

    ratio: float
    low: float
    high: float
    coverage: float


def median_interval(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the median, and the narrowest interval of order statistics that covers the true one.

    Each ratio is above the true median with probability 1/2, whatever the noise is like. So the
    number of ratios above it is binomial, and the k-th smallest and the k-th largest ratio enclose
    it with probability 1 - 2 P(Bin(n, 1/2) < k). Nothing is drawn: the same ratios give the same
    interval. Where even the smallest and the largest ratio cover too seldom, they are returned.
    """
    if not ratios:
        raise ValueError("there are no ratios: give at least one pair of runs")
    ordered, n = sorted(ratios), len(ratios)
    best = 1
    for k in range(1, (n + 1) // 2 + 1):
        if _coverage(n, k) >= confidence:
            best = k
    return Interval(median(ordered), ordered[best - 1], ordered[n - best], _coverage(n, best))


def _coverage(n: int, k: int) -> float:
    return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2.0**n


def verdict(interval: Interval, limit: float, confidence: float = CONFIDENCE) -> Verdict:
    """Say what an interval of new time / old time shows; `limit` is .05 for 5 %.

    "slower" and "faster": the whole interval is beyond the limit. "same": all of it is within.
    "unclear": it reaches over the limit, or there are too few pairs.
    """
    above, below = 1 + limit, 1 / (1 + limit)
    if interval.coverage < confidence:
        return "unclear"
    if interval.low > above:
        return "slower"
    if interval.high < below:
        return "faster"
    return "same" if below <= interval.low and interval.high <= above else "unclear"


def difference(new: float, old: float) -> float:
    """Return the relative difference of two results; NaN where one of them is."""
    return 0.0 if new == old else abs(new - old) / max(abs(old), 1e-300)


def complaints(
    verdicts: dict[str, Verdict], differences: dict[str, float], tolerance: float
) -> list[str]:
    """Return a line for each kind of failure; a comparison without any passes."""
    slower = [name for name, found in verdicts.items() if found == "slower"]
    other = [name for name, found in differences.items() if not found <= tolerance]  # NaN too
    lines = [f"slower: {'; '.join(slower)}"] if slower else []
    return lines + ([f"other results: {'; '.join(other)}"] if other else [])
