"""Values far from 0, pixels without noise, and counts below 0."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import to_numpy
from polyspan.images import denoise_image, estimate_noise, inpaint_image
from support import made_picture, require_torch

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


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integers_with_an_offset(dtype):
    # Results hold 64 bits to 10 of them: the picture is in the upper ones.
    step = 2**40 if dtype.endswith("64") else 1
    unit, offset = np.iinfo(dtype).max / step, 10**9 if step == 1 else 2**22
    whole = np.rint(1000 * NOISY).astype(np.int64)
    image = ((whole + offset) * step).astype(dtype)
    wanted = denoise_image(whole / 1000, 0.1, "fast")
    found = (denoise_image(image, 100 / unit, "fast") * unit - offset) / 1000
    assert_allclose(found, wanted, atol=1e-3)
    assert estimate_noise(image) * unit == pytest.approx(1000 * estimate_noise(NOISY), rel=1e-2)
    mask = RNG.random(CLEAN.shape) < 0.2
    filled = inpaint_image(np.where(mask, 0, whole / 1000), mask, "fast")
    found = inpaint_image(np.where(mask, 0, image), mask, "fast")
    assert_allclose((found * unit - offset) / 1000, filled, atol=1e-3)


def test_short_floats_with_an_offset():
    """Their values are rounded; what is done with them is what float64 has done with it."""
    image = (NOISY + 1e4).astype(np.float32)
    wanted = denoise_image(image.astype(np.float64), 0.1, "fast")
    found = denoise_image(image, 0.1, "fast")
    assert found.dtype == np.float32
    assert_allclose(found, wanted, atol=1e-3)  # the last digit of float32 near 1e4
    assert estimate_noise(image) == pytest.approx(estimate_noise(image.astype(float)), rel=1e-3)
    mask = RNG.random(CLEAN.shape) < 0.2
    filled = inpaint_image(image, mask, "fast")
    assert filled.dtype == np.float32
    assert_allclose(filled, inpaint_image(image.astype(float), mask, "fast"), atol=1e-3)


def test_tensors_with_an_offset(place):
    for image in (NOISY + 1e6, (NOISY + 1e4).astype(np.float32), np.int32(NOISY * 99) + 10**8):
        sigma = 0.1 if image.dtype.kind == "f" else 10 / np.iinfo(image.dtype).max
        found = denoise_image(place.asarray(image), sigma, "fast")
        assert_allclose(to_numpy(found), denoise_image(image, sigma, "fast"), rtol=1e-7)


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


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">u2"])
def test_the_order_of_bytes_does_not_matter(dtype):
    image = (1000 * NOISY).clip(0).astype(dtype)
    native = image.astype(image.dtype.newbyteorder("="))
    mask = RNG.random(CLEAN.shape) < 0.2
    for found, wanted in (
        (denoise_image(image, preset="fast"), denoise_image(native, preset="fast")),
        (inpaint_image(image, mask, "fast"), inpaint_image(native, mask, "fast")),
        (denoise_image(image, noise="poisson"), denoise_image(native, noise="poisson")),
    ):
        assert found.dtype == wanted.dtype
        assert found.dtype.isnative
        assert_array_equal(found, wanted)


def test_tensors_that_record_gradients():
    torch = require_torch()
    image = torch.tensor(NOISY, requires_grad=True)
    sigma = torch.tensor(0.1, requires_grad=True)
    for options in ({"sigma": 0.1}, {"sigma": sigma}, {}, {"sigma": 0.1, "model": "own"}):
        found, _ = denoise_image(image, preset="fast", return_std=True, **options)
        assert not found.requires_grad
        plain = {key: float(one) if key == "sigma" else one for key, one in options.items()}
        assert_allclose(found, denoise_image(NOISY, preset="fast", **plain), atol=1e-5)
    assert estimate_noise(image) == pytest.approx(estimate_noise(NOISY))


def test_errors_cannot_be_had_without_the_shipped_file(monkeypatch):
    monkeypatch.setattr("polyspan.images.job.learned", lambda: None)
    monkeypatch.setattr("polyspan.images.job._with_map", lambda *_: pytest.fail("work was done"))
    for options in ({}, {"model": "own"}, {"noise": "correlated"}):
        with pytest.raises(ValueError, match=r"return_std=True needs the file learned\.npz"):
            denoise_image(NOISY, return_std=True, **options)


def test_pictures_that_are_masked_are_refused():
    for dtype in (np.int32, np.float32, np.float64):  # of integers far from 0 too
        image = np.ma.masked_array((1e6 + 99 * CLEAN).astype(dtype), np.ones(CLEAN.shape, bool))
        with pytest.raises(ValueError, match="the image is a masked array"):
            denoise_image(image)
