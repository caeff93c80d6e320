"""Gray pictures as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reproduction.page.formats import counted
from reproduction.sections import Picture, Section


def png(picture: Picture) -> bytes:
    """Write a gray image with eight bits a pixel; values outside 0 to 1 are cut off.

    Written here because matplotlib is an optional dependency, and a gray PNG is four chunks.
    """
    if picture.pixels.ndim != 2 or not picture.pixels.size:
        raise ValueError(
            f"picture {picture.caption!r} has the shape {picture.pixels.shape}: "
            "give a gray image of shape (height, width)"
        )
    levels = np.rint(255 * np.clip(np.nan_to_num(picture.pixels), 0, 1)).astype(np.uint8)
    height, width = levels.shape
    # Each line of pixels begins with the number of its filter; 0 is none.
    lines = np.hstack([np.zeros((height, 1), np.uint8), levels]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def data_uri(picture: Picture) -> str:
    """Return the PNG as an address that carries its own content."""
    return f"data:image/png;base64,{base64.b64encode(png(picture)).decode('ascii')}"


def without_pictures(sections: Sequence[Section]) -> list[Section]:
    """Leave out all pictures, and say so in a note of each section that had some."""
    kept = []
    for section in sections:
        n_left_out = sum(len(panel.pictures) for panel in section.panels)
        if n_left_out:
            panels = [replace(panel, pictures=()) for panel in section.panels if panel.curves]
            note = (
                f"{counted(n_left_out, 'picture')} left out of this copy: "
                "the data may be used for research but not published."
            )
            section = replace(section, panels=panels, notes=[*section.notes, note])
        kept.append(section)
    return kept
