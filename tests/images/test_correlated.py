"""Noise that is correlated from pixel to pixel: recognised, measured and removed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter, zoom
from sklearn.datasets import load_sample_image

from polyspan.images import denoise_image
from polyspan.images.correlated import (
    REACH,
    denoise_correlated,
    is_correlated,
    is_soft,
    noise_autocovariance,
    noise_like,
    whitener,
)

GRAY = load_sample_image("china.jpg")[:200, :240].mean(axis=2).astype(np.float32) / 255
FLOWER = load_sample_image("flower.jpg").mean(axis=2).astype(np.float32) / 255
WHITE = np.random.default_rng(0).standard_normal(GRAY.shape).astype(np.float32)


def blurred(width, shape=GRAY.shape, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), width)
    return (noise / noise.std()).astype(np.float32)


@pytest.mark.parametrize("sigma", [10, 25, 50])
def test_correlated_noise_is_recognised(sigma):
    sigma = np.float32(sigma / 255)
    assert not is_correlated(GRAY + sigma * WHITE)
    for width in (0.7, 1.2):
        assert is_correlated(GRAY + sigma * blurred(width))
    enlarged = zoom(WHITE[:100, :120], 2, order=1)
    assert is_correlated(GRAY + sigma * enlarged)


@pytest.mark.parametrize("width", [0.8, 1.0, 1.5])
def test_soft_noise_is_told(width):
    """White noise is estimated as less than two levels here."""
    for clean in (GRAY[40:], FLOWER[60:220, 150:310]):
        noisy = clean + np.float32(15 / 255) * blurred(width, clean.shape)
        assert is_soft(noisy)
        with pytest.warns(UserWarning, match="correlated from pixel to pixel"):
            denoise_image(noisy, preset="fast")


ROWS, COLUMNS = np.indices((120, 120)).astype(np.float32)
HARD = {
    "photograph": FLOWER[60:220, 150:310],
    "white noise": GRAY + np.float32(0.1) * WHITE,
    "noise alone": WHITE,
    "constant": np.full((120, 120), 0.3, dtype=np.float32),
    "ramp": ROWS / 120,
    "waves": np.sin(ROWS) * np.sin(0.7 * COLUMNS),
    "board": (ROWS // 5 + COLUMNS // 5) % 2,
    "small": blurred(1.0, (95, 120)),
}


@pytest.mark.parametrize("kind", list(HARD))
def test_what_is_no_soft_noise(kind):
    assert not is_soft(HARD[kind])


def test_soft_noise_in_a_picture_with_white_parts():
    flat = np.where(np.arange(240) < 100, 1.3, 0.5).astype(np.float32)
    assert is_soft(np.clip(flat + 0.05 * blurred(1.0), 0, 1))


def test_white_noise_in_small_pictures_is_white():
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal((96, 96)).astype(np.float32)
        assert not is_correlated(noise)
        assert is_correlated(gaussian_filter(noise, 0.7))
        assert not is_correlated(gaussian_filter(noise[:64], 0.7))  # too small to tell


@pytest.mark.parametrize("shape", [(16, 16), (12, 40), (20, 20)])
def test_small_and_constant_pictures(shape):
    assert not is_correlated(np.full(shape, 0.3, dtype=np.float32))
    assert noise_autocovariance(WHITE[: shape[0], : shape[1]]).shape == (19, 19)


def test_saturated_pixels_are_left_out():
    flat = np.where(np.arange(240) < 100, 1.3, 0.5).astype(np.float32)
    clipped = np.clip(flat + 0.05 * WHITE, 0, 1)
    assert noise_autocovariance(clipped)[REACH, REACH] == pytest.approx(0.05**2, rel=0.1)


@pytest.mark.parametrize("width", [0.7, 1.2])
def test_the_autocovariance_of_blurred_noise(width):
    found = noise_autocovariance(2 * blurred(width, (400, 400)))
    lags = np.arange(-REACH, REACH + 1)
    # White noise blurred by a Gaussian has a Gaussian autocovariance of √2 times the width.
    line = np.exp(-(lags**2) / (4 * width**2))
    assert_allclose(found, 4 * np.outer(line, line), atol=0.7)
    assert_allclose(found[REACH] / found[REACH, REACH], line, atol=0.15)
    assert_allclose(found, found[::-1, ::-1], atol=1e-12)


def test_covariances_of_patches_are_positive_and_whiten():
    autocovariance = noise_autocovariance(GRAY + 0.1 * blurred(1.2))
    for side in (6, 8, 10):
        root = whitener(autocovariance, side)[1]
        assert_allclose(root, root.T, atol=1e-6)
        assert np.linalg.eigvalsh(root).min() > 0
    noise = 0.1 * blurred(0.7, (300, 300))
    forth, back = whitener(noise_autocovariance(noise), 6)
    assert_allclose(forth @ back, np.eye(36), atol=1e-3)
    patches = np.lib.stride_tricks.sliding_window_view(noise, (6, 6)).reshape(-1, 36) @ forth
    assert_allclose(np.cov(patches.T), np.eye(36), atol=0.25)


def test_by_hand():
    autocovariance = np.zeros((3, 3))
    autocovariance[1, 1], autocovariance[1, [0, 2]] = 4.0, 1.0
    expected = [[4, 1, 0, 0], [1, 4, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]]
    root = whitener(autocovariance, 2)[1]
    assert_allclose(root @ root, expected, rtol=1e-5, atol=1e-5)


def test_noise_with_a_given_autocovariance():
    wanted = noise_autocovariance(blurred(1.0, (400, 400)))
    noise = noise_like(wanted, (400, 300), np.random.RandomState(0))
    assert noise.shape == (400, 300)
    for i, j in ((0, 0), (0, 1), (1, 0), (2, 1), (3, 3), (0, 6)):
        products = noise[: 400 - i, : 300 - j] * noise[i:, j:]
        assert products.mean() == pytest.approx(wanted[REACH + i, REACH + j], abs=0.05)
    # Opposite edges are independent.
    assert abs((noise[:, 0] * noise[:, -1]).mean()) < 0.3
    assert noise_like(wanted, (8, 5), np.random.RandomState(0)).shape == (8, 5)


@pytest.mark.parametrize("width", [0.7, 1.0, 1.5])
def test_expected_errors(width):
    for clean in (GRAY[40:136, 60:156], FLOWER[100:196, 200:296]):
        noisy = clean + np.float32(15 / 255) * blurred(width, clean.shape, 1)
        found, std = denoise_image(noisy, noise="correlated", return_std=True)
        assert 0.5 < np.mean((found - clean) ** 2) / np.mean(std**2) < 2


def test_correlated_noise_is_removed_better_than_as_white_noise():
    clean = GRAY[40:136, 60:156]
    noisy = clean + np.float32(15 / 255) * blurred(1.0, clean.shape, 1)
    found = denoise_correlated(
        noisy[None], noise_autocovariance(noisy)[None], 15.0, np.random.RandomState(0)
    )[0]
    white = denoise_image(noisy, 15 / 255)
    assert np.mean((found - clean) ** 2) < 0.8 * np.mean((white - clean) ** 2)


def test_any_number_of_threads_and_planes():
    noisy = np.stack([GRAY[:40, :48], GRAY[60:100, :48]]) + 0.1 * blurred(1.0, (2, 40, 48))
    each = np.stack([noise_autocovariance(plane) for plane in noisy])
    one, two = (
        denoise_correlated(noisy, each, 25.0, np.random.RandomState(0), n_jobs) for n_jobs in (1, 2)
    )
    assert np.array_equal(one, two)
    assert one.shape == noisy.shape
    assert np.isfinite(one).all()
