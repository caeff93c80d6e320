"""The command that fills the holes of a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from polyspan.cli import options, pictures
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError, check_output, report
from polyspan.cli.picture_files import (
    PANEL,
    Jobs,
    SaveModel,
    Target,
    check_apart,
    load_mixture,
    target_of,
    write_mixture,
)
from polyspan.images import inpaint_image
from polyspan.images.inpaint import learn_mixture

Photo = Annotated[
    Path,
    typer.Argument(
        help=f"Picture: {', '.join(pictures.ENDINGS)}.", show_default=False, readable=False
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(
        "--mask",
        help="Picture that is not black (nor transparent) where pixels are missing.",
        show_default="where pixels are NaN",
        readable=False,
    ),
]
PerChannel = Annotated[
    bool,
    typer.Option(
        "--per-channel", help="The red of the mask is for the red of the picture, and so on."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        help="A mixture of patches that --save-model wrote.",
        show_default="learned from the picture",
        readable=False,
    ),
]


@command("inpaint", panel=PANEL, epilog="polyspan inpaint photo.png --mask mask.png -o out.png")
def inpaint(
    photo: Photo,
    mask: Mask = None,
    output: Target = None,
    per_channel: PerChannel = False,
    preset: options.Preset = "balanced",
    model: Model = None,
    save_model: SaveModel = None,
    jobs: Jobs = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill the missing pixels of a picture; the others stay as they are."""
    inputs = {"mask": mask, "model": model}
    others = {what: path for what, path in inputs.items() if path is not None}
    target = target_of(photo, output, "inpainted", force=force, others=others)
    if save_model is not None:
        if model is not None or per_channel or preset == "fast":
            raise CommandError(
                "--save-model has nothing to save: a mixture is learned by --preset balanced and "
                "best, without --model and --per-channel"
            )
        check_apart(save_model, {"picture": photo, "filled picture": target, **others})
        check_output(save_model, force=force)
    mixture = None if model is None else load_mixture(model)
    picture = pictures.read_picture(photo)
    pictures.check_ending(picture, target)
    if mask is None:
        missing = np.isnan(picture.pixels)
        if not missing.any():
            raise CommandError(f"{photo} has no NaN: say by --mask which pixels are missing")
    else:
        missing = pictures.read_mask(mask, per_channel=per_channel)
    if save_model is not None:
        mixture = learn_mixture(picture.pixels, missing, preset, picture.channel_axis, seed)
    values = inpaint_image(
        picture.pixels,
        missing,
        preset,
        picture.channel_axis,
        model=mixture,
        random_state=seed,
        n_jobs=jobs or -1,
        progress=sys.stderr.isatty() and not quiet,
    )
    pictures.write_picture(picture, values, target, force=force)
    what = "values" if missing.ndim == 3 else "pixels"
    lines = [f"{missing.sum()} of {missing.size} {what} filled: {target}"]
    if save_model is not None:
        lines.append(write_mixture(mixture, save_model, force=force))
    for line in lines if not quiet else ():
        report(line)
