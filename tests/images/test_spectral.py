"""Hyperspectral pictures: the subspace of the spectra, and back."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter

from polyspan.images import spectral
from polyspan.images.spectral import SpectralSubspace, spectral_basis

SIGMA = 0.1


def cube(n_bands=40, rank=3, size=40, seed=0):
    """Smooth maps times smooth spectra, on top of a mean spectrum."""
    rng = np.random.default_rng(seed)
    maps = gaussian_filter(rng.standard_normal((rank, size, size)), (0, 3, 3))
    maps /= maps.std(axis=(1, 2), keepdims=True)
    spectra = gaussian_filter(rng.standard_normal((n_bands, rank)), (4, 0))
    spectra /= spectra.std()
    level = np.linspace(1, 2, n_bands)[:, None, None]
    return 0.3 * np.tensordot(spectra, maps, axes=1) + level


def noisy_copy(clean, sigma, seed=1):
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + np.reshape(sigma, (-1, 1, 1)) * noise).astype(np.float32)


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_rank_is_found(rank):
    clean = cube(rank=rank)
    subspace = spectral_basis(noisy_copy(clean, SIGMA), SIGMA)
    assert len(subspace.basis) == rank
    assert_allclose(subspace.basis @ subspace.basis.T, np.eye(rank), atol=1e-12)
    kept = subspace.to_cube(subspace.to_planes(clean.astype(np.float32)))
    assert np.mean((kept - clean) ** 2) < 0.01 * SIGMA**2


@pytest.mark.parametrize("n_bands", [5, 30, 200])
@pytest.mark.parametrize("size", [16, 50])
def test_noise_alone_has_one_plane(n_bands, size):
    noise = noisy_copy(np.zeros((n_bands, size, size)), SIGMA)
    assert len(spectral_basis(noise, SIGMA).basis) == 1


def test_the_limit_of_noise_without_a_blur(monkeypatch):
    monkeypatch.setattr(spectral, "BLUR", 1e-3)
    found = spectral._largest_of_noise(100, 40, 30) / spectral.SLACK
    assert_allclose(found, (1 + np.sqrt(100 / 1200)) ** 2, rtol=1e-6)


def test_planes_and_back():
    clean = cube().astype(np.float32)
    subspace = spectral_basis(noisy_copy(clean, SIGMA), SIGMA)
    planes = subspace.to_planes(clean)
    assert planes.shape == (3, 40, 40)
    assert planes.dtype == subspace.to_cube(planes).dtype == np.float32
    assert_allclose(subspace.to_planes(subspace.to_cube(planes)), planes, atol=1e-5)
    spread = planes.std(axis=(1, 2))
    assert (np.diff(spread) < 0).all()


def test_noise_of_the_planes_is_white():
    sigmas = np.linspace(0.05, 0.3, 40)
    clean = cube()
    noisy = noisy_copy(clean, sigmas)
    subspace = spectral_basis(noisy, sigmas)
    assert_allclose(subspace.sigma, np.sqrt(np.mean(sigmas**2)))
    noise = subspace.to_planes(noisy) - subspace.to_planes(clean.astype(np.float32))
    covariance = np.cov(noise.reshape(len(noise), -1)) / subspace.sigma**2
    assert_allclose(covariance, np.eye(len(noise)), atol=0.15)


def test_bands_with_much_noise_count_less():
    sigmas = np.full(40, 0.05)
    sigmas[::4] = 1.0
    clean = cube()
    noisy = noisy_copy(clean, sigmas)
    errors = []
    for told in (sigmas, np.sqrt(np.mean(sigmas**2))):
        subspace = spectral_basis(noisy, told)
        errors.append(np.mean((subspace.to_cube(subspace.to_planes(noisy)) - clean) ** 2))
    assert errors[0] < 0.5 * errors[1]


def test_a_band_without_noise_stays():
    sigmas = np.full(40, SIGMA)
    sigmas[7] = 0.0
    clean = cube()
    noisy = noisy_copy(clean, sigmas)
    subspace = spectral_basis(noisy, sigmas)
    assert_allclose(subspace.to_cube(subspace.to_planes(noisy))[7], clean[7], atol=1e-3)


def test_extremes():
    flat = np.full((6, 16, 16), 0.5, dtype=np.float32)
    subspace = spectral_basis(flat, SIGMA)
    assert isinstance(subspace, SpectralSubspace)
    assert_allclose(subspace.to_cube(subspace.to_planes(flat)), 0.5, atol=1e-6)
    clean = cube(n_bands=6).astype(np.float32)
    exact = spectral_basis(clean, 0.0)
    assert_allclose(exact.to_cube(exact.to_planes(clean)), clean, atol=1e-4)
