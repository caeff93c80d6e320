"""Inpainting: better than smooth interpolation, for every kind of picture and mask."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_sample_image

from polyspan import SubspaceMixture
from polyspan.base.progress import Share
from polyspan.images import inpaint_image
from polyspan.images.inpaint import PRESETS, fill_planes
from polyspan.images.interpolation import interpolate

PHOTO = load_sample_image("china.jpg")[100:148, 200:256]
GRAY = PHOTO.mean(axis=2) / 255
RNG = np.random.default_rng(0)
MASK = RNG.random(GRAY.shape) < 0.4
BLOCKS = (np.indices(GRAY.shape) % 16 < 6).all(axis=0)


def psnr(a, b, missing=np.s_[:]):
    return -10 * np.log10(np.mean((a - b)[missing] ** 2))


@pytest.mark.parametrize(
    ("preset", "mask", "gain"),
    [("fast", MASK, 1), ("fast", BLOCKS, 1), ("balanced", MASK, 1.2), ("best", BLOCKS, 1.2)],
)
def test_holes_are_filled_better_than_smoothly(preset, mask, gain):
    filled = inpaint_image(np.where(mask, np.nan, GRAY), mask, preset)
    assert_array_equal(filled[~mask], GRAY[~mask])
    smooth = interpolate(np.where(mask, 0, GRAY), mask)
    assert psnr(filled, GRAY, mask) > psnr(smooth, GRAY, mask) + gain


def test_the_default_is_balanced_and_threads_change_nothing():
    first = inpaint_image(GRAY, MASK)
    assert_array_equal(first, inpaint_image(GRAY, MASK, "balanced", n_jobs=3))
    assert not np.array_equal(first, inpaint_image(GRAY, MASK, "fast"))


def test_noise_is_not_filled_worse_than_smoothly():
    """Patches of noise resemble nothing: the hidden pixels tell."""
    noise = RNG.standard_normal(MASK.shape)
    filled = inpaint_image(noise, MASK, "fast")
    smooth = interpolate(np.where(MASK, 0, noise), MASK)
    assert psnr(filled, noise, MASK) > psnr(smooth, noise, MASK) - 0.05


def test_a_hole_larger_than_a_patch_and_no_hole():
    block = np.zeros(GRAY.shape, dtype=bool)
    block[20:34, 30:44] = True
    filled = inpaint_image(GRAY, block, "fast")
    assert GRAY.min() - 0.2 < filled.min() < filled.max() < GRAY.max() + 0.2
    assert_array_equal(inpaint_image(GRAY, np.zeros(GRAY.shape)), GRAY)


@pytest.mark.parametrize("shape", [(16, 16), (17, 41), (16, 50)])
@pytest.mark.parametrize("preset", list(PRESETS))
def test_small_pictures(shape, preset):
    small, mask = GRAY[: shape[0], : shape[1]], MASK[: shape[0], : shape[1]]
    assert psnr(inpaint_image(small, mask, preset), small) > 20


def test_colour_and_the_axis_of_the_channels():
    clean = PHOTO / 255
    filled = inpaint_image(np.where(MASK[..., None], 0, clean), MASK, "fast", channel_axis=-1)
    assert_array_equal(filled[~MASK], clean[~MASK])
    smooth = [interpolate(np.where(MASK, 0, one), MASK) for one in np.moveaxis(clean, -1, 0)]
    assert psnr(filled, clean) > psnr(np.stack(smooth, axis=-1), clean) + 1
    first = inpaint_image(np.moveaxis(clean, -1, 0), MASK, "fast", channel_axis=0)
    assert_allclose(np.moveaxis(first, 0, -1), filled, atol=1e-6)


def test_channels_with_masks_of_their_own_help_each_other():
    clean = PHOTO / 255
    masks = RNG.random(clean.shape) < 0.5
    given = np.where(masks, np.nan, clean)
    filled = inpaint_image(given, masks, "fast", channel_axis=-1)
    assert_array_equal(filled[~masks], clean[~masks])
    alone = [inpaint_image(given[..., c], masks[..., c], "fast") for c in range(3)]
    assert psnr(filled, clean, masks) > psnr(np.stack(alone, axis=-1), clean, masks) + 2


def test_one_mask_for_all_channels_may_be_given_for_each():
    masks = np.repeat(MASK[None], 3, axis=0)
    photo = np.moveaxis(PHOTO, -1, 0)
    assert_array_equal(
        inpaint_image(photo, masks, "fast", channel_axis=0),
        inpaint_image(photo, MASK, "fast", channel_axis=0),
    )


def test_one_channel_alone_may_have_holes():
    masks = np.zeros(PHOTO.shape, dtype=bool)
    masks[20:26, 30:36, 1] = True
    clean = PHOTO / 255
    filled = inpaint_image(PHOTO, masks, "balanced", channel_axis=-1)
    assert_array_equal(filled[~masks], clean[~masks])
    assert psnr(filled, clean, masks) > 25


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float16, np.float32, np.float64])
def test_types_of_a_picture(dtype):
    top = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    image = (GRAY[:32, :32] * top).astype(dtype)
    mask = MASK[:32, :32]
    filled = inpaint_image(image, mask, "fast")
    assert filled.dtype == (np.float32 if dtype in (np.float16, np.float32) else np.float64)
    assert_array_equal(filled[~mask], (image.astype(filled.dtype) / filled.dtype.type(top))[~mask])
    assert_allclose(filled, inpaint_image(GRAY[:32, :32], mask, "fast"), atol=0.02)


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("value", [0.0, 0.3, 1e-30])
def test_constant_pictures(preset, value):
    mask = MASK[:20, :20]
    filled = inpaint_image(np.full(mask.shape, value), mask, preset)
    assert_allclose(filled, value, rtol=1e-5)
    colour = inpaint_image(np.full((20, 20, 3), value), mask, preset, channel_axis=-1)
    assert_allclose(colour, value, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_any_unit_will_do(scale):
    clean, mask = GRAY[:24, :32], MASK[:24, :32]
    filled = inpaint_image(scale * clean, mask)
    assert_array_equal(filled[~mask], (scale * clean)[~mask])
    assert_allclose(filled / scale, inpaint_image(clean, mask), atol=2e-3)


def test_hardly_any_pixel_observed():
    mask = np.ones(GRAY.shape, dtype=bool)
    mask[30, 40] = False
    assert_allclose(inpaint_image(GRAY, mask), GRAY[30, 40], atol=0.05)
    mask[::20, ::20] = False
    assert np.isfinite(inpaint_image(GRAY, mask)).all()


def test_the_model_learns_from_incomplete_patches_too_and_says_nothing(monkeypatch, capsys):
    seen = []
    fit = SubspaceMixture.fit

    def spy(self, X, y=None):
        seen.append(np.isnan(X).any())
        return fit(self, X, y)

    monkeypatch.setattr(SubspaceMixture, "fit", spy)
    inpaint_image(GRAY, MASK)
    assert seen == [False, True]
    hidden = np.ones((20, 20), dtype=bool)
    hidden[:3, :3] = False  # 9 patches of 64 pixels have an observed one
    inpaint_image(GRAY[:20, :20], hidden)
    assert seen == [False, True, False]
    inpaint_image(GRAY, MASK, "fast")
    assert seen == [False, True, False]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_bar_ends_at_its_end(preset, scale):
    planes = scale * np.stack([GRAY[:40, :20], GRAY[:40, 20:40]]).astype(np.float32)
    ticks = []
    rng = np.random.RandomState(0)
    holes = MASK[None, :40, :20]
    fill_planes(planes, holes, PRESETS[preset], None, rng, share=Share(ticks.append))
    assert len(ticks) > 4
    assert sum(ticks) == pytest.approx(1)


def test_masks_that_do_not_fit():
    with pytest.raises(ValueError, match="one entry per pixel, or the shape of the image"):
        inpaint_image(PHOTO, np.zeros((3, *GRAY.shape)), channel_axis=-1)
    lost = np.zeros(PHOTO.shape, dtype=bool)
    lost[..., 2] = True
    with pytest.raises(ValueError, match="every pixel of channel 2 is masked"):
        inpaint_image(PHOTO, lost, channel_axis=-1)
    with pytest.raises(ValueError, match="'n_jobs' parameter of inpaint_image"):
        inpaint_image(GRAY, MASK, n_jobs=1.5)
    spoilt = np.where(MASK, np.nan, GRAY)[..., None] * np.ones(3)
    with pytest.raises(ValueError, match="outside the mask"):
        inpaint_image(spoilt, MASK[..., None] & (np.arange(3) == 0), channel_axis=-1)


def test_interpolation_of_a_plane_is_exact_and_tiles_agree(monkeypatch):
    rows, columns = np.indices(MASK.shape)
    plane = 0.3 * rows + 0.1 * columns
    # The sum over all pixels bends a plane at the border only.
    found = interpolate(np.where(MASK, 0, plane), MASK)
    assert np.abs(found - plane)[8:-8, 8:-8].max() < 0.05
    whole = interpolate(np.where(MASK, 0, GRAY), MASK)
    monkeypatch.setattr("polyspan.images.interpolation.TILE", 24)
    parts = interpolate(np.where(MASK, 0, GRAY), MASK)
    assert np.abs(parts - whole).max() < 0.02


@pytest.mark.parametrize("axis", [None, -1])
def test_without_a_mask_nan_are_the_holes(axis):
    mask = np.random.default_rng(4).random((20, 24, 3)[: 2 if axis is None else 3]) < 0.3
    clean = np.random.default_rng(5).random(mask.shape)
    found = inpaint_image(np.where(mask, np.nan, clean), preset="fast", channel_axis=axis)
    assert_array_equal(found, inpaint_image(clean, mask, "fast", axis))


@pytest.mark.parametrize("kind", [np.float64, np.uint8])
def test_without_a_mask_and_without_nan_there_is_nothing_to_fill(kind):
    with pytest.raises(ValueError, match="no pixel of the image is NaN, and no mask is given"):
        inpaint_image(np.ones((20, 20), dtype=kind))


def test_places_of_a_patch_that_are_never_observed():
    """What is observed lies in a corner: no patch shows the pixels of its last rows."""
    mask = np.ones((18, 18), dtype=bool)
    mask[:9, :9] = np.random.default_rng(0).random((9, 9)) < 0.5
    clean = np.indices(mask.shape).sum(axis=0) / 36
    found = inpaint_image(clean, mask)
    assert np.isfinite(found).all()
    assert_array_equal(found[~mask], clean[~mask])


@pytest.mark.parametrize("preset", list(PRESETS))
def test_integers_of_which_nearly_all_are_masked(preset):
    """No logarithm of 0 warns where hardly a patch has an observed pixel."""
    pixels = RNG.integers(0, 256, (32, 32)).astype(np.uint8)
    for places in (np.s_[5, 5], np.s_[5, 5:9], np.s_[:4, :4]):
        hidden = np.ones(pixels.shape, dtype=bool)
        hidden[places] = False
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = inpaint_image(pixels, hidden, preset)
        assert np.isfinite(found).all()
