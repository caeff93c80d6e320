"""Progress of a run: a bar with the remaining time, and each failure when it happens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from reproduction.run.records import Params, Record

#: How long a trial of an experiment with these parameters should take.
Expected = Callable[[str, Params], float]

# Speed is averaged over the last hour: trials may take minutes, and the default of rich is 30 s.
SECONDS_LOOKED_BACK = 3600.0


def kind_of(experiment: str, params: Params) -> str:
    """Name the trials that take about as long as this one: the same experiment and method."""
    return f"{experiment} {params.get('method', '')}".strip()


def expected_seconds(records: Iterable[Record]) -> Expected:
    """Return a function that predicts the seconds of a trial from the trials that have run.

    Methods differ by factors of a thousand, so the number of trials alone says little. A kind of
    trial that has not run yet is expected to take the mean of the other kinds.
    """
    seconds = defaultdict(list)
    for record in records:
        if record.error is None:
            seconds[kind_of(record.experiment, record.params)].append(record.seconds)
    means = {kind: fmean(some) for kind, some in seconds.items()}
    otherwise = fmean(means.values()) if means else 1.0
    return lambda experiment, params: means.get(kind_of(experiment, params), otherwise)


@contextmanager
def progress_bar(
    total: int, work: float, expected: Expected, *, hidden: bool
) -> Iterator[Callable[[Record], None]]:
    """Show a bar; yield the function to call after each trial.

    There are `total` trials, which are expected to take `work` seconds together.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(
            stderr=True, quiet=hidden
        ),  # rich 13 prints an empty line after a hidden bar
        disable=hidden,
        speed_estimate_period=SECONDS_LOOKED_BACK,
    ) as bar:
        task = bar.add_task("start", total=work, count=f"0/{total}")
        done = failed = 0

        def report(record: Record) -> None:
            nonlocal done, failed
            done += 1
            kind = kind_of(record.experiment, record.params)
            if record.error is not None:
                failed += 1
                if not hidden:
                    # Printed without markup: rich would colour numbers and read [x] as a style.
                    bar.console.out(f"{kind}: failed: {record.error}", highlight=False)
            bar.update(
                task,
                advance=expected(record.experiment, record.params),
                description=kind,
                count=f"{done}/{total}" + (f", {failed} failed" if failed else ""),
            )

        yield report
