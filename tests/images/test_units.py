"""Units that are mistaken: pictures that would come out black or gray are refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import to_numpy
from polyspan.images import denoise_image, estimate_noise, inpaint_image
from support import noisy_picture, psnr

SIGMA = 25 / 255
CLEAN, NOISY = noisy_picture(SIGMA, (40, 44))
LEVELS = np.rint(255 * NOISY).clip(0, 255)
MASK = np.random.default_rng(0).random(CLEAN.shape) < 0.2
WIDE = ["int16", "int32", "int64", "uint32", "uint64"]


def fast(image, sigma=None, **options):
    return denoise_image(image, sigma, "fast", **options)


@pytest.mark.parametrize("dtype", WIDE)
def test_levels_in_wide_integers_are_refused(dtype):
    image = LEVELS.astype(dtype)
    wanted = rf"type {dtype} and values from {image.min()} to 255.*image.astype\(np.uint8\)"
    for call in (
        lambda: fast(image),
        lambda: fast([image, image], SIGMA),
        lambda: fast(np.dstack([image] * 3), channel_axis=-1),
        lambda: denoise_image(np.stack([image] * 3), SIGMA, stack_axis=0),
        lambda: denoise_image(image, noise="correlated"),
        lambda: estimate_noise(image),
        lambda: inpaint_image(image, MASK, "fast"),
        lambda: inpaint_image(np.where(MASK, np.iinfo(dtype).max, image), MASK, "fast"),
    ):
        with pytest.raises(ValueError, match=wanted):
            call()


def test_the_conversions_that_the_message_names():
    for image, way in (
        (LEVELS.astype(int), "uint8"),
        (257 * LEVELS.astype(int), "uint16"),
        (LEVELS.astype("int16") - 20, "float32"),
        (LEVELS.astype("int64") + 2**30, "float64"),
    ):
        with pytest.raises(ValueError, match=rf"black; give image.astype\(np.{way}\)"):
            fast(image)
        converted = image.astype(way)
        assert np.isfinite(fast(converted)).all()
        assert (way == "float64") == (image.max() > 2**24)
        assert_array_equal(converted, image)
    assert psnr(fast(LEVELS.astype("uint8"), SIGMA), CLEAN) > psnr(NOISY, CLEAN) + 4
    kept = fast(LEVELS.astype("int64").astype("float32"), 25.0)
    assert psnr(kept / 255, CLEAN) > psnr(NOISY, CLEAN) + 4


def test_integers_that_are_used_are_not_refused():
    """Dark pictures in the types of files, wide types that are filled, black, and counts."""
    dark = np.rint(100 * NOISY).clip(0)
    for image in (dark.astype("uint16"), (dark / 50).astype("uint8"), (dark * 100).astype("int16")):
        assert fast(image).max() > 0
    assert fast((dark * 2**24).astype("int32")).max() > 0.5
    assert_array_equal(fast(np.zeros((20, 20), int)), 0)
    counts = np.random.default_rng(0).poisson(20 * CLEAN + 3)
    assert counts.dtype.kind == "i"
    assert fast(counts, noise="poisson").max() > 10


def test_tensors_of_wide_integers_are_refused(place):
    with pytest.raises(ValueError, match=r"type int64 and values from .*uint8\)? if 255"):
        fast(place.asarray(LEVELS.astype("int64")))


@pytest.mark.parametrize(("dtype", "most"), [("uint8", 255), ("uint16", 65535)])
def test_noise_in_levels_of_integers_is_refused(dtype, most):
    image = (LEVELS * (most // 255)).astype(dtype)
    for sigma in (25 * (most // 255), 25.0 * (most // 255), np.float32(2), 1):
        with pytest.raises(ValueError, match=f"type {dtype}: .*give sigma / {most}, here"):
            fast(image, sigma)
    assert psnr(fast(image, 25 * (most // 255) / most), CLEAN) > psnr(NOISY, CLEAN) + 4


FRACTIONS = {
    "unclipped": NOISY,
    "clipped": NOISY.clip(0, 1),
    "float32": NOISY.astype(np.float32),
    "around 0": 2 * NOISY.clip(0, 1) - 1,
    "strong noise": noisy_picture(0.4)[1],
    "two values": NOISY > 0.5,
    "offset": NOISY + 1000,
}


@pytest.mark.parametrize("name", FRACTIONS)
def test_noise_in_levels_of_fractions_is_refused(name):
    image = FRACTIONS[name]
    level = 102 if name == "strong noise" else 25
    for sigma in (level, np.full(image.shape, level), np.where(image > image.mean(), 5.0, level)):
        with pytest.raises(ValueError, match=r"lie between .* give sigma / 255, here 0\.[0-9]"):
            fast(image, sigma)


def test_noise_in_levels_of_colours_volumes_and_lists_is_refused():
    colours = np.dstack([NOISY] * 3)
    for image, sigma, options in (
        (colours, [25, 20, 30], {"channel_axis": -1}),
        (colours, np.full(colours.shape, 25), {"channel_axis": -1}),
        (np.stack([NOISY] * 3), 25, {"stack_axis": 0}),
        ([255 * NOISY, NOISY], 25, {}),
    ):
        with pytest.raises(ValueError, match="give sigma / 255, here 0"):
            fast(image, sigma, **options)


def test_tensors_with_noise_in_levels_are_refused(place):
    with pytest.raises(ValueError, match="give sigma / 255, here 0"):
        fast(place.asarray(NOISY), 25)
    with pytest.raises(ValueError, match="give sigma / 255, here 0"):
        fast(place.asarray(NOISY), place.asarray(np.full(NOISY.shape, 25.0)))


def test_noise_that_is_possible_is_not_refused():
    """Floats in any unit, dark frames, constant pictures, pixels whose noise is huge."""
    wanted = fast(NOISY, SIGMA)
    assert_allclose(fast(255 * NOISY, 25) / 255, wanted, atol=1e-3)
    assert_allclose(fast(10 * NOISY, 10 * SIGMA) / 10, wanted, atol=1e-4)
    assert np.isfinite(fast(5.0 * (CLEAN > 0.5), 25)).all()
    assert_allclose(fast(np.full((20, 20), 0.5), 25), 0.5)
    assert fast(CLEAN * 4 + np.random.default_rng(0).standard_normal(CLEAN.shape), 1.0).std() > 0
    dead = np.where(MASK, 1e3, SIGMA)
    assert psnr(fast(NOISY, dead), CLEAN) > psnr(NOISY, CLEAN)
    assert np.isfinite(fast(NOISY, 0.99)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gain": 1.0}, "gain=1 .* give gain / 255, here 0.0039"),
        ({"gain": 4.0, "offset": 0.0, "read_noise": 0.0}, "give gain / 255"),
        ({"gain": 0.01, "read_noise": 5.0}, "read_noise=5 .* give read_noise / 255, here 0.0196"),
        ({"gain": 0.01, "offset": 10.0}, "offset=10 .* give offset / 255"),
    ],
)
def test_counts_in_levels_of_fractions_are_refused(options, message):
    image = np.random.default_rng(0).poisson(100 * CLEAN + 5) / 100
    with pytest.raises(ValueError, match=message):
        fast(image, noise="poisson", **options)


def test_counts_that_are_possible_are_not_refused():
    found = fast(
        np.random.default_rng(0).poisson(100 * CLEAN + 5) / 100, noise="poisson", gain=0.01
    )
    assert 0.1 < found.min() < found.max() < 1.5
    for few in (np.float64(MASK), np.int64(MASK), np.uint8(MASK)):  # no more than one in a pixel
        assert fast(few, noise="poisson", gain=1.0).max() < 1
    photons = np.random.default_rng(0).poisson(30 * CLEAN + 5) * 2.5 + 100
    assert fast(photons, noise="poisson", gain=2.5, offset=100.0).max() > 110


def test_masked_arrays():
    image = np.ma.masked_array(NOISY, MASK)
    wanted = inpaint_image(NOISY, MASK, "fast")
    assert_array_equal(inpaint_image(image.data, np.ma.getmaskarray(image), "fast"), wanted)
    for call in (
        fast,
        estimate_noise,
        lambda one: inpaint_image(one, MASK),
        lambda one: fast([one]),
    ):
        with pytest.raises(ValueError, match=r"inpaint_image\(image.data, np.ma.getmaskarray"):
            call(image)
    plain = np.ma.masked_array(NOISY)  # nothing is masked
    assert_array_equal(fast(plain, SIGMA), fast(NOISY, SIGMA))
    with pytest.raises(ValueError, match="sigma is a masked array"):
        fast(NOISY, np.ma.masked_array(np.full(NOISY.shape, 0.1), MASK))
    with pytest.raises(ValueError, match="the mask is a masked array"):
        inpaint_image(NOISY, np.ma.masked_array(MASK, MASK))


@pytest.mark.parametrize("dtype", ["complex128", "M8[s]", "m8[s]", "object", "U4"])
def test_values_that_are_no_numbers(dtype):
    for call in (fast, estimate_noise, lambda one: inpaint_image(one, MASK)):
        with pytest.raises(TypeError, match=r"the image has values of the type .*: need real"):
            call(LEVELS.astype(int).astype(dtype))


def test_long_floats():
    assert_allclose(
        to_numpy(fast(NOISY.astype(np.longdouble), SIGMA)), fast(NOISY, SIGMA), atol=1e-6
    )


ALPHA = [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1.0), (np.float64, 255.0)]


@pytest.mark.parametrize(("kind", "opaque"), ALPHA)
@pytest.mark.parametrize("n_colours", [1, 3])
def test_an_opaque_channel_is_no_colour(kind, opaque, n_colours):
    colours = (opaque * np.random.default_rng(0).random((20, 20, n_colours))).astype(kind)
    picture = np.concatenate([colours, np.full((20, 20, 1), opaque, dtype=kind)], axis=-1)
    for call in (denoise_image, estimate_noise):
        with pytest.raises(ValueError, match=f"the last of {n_colours + 1} channels is .*alpha"):
            call(picture, channel_axis=-1)
        call(picture[..., :-1], channel_axis=-1)
    with pytest.raises(ValueError, match="put it back afterwards"):
        inpaint_image(np.moveaxis(picture, -1, 0), np.eye(20), "fast", 0)


def test_a_fourth_channel_that_is_not_the_same_everywhere_may_be_a_colour():
    picture = np.random.default_rng(0).random((20, 20, 4))
    picture[..., -1] = np.rint(picture[..., -1])
    assert denoise_image(picture, preset="fast", channel_axis=-1).shape == picture.shape
