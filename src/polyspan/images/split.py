"""Split the channels of a picture into planes with independent white noise, and back.

Of many channels the subspace that holds the spectra of all pixels is found first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize_scalar

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy, transpose
from polyspan.images.planes import brightness_basis, halve, mixed, mixed_in_place

#: Pictures with more channels than this go to their own subspace; fewer are colours.
MOST_COLOURS = 4
#: Standard deviation of the blur before the subspace is found, in pixels.
BLUR = 0.7
#: A sample's largest eigenvalue may exceed the limit that it has for many bands and pixels.
SLACK = 1.02
#: Pixels whose spectra are held in double precision at once.
CHUNK = 16384


@dataclass(frozen=True)
class Split:
    """Planes with white noise of a picture, and how to get its channels back."""

    planes: Array
    basis: Array
    """(n_planes, n_channels): orthonormal rows."""
    mean: Array | None = None
    """(n_channels, 1, 1): what is added to channels that are made of planes."""
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
            return cls(mixed_in_place(basis, channels), basis)
        cube = to_numpy(channels)
        rows, centre = spectral_basis(cube.reshape(n, cube.shape[1], -1), sigma)
        basis = moved_to(rows.astype(np.float32), channels)
        mean = moved_to(centre.astype(np.float32), channels)[(..., *[None] * (channels.ndim - 1))]
        return cls(mixed(basis, channels) - mixed(basis, mean), basis, mean, alike=False)

    def channels(self, planes: Array) -> Array:
        """Return the channels of planes, which are overwritten."""
        square = self.basis.shape[0] == self.basis.shape[1]
        out = (mixed_in_place if square else mixed)(transpose(self.basis), planes)
        if self.mean is not None:
            out += self.mean
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


def spectral_basis(cube: np.ndarray, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Find the subspace of the spectra of a hyperspectral picture with white noise.

    A slight blur of each band lowers the noise more than the picture; eigenvectors of the
    covariance of the blurred bands are kept where the eigenvalue is above the largest that noise
    alone has (Marchenko and Pastur), at least one.

    Parameters
    ----------
    cube : array of shape (n_bands, height, width)
        float32.
    sigma : float
        Standard deviation of the noise of all bands.

    Returns
    -------
    basis : array of shape (rank, n_bands)
        Orthonormal rows, the strongest first. Planes made by it have white noise of the same
        strength. Denoise each of them as a picture of its own: groups found on the first fit the
        others less well.
    mean : array of shape (n_bands,)
        The mean spectrum.

    Notes
    -----
    Memory beyond the cube: one float32 copy.
    """
    n_bands, height, width = cube.shape
    rows = np.empty((n_bands, height * width), dtype=np.float32)
    mean = np.empty(n_bands)
    for b, band in enumerate(cube):
        mean[b] = band.mean(dtype=np.float64)
        rows[b] = gaussian_filter(band - np.float32(mean[b]), BLUR).ravel()
    values, vectors = np.linalg.eigh(_covariance(rows))
    rank = int((values > sigma**2 * _largest_of_noise(n_bands, height, width)).sum())
    basis = np.ascontiguousarray(vectors[:, ::-1][:, : max(1, rank)].T)
    return basis, mean


def _covariance(rows: np.ndarray) -> np.ndarray:
    """Return the covariance of centred rows in double precision, some pixels at a time."""
    total = np.zeros((len(rows), len(rows)))
    for start in range(0, rows.shape[1], CHUNK):
        some = rows[:, start : start + CHUNK].astype(np.float64)
        total += some @ some.T
    return np.asarray(total / rows.shape[1])


def _largest_of_noise(n_bands: int, height: int, width: int) -> float:
    """Return the largest eigenvalue of the covariance of blurred white noise of variance one.

    It is the least z(m) = -1/m + mean(τ / (1 + γτm)) for -1 < γ·max(τ)·m < 0: τ are the variances
    of the blurred noise in its cosine basis, in which the blur is diagonal, γ is the number of
    bands over the number of pixels. Without a blur it is (1 + √γ)².
    """
    rows, columns = (_response(n) ** 2 for n in (height, width))
    variances = np.outer(rows, columns).ravel()
    if len(variances) > CHUNK:
        variances = np.quantile(variances, (np.arange(CHUNK) + 0.5) / CHUNK)
    ratio, most = n_bands / (height * width), variances.max()

    def place(u: float) -> float:
        m = -u / (ratio * most)
        return float(-1 / m + np.mean(variances / (1 + ratio * variances * m)))

    return SLACK * float(minimize_scalar(place, bounds=(1e-6, 1 - 1e-6), method="bounded").fun)


def _response(n: int) -> np.ndarray:
    """Return how much the blur leaves of n cosines of rising frequency."""
    point = np.zeros(2 * n)
    point[0] = 1.0
    return np.fft.rfft(gaussian_filter(point, BLUR, mode="wrap")).real[:n]
