"""The estimate of the noise: textures, saturated pixels, channels and small pictures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_sample_image

from polyspan.images import estimate_noise
from polyspan.images.noise import saturated, trimmed_mean

PHOTO = load_sample_image("china.jpg") / 255.0
GRAY = PHOTO[:256, :256].mean(axis=2)
RNG = np.random.default_rng(0)
UNIT = RNG.standard_normal(GRAY.shape)


@pytest.mark.parametrize("sigma", [0.04, 0.1, 0.2])
def test_a_photograph(sigma):
    assert estimate_noise(GRAY + sigma * UNIT) == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("side", [16, 31, 32, 64])
def test_small_pictures(side):
    ramp = np.linspace(0, 1, side) * np.ones((side, 1))
    found = [
        estimate_noise(ramp + 0.1 * np.random.default_rng(seed).standard_normal(ramp.shape))
        for seed in range(8)
    ]
    assert np.mean(found) == pytest.approx(0.1, rel=0.12)


@pytest.mark.parametrize("shape", [(16, 16), (17, 30), (20, 300)])
def test_constant_pictures_have_no_noise(shape):
    assert estimate_noise(np.full(shape, 0.3)) == 0
    assert estimate_noise(np.full(shape, 77, dtype=np.uint8)) == 0


def test_a_few_smooth_patches_are_enough():
    """Stripes in all but one tenth of the picture."""
    i, j = np.indices((200, 200))
    picture = np.where(j < 180, 0.5 + 0.3 * np.sin(1.1 * i + 0.7 * j), 0.5)
    noisy = picture + 0.05 * RNG.standard_normal(picture.shape)
    assert estimate_noise(noisy) == pytest.approx(0.05, rel=0.05)


def test_saturated_pixels_are_left_out():
    """Half of the picture is clipped: without noise, it would be the flattest part."""
    picture = np.where(np.arange(256) < 128, 1.3, 0.5) * np.ones((256, 1))
    clipped = np.clip(picture + 0.05 * UNIT, 0, 1)
    assert estimate_noise(clipped) == pytest.approx(0.05, rel=0.05)
    in_colour = np.stack([clipped, 0.5 + 0.05 * RNG.standard_normal(clipped.shape)], axis=-1)
    assert estimate_noise(in_colour, -1) == pytest.approx(0.05, rel=0.05)
    assert_allclose(estimate_noise(in_colour, -1, per_channel=True), 0.05, rtol=0.05)


def test_which_pixels_are_saturated():
    assert not saturated(UNIT).any()
    clipped = np.clip(UNIT, -1, 1.5)
    assert np.array_equal(saturated(clipped), (clipped == -1) | (clipped == 1.5))
    assert np.array_equal(saturated(clipped, dark=False), clipped == 1.5)


def test_two_values_are_no_noise():
    """All pixels are extreme, so that none can be left out."""
    board = np.indices((64, 64)).sum(axis=0) % 16 < 8
    assert estimate_noise(board) < 0.01


def test_each_channel_has_its_own_noise():
    sigmas = np.array([0.03, 0.08, 0.15])
    clean = PHOTO[:200, :240]
    noisy = clean + sigmas * np.random.default_rng(1).standard_normal(clean.shape)
    assert_allclose(estimate_noise(noisy, -1, per_channel=True), sigmas, rtol=0.1)
    first = np.moveaxis(noisy, -1, 0)
    assert_allclose(estimate_noise(1e20 * first, 0, per_channel=True), 1e20 * sigmas, rtol=0.1)
    assert estimate_noise(noisy[..., 1], per_channel=True).shape == (1,)
    assert isinstance(estimate_noise(noisy, -1), float)


def test_large_pictures_are_sampled(monkeypatch):
    whole = estimate_noise(GRAY + 0.1 * UNIT)
    monkeypatch.setattr("polyspan.images.noise.MOST_PATCHES", 10000)
    monkeypatch.setattr("polyspan.images.noise.SOME_PATCHES", 10000)
    part = estimate_noise(GRAY + 0.1 * UNIT)
    assert part != whole
    assert part == pytest.approx(whole, rel=0.05)


def test_the_mean_without_large_values():
    assert trimmed_mean(np.array([5.0, 1.0, 1.0, 9.0])) == 1.0
    assert trimmed_mean(np.array([2.0, 2.0, 2.0])) == 2.0
    assert trimmed_mean(np.array([1.0, 3.0, 20.0])) == 2.0
    assert trimmed_mean(np.array([4.0])) == 4.0


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="'per_channel' parameter of estimate_noise"):
        estimate_noise(GRAY, per_channel="yes")
