"""The command that removes noise from pictures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from polyspan.cli import options, pictures, stacks
from polyspan.cli.app import command
from polyspan.cli.error_maps import check_map, write_map
from polyspan.cli.errors import CommandError, report, say, tell
from polyspan.cli.jpeg import measured_noise
from polyspan.cli.noise_levels import describe, levels_for, read_levels
from polyspan.cli.picture import Picture
from polyspan.cli.picture_files import PANEL, Jobs, Target, check_apart, target_of
from polyspan.files import same_file
from polyspan.images import denoise_image, estimate_noise

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


@dataclass(frozen=True)
class Request:
    """What to do with each picture."""

    sigma: Path | list[float] | None
    preset: str
    noise: str
    gain: float | None
    offset: float | None
    read_noise: float | None
    std: Path | None
    stack: bool
    n_jobs: int
    seed: int
    force: bool
    quiet: bool

    def check(self, photos: Sequence[Path]) -> None:
        """Raise an error where options do not go together."""
        if self.noise != "gaussian" and self.sigma is not None:
            raise CommandError(
                f"--sigma and --noise {self.noise} do not go together: the strength of that noise "
                "is estimated"
            )
        counts = (self.gain, self.offset, self.read_noise)
        if self.noise != "poisson" and counts != (None, None, None):
            raise CommandError("--gain, --offset and --read-noise need --noise poisson")
        if self.noise == "correlated" and self.stack:
            raise CommandError(
                "--noise correlated and --stack do not go together: give slices as single pictures"
            )
        if self.gain is not None and not self.gain > 0:
            raise CommandError(f"--gain {self.gain:g}: need the levels for one count, more than 0")
        if self.std is not None and len(photos) > 1:
            raise CommandError(f"--std takes one picture, and {len(photos)} are given")
        if self.std is not None and self.stack:
            raise CommandError("--std and --stack do not go together: give slices one by one")


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
    jobs: Jobs = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Remove noise from pictures; its strength is estimated where --sigma is not given."""
    request = Request(
        read_levels(sigma), preset, noise, gain, offset, read_noise, std, stack, jobs or -1, seed,
        force, quiet,
    )  # fmt: skip
    request.check(photos)
    codes = []
    for photo, target in zip(photos, _targets(photos, output, request), strict=True):
        try:
            _denoise(photo, target, request)
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
        if request.stack:
            stacks.check_stack_ending(target)
        if request.std is not None:
            check_apart(request.std, {"picture": photo, "denoised picture": target, **maps})
        targets.append(target)
    return targets


def _denoise(photo: Path, target: Path, request: Request) -> None:
    picture = stacks.read_stack(photo) if request.stack else pictures.read_picture(photo)
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
    values = _values(picture, levels, request)
    if request.std is not None:
        values, errors = values
    (stacks.write_stack if request.stack else pictures.write_picture)(
        picture, values, target, force=request.force
    )
    about = "noise" if found is None else f"noise of {describe(found, picture)}"
    lines = [f"{about} removed: {target}"]
    if request.std is not None:
        lines.append(write_map(errors, picture, request.std, force=request.force))
    for line in lines if not request.quiet else ():
        report(line)


def _check_numbers(picture: Picture) -> None:
    """Raise an error where a picture of floats has pixels that are no numbers."""
    bad = int(np.count_nonzero(~np.isfinite(picture.pixels)))
    if bad:
        raise CommandError(
            f"{picture.path}: {bad} of {picture.pixels.size} values are NaN or infinite: fill them "
            "first by polyspan inpaint, with a mask that marks them"
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


def _values(picture: Picture, levels: float | np.ndarray | None, request: Request) -> Any:
    """Return denoised values between 0 and 1; with --std a pair of them and their errors."""
    found = denoise_image(
        picture.pixels,
        levels,
        request.preset,
        picture.channel_axis,
        noise=request.noise,
        gain=request.gain,
        offset=request.offset,
        read_noise=request.read_noise,
        stack_axis=picture.stack_axis,
        return_std=request.std is not None,
        random_state=request.seed,
        n_jobs=request.n_jobs,
        progress=_on_terminal() and not request.quiet,
    )
    # Counts are not divided by the largest level.
    scale = picture.max_level if request.noise == "poisson" else 1.0
    if request.std is not None:
        return tuple(part / scale for part in found)
    return found / scale
