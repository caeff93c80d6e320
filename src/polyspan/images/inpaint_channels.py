"""Channels with masks of their own: what one has lost, the others may show."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from polyspan.images.interpolation import interpolate

#: Detail is what differs from a mean around a pixel, of this width.
WIDTH = 1.5


def guess_from_other_channels(channels: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Fill each channel smoothly, with the detail of the other channels in its holes.

    Edges and texture are mostly the same in all channels, but for a factor that is found by least
    squares. What is left without this detail is interpolated.
    """
    details = np.stack([_detail(one, holes) for one, holes in zip(channels, missing, strict=True)])
    total, count = details.sum(axis=0), (~missing).sum(axis=0)
    out = channels.copy()
    for filled, detail, holes in zip(out, details, missing, strict=True):
        if holes.any():
            # The mean of the details of the other channels that are observed; 0 if none is.
            others = (total - detail) / np.maximum(count - ~holes, 1)
            squares = float((others[~holes] ** 2).sum())
            factor = float((others * detail)[~holes].sum()) / squares if squares > 0 else 0.0
            rest = interpolate(filled - np.float32(factor) * others, holes)
            filled[holes] = (rest + np.float32(factor) * others)[holes]
    return out


def _detail(channel: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return observed pixels less a mean of those around them; 0 in the holes."""
    seen = (~missing).astype(np.float32)
    around = gaussian_filter(channel * seen, WIDTH) / np.maximum(
        gaussian_filter(seen, WIDTH), np.float32(1e-6)
    )
    return np.asarray((channel - around) * seen)
