"""Options that several commands have, and the names of files that they take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

#: Tables of lines with cells, those with columns of all types, and all tables.
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
FRAMES = (*TEXT, ".parquet")
TABLES = (*FRAMES, ".npy", ".npz")
#: Pictures.
TIFF, JPEG = (".tif", ".tiff"), (".jpg", ".jpeg")
PICTURES = (".png", *TIFF, ".bmp", *JPEG, ".webp")


def file_option(*flags: str, help: str, **more: Any) -> Any:  # noqa: A002 - as typer calls it
    """Return an option that is a file.

    Not `readable`: typer would call a file that may not be read a usage error.
    """
    return typer.Option(*flags, help=help, readable=False, **{"show_default": False, **more})


Data = Annotated[
    Path,
    typer.Argument(
        help=f"Samples as rows: {', '.join(TABLES)}; - is CSV from the standard input.",
        readable=False,
        show_default=False,
    ),
]
Output = Annotated[
    Path, file_option("-o", "--output", help="File to write; - is CSV to the standard output.")
]
Target = Annotated[
    Path | None,
    file_option("-o", "--output", help="File to write, or a folder; else beside the picture."),
]
Model = Annotated[
    Path | None, file_option(help="Apply what --save-model wrote, and learn nothing.")
]
SaveModel = Annotated[Path | None, file_option(help="File for what was learned, for --model.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Number of threads.", min=1, show_default="all cores"),
]
Preset = Annotated[
    Literal["fast", "balanced", "best"], typer.Option(help="Trade-off between speed and quality.")
]


@dataclass(frozen=True)
class Run:
    """How a command runs."""

    seed: Annotated[int, typer.Option(help="Seed of the random numbers.", min=0)] = 0
    force: Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")] = False
    quiet: Quiet = False
    debug: Debug = False


@dataclass(frozen=True)
class Reading:
    """How a table is read, by options of `pandas.read_csv`, and which of its columns are used."""

    columns: Annotated[
        list[str] | None, typer.Option(help="Columns to use: names, separated by commas.")
    ] = None
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, as for --columns.")
    ] = None
    sep: Annotated[
        str | None,
        typer.Option(help="What separates cells.", show_default="comma; tab in .tsv files"),
    ] = None
    decimal: Annotated[str, typer.Option(help="Decimal mark of numbers.")] = "."
    thousands: Annotated[str | None, typer.Option(help="Mark between thousands.")] = None
    parse_dates: Annotated[
        list[str] | None, typer.Option(help="Columns of dates, as for --columns.")
    ] = None
    encoding: Annotated[str, typer.Option(help="Encoding of a file of text.")] = "utf-8"
    header: Annotated[bool, typer.Option(help="Whether the first line holds names.")] = True
    key: Annotated[str | None, typer.Option(help="Array of a .npz file with several.")] = None
