"""Convert pictures to float32 planes with independent noise and to patches, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyspan.inputs import require_numpy

# Largest values that a picture may have as it is: of others the squares would leave float32, or
# their differences vanish in it.
LEAST, MOST = 1e-3, 1e6
# Most patches in a band, the patches that are processed at once: a few megabytes.
BAND_PATCHES = 16384


@dataclass(frozen=True)
class Planes:
    """The planes of a picture, and what is needed to convert them back."""

    planes: np.ndarray
    """float32, (n_planes, height, width): one for a gray picture, else the channels in an
    orthonormal basis whose first vector is proportional to their mean."""
    mixing: np.ndarray | None
    """That basis, as rows; None for a gray picture."""
    channel_axis: int | None
    dtype: np.dtype[Any]
    """Type of the result."""
    scale: float = 1.0
    """The picture was divided by this number, so that float32 can hold squares of its values."""

    @classmethod
    def of(cls, image: Any, channel_axis: int | None, holes: np.ndarray | None = None) -> Planes:
        """Check a picture and split it into planes; pixels in the holes are not used."""
        pixels = check_image(image, channel_axis)
        result = np.dtype(np.float32 if pixels.dtype in (np.float16, np.float32) else np.float64)
        pixels = pixels[None] if channel_axis is None else np.moveaxis(pixels, channel_axis, 0)
        if holes is not None:
            pixels = np.where(holes, pixels.dtype.type(0), pixels)
        bad = int(pixels.size - np.isfinite(pixels).sum())
        if bad:
            advice = "" if holes is None else " outside the mask"
            raise ValueError(
                f"{bad} of {pixels.size} values of the image{advice} are NaN or infinite: fill "
                "them first, or mark them in the mask of inpaint_image"
            )
        scaled, scale = _as_float(pixels)
        if channel_axis is None:
            return cls(scaled, None, None, result, scale)
        mixing = _opponent_basis(len(scaled))
        planes = np.tensordot(mixing, scaled, axes=1)
        return cls(planes, mixing, channel_axis, result, scale)

    def to_image(self, planes: np.ndarray) -> np.ndarray:
        """Convert planes to a picture with the axes, the type and the units of the original."""
        if self.mixing is None:
            return np.asarray(np.multiply(planes[0], self.scale, dtype=self.dtype))
        assert self.channel_axis is not None
        # Channel by channel, so that the result is the only large new array.
        shape = list(planes.shape[1:])
        shape.insert(self.channel_axis % 3, len(planes))
        out = np.empty(shape, dtype=self.dtype)
        for channel, mix in zip(np.moveaxis(out, self.channel_axis, 0), self.mixing.T, strict=True):
            channel[:] = np.tensordot(mix, planes, axes=1)
            channel *= self.scale
        return out


def check_image(image: Any, channel_axis: int | None) -> np.ndarray:
    """Return a picture as an array of the right number of dimensions."""
    require_numpy("polyspan.images", image=image)
    if np.ma.is_masked(image):
        raise ValueError("the image is a masked array: give its data and mask to inpaint_image")
    pixels = np.asarray(image)
    if pixels.dtype.kind not in "fiub":
        raise TypeError(f"the image has values of the type {pixels.dtype}: need real numbers")
    wanted = 2 if channel_axis is None else 3
    if pixels.ndim != wanted:
        advice = (
            "say which axis holds the channels, as in channel_axis=-1"
            if channel_axis is None and pixels.ndim == 3
            else "need (height, width), or with channel_axis three dimensions"
        )
        raise ValueError(f"the image has the shape {pixels.shape}: {advice}")
    if not pixels.size:
        raise ValueError(f"the image is empty: its shape is {pixels.shape}")
    if channel_axis is not None and not -3 <= channel_axis < 3:
        raise ValueError(f"channel_axis={channel_axis} is no axis of shape {pixels.shape}")
    return pixels


def as_fractions(pixels: np.ndarray, dtype: Any) -> np.ndarray:
    """Return floats; divide integers by the largest value of their type, as scikit-image does."""
    found = pixels.astype(dtype)
    if pixels.dtype.kind in "iu":
        found /= found.dtype.type(np.iinfo(pixels.dtype).max)
    return found


def _as_float(pixels: np.ndarray) -> tuple[np.ndarray, float]:
    """Return float32 values, and the number that very large or small values were divided by."""
    if pixels.dtype.kind != "f":
        return as_fractions(pixels, np.float32), 1.0
    most = float(max(pixels.max(), -pixels.min()))
    if most == 0 or LEAST <= most <= MOST:
        return pixels.astype(np.float32), 1.0
    # A power of two: division by it is exact.
    scale = 2.0 ** math.floor(math.log2(most))
    return (pixels / scale).astype(np.float32), scale


def _opponent_basis(n: int) -> np.ndarray:
    """Return the orthonormal cosine basis: brightness first, then differences of channels."""
    k, j = np.ogrid[:n, :n]
    basis = np.cos(np.pi * k * (2 * j + 1) / (2 * n)) * np.sqrt(2.0 / n)
    basis[0] = 1.0 / np.sqrt(n)
    return np.asarray(basis, dtype=np.float32)


class Canvas:
    """Cut a plane into patches, and average changed patches to a new plane.

    It keeps running sums of the weighted patches: memory for two planes, for any number of patches.

    Parameters
    ----------
    plane : array of shape (height, width)
        The plane from which patches are cut.
    side : int
        Side of a patch, in pixels.
    step : int
        Pixels from one patch to the next; the last patches end at the edge of the plane.
    """

    def __init__(self, plane: np.ndarray, side: int, step: int) -> None:
        self._windows = np.lib.stride_tricks.sliding_window_view(plane, (side, side))
        self.side = side
        self._top, self._left = (_corners(n, step) for n in self._windows.shape[:2])
        self._total = np.zeros(plane.shape, dtype=np.float32)
        self._weight = np.zeros(plane.shape, dtype=np.float32)

    @property
    def n_bands(self) -> int:
        """Number of bands, each of which holds some rows of patches."""
        return -(-len(self._top) // self._band)

    @property
    def _band(self) -> int:
        return max(1, BAND_PATCHES // len(self._left))

    def bands(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (top corners, patches as rows) until the plane is covered."""
        for start in range(0, len(self._top), self._band):
            top = self._top[start : start + self._band]
            patches = self._windows[np.ix_(top, self._left)]
            yield top, patches.reshape(len(top) * len(self._left), -1)

    def sample(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Return n patches at random places, or all patches where there are at most n."""
        height, width = self._windows.shape[:2]
        if height * width <= n:
            return self._windows.reshape(height * width, -1)
        corners = rng.choice(height * width, n, replace=False)
        chosen = self._windows[corners // width, corners % width]
        return np.asarray(chosen.reshape(n, -1))

    def add(self, top: np.ndarray, patches: np.ndarray, weights: np.ndarray) -> None:
        """Add the weighted patches of one band to the sums."""
        # One pixel of all patches at a time, so that no addition has the same place twice.
        grid = (patches * weights[:, None]).reshape(len(top), len(self._left), self.side, -1)
        weight = weights.reshape(len(top), len(self._left))
        for i in range(self.side):
            for j in range(self.side):
                place = np.ix_(top + i, self._left + j)
                self._total[place] += grid[:, :, i, j]
                self._weight[place] += weight

    def mean(self) -> np.ndarray:
        """Return the weighted mean of all patches that cover a pixel; NaN where none does."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self._total / self._weight)


def _corners(n: int, step: int) -> np.ndarray:
    corners = np.arange(0, n, step)
    return corners if corners[-1] == n - 1 else np.append(corners, n - 1)
