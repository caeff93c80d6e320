"""How strong the noise is, as `--sigma` says: a number, one per channel, or a file with a map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from polyspan.cli.errors import check_input, decoding, reading, unreadable
from polyspan.cli.pictures import Picture, read_picture


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
    check_input(path)
    if path.suffix.lower() != ".npy":
        return read_picture(path, notes=False).pixels.astype(np.float64)
    with reading(path), decoding(path):
        # Without pickles, which could run code.
        found = np.load(path, allow_pickle=False)
        if found.dtype.kind not in "fiu":
            raise unreadable(f"{path} holds entries of the type {found.dtype}: need real numbers")
    return np.asarray(found, dtype=np.float64)
