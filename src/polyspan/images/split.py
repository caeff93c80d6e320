"""Split the channels of a picture into planes with independent white noise, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyspan.arrays import Array, moved_to, namespace, to_numpy, transpose
from polyspan.images.planes import brightness_basis, mixed, mixed_in_place
from polyspan.images.scales import halve
from polyspan.images.spectral import MOST_COLOURS, spectral_basis


@dataclass(frozen=True)
class Split:
    """Planes with white noise of a picture, and how to get its channels back."""

    planes: Array
    basis: Array
    """(n_planes, n_channels): orthonormal rows."""
    mean: Array | None = None
    """(n_channels,): what is added to channels that are made of planes."""
    alike: bool = True
    """Whether similar patches of the first plane are similar in the others."""

    @classmethod
    def of(cls, channels: Array, sigma: float, *, own_basis: bool = False) -> Split:
        """Split a gray or colour picture, or one with many channels.

        With `own_basis` colours are not split into brightness and differences, but by what they
        have in common in this picture. Channels are overwritten by planes.
        """
        n = channels.shape[0]
        if n <= MOST_COLOURS:
            basis = moved_to(_principal(channels) if own_basis else brightness_basis(n), channels)
            return cls(channels if n == 1 else mixed_in_place(basis, channels), basis)
        cube = to_numpy(channels)
        found = spectral_basis(cube.reshape(n, cube.shape[1], -1), sigma)
        basis = moved_to(found.basis.astype(np.float32), channels)
        mean = moved_to(found.mean.astype(np.float32), channels)
        offset = namespace(channels).reshape(basis @ mean, (-1, *[1] * (channels.ndim - 1)))
        return cls(mixed(basis, channels) - offset, basis, mean, alike=False)

    def channels(self, planes: Array) -> Array:
        """Return the channels of planes, which are overwritten."""
        if self.basis.shape[1] == 1:
            return planes
        square = self.basis.shape[0] == self.basis.shape[1]
        out = (mixed_in_place if square else mixed)(transpose(self.basis), planes)
        if self.mean is not None:
            out += namespace(out).reshape(self.mean, (-1, *[1] * (out.ndim - 1)))
        return out

    def variances(self, planes: Array) -> Array:
        """Return the variances of channels, from those of planes with independent errors."""
        return mixed(transpose(self.basis) ** 2, planes)


def _principal(channels: Array) -> np.ndarray:
    """Return principal directions of the colours of means of 2×2 pixels, the strongest first."""
    xp = namespace(channels)
    flat = xp.reshape(channels, (channels.shape[0], -1, channels.shape[-1]))
    coarse = to_numpy(halve(flat)).reshape(channels.shape[0], -1).astype(np.float64)
    directions = np.linalg.eigh(np.atleast_2d(np.cov(coarse)))[1].T[::-1]
    # A direction and its negative are the same: most of a direction is positive.
    return np.asarray(directions * np.where(directions.sum(axis=1) < 0, -1, 1)[:, None], np.float32)
