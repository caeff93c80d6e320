"""Pictures whose colours hold less noise than their brightness, as most JPEGs do."""

import io
import warnings

import numpy as np
import pytest
from PIL import Image

from polyspan.images import denoise_image, estimate_noise
from polyspan.images.noise import are_halved, are_smoothed, channels_noise, planes_noise

Y, X = np.mgrid[:120, :136]
SMOOTH = 128 + 50 * np.sin(X / 25) * np.cos(Y / 31) + 25 * (X > 70)
COLOUR = np.dstack([SMOOTH, SMOOTH[::-1], 255 - SMOOTH])
TEXTURE = np.dstack([SMOOTH + 20 * np.sin(X * Y / 90)] * 3)


def levels(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def noisy(clean, sigma, seed=1):
    return clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape)


def after_jpeg(values, quality, subsampling):
    content = io.BytesIO()
    Image.fromarray(levels(values)).save(content, "JPEG", quality=quality, subsampling=subsampling)
    return np.asarray(Image.open(content))


def denoised(picture, sigma=None):
    return denoise_image(picture, sigma, "fast", -1)


def old_level(picture):
    """The level of a colour picture that knows nothing of smoothed colours."""
    channels = np.moveaxis(picture.astype(np.float32), -1, 0)
    return float(np.median(planes_noise(channels)))


@pytest.mark.parametrize("subsampling", [1, 2])
@pytest.mark.parametrize(("sigma", "quality"), [(20, 75), (20, 90), (10, 90), (10, 95)])
def test_noise_is_found_where_colours_are_halved(sigma, quality, subsampling):
    picture = after_jpeg(noisy(COLOUR, sigma), quality, subsampling)
    assert old_level(picture) < 0.1 * sigma
    # Brightness of a JPEG weighs green most: its noise is 1.16 times that of equal weights.
    assert 0.9 * sigma < 255 * estimate_noise(picture, -1) < 1.5 * sigma


def test_a_jpeg_with_halved_colours_is_denoised():
    picture = after_jpeg(noisy(COLOUR, 20), 90, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, std = denoise_image(picture, None, "fast", -1, return_std=True)
    before, after = (np.sqrt(np.mean((one - COLOUR) ** 2)) for one in (picture, 255 * found))
    assert after < 0.4 * before
    # Of half a level before; this smooth picture is easier than photographs.
    assert 0.7 < 255 * np.sqrt(np.mean(std**2)) / after < 3
    np.testing.assert_array_equal(found, denoised(picture, estimate_noise(picture, -1)))


def test_a_gray_picture_that_is_stored_as_colours():
    gray = noisy(SMOOTH, 15)
    picture = np.dstack([gray] * 3)
    assert estimate_noise(picture, -1) == pytest.approx(3**0.5 * estimate_noise(gray), rel=1e-3)
    found = denoised(picture)
    assert np.abs(found - COLOUR[..., :1]).mean() < 0.3 * np.abs(picture - COLOUR[..., :1]).mean()


@pytest.mark.parametrize("clean", [COLOUR, TEXTURE])
@pytest.mark.parametrize("sigma", [1, 3, 10, 40, (5, 25, 10), (30, 2, 2)])
def test_the_level_is_the_old_one_where_colours_are_whole(clean, sigma):
    picture = levels(noisy(clean, sigma))
    assert estimate_noise(picture, -1) == pytest.approx(old_level(picture) / 255, rel=1e-5)


def test_the_result_is_the_old_one_where_colours_are_whole():
    picture = levels(noisy(TEXTURE, 12))
    channels = np.moveaxis(picture.astype(np.float32), -1, 0)
    assert not are_smoothed(channels, planes_noise(channels), channels_noise(channels))
    expected = denoised(picture, old_level(picture) / 255)
    np.testing.assert_allclose(denoised(picture), expected, rtol=1e-5)


def test_a_warning_where_colours_are_smooth_but_not_halved():
    # As of texture without colour: nothing tells whether it is noise.
    picture = noisy(noisy(SMOOTH, 12)[..., None] * np.ones(3), 0.5, seed=2)
    with pytest.warns(UserWarning, match=r"little is removed; give sigma"):
        found = denoised(picture)
    np.testing.assert_allclose(found, denoised(picture, old_level(picture)), rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        denoised(picture, 12.0)


@pytest.mark.parametrize("shift", [0, 1])
def test_halved_colours_have_a_period_of_two(shift):
    channels = np.moveaxis(after_jpeg(noisy(COLOUR, 15), 90, 2), -1, 0)[:, shift:, shift:]
    assert are_halved(channels)
    assert not are_halved(np.moveaxis(levels(noisy(COLOUR, 15)), -1, 0)[:, shift:, shift:])
    assert not are_halved(np.moveaxis(after_jpeg(noisy(COLOUR, 15), 95, 0), -1, 0))
