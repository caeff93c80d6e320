"""The stored baseline: ratios of rows, how far they may move, and what has got worse.

A ratio is measured inside one process: ours against the literal algorithm, or against the bare
product. So it says little about the machine, and a number from one machine can be compared with
that of another within a tolerance. Nothing here measures or prints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Literal, NamedTuple

Better = Literal["higher", "lower"]
Said = Literal["same", "worse", "better", "not measured", "not in the baseline"]
Key = tuple[str, str, str]  # the name of `make bench`, its row, the name of the value
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class Watch(NamedTuple):
    """Which way a value is better, and the least tolerance (.25: a quarter worse is allowed)."""

    better: Better
    least: float


#: Ratios of times move with processor and BLAS. Ratios of results move by rounding alone, which
#: can change where single starts end.
SPEED, RESULT = 0.25, 0.01
WATCHED = {
    "ratio": Watch("higher", SPEED),
    "sweep, literal over compiled": Watch("higher", SPEED),
    "same F2, 100 literal sweeps over mm": Watch("higher", SPEED),
    "iteration over bare product": Watch("lower", SPEED),
    "assignment over bare product": Watch("lower", SPEED),
    "F1 at the end over literal": Watch("lower", RESULT),
    "best F1 over literal": Watch("lower", RESULT),
    "mean F1 over literal": Watch("lower", RESULT),
    "F1 over the best literal": Watch("lower", RESULT),
    "mean best F1 over literal": Watch("lower", RESULT),
    "F2 over that of 100 sweeps": Watch("lower", RESULT),
    "mean d_avg": Watch("lower", RESULT),
}
#: A tolerance is at least this often the spread of the measurements that made the baseline.
SPREADS = 1.5
#: A baseline with a larger tolerance tells nothing: measure again on a quiet machine.
NOISY = 0.5


class Finding(NamedTuple):
    """One ratio now and in the baseline; `change` is how much worse it is, below 0 if better."""

    key: Key
    said: Said
    was: float
    now: float
    change: float
    tolerance: float


def collect(measurements: Iterable[Rows]) -> dict[Key, list[float]]:
    """Return the watched values of several measurements, by row and name."""
    found: dict[Key, list[float]] = {}
    for groups in measurements:
        for group, rows in groups.items():
            for row in rows:
                for name in WATCHED.keys() & row.keys():
                    found.setdefault((group, row["row"], name), []).append(float(row[name]))
    return dict(sorted(found.items()))


def entries(values: Mapping[Key, Sequence[float]]) -> list[dict[str, Any]]:
    """Return what the baseline stores of each ratio."""
    return [
        {
            "group": key[0],
            "row": key[1],
            "value": key[2],
            "better": WATCHED[key[2]].better,
            "median": _rounded(median(found)),
            "lowest": _rounded(min(found)),
            "highest": _rounded(max(found)),
            "tolerance": tolerance(found, WATCHED[key[2]].least),
        }
        for key, found in values.items()
    ]


def tolerance(found: Sequence[float], least: float) -> float:
    """Return how much worse a ratio may become: by the spread of its measurements, or `least`."""
    spread = max(found) / min(found) - 1
    return max(least, math.ceil(100 * SPREADS * spread - 1e-9) / 100)


def worse_by(entry: Mapping[str, Any], now: float) -> float:
    """Return .3 where a ratio is 1.3 times as bad as in the baseline, below 0 where it is better.

    A value that is no positive number counts as infinitely bad.
    """
    if not (math.isfinite(now) and now > 0):
        return math.inf
    was: float = entry["median"]
    return (was / now if entry["better"] == "higher" else now / was) - 1


def check(
    baseline: Iterable[Mapping[str, Any]],
    values: Mapping[Key, Sequence[float]],
    groups: Iterable[str],
) -> list[Finding]:
    """Compare the median of each ratio with the baseline, for the groups that were run.

    A ratio of the baseline that was not found counts: a row that is renamed or dropped must not
    pass unseen.
    """
    wanted, left, findings = set(groups), dict(values), []
    for entry in baseline:
        key = (entry["group"], entry["row"], entry["value"])
        if key[0] not in wanted:
            continue
        was, allowed = entry["median"], entry["tolerance"]
        if key not in left:
            findings.append(Finding(key, "not measured", was, math.nan, math.nan, allowed))
            continue
        now = median(left.pop(key))
        change = worse_by(entry, now)
        said: Said = "worse" if change > allowed else "same"
        if 1 / (1 + change) - 1 > allowed:
            said = "better"
        findings.append(Finding(key, said, was, now, change, allowed))
    for key, found in left.items():
        said = "not in the baseline"
        findings.append(Finding(key, said, math.nan, median(found), math.nan, math.nan))
    return findings


def failing(findings: Iterable[Finding]) -> list[Finding]:
    """Return what makes a check fail."""
    return [found for found in findings if found.said in ("worse", "not measured")]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
