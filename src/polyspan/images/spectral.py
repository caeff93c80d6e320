"""Hyperspectral pictures: the subspace that holds the spectra of all pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize_scalar

#: Pictures with more channels than this go to their own subspace; fewer are colours.
MOST_COLOURS = 4
#: Standard deviation of the blur before the subspace is found, in pixels.
BLUR = 0.7
#: A sample's largest eigenvalue may exceed the limit that it has for many bands and pixels.
SLACK = 1.02
#: Pixels whose spectra are held in double precision at once.
CHUNK = 16384


class SpectralSubspace(NamedTuple):
    """An orthonormal basis of the spectra of a picture, around their mean."""

    basis: np.ndarray
    """(rank, n_bands), orthonormal rows, the strongest first."""
    mean: np.ndarray
    """(n_bands,), the mean spectrum."""


def spectral_basis(cube: np.ndarray, sigma: float) -> SpectralSubspace:
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
    subspace : SpectralSubspace
        Planes made by it have white noise of the same strength. Denoise each of them as a picture
        of its own: groups found on the first fit the others less well.

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
    return SpectralSubspace(basis, mean)


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
    reach = int(np.ceil(8 * BLUR))
    point = np.zeros(2 * reach + 1)
    point[reach] = 1.0
    kernel = gaussian_filter(point, BLUR, mode="constant")
    angles = np.pi * np.outer(np.arange(n) / n, np.arange(-reach, reach + 1))
    return np.asarray(np.cos(angles) @ kernel)
