"""Which files a command for pictures reads and writes, and its options that others share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from polyspan.base.files import same_file
from polyspan.cli.errors import (
    Code,
    CommandError,
    check_input,
    check_output,
    reading,
    unreadable,
    writing,
)
from polyspan.cli.pictures import ENDINGS
from polyspan.mixture import SubspaceMixture
from polyspan.storage.models import load_model, save_model

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
SaveModel = Annotated[
    Path | None,
    typer.Option(
        "--save-model",
        help="File for the mixture of patches that is learned, for --model.",
        readable=False,
    ),
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
    for given in (photo, *others.values()):
        if given.exists() and not (given.is_file() or given.is_dir()):
            raise unreadable(f"{given} is a pipe or a device: pictures are read from files")
    # Formats that polyspan reads but does not write, GIF for one, give a PNG.
    ending = photo.suffix if photo.suffix.lower() in ENDINGS else ".png"
    name = f"{photo.stem}-{suffix}{ending}"
    target = photo.with_name(name) if output is None else output
    if target.is_dir() and output is not None:
        target = target / name
    check_apart(target, {"picture": photo, **others})
    check_output(target, force=force, endings=ENDINGS)
    return target


def check_apart(target: Path, others: Mapping[str, Path]) -> None:
    """Raise an error where an output would replace a pipe, an input or another output."""
    for what, given in others.items():
        if same_file(target, given):
            raise CommandError(f"the output is the {what} itself, {given}: give it another name")
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise CommandError(
            f"{target} is a pipe or a device, which would be replaced: give the name of a file",
            Code.UNWRITABLE,
        )


def load_mixture(path: Path) -> SubspaceMixture:
    """Read the mixture that --model names."""
    check_input(path)
    with reading(path):
        model = load_model(path)
    if not isinstance(model, SubspaceMixture):
        raise CommandError(
            f"{path} holds a {type(model).__name__}: need a SubspaceMixture of patches, as "
            "--save-model writes"
        )
    return model


def write_mixture(model: Any, path: Path, *, force: bool) -> str:
    """Save a mixture, and return what was written in words."""
    with writing(path):
        save_model(model, path, overwrite=force)
    return f"mixture of {len(model.weights_)} subspaces saved: {path}"
