"""The command that fills the holes of a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import polyspan
from polyspan.cli import files, options, pictures
from polyspan.cli.app import command
from polyspan.cli.errors import CommandError

Photo = Annotated[
    Path,
    typer.Argument(
        help=f"Picture: {', '.join(options.PICTURES)}.", show_default=False, readable=False
    ),
]
Mask = Annotated[
    Path | None,
    options.file_option(
        help="Picture that is not black (nor transparent) where pixels are missing.",
        show_default="where pixels are NaN",
    ),
]
PerChannel = Annotated[
    bool,
    typer.Option(
        "--per-channel", help="The red of the mask is for the red of the picture, and so on."
    ),
]


@command(panel="Pictures", epilog="polyspan inpaint photo.png --mask mask.png -o out.png", words={})
def inpaint(
    photo: Photo,
    run: options.Run,
    mask: Mask = None,
    output: options.Target = None,
    per_channel: PerChannel = False,
    preset: options.Preset = "balanced",
    model: options.Model = None,
    save_model: options.SaveModel = None,
    jobs: options.Jobs = None,
) -> None:
    """Fill the missing pixels of a picture; the others stay as they are."""
    job = files.Job(run, {"picture": photo, "mask": mask, "model": model})
    target = pictures.target_of(job, photo, output, "inpainted")
    if save_model is not None and (per_channel or preset == "fast"):
        raise CommandError(
            "--save-model has nothing to save: a mixture is learned by --preset balanced and best, "
            "without --per-channel"
        )
    job.check("saved model", save_model)
    mixture = None
    if model is not None:
        mixture = files.load_model(model, "SubspaceMixture", {"--save-model": save_model})
    picture = pictures.read_picture(photo)
    pictures.check_ending(picture, target)
    if mask is None:
        missing = np.isnan(picture.pixels)
        if not missing.any():
            raise CommandError(f"{photo} has no NaN: say by --mask which pixels are missing")
    else:
        missing = pictures.read_mask(mask, per_channel=per_channel)
    pixels, axis = picture.pixels, picture.channel_axis
    what = "values" if missing.ndim == 3 else "pixels"
    lines = [f"{missing.sum()} of {missing.size} {what} filled: {target}"]
    if save_model is not None:
        from polyspan.images.inpaint import learn_mixture

        mixture = learn_mixture(pixels, missing, preset, axis, run.seed)
        job.save(mixture, save_model)
        lines.append(f"mixture of patches saved: {save_model}")
    values = polyspan.images.inpaint_image(
        pixels, missing, preset, axis, model=mixture, random_state=run.seed, n_jobs=jobs or -1
    )
    job.writers[target] = pictures.picture_writer(picture, values, target)
    job.finish(lines)
