"""Levels of noise, as `--sigma` says and as `--std` writes: numbers, or a map of the pixels."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from polyspan.cli.errors import unreadable
from polyspan.cli.files import Writer, check_inputs, reading
from polyspan.cli.options import TIFF
from polyspan.cli.pictures import Picture, picture_writer, read_picture

#: Formats of a map of expected errors.
MAPS = (".npy", *TIFF, ".png")


def read_levels(words: Sequence[str] | None) -> Path | list[float] | None:
    """Return the numbers of the option, or the file that it names; None where it is not given."""
    if not words:
        return None
    parts = [part.strip() for word in words for part in word.split(",")]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        if len(words) > 1:
            raise typer.BadParameter(
                f"{', '.join(words)}: need one number, one per channel, or one file",
                param_hint="'--sigma'",
            ) from None
        return Path(words[0])
    for number in numbers:
        if not 0 <= number < math.inf:
            raise typer.BadParameter(f"{number:g} is not in the range x>=0", param_hint="'--sigma'")
    return numbers


def levels_for(given: Path | list[float] | None, picture: Picture) -> float | np.ndarray | None:
    """Return what `denoise_image` takes: in units of the largest level of the picture."""
    if given is None:
        return None
    if isinstance(given, list):
        values = np.array(given) / picture.max_level
        return float(values[0]) if len(given) == 1 else values
    found = _read_map(given) / picture.max_level
    one = picture.pixels.shape[1:3] if picture.stacked else None
    # A map for every page of a stack.
    return np.broadcast_to(found, picture.pixels.shape[:3]) if found.shape == one else found


def describe(levels: float | np.ndarray, picture: Picture) -> str:
    """Return the levels in words: "15 levels", "5 to 30 levels"."""
    values = np.atleast_1d(levels) * picture.max_level
    if values.ndim == 1:
        return ", ".join(f"{value:.3g}" for value in values) + picture.unit
    return f"{values.min():.3g} to {values.max():.3g}{picture.unit}"


def _read_map(path: Path) -> np.ndarray:
    """Return the numbers in a picture or in a .npy file, as they are."""
    check_inputs(path)
    if path.suffix.lower() != ".npy":
        return read_picture(path, notes=False).pixels.astype(np.float64)
    with reading(path):
        # Without pickles, which could run code.
        found = np.load(path, allow_pickle=False)
        if found.dtype.kind not in "fiu":
            raise unreadable(f"{path} holds entries of the type {found.dtype}: need real numbers")
    return np.asarray(found, dtype=np.float64)


def map_writer(errors: np.ndarray, picture: Picture, path: Path) -> tuple[Writer, str]:
    """Return what writes errors in levels of the picture, and what is in the file in words.

    A .png is for the eye: black is 0, white the largest error.
    """
    values = (errors * picture.max_level).astype(np.float32)
    largest = float(values.max())
    if path.suffix.lower() == ".npy":
        write: Writer = functools.partial(np.save, arr=values, allow_pickle=False)
    elif path.suffix.lower() in TIFF:
        write = picture_writer(Picture(path, values), values, path)
    else:
        # One shade for a pixel with channels: the mean of what is expected of their squares.
        gray = values if values.ndim == 2 else np.sqrt((values**2).mean(axis=-1))
        shades = Picture(path, np.zeros(gray.shape, dtype=np.uint8))
        write = picture_writer(shades, gray / (largest or 1.0), path)
    said = f"expected error of {float(np.sqrt((values**2).mean())):.3g}{picture.unit}"
    return write, f"{said}, at most {largest:.3g}{picture.unit}: {path}"
