"""Stacks: TIFF files whose pages are the slices of a volume, or the frames of a film."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from polyspan.cli import deep_pictures as deep
from polyspan.cli.errors import CommandError, decoding, reading, unreadable, writing
from polyspan.cli.picture import Picture
from polyspan.cli.pictures import TIFF, check_kind
from polyspan.files import atomic_write


def read_stack(path: Path) -> Picture:
    """Read all pages of a TIFF, which have one size and type."""
    with reading(path), decoding(path):
        if not deep.is_tiff(path):
            raise unreadable(f"{path} is no TIFF: --stack reads the pages of {' and '.join(TIFF)}")
        pixels, n_colours = deep.read_tiff_stack(path)
    pixels = check_kind(path, pixels)
    if pixels.ndim == 3:
        return Picture(path, pixels, stacked=True)
    colours = pixels[..., 0] if n_colours == 1 else pixels[..., :n_colours]
    alpha = pixels[..., n_colours] if pixels.shape[-1] > n_colours else None
    return Picture(path, colours, alpha, stacked=True)


def check_stack_ending(path: Path) -> None:
    """Raise an error, before the work begins, if the format cannot hold a stack."""
    if path.suffix.lower() not in TIFF:
        raise CommandError(f"{path}: a stack needs a name in {' or '.join(TIFF)}")


def write_stack(stack: Picture, values: np.ndarray, path: Path, *, force: bool) -> None:
    """Write values between 0 and 1 with the depth and the transparency of a stack."""
    pixels = stack.as_pixels(values)
    n_colours = 1 if stack.channel_axis is None else pixels.shape[-1]
    if stack.alpha is not None:
        colours = pixels[..., None] if stack.channel_axis is None else pixels
        pixels = np.concatenate([colours, stack.alpha[..., None]], axis=-1)
    with writing(path), atomic_write(path, overwrite=force) as temporary:
        deep.write_tiff(pixels, n_colours, temporary, pages=True)
