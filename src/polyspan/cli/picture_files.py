"""Which files a command for pictures reads and writes, and its options that others share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from polyspan.cli.errors import CommandError, check_input, check_output
from polyspan.cli.pictures import ENDINGS
from polyspan.files import same_file

PANEL = "Pictures"
Target = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="File to write; named after the picture if not given.",
        readable=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Number of threads.", min=1, show_default="all cores"),
]


def target_of(
    photo: Path, output: Path | None, suffix: str, *, force: bool, others: Mapping[str, Path]
) -> Path:
    """Return the file to write, after checks that inputs exist and that it can be written.

    Parameters
    ----------
    photo : Path
        The picture.
    output : Path or None
        A file or a folder; None: beside the picture.
    suffix : str
        What the name gets after that of the picture.
    force : bool
        Whether a file that is there may be replaced.
    others : mapping of str to Path
        More files that are read, and what they are.
    """
    check_input(photo, *others.values())
    # Formats that polyspan reads but does not write, GIF for one, give a PNG.
    ending = photo.suffix if photo.suffix.lower() in ENDINGS else ".png"
    name = f"{photo.stem}-{suffix}{ending}"
    target = photo.with_name(name) if output is None else output
    if target.is_dir() and output is not None:
        target = target / name
    check_apart(target, {"picture": photo, **others})
    check_output(target, force=force, endings=ENDINGS)
    return target


def check_apart(target: Path, inputs: Mapping[str, Path]) -> None:
    """Raise an error where an output would replace an input."""
    for what, given in inputs.items():
        if same_file(target, given):
            raise CommandError(f"the output is the {what} itself, {given}: give it another name")
