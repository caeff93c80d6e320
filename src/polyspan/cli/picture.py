"""A picture as it was read from a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.jpeg import Compression


@dataclass(frozen=True)
class Picture:
    """The pixels of a file, rotated upright; of a stack the pixels of all its pages."""

    path: Path
    pixels: np.ndarray
    """uint8, uint16 or float, (height, width) or (height, width, 3); 4 channels for CMYK. Pages of
    a stack come before the height."""
    alpha: np.ndarray | None = None
    """Transparency, without channels, of the same type; it is copied to the result."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Copied to the result: colour profile, resolution, and EXIF data such as date and camera."""
    lossy: bool = False
    """Whether the format changes pixels near edges, as JPEG does."""
    compression: Compression | None = None
    """Of a JPEG."""
    stacked: bool = False
    """Whether the first axis counts the pages of a stack."""

    @property
    def channel_axis(self) -> int | None:
        """The axis of the colour channels; None for gray."""
        return None if self.pixels.ndim == 2 + self.stacked else -1

    @property
    def stack_axis(self) -> int | None:
        """The axis of the pages; None for one picture."""
        return 0 if self.stacked else None

    @property
    def multichannel(self) -> bool:
        """Whether a pixel has more than one value."""
        return self.channel_axis is not None or self.alpha is not None

    @property
    def max_level(self) -> float:
        """The value of a pixel in the file that corresponds to 1."""
        kind = self.pixels.dtype
        return float(np.iinfo(kind).max) if kind.kind == "u" else 1.0

    @property
    def depth(self) -> str:
        """Depth that not every format can hold: "16 bits" or "floats"; empty for 8 bits."""
        if self.pixels.dtype.kind == "f":
            return "floats"
        return "16 bits" if self.pixels.dtype == np.uint16 else ""

    @property
    def unit(self) -> str:
        """What a difference of pixels is counted in, with a blank before it; nothing for floats."""
        return "" if self.depth == "floats" else " levels"

    def as_pixels(self, values: np.ndarray) -> np.ndarray:
        """Return values between 0 and 1 with the type of the pixels."""
        kind = self.pixels.dtype
        if kind.kind == "f":
            return values.astype(kind)
        return np.asarray(np.rint(np.clip(values, 0, 1) * self.max_level).astype(kind))
