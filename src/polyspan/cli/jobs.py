"""Three jobs without a model to choose: denoise a picture, fill its holes, fill a table's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from polyspan.cli.app import Debug, Force, Quiet, command
from polyspan.cli.failures import CommandError, check_output
from polyspan.cli.pictures import (
    ENDINGS,
    Picture,
    check_ending,
    read_mask,
    read_picture,
    write_picture,
)
from polyspan.images import denoise_image, estimate_noise, inpaint_image

PANEL = "Pictures"

Photo = Annotated[Path, typer.Argument(help=f"Picture: {', '.join(ENDINGS)}.", show_default=False)]
Target = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="File to write; named after the picture if not given."),
]
Preset = Annotated[Literal["fast", "best"], typer.Option("--preset", help="How much to try.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random numbers.", min=0)]


@command("denoise", panel=PANEL, epilog="polyspan denoise photo.png -o out.png --preset best")
def denoise(
    photo: Photo,
    output: Target = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            "--sigma",
            help="Standard deviation of the noise, in levels of the file (0 to 255, to 65535).",
            min=0,
        ),
    ] = None,
    preset: Preset = "fast",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Remove white noise from a picture; its strength is estimated where --sigma is not given."""
    target = _target(photo, output, "denoised", force)
    picture = _read(photo, target)
    most, axis = picture.most, picture.channel_axis
    level = estimate_noise(picture.pixels, axis) if sigma is None else sigma / most
    bar = sys.stderr.isatty() and not quiet
    values = denoise_image(
        picture.pixels, level, preset, axis, random_state=seed, progress=bar
    )  # fmt: skip
    write_picture(picture, values, target, force=force)
    if not quiet:
        unit = "" if picture.depth == "floats" else " levels"
        _say(f"noise of {level * most:.3g}{unit} removed: {target}")


@command("inpaint", panel=PANEL, epilog="polyspan inpaint photo.png --mask mask.png -o out.png")
def inpaint(
    photo: Photo,
    mask: Annotated[
        Path,
        typer.Option(
            "--mask", help="Picture that is not black (nor transparent) where pixels are missing."
        ),
    ],
    output: Target = None,
    preset: Preset = "best",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fill the missing pixels of a picture; the others stay as they are."""
    target = _target(photo, output, "inpainted", force, mask)
    picture = _read(photo, target)
    missing = read_mask(mask)
    bar = sys.stderr.isatty() and not quiet
    values = inpaint_image(
        picture.pixels, missing, preset, picture.channel_axis, random_state=seed, progress=bar
    )
    write_picture(picture, values, target, force=force)
    if not quiet:
        _say(f"{int(missing.sum())} of {missing.size} pixels filled: {target}")


def _target(photo: Path, output: Path | None, suffix: str, force: bool, *others: Path) -> Path:
    """Return the file to write, after a check that it can be written."""
    # Formats that are only read, GIF for one, give a PNG.
    ending = photo.suffix if photo.suffix.lower() in ENDINGS else ".png"
    target = output or photo.with_name(f"{photo.stem}-{suffix}{ending}")
    for given, what in zip((photo, *others), ("picture", "mask"), strict=False):
        if target.resolve() == given.resolve():
            raise CommandError(f"the output is the {what} itself, {given}: give it another name")
    check_output(target, force=force, endings=ENDINGS)
    return target


def _read(photo: Path, target: Path) -> Picture:
    """Read a picture, and check that the output can hold the result."""
    picture = read_picture(photo)
    check_ending(picture, target)
    return picture


def _say(line: str) -> None:
    Console(highlight=False).print(line, soft_wrap=True, markup=False)
