"""PNG files with 16 bits per channel and several channels, which Pillow would cut to 8 bits."""

from __future__ import annotations

import logging
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.failures import CommandError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Colour types of the header that Pillow does not keep: colours, gray with alpha, both.
_COLOUR_TYPES = (2, 4, 6)
_HEADER_END = 33  # of the signature and the first chunk, which has a fixed length


def is_deep_png(path: Path) -> bool:
    """Tell whether a file is a PNG of 16 bits with colours or transparency."""
    with path.open("rb") as file:
        head = file.read(26)
    return (
        len(head) == 26
        and head.startswith(_SIGNATURE)
        and head[24] == 16
        and head[25] in _COLOUR_TYPES
    )


def read_deep_png(path: Path) -> np.ndarray:
    """Return the pixels, (height, width, channels); ValueError where the file is damaged.

    A transparent colour becomes a channel. The size in the header is taken as it is: whoever
    calls has compared it with Pillow's limit.
    """
    codec = find_imagecodecs(path)
    try:
        return np.asarray(codec.png_decode(path.read_bytes()))
    except codec.PngError as error:
        raise ValueError(f"its pixels are damaged or cut off: {error}") from error


def write_deep_png(pixels: np.ndarray, path: Path, icc_profile: bytes | None = None) -> None:
    """Write uint16 pixels of two, three or four channels."""
    content = find_imagecodecs(path).png_encode(np.ascontiguousarray(pixels))
    profile = b""
    if icc_profile:
        # imagecodecs writes no profile: put it behind the header.
        named = b"iCCP" + b"ICC profile\0\0" + zlib.compress(icc_profile)
        profile = struct.pack(">I", len(named) - 4) + named + struct.pack(">I", zlib.crc32(named))
    path.write_bytes(content[:_HEADER_END] + profile + content[_HEADER_END:])


def find_imagecodecs(path: Path) -> Any:
    """Import what reads and writes such files."""
    try:
        import imagecodecs
    except ImportError as error:
        raise CommandError(
            f"{path}: colours of 16 bits in PNG need imagecodecs: "
            "pip install imagecodecs, or use .tif"
        ) from error
    # It logs a remark of libpng about every interlaced file, which it reads rightly.
    logging.getLogger("imagecodecs").setLevel(logging.ERROR)
    return imagecodecs
