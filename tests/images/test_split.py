"""Hyperspectral pictures: the subspace of the spectra, and back."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter

import polyspan.images.split as module
from polyspan.images.split import Split, spectral_basis

SIGMA = 0.1


def there_and_back(cube, sigma):
    """Return planes of a cube, and the cube that is made of them."""
    split = Split.of(cube.astype(np.float32), sigma)
    return split.planes, split.channels(split.planes.copy())


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
    basis, _ = spectral_basis(noisy_copy(clean, SIGMA), SIGMA)
    assert len(basis) == rank
    assert_allclose(basis @ basis.T, np.eye(rank), atol=1e-12)
    centred = clean - clean.mean(axis=(1, 2), keepdims=True)
    kept = np.tensordot(basis.T @ basis, centred, axes=1)
    assert np.mean((kept - centred) ** 2) < 0.01 * SIGMA**2


@pytest.mark.parametrize("n_bands", [5, 30, 200])
@pytest.mark.parametrize("size", [16, 50])
def test_noise_alone_has_one_plane(n_bands, size):
    noise = noisy_copy(np.zeros((n_bands, size, size)), SIGMA)
    assert len(spectral_basis(noise, SIGMA)[0]) == 1


def test_the_limit_of_noise_without_a_blur(monkeypatch):
    monkeypatch.setattr(module, "BLUR", 1e-3)
    found = module._largest_of_noise(100, 40, 30) / module.SLACK
    assert_allclose(found, (1 + np.sqrt(100 / 1200)) ** 2, rtol=1e-6)


def test_planes_and_back():
    planes, again = there_and_back(noisy_copy(cube(), SIGMA), SIGMA)
    assert planes.shape == (3, 40, 40)
    assert planes.dtype == again.dtype == np.float32
    split = Split.of(again, SIGMA)
    assert_allclose(split.channels(split.planes.copy()), again, atol=1e-4)
    assert (np.diff(planes.std(axis=(1, 2))) < 0).all()
    assert np.mean((again - cube()) ** 2) < 0.2 * SIGMA**2


def test_noise_of_the_planes_is_white():
    noise = noisy_copy(np.zeros((40, 60, 60)), SIGMA)
    basis = spectral_basis(noisy_copy(cube(size=60), SIGMA, 2), SIGMA)[0]
    planes = np.tensordot(basis, noise, axes=1).reshape(len(basis), -1)
    assert_allclose(np.cov(planes) / SIGMA**2, np.eye(len(basis)), atol=0.15)


def test_extremes():
    flat = np.full((6, 16, 16), 0.5)
    assert_allclose(there_and_back(flat, SIGMA)[1], 0.5, atol=1e-6)
    clean = cube(n_bands=6)
    assert_allclose(there_and_back(clean, 0.0)[1], clean, atol=1e-4)
