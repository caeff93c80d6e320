"""How far a run is: a bar with the time left, and failures as they come."""

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

# The speed is that of the last hour: trials may take minutes, and rich looks back half of one.
SECONDS_LOOKED_BACK = 3600.0


def kind_of(experiment: str, params: Params) -> str:
    """Name the trials that take about as long as this one: the same experiment and method."""
    return f"{experiment} {params.get('method', '')}".strip()


def expected_seconds(records: Iterable[Record]) -> Expected:
    """Return what trials should take, given those that have run.

    Methods differ by factors of a thousand, so a plain count of trials says little. A kind that
    has not run counts as the mean of those that have.
    """
    seconds = defaultdict(list)
    for record in records:
        if record.error is None:
            seconds[kind_of(record.experiment, record.params)].append(record.seconds)
    means = {kind: fmean(some) for kind, some in seconds.items()}
    otherwise = fmean(means.values()) if means else 1.0
    return lambda experiment, params: means.get(kind_of(experiment, params), otherwise)


@contextmanager
def shown(
    total: int, work: float, expected: Expected, *, hidden: bool
) -> Iterator[Callable[[Record], None]]:
    """Yield what to call after each of `total` trials, which should take `work` seconds in all."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True, quiet=hidden),  # rich 13 ends even a hidden bar with a line
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
                    # As it is: rich would colour numbers and take [x] for a style.
                    bar.console.out(f"{kind}: failed: {record.error}", highlight=False)
            bar.update(
                task,
                advance=expected(record.experiment, record.params),
                description=kind,
                count=f"{done}/{total}" + (f", {failed} failed" if failed else ""),
            )

        yield report
