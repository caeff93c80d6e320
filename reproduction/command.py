"""The command: run the paper's experiments, and write the page."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from polyspan.cli.app import guard
from polyspan.cli.errors import Code, CommandError
from polyspan.cli.options import Debug, Quiet
from reproduction.experiments.source import Source
from reproduction.page import About, write_report
from reproduction.registry import SCALES
from reproduction.reproduce import OUT, reproduce
from reproduction.run.records import commit, versions
from reproduction.run.runner import TRIALS_FILE
from reproduction.run.store import DamagedError, UnwritableError
from reproduction.sections import Section

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        help="Tables and figures, such as table1 fig4. Default: all.",
        show_default=False,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        help="smoke: small problems, once, under a minute; quick: the paper's sizes, few draws, "
        "under 15 minutes on two cores; standard: more draws; paper: the paper's Monte Carlo.",
    ),
]
Folder = Annotated[Path, typer.Option("--out", help="Folder of the trials and the page.")]
DataHome = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Folder of the real data. Default: the folder in POLYSPAN_DATA, then the cache. Where "
        "neither has the data, data that come with scikit-learn are used.",
    ),
]
StandIn = Annotated[
    bool, typer.Option("--stand-in", help="Use scikit-learn's data even if the real data exist.")
]
Run = Annotated[
    bool, typer.Option("--run/--no-run", help="Run trials, or only write the page again.")
]
Pictures = Annotated[
    bool,
    typer.Option("--pictures/--no-pictures", help="Show images of the data, which may be private."),
]

SMOKE = (
    "smoke only checks that everything runs: its problems are too small for numbers and "
    "claims to be compared with the paper's"
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
@guard
def main(
    ids: Ids = None,
    scale: Scale = "quick",
    jobs: Annotated[int, typer.Option("--jobs", help="Worker processes.", min=1)] = 1,
    data: DataHome = None,
    stand_in: StandIn = False,
    out: Folder = OUT,
    pictures: Pictures = True,
    run: Run = True,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the paper's tables and figures and write a page with published and measured numbers.

    Every trial is saved when it ends: run the same command again to continue after an interrupt.
    """
    _check(scale, data)
    if not run and not (out / TRIALS_FILE).is_file():
        raise CommandError(
            f"{out / TRIALS_FILE} does not exist: run `python -m reproduction --out {out}` first",
            Code.UNREADABLE,
        )
    try:
        sections = reproduce(
            ids or (),
            scale,
            out,
            jobs=jobs,
            source=_source(data, stand_in),
            run=run,
            progress=not quiet,
        )
    except KeyboardInterrupt as error:
        raise CommandError(str(error) or "interrupted", Code.INTERRUPTED) from None
    except DamagedError as error:
        raise CommandError(str(error), Code.UNREADABLE) from error
    except UnwritableError as error:
        raise CommandError(str(error), Code.UNWRITABLE) from error
    _write(sections, ids, scale, out, pictures=pictures, quiet=quiet)


def _check(scale: str, data: Path | None) -> None:
    if scale not in SCALES:
        raise typer.BadParameter(f"unknown scale {scale!r}: give one of {', '.join(SCALES)}")
    if data is not None and not data.is_dir():
        raise CommandError(
            f"--data {data} is not a folder: give the one that holds the data files",
            Code.UNREADABLE,
        )


def _source(data: Path | None, stand_in: bool) -> Source:
    return Source(None if data is None else str(data), stand_in)


def _write(
    sections: list[Section],
    ids: list[str] | None,
    scale: str,
    out: Path,
    *,
    pictures: bool,
    quiet: bool,
) -> None:
    about = About(
        scale=scale,
        command=" ".join(["python -m reproduction", *(ids or ()), "--scale", scale]),
        commit=commit() or "",
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        versions=versions(),
        machine=f"{platform.machine()}, {os.cpu_count()} processors",
        notes=[f"Scale {SMOKE}."] if scale == "smoke" else [],
    )
    page = write_report(sections, out, about=about, pictures=pictures)
    if quiet:
        return
    failed = sum(section.n_failed for section in sections)
    console = Console(highlight=False)
    if failed:
        console.print(f"{failed} trials failed; the page names them", style="yellow")
    if scale == "smoke":
        console.print(SMOKE, soft_wrap=True)
    console.print(f"page: {page}", soft_wrap=True, markup=False)
