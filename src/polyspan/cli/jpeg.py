"""How much noise a JPEG may hide: quantisation removes what the estimate of noise looks at.

The estimate looks at the finest detail of flat patches, and JPEG rounds fine detail to 0 where it
is weaker than half a step of its tables. Tables and sampling of the colours stand in the
file. So noise of known strength is put on a flat picture, compressed in the same way, and
estimated: what it leaves says which noise an estimate cannot see.

Measured on 12 pictures at qualities from 50 to 100, with and without halved colours, with noise of
1 to 50 levels: of 367 estimates that were too low by a quarter or more 333 are warned of (most of
the others are of noise of 1 level, or cut off at black and white), and of 263 right ones 8.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.images import estimate_noise

#: Strengths that are tried, in levels, and the side of the flat picture.
STRENGTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.7, 8.0, 11.0, 16.0, 23.0, 32.0)
SIDE = 128
#: The hidden noise that matters: that many levels, and that many times the estimate.
LEAST, FACTOR = 1.5, 1.25


@dataclass(frozen=True)
class Compression:
    """How a JPEG is compressed."""

    mode: str
    """Of Pillow: L, RGB or CMYK."""
    tables: list[list[int]]
    """Steps of the quantisation."""
    sampling: int
    """0, 1 or 2 where colours are not, once or twice halved; -1 for others."""

    @classmethod
    def of(cls, image: Any) -> Compression | None:
        """Return that of an open picture; None where it is no JPEG of a known kind."""
        from PIL import JpegImagePlugin

        tables = getattr(image, "quantization", None)
        if image.format not in ("JPEG", "MPO") or image.mode not in ("L", "RGB", "CMYK"):
            return None
        if not tables:
            return None
        sampling = JpegImagePlugin.get_sampling(image)
        return cls(image.mode, [list(table) for table in tables.values()], sampling)

    def apply(self, pixels: np.ndarray) -> np.ndarray:
        """Return what this compression leaves of a picture."""
        from PIL import Image

        height, width = pixels.shape[:2]
        packed = io.BytesIO()
        image = Image.frombytes(self.mode, (width, height), pixels.tobytes())
        image.save(packed, "JPEG", qtables=self.tables, subsampling=self.sampling)
        return np.asarray(Image.open(packed))


def hidden_noise(compression: Compression, estimate: float) -> float:
    """Return the strongest noise that would give at most this estimate, in levels; at most 32."""
    channels = () if compression.mode == "L" else (len(compression.mode),)
    noise = np.random.default_rng(0).standard_normal((SIDE, SIDE, *channels))
    axis = -1 if channels else None
    left = []
    for strength in STRENGTHS:
        noisy = np.clip(np.rint(128 + strength * noise), 0, 255).astype(np.uint8)
        left.append(255 * float(estimate_noise(compression.apply(noisy), axis)))
    unseen = np.flatnonzero(np.array(left) <= estimate)
    if not len(unseen):
        return 0.0
    # Between the last that is not seen and the first that is.
    k = slice(int(unseen[-1]), int(unseen[-1]) + 2)
    return float(np.interp(estimate, left[k], STRENGTHS[k]))


def warning_about(compression: Compression, estimate: float) -> str | None:
    """Return a warning where an estimate, in levels, may be far too low; None where it is fine."""
    try:
        hidden = hidden_noise(compression, estimate)
    except (OSError, ValueError):  # tables that Pillow reads, but does not write
        return None
    if hidden < max(LEAST, FACTOR * estimate):
        return None
    more = " or more" if hidden == STRENGTHS[-1] else ""
    return (
        f"is a JPEG, whose compression removes fine noise: noise of {hidden:.2g} levels{more} "
        f"would be estimated as {estimate:.2g} too; where the picture looks noisier than that, "
        "give --sigma"
    )
