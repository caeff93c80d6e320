"""Gray pictures as PNG."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.image import imsave

from reproduction.page.formats import counted
from reproduction.sections import Picture, Section


def png(picture: Picture) -> bytes:
    """Write a gray image; values outside 0 to 1 are cut off."""
    if picture.pixels.ndim != 2 or not picture.pixels.size:
        raise ValueError(
            f"picture {picture.caption!r} has the shape {picture.pixels.shape}: "
            "give a gray image of shape (height, width)"
        )
    # With the name and version of matplotlib the bytes would change with each of its versions.
    unnamed: dict[str, Any] = {"Software": None}
    content = io.BytesIO()
    pixels = np.nan_to_num(picture.pixels)
    imsave(content, pixels, vmin=0, vmax=1, cmap="gray", format="png", metadata=unnamed)
    return content.getvalue()


def data_uri(picture: Picture) -> str:
    """Return the PNG as a `data:` address for the page."""
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
