"""How far a run is: the time left from recorded durations, a bar or plain lines."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TextIO

from reproduction.run.records import Params, Record

#: Trials that take about as long as each other: experiment, and method where there is one.
Group = tuple[str, str]

# Without a bar, a line at most this often, apart from failures and the end.
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class Status:
    """How far a run is after a trial."""

    done: int
    total: int
    failed: int
    seconds_left: float | None
    """None as long as no duration is known."""
    record: Record
    """The trial that has just ended."""


#: Called after every trial.
Report = Callable[[Status], None]


def group_of(experiment: str, params: Params) -> Group:
    """Return the group that a trial belongs to."""
    return experiment, str(params.get("method", ""))


class Durations:
    """Mean durations of the trials known so far, by group.

    Methods differ by factors of a thousand, so a plain count of trials says little. A group
    without a trial takes the mean over the groups of its experiment, then that over all.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._sums: dict[Group, tuple[float, int]] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take a trial into account; a failed one says nothing about how long others take."""
        if record.error is None:
            group = group_of(record.experiment, record.params)
            total, n = self._sums.get(group, (0.0, 0))
            self._sums[group] = total + record.seconds, n + 1

    def of(self, group: Group) -> float | None:
        """Return the seconds that a trial of this group should take, or None."""
        if group in self._sums:
            total, n = self._sums[group]
            return total / n
        means = {known: total / n for known, (total, n) in self._sums.items()}
        alike = [mean for known, mean in means.items() if known[0] == group[0]]
        return fmean(alike or means.values()) if means else None

    def left(self, pending: Counter[Group], jobs: int) -> float | None:
        """Return the seconds that these trials should take in so many processes, or None."""
        expected = {group: self.of(group) for group, n in pending.items() if n > 0}
        known = {group: seconds for group, seconds in expected.items() if seconds is not None}
        if len(known) < len(expected):
            return None
        total = sum(pending[group] * seconds for group, seconds in known.items())
        # No number of processes ends before the longest trial does.
        return max([total / jobs, *known.values()])


@contextmanager
def shown(progress: bool | Report | None, total: int) -> Iterator[Report]:
    """Yield what to call after each trial.

    Parameters
    ----------
    progress : bool, callable or None
        None shows progress where the standard error is a terminal; a callable gets every `Status`.
    total : int
        Trials to run.
    """
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not sys.stderr.isatty()) or not total:
        yield lambda status: None
    elif sys.stderr.isatty() and _has_rich():
        with _bar(total) as report:
            yield report
    else:
        yield Lines(sys.stderr)


class Lines:
    """Progress as plain lines, for log files and where rich is not installed."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._next = clock() + SECONDS_BETWEEN_LINES

    def __call__(self, status: Status) -> None:
        """Write a line where one is due."""
        if status.record.error is not None:
            self._write(f"{status.record.experiment}: failed: {status.record.error}")
        if self._clock() >= self._next or status.done == status.total:
            self._next = self._clock() + SECONDS_BETWEEN_LINES
            self._write(f"{status.record.experiment}: {_counted(status)}")

    def _write(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def _counted(status: Status) -> str:
    failed = f", {status.failed} failed" if status.failed else ""
    left = "" if status.done == status.total else f", {readable(status.seconds_left)} left"
    return f"{status.done} of {status.total} trials{failed}{left}"


def readable(seconds: float | None) -> str:
    """Return a duration for people.

    >>> [readable(x) for x in (None, 0.2, 75, 7300, 200000)]
    ['unknown time', '0 s', '1 min 15 s', '2 h 01 min', '2 d 07 h']
    """
    if seconds is None:
        return "unknown time"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


class _Countdown:
    """The time left, running down between trials whenever it is printed."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def __str__(self) -> str:
        if self._end is None:
            return readable(None)
        return readable(max(0.0, self._end - time.monotonic()))


def _has_rich() -> bool:
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def _bar(total: int) -> Iterator[Report]:
    """Yield what moves a bar of rich on the standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns: Sequence[Any] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}{task.fields[left]} left", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("start", total=total, failed="", left=_Countdown(None))

        def report(status: Status) -> None:
            record = status.record
            name = " ".join(group_of(record.experiment, record.params)).strip()
            if record.error is not None:
                # As it is: rich would colour numbers, break lines and take [x] for a style.
                bar.console.out(f"{name}: failed: {record.error}", highlight=False)
            bar.update(
                task,
                completed=status.done,
                description=name,
                failed=f"{status.failed} failed, " if status.failed else "",
                left=_Countdown(status.seconds_left),
            )

        yield report
