"""The file of faces from the published images."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import numpy as np

from polyspan.datasets.pixels import read_gray

# Corrupt originals are published as NAME.pgm.bad; images of ambient light have another name.
_NAME = re.compile(r"yaleB\d\d_P00(A[+-]\d{3}E[+-]\d{2})\.pgm(\.bad)?")


def build_extended_yale_b(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] = "extended_yaleb_48x42.npz"
) -> Path:
    """Make the file that `load_extended_yale_b` reads from the published cropped images.

    Images of 192x168 pixels become 48x42, by the nearest pixel and bicubic, as Pillow does it.
    Other programs choose and weigh pixels a little differently, so the SHA-256 need not be that
    of the file that polyspan was tested with: load the result with `verify=False`.

    Parameters
    ----------
    folder : path
        The unpacked `CroppedYale`, with the directories yaleB01 to yaleB39.
    out : path, default="extended_yaleb_48x42.npz"
        File to write. Keep its name, and give the folder to the loader as `data_home`.

    Returns
    -------
    out : Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan.datasets import build_extended_yale_b, load_extended_yale_b
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     subject = Path(folder) / "yaleB05"
    ...     subject.mkdir()
    ...     image = b"P5 168 192 255 " + bytes(192 * 168)
    ...     _ = (subject / "yaleB05_P00A+000E+00.pgm").write_bytes(image)
    ...     out = build_extended_yale_b(folder, Path(folder) / "extended_yaleb_48x42.npz")
    ...     load_extended_yale_b(data_home=folder, verify=False).X.shape
    (1, 2016)
    """
    subjects = sorted(Path(folder).expanduser().glob("yaleB[0-9][0-9]"))
    files = [_list_images(subject) for subject in subjects]
    if not subjects or not files[0]:
        raise FileNotFoundError(
            f"{folder} has no images yaleBNN/yaleBNN_P00A…E….pgm: give the folder CroppedYale of "
            "the unpacked archive"
        )
    lightings = sorted(files[0])
    for subject, images in zip(subjects, files, strict=True):
        if sorted(images) != lightings:
            differing = sorted(set(images) ^ set(lightings))
            raise ValueError(
                f"{subject} and {subjects[0]} differ in the lightings {differing}: every subject "
                "needs all of them, so unpack the archive again"
            )
    ordered = [[images[lighting] for lighting in lightings] for images in files]
    pixels = [[_downsample(path) for path in images] for images in ordered]
    nearest, bicubic = np.moveaxis(np.array(pixels), 2, 0)
    target = Path(out).expanduser()
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed, so that nobody finds half a file.
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        whole = Path(aside) / "whole.npz"
        np.savez_compressed(
            whole,
            nearest=nearest,
            bicubic=bicubic,
            subject_id=np.array([int(subject.name[-2:]) for subject in subjects], dtype=np.uint8),
            lighting=np.array(lightings),
            bad=np.array([[path.suffix == ".bad" for path in images] for images in ordered]),
        )
        whole.replace(target)
    return target


def _list_images(subject: Path) -> dict[str, Path]:
    names = {path: _NAME.fullmatch(path.name) for path in sorted(subject.iterdir())}
    return {match[1]: path for path, match in names.items() if match}


def _downsample(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from PIL import Image

    try:
        pixels = read_gray(path)
        if pixels.shape != (192, 168):
            raise ValueError(f"{path} has {pixels.shape} pixels, expected (192, 168)")
    except ValueError:
        if path.suffix != ".bad":
            raise
        pixels = np.zeros((192, 168), dtype=np.uint8)  # marked as corrupt, and so it is
    image = Image.fromarray(pixels)
    nearest, bicubic = (
        np.asarray(image.resize((42, 48), method))
        for method in (Image.Resampling.NEAREST, Image.Resampling.BICUBIC)
    )
    return nearest, bicubic
