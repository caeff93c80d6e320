"""Files with the expected error of each pixel of a denoised picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyspan.base.files import atomic_write
from polyspan.cli import deep_pictures as deep
from polyspan.cli.errors import check_output, writing
from polyspan.cli.pictures import TIFF, Picture

ENDINGS = (".npy", *TIFF, ".png")


def check_map(path: Path, *, force: bool) -> None:
    """Raise an error, before the work begins, if the errors cannot be written."""
    check_output(path, force=force, endings=ENDINGS)
    if path.suffix.lower() in TIFF:
        deep.find_tifffile(path)


def write_map(errors: np.ndarray, picture: Picture, path: Path, *, force: bool) -> str:
    """Write errors in levels of the picture, and return what is in the file in words.

    A .png is for the eye: black is 0, white the largest error.
    """
    values = (errors * picture.max_level).astype(np.float32)
    largest = float(values.max())
    with writing(path), atomic_write(path, overwrite=force) as temporary:
        if path.suffix.lower() == ".npy":
            np.save(temporary, values, allow_pickle=False)
        elif path.suffix.lower() in TIFF:
            n_colours = 0 if picture.channel_axis is None else values.shape[-1]
            deep.write_tiff(values, n_colours, temporary)
        else:
            _save_shades(values, largest, temporary)
    said = f"expected error of {float(np.sqrt((values**2).mean())):.3g}{picture.unit}"
    return f"{said}, at most {largest:.3g}{picture.unit}: {path}"


def _save_shades(values: np.ndarray, largest: float, temporary: Path) -> None:
    from PIL import Image

    # One shade for a pixel with channels: the mean of what is expected of their squares.
    gray = values if values.ndim == 2 else np.sqrt((values**2).mean(axis=-1))
    shades = np.rint(255 * gray / (largest or 1.0)).astype(np.uint8)
    Image.fromarray(shades).save(temporary)
