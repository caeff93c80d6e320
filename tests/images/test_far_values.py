"""Values far from 0, pixels without noise, and counts below 0."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.images import denoise_image, estimate_noise, inpaint_image
from support import made_picture

CLEAN = made_picture(48, 56)
RNG = np.random.default_rng(0)
NOISY = CLEAN + 0.1 * RNG.standard_normal(CLEAN.shape)


@pytest.mark.parametrize("offset", [1e5, -1e8])
def test_an_offset_changes_nothing(offset):
    wanted = denoise_image(NOISY, 0.1, "fast")
    found = denoise_image(NOISY + offset, 0.1, "fast") - offset
    assert_allclose(found, wanted, atol=1e-4 if abs(offset) < 1e6 else 1e-3)
    assert estimate_noise(NOISY + offset) == pytest.approx(estimate_noise(NOISY), rel=1e-3)
    mask = RNG.random(CLEAN.shape) < 0.2
    wanted = inpaint_image(CLEAN, mask, "fast")
    holes = np.where(mask, np.nan, CLEAN + offset)
    found = inpaint_image(holes, mask, "fast")
    assert_array_equal(found[~mask], holes[~mask])
    assert_allclose(found - offset, wanted, atol=1e-3)


def test_colours_with_an_offset():
    colours = np.stack([NOISY, NOISY + 0.1, NOISY * 0.5], axis=-1)
    wanted = denoise_image(colours, 0.1, "fast", -1)
    assert_allclose(denoise_image(colours + 1e6, 0.1, "fast", -1) - 1e6, wanted, atol=1e-4)
    mask = RNG.random(colours.shape) < 0.2
    found = inpaint_image(np.where(mask, 0, colours + 1e6), mask, "fast", -1)
    assert_allclose(found - 1e6, inpaint_image(colours, mask, "fast", -1), atol=1e-3)


def test_pixels_without_noise_stay_to_the_last_digit():
    assert_array_equal(denoise_image(NOISY, 0), NOISY)
    sigma = np.where(RNG.random(CLEAN.shape) < 0.3, 0.0, 0.1)
    found = denoise_image(NOISY, sigma, "fast")
    assert_array_equal(found[sigma == 0], NOISY[sigma == 0])
    assert not np.array_equal(found[sigma > 0], NOISY[sigma > 0])
    colours = (255 * RNG.random((20, 24, 3))).astype(np.uint8)
    found = denoise_image(colours, [0.1, 0.0, 0.1], "fast", channel_axis=-1)
    assert_array_equal(found[..., 1], colours[..., 1] / 255)


def test_counts_from_which_a_background_was_taken():
    rate = 60 + 50 * CLEAN
    counts = RNG.poisson(rate)
    wanted = np.sqrt(np.mean((denoise_image(counts, None, "fast", noise="poisson") - rate) ** 2))
    found = denoise_image(counts - 100, None, "fast", noise="poisson") + 100
    assert np.sqrt(np.mean((found - rate) ** 2)) < 1.5 * wanted


def test_the_noise_of_reading_out_is_found_with_gain_and_offset_known():
    rate = 60 + 50 * CLEAN
    noisy = RNG.poisson(rate) + 20 * RNG.standard_normal(rate.shape)
    found = denoise_image(noisy, None, "fast", noise="poisson", gain=1.0, offset=0.0)
    assert np.mean((found - rate) ** 2) < 0.25 * np.mean((noisy - rate) ** 2)


def test_too_small_to_estimate_noise():
    with pytest.raises(
        ValueError, match="4 rows and 30 columns: estimates of the noise need at least 16"
    ):
        estimate_noise(NOISY[:4, :30])


def test_no_threads():
    with pytest.raises(ValueError, match="n_jobs=0"):
        inpaint_image(CLEAN, CLEAN > 2, n_jobs=0)
