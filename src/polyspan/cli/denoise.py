"""The command that removes noise from pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import polyspan
from polyspan.base.files import same_file
from polyspan.cli import files, levels, options, pictures
from polyspan.cli.app import command
from polyspan.cli.errors import Code, CommandError, say, tell
from polyspan.cli.jpeg import measured_noise

#: Options by the parameters of `denoise_image` that they set.
WORDS = {
    "sigma": "--sigma", "noise": "--noise", "gain": "--gain", "offset": "--offset",
    "read_noise": "--read-noise", "stack_axis=0": "--stack", "return_std=True": "--std",
    "model": "--model", "inpaint_image": "polyspan inpaint",
}  # fmt: skip
Photos = Annotated[
    list[Path],
    typer.Argument(
        help=f"Pictures: {', '.join(options.PICTURES)}. Of several the output is a folder.",
        readable=False,
        metavar="PHOTO",
    ),
]


@dataclass(frozen=True)
class Request:
    """What to do with each picture."""

    sigma: Annotated[
        list[str] | None,
        typer.Option(
            help="Standard deviation of the noise, in levels of the file (0 to 255, to 65535): a "
            "number; one per channel, separated by commas; or a picture or .npy file with one per "
            "pixel. Estimated if not given."
        ),
    ] = None
    preset: options.Preset = "balanced"
    noise: Annotated[
        Literal["gaussian", "poisson", "correlated"],
        typer.Option(
            help="gaussian: independent from pixel to pixel. poisson: it grows with the signal, as "
            "counts do. correlated: blurred, as after resizing."
        ),
    ] = "gaussian"
    gain: Annotated[float | None, typer.Option(help="Of poisson: levels for one count.")] = None
    offset: Annotated[float | None, typer.Option(help="Of poisson: the level without signal.")] = (
        None
    )
    read_noise: Annotated[
        float | None,
        typer.Option(help="Of poisson: standard deviation of reading out, in levels.", min=0),
    ] = None
    std: Annotated[
        Path | None,
        options.file_option(
            help="File for the expected error of each pixel: .npy or .tif in levels, .png to look "
            "at."
        ),
    ] = None
    stack: Annotated[
        bool,
        typer.Option(
            "--stack", help="The pages of a TIFF are slices of a volume, or frames of a film."
        ),
    ] = False
    model: Annotated[
        str | None,
        typer.Option(
            help="What patches are compared with: own, a mixture that is learned from the picture; "
            "or a file that --save-model wrote. Else what was learned from photographs.",
            metavar="own|FILE",
        ),
    ] = None
    save_model: options.SaveModel = None
    jobs: options.Jobs = None

    def check(self, photos: Sequence[Path]) -> None:
        """Raise an error where options do not go together; the library knows others."""
        if self.noise != "gaussian" and self.sigma is not None:
            raise CommandError(
                f"--sigma and --noise {self.noise} do not go together: the strength of that noise "
                "is estimated"
            )
        for name, given in {"--std": self.std, "--save-model": self.save_model}.items():
            if given is not None and (len(photos) > 1 or self.stack):
                raise CommandError(f"{name} takes one picture, not several and no --stack")
        if self.save_model is not None and (self.model is None or self.noise != "gaussian"):
            raise CommandError(
                "--save-model has nothing to save: presets use what was learned from photographs; "
                "add --model own, which learns from the picture, with gaussian noise"
            )

    def targets(
        self,
        photos: Sequence[Path],
        output: Path | None,
        inputs: Mapping[str, Any],
        run: options.Run,
    ) -> list[tuple[Path, files.Job]]:
        """Return the files to write, all checked before the work on the first begins."""
        if len(photos) > 1 and output is not None and not output.is_dir():
            raise CommandError(
                f"-o {output}: {len(photos)} pictures need a folder that exists, or no -o"
            )
        found: list[tuple[Path, files.Job]] = []
        for photo in photos:
            job = files.Job(run, {"picture": photo, **inputs})
            target = pictures.target_of(job, photo, output, "denoised")
            for other, (before, _) in zip(photos, found, strict=False):
                if same_file(target, before):
                    raise CommandError(f"{other} and {photo} would both be written to {target}")
            if self.stack and target.suffix.lower() not in options.TIFF:
                raise CommandError(f"{target}: a stack needs a name in .tif or .tiff")
            job.check("expected error", self.std, levels.MAPS)
            job.check("saved model", self.save_model)
            found.append((target, job))
        return found


@command(
    panel="Pictures", epilog="polyspan denoise photo.png -o out.png --preset best", words=WORDS
)
def denoise(
    photos: Photos, request: Request, run: options.Run, output: options.Target = None
) -> None:
    """Remove noise from pictures; its strength is estimated where --sigma is not given."""
    sigma = levels.read_levels(request.sigma)
    file = None if request.model in (None, "own") else Path(str(request.model))
    request.check(photos)
    inputs = {"map of sigma": sigma if isinstance(sigma, Path) else None, "model": file}
    targets = request.targets(photos, output, inputs, run)
    model: Any = request.model
    if file is not None:
        model = files.load_model(file, "SubspaceMixture", {"--save-model": request.save_model})
    codes = []
    for photo, (target, job) in zip(photos, targets, strict=True):
        try:
            _denoise(photo, target, job, request, sigma, model)
        except Exception as error:
            if getattr(error, "code", None) == Code.CLOSED:
                raise
            # The others may be all right.
            codes.append(tell(error, debug=run.debug, about=str(photo), words=WORDS))
    if codes and len(photos) > 1:
        say("error", f"{len(codes)} of {len(photos)} pictures were not denoised")
    if codes:
        raise typer.Exit(int(codes[0]))


def _denoise(
    photo: Path, target: Path, job: files.Job, request: Request, sigma: Any, model: Any
) -> None:
    picture = (pictures.read_stack if request.stack else pictures.read_picture)(photo)
    pictures.check_ending(picture, target)
    pixels, axis = picture.pixels, picture.channel_axis
    given = levels.levels_for(sigma, picture)
    found = given
    if request.noise == "gaussian" and given is None:
        found = _estimate(picture)
        if picture.compression is not None:
            # Said of the compression; denoise_image would say less of the same.
            given = found
    if request.save_model is not None:
        if not isinstance(found, float):
            raise CommandError("--save-model needs one number as --sigma, or none")
        from polyspan.images.mixtures import learn_mixture

        model = learn_mixture(pixels, found, request.preset, axis, job.run.seed)
    made = polyspan.images.denoise_image(
        pixels, given, request.preset, axis, model=model, return_std=request.std is not None,
        noise=request.noise, gain=request.gain, offset=request.offset,
        read_noise=request.read_noise, stack_axis=picture.stack_axis, random_state=job.run.seed,
        n_jobs=request.jobs or -1,
    )  # fmt: skip
    # Counts are not divided by the largest level.
    scale = picture.max_level if request.noise == "poisson" else 1.0
    values = (made if request.std is None else made[0]) / scale
    job.writers[target] = pictures.picture_writer(picture, values, target)
    about = "noise" if found is None else f"noise of {levels.describe(found, picture)}"
    lines = [f"{about} removed: {target}"]
    if request.std is not None:
        job.writers[request.std], line = levels.map_writer(made[1] / scale, picture, request.std)
        lines.append(line)
    if request.save_model is not None:
        job.save(model, request.save_model)
        lines.append(f"mixture of patches saved: {request.save_model}")
    job.finish(lines)


def _estimate(picture: pictures.Picture) -> float:
    """Return the strength of white noise; say so where that of a JPEG cannot be measured."""
    pixels = picture.pixels
    if picture.compression is not None:
        level, doubt = measured_noise(picture.compression, pixels)
        if doubt:
            say("warning", f"{picture.path}: {doubt}")
        return float(level / picture.max_level)
    if picture.stacked:
        pixels = pixels.reshape(-1, *pixels.shape[2:])  # slices side by side
    return float(polyspan.images.estimate_noise(pixels, picture.channel_axis))
