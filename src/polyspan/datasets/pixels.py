"""Helpers of several loaders: gray pixels of a file, checks of integers."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np

# Modes of Pillow with at most 8 bits per channel; Pillow would clip larger values at 255.
_EIGHT_BIT = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}


def read_gray(path: str | os.PathLike[str]) -> np.ndarray:
    """Return an image file as gray values, shape (height, width), uint8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan.datasets.pixels import read_gray
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.pgm"
    ...     _ = path.write_bytes(b"P5 3 1 255 " + bytes([0, 7, 255]))
    ...     read_gray(path).tolist()
    [[0, 7, 255]]
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError(
            f"{path} is an image, and reading it needs pillow: pip install pillow"
        ) from error
    try:
        with Image.open(path) as image:
            if image.mode not in _EIGHT_BIT:
                raise ValueError(
                    f"{path} has the mode {image.mode!r}: save it with 8 bits per channel"
                )
            try:
                image.load()
            except ValueError as error:  # a truncated file, before pillow 12
                raise OSError(str(error)) from error
            return np.array(image.convert("L"))
    except (UnidentifiedImageError, SyntaxError) as error:
        raise ValueError(f"{path} is not an image that pillow can read: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the file system's own message: no such file, no permission
            raise
        raise ValueError(f"{path} is an incomplete image: {error}") from error


def whole_numbers(given: Any) -> tuple[int, ...]:
    """Return an integer, or a sequence of integers, as a tuple; an empty tuple for anything else.

    Examples
    --------
    >>> from polyspan.datasets.pixels import whole_numbers
    >>> whole_numbers(3), whole_numbers([1, 2]), whole_numbers(0.5)
    ((3,), (1, 2), ())
    """
    listed = (given,) if np.ndim(given) == 0 else tuple(given)
    if not all(isinstance(number, Integral) for number in listed):
        return ()
    return tuple(int(number) for number in listed)
