"""The command that removes noise from pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from polyspan.base.files import same_file
from polyspan.cli import options, pictures
from polyspan.cli.app import command
from polyspan.cli.error_maps import check_map, write_map
from polyspan.cli.errors import CommandError, check_output, report, say, tell
from polyspan.cli.jpeg import measured_noise
from polyspan.cli.noise_levels import describe, levels_for, read_levels
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
from polyspan.cli.pictures import Picture
from polyspan.images import denoise_image, estimate_noise
from polyspan.images.mixtures import learn_mixture

Photos = Annotated[
    list[Path],
    typer.Argument(
        help=f"Pictures: {', '.join(pictures.ENDINGS)}. Of several the output is a folder.",
        show_default=False,
        readable=False,
        metavar="PHOTO",
    ),
]
Sigma = Annotated[
    list[str] | None,
    typer.Option(
        "--sigma",
        help="Standard deviation of the noise, in levels of the file (0 to 255, to 65535): a "
        "number; one per channel, separated by commas; or a picture or .npy file with one per "
        "pixel. Estimated if not given.",
        show_default=False,
    ),
]
Noise = Annotated[
    Literal["gaussian", "poisson", "correlated"],
    typer.Option(
        "--noise",
        help="gaussian: independent from pixel to pixel. poisson: it grows with the signal, as "
        "counts do. correlated: blurred, as after resizing.",
    ),
]
Gain = Annotated[
    float | None,
    typer.Option("--gain", help="Of poisson: levels for one count.", show_default="estimated"),
]
Offset = Annotated[
    float | None,
    typer.Option(
        "--offset", help="Of poisson: the level without signal.", show_default="estimated"
    ),
]
ReadNoise = Annotated[
    float | None,
    typer.Option(
        "--read-noise",
        help="Of poisson: standard deviation of the noise of reading out, in levels; 0 for none.",
        show_default="estimated",
        min=0,
    ),
]
Std = Annotated[
    Path | None,
    typer.Option(
        "--std",
        help="File for the expected error of each pixel: .npy or .tif in levels, .png to look at.",
        readable=False,
    ),
]
Stack = Annotated[
    bool,
    typer.Option(
        "--stack", help="The pages of a TIFF are slices of a volume, or frames of a film."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="What patches are compared with: own, a mixture that is learned from the picture; or "
        "a file that --save-model wrote.",
        show_default="learned from photographs",
        metavar="own|FILE",
    ),
]


@dataclass(frozen=True)
class Request:
    """What to do with each picture."""

    sigma: Path | list[float] | None
    std: Path | None
    stack: bool
    save_model: Path | None
    force: bool
    quiet: bool
    asked: dict[str, Any]
    """Options of `denoise_image`, under their names."""

    @property
    def noise(self) -> str:
        """Its kind."""
        return str(self.asked["noise"])

    def check(self, photos: Sequence[Path]) -> None:
        """Raise an error where options do not go together."""
        gain, counts = self.asked["gain"], ("gain", "offset", "read_noise")
        if self.noise != "gaussian" and self.sigma is not None:
            raise CommandError(
                f"--sigma and --noise {self.noise} do not go together: the strength of that noise "
                "is estimated"
            )
        if self.noise != "poisson" and any(self.asked[name] is not None for name in counts):
            raise CommandError("--gain, --offset and --read-noise need --noise poisson")
        if self.noise == "correlated" and self.stack:
            raise CommandError(
                "--noise correlated and --stack do not go together: give slices as single pictures"
            )
        if gain is not None and not gain > 0:
            raise CommandError(f"--gain {gain:g}: need the levels for one count, more than 0")
        for name, given in {"--std": self.std, "--save-model": self.save_model}.items():
            if given is not None and len(photos) > 1:
                raise CommandError(f"{name} takes one picture, and {len(photos)} are given")
            if given is not None and self.stack:
                raise CommandError(f"{name} and --stack do not go together: give slices one by one")
        self._check_model()

    def _check_model(self) -> None:
        model = self.asked["model"]
        if self.save_model is not None and model != "own":
            raise CommandError(
                "--save-model has nothing to save: no preset learns from the picture, all use what "
                "was learned from photographs; add --model own to learn a mixture from it"
                if model is None
                else "--save-model has nothing to save: --model has learned already"
            )
        if model is not None and self.stack:
            raise CommandError("--model and --stack do not go together: give slices one by one")
        if model is not None and self.noise != "gaussian":
            raise CommandError(f"--model and --noise {self.noise} do not go together")


@command("denoise", panel=PANEL, epilog="polyspan denoise photo.png -o out.png --preset best")
def denoise(
    photos: Photos,
    output: Target = None,
    sigma: Sigma = None,
    preset: options.Preset = "balanced",
    noise: Noise = "gaussian",
    gain: Gain = None,
    offset: Offset = None,
    read_noise: ReadNoise = None,
    std: Std = None,
    stack: Stack = False,
    model: Model = None,
    save_model: SaveModel = None,
    jobs: Jobs = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Remove noise from pictures; its strength is estimated where --sigma is not given."""
    asked = {
        "noise": noise, "gain": gain, "offset": offset, "read_noise": read_noise,
        "model": model if model in (None, "own") else load_mixture(Path(model)),
        "return_std": std is not None, "random_state": seed, "n_jobs": jobs or -1,
        "progress": _on_terminal() and not quiet,
    }  # fmt: skip
    request = Request(read_levels(sigma), std, stack, save_model, force, quiet, asked)
    request.check(photos)
    codes = []
    for photo, target in zip(photos, _targets(photos, output, request), strict=True):
        try:
            _denoise(photo, target, request, preset)
        except BrokenPipeError:
            raise
        except Exception as error:
            # The others may be all right.
            codes.append(tell(error, debug=debug, about=str(photo)))
    if codes and len(photos) > 1:
        say("error", f"{len(codes)} of {len(photos)} pictures were not denoised")
    if codes:
        raise typer.Exit(int(codes[0]))


def _targets(photos: Sequence[Path], output: Path | None, request: Request) -> list[Path]:
    """Return the files to write, all checked before the work on the first begins."""
    if len(photos) > 1 and output is not None and not output.is_dir():
        raise CommandError(
            f"-o {output}: {len(photos)} pictures need a folder that exists, or no -o"
        )
    maps = {"map of sigma": request.sigma} if isinstance(request.sigma, Path) else {}
    targets: list[Path] = []
    for photo in photos:
        target = target_of(photo, output, "denoised", force=request.force, others=maps)
        for other, before in zip(photos, targets, strict=False):
            if same_file(target, before):
                raise CommandError(f"{other} and {photo} would both be written to {target}")
        if request.stack and target.suffix.lower() not in pictures.TIFF:
            raise CommandError(f"{target}: a stack needs a name in {' or '.join(pictures.TIFF)}")
        others = {"picture": photo, "denoised picture": target, **maps}
        for what, given in {"expected error": request.std, "": request.save_model}.items():
            if given is not None:
                check_apart(given, others)
                others[what] = given
        targets.append(target)
    if request.save_model is not None:
        check_output(request.save_model, force=request.force)
    return targets


def _denoise(photo: Path, target: Path, request: Request, preset: str) -> None:
    picture = (pictures.read_stack if request.stack else pictures.read_picture)(photo)
    pictures.check_ending(picture, target)
    _check_numbers(picture)
    if request.std is not None:
        check_map(request.std, force=request.force)
    levels = levels_for(request.sigma, picture)
    found = levels
    if request.noise == "gaussian" and levels is None:
        found = _estimate(picture)
        if picture.compression is not None:
            # Said of the compression; denoise_image would say less of the same.
            levels = found
    asked = {**request.asked, "stack_axis": picture.stack_axis}
    if request.save_model is not None:
        if not isinstance(found, float):
            raise CommandError("--save-model needs one number as --sigma, or none")
        asked["model"] = learn_mixture(
            picture.pixels, found, preset, picture.channel_axis, asked["random_state"]
        )
    made = denoise_image(picture.pixels, levels, preset, picture.channel_axis, **asked)
    # Counts are not divided by the largest level.
    scale = picture.max_level if request.noise == "poisson" else 1.0
    values = made if request.std is None else made[0]
    pictures.write_picture(picture, values / scale, target, force=request.force)
    about = "noise" if found is None else f"noise of {describe(found, picture)}"
    lines = [f"{about} removed: {target}"]
    if request.std is not None:
        lines.append(write_map(made[1] / scale, picture, request.std, force=request.force))
    if request.save_model is not None:
        lines.append(write_mixture(asked["model"], request.save_model, force=request.force))
    for line in lines if not request.quiet else ():
        report(line)


def _check_numbers(picture: Picture) -> None:
    """Raise an error where a picture of floats has pixels that are no numbers."""
    bad = int(np.count_nonzero(~np.isfinite(picture.pixels)))
    if bad:
        raise CommandError(
            f"{picture.path}: {bad} of {picture.pixels.size} values are NaN or infinite: fill them "
            "first by polyspan inpaint"
        )


def _estimate(picture: Picture) -> float:
    """Return the strength of white noise; say so where that of a JPEG cannot be measured."""
    pixels = picture.pixels
    if picture.compression is not None:
        level, doubt = measured_noise(picture.compression, pixels)
        if doubt:
            say("warning", f"{picture.path}: {doubt}")
        return level / picture.max_level
    if picture.stacked:
        pixels = pixels.reshape(-1, *pixels.shape[2:])  # slices side by side
    return float(estimate_noise(pixels, picture.channel_axis))


def _on_terminal() -> bool:
    return sys.stderr.isatty()
