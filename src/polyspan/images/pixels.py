"""From pictures as they come to planes of float32 with independent noise, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Planes:
    """The planes of a picture, and the way back."""

    planes: np.ndarray
    """float32, (n_planes, height, width): one for gray, else the channels in an orthonormal
    basis whose first vector is their mean."""
    mixing: np.ndarray | None
    """That basis, as rows; None for gray."""
    channel_axis: int | None
    dtype: np.dtype[Any]
    """Of the result."""

    @classmethod
    def of(cls, image: Any, channel_axis: int | None, holes: np.ndarray | None = None) -> Planes:
        """Check a picture and take it apart; what is in the holes does not matter."""
        pixels = check_image(image, channel_axis)
        result = np.dtype(np.float32 if pixels.dtype in (np.float16, np.float32) else np.float64)
        scaled = _as_float(pixels)
        scaled = scaled[None] if channel_axis is None else np.moveaxis(scaled, channel_axis, 0)
        if holes is not None:
            scaled = np.where(holes, np.float32(0), scaled)
        bad = int(np.size(scaled) - np.isfinite(scaled).sum())
        if bad:
            advice = "" if holes is None else " outside the mask"
            raise ValueError(
                f"{bad} of {scaled.size} values of the image{advice} are NaN or infinite: fill "
                "them first, or mark them in the mask of inpaint_image"
            )
        if channel_axis is None:
            return cls(scaled, None, None, result)
        mixing = _opponent_basis(len(scaled))
        return cls(np.tensordot(mixing, scaled, axes=1), mixing, channel_axis, result)

    def put_back(self, planes: np.ndarray) -> np.ndarray:
        """Return a picture of the form that was given."""
        if self.mixing is None:
            return np.asarray(planes[0], dtype=self.dtype)
        assert self.channel_axis is not None
        channels = np.tensordot(self.mixing.T, planes, axes=1)
        return np.asarray(np.moveaxis(channels, 0, self.channel_axis), dtype=self.dtype)


def check_image(image: Any, channel_axis: int | None) -> np.ndarray:
    """Return a picture as an array of the right number of dimensions."""
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


def spatial_shape(pixels: np.ndarray, channel_axis: int | None) -> tuple[int, ...]:
    """Return height and width."""
    if channel_axis is None:
        return pixels.shape
    return tuple(np.delete(pixels.shape, channel_axis).tolist())


def _as_float(pixels: np.ndarray) -> np.ndarray:
    """Return float32; integers over the largest of their type, as scikit-image does."""
    if pixels.dtype.kind in "iu":
        return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    return pixels.astype(np.float32)


def _opponent_basis(n: int) -> np.ndarray:
    """Return the orthonormal cosine basis: brightness first, then differences of channels."""
    k, j = np.ogrid[:n, :n]
    basis = np.cos(np.pi * k * (2 * j + 1) / (2 * n)) * np.sqrt(2.0 / n)
    basis[0] = 1.0 / np.sqrt(n)
    return np.asarray(basis, dtype=np.float32)
