"""Denoising and inpainting of pictures: better than their input, for every kind of picture."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_sample_image

from polyspan import SubspaceMixture
from polyspan.datasets import extract_patches
from polyspan.images import denoise_image, estimate_noise, inpaint_image
from polyspan.images.mixtures import Preset
from polyspan.images.patches import block_sums

PHOTO = load_sample_image("china.jpg")[100:164, 200:280]
GRAY = PHOTO.mean(axis=2) / 255
RNG = np.random.default_rng(0)
NOISY = GRAY + 0.1 * RNG.standard_normal(GRAY.shape)
MASK = RNG.random(GRAY.shape) < 0.4


def psnr(a, b):
    return -10 * np.log10(np.mean((a - b) ** 2))


@pytest.mark.parametrize("preset", ["fast", "balanced", "best"])
def test_noise_is_removed(preset):
    denoised = denoise_image(NOISY, 0.1, preset)
    assert psnr(denoised, GRAY) > psnr(NOISY, GRAY) + 4
    assert denoised.dtype == np.float64


def test_forms_of_a_picture():
    eight = np.clip(NOISY * 255, 0, 255).astype(np.uint8)
    first = denoise_image(eight)
    assert 0 < first.min() < first.max() < 1.1
    assert_allclose(denoise_image(eight / 255), first, atol=1e-5)
    sixteen = (eight / 255 * 65535).round().astype(np.uint16)
    assert_allclose(denoise_image(sixteen), first, atol=1e-3)
    assert denoise_image(NOISY.astype(np.float32), 0.1).dtype == np.float32
    assert_allclose(denoise_image(1000 * NOISY, 100.0), 1000 * denoise_image(NOISY, 0.1), atol=1.0)


def test_colour_and_the_axis_of_the_channels():
    clean = PHOTO / 255
    noisy = clean + 0.1 * np.random.default_rng(1).standard_normal(clean.shape)
    denoised = denoise_image(noisy, preset="fast", channel_axis=-1)
    assert denoised.shape == clean.shape
    assert psnr(denoised, clean) > psnr(noisy, clean) + 5
    first = denoise_image(np.moveaxis(noisy, -1, 0), preset="fast", channel_axis=0)
    assert_allclose(np.moveaxis(first, 0, -1), denoised, atol=1e-6)


@pytest.mark.parametrize("sigma", [0.1, 0.3])
def test_the_noise_is_estimated(sigma):
    noisy = GRAY + sigma * np.random.default_rng(2).standard_normal(GRAY.shape)
    assert estimate_noise(noisy) == pytest.approx(sigma, rel=0.25)
    assert estimate_noise(np.full((20, 20), 0.3)) == 0


def test_the_noise_is_estimated_where_the_picture_is_smooth():
    """Two thirds are fine stripes along a diagonal, whose slopes down and across are equal."""
    i, j = np.indices((96, 96))
    picture = np.where(j < 60, 0.5 + 0.4 * np.sin(0.8 * (i + j)), 0.5)
    noisy = picture + 0.03 * np.random.default_rng(1).standard_normal(picture.shape)
    assert estimate_noise(noisy) == pytest.approx(0.03, rel=0.1)


def test_directions_of_patches_are_counted_about_their_mean():
    rng = np.random.default_rng(0)
    patches = np.full((2000, 9), 5.0)
    patches[:, :3] += rng.standard_normal((2000, 3))
    patches[:, 3:] += 0.1 * rng.standard_normal((2000, 6))
    preset = Preset(3, 1, 1, 1, 2000)
    dims = [preset.fitted(patches, s, 0, s).subspace_dim for s in (0.1, 0.05, 1.0)]
    assert dims == [3, 8, 1]


def test_small_pictures_get_a_subspace_for_every_300_patches():
    patches = np.random.default_rng(0).standard_normal((1200, 4))
    preset = Preset(2, 1, 3, 1, 2000)
    found = [preset.fitted(patches[:n], 0.1, 0).n_subspaces for n in (20, 599, 600, 900, 1200)]
    assert found == [1, 1, 2, 3, 3]


def test_no_noise_changes_nothing():
    assert_allclose(denoise_image(GRAY, 0.0), GRAY, atol=1e-7)
    assert_allclose(denoise_image(np.full((20, 30), 0.4)), 0.4)


@pytest.mark.parametrize("shape", [(16, 16), (17, 41), (16, 50)])
def test_small_pictures(shape):
    small = NOISY[: shape[0], : shape[1]]
    assert np.isfinite(denoise_image(small, 0.1, "best")).all()


def test_a_model_of_the_user():
    model = SubspaceMixture(4, 20, random_state=0, max_iter=10, tol=1e-3)
    model.fit(extract_patches(GRAY, 6, step=1))
    assert psnr(denoise_image(NOISY, 0.1, model=model), GRAY) > psnr(NOISY, GRAY) + 4
    filled = inpaint_image(np.where(MASK, 0, GRAY), MASK, model=model)
    assert psnr(filled, GRAY) > 20
    odd = SubspaceMixture(1, 2).fit(RNG.standard_normal((30, 7)))
    with pytest.raises(ValueError, match="no square patch"):
        denoise_image(NOISY, 0.1, model=odd)


def test_bands_are_as_good_as_the_whole(monkeypatch):
    whole = denoise_image(NOISY, 0.1)
    monkeypatch.setattr("polyspan.images.patches.PATCHES_AT_ONCE", 50)
    monkeypatch.setattr("polyspan.images.patches.BAND_PATCHES", 50)
    assert_allclose(denoise_image(NOISY, 0.1), whole, atol=1e-5)
    plane = GRAY.astype(np.float32)
    total, weight = block_sums(plane, 8, 3, lambda some: (some, np.ones(len(some), np.float32)))
    assert_allclose(total / weight, GRAY, atol=1e-6)


def test_a_bar_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws bars on terminals alone
    denoise_image(NOISY[:20, :20], 0.1, progress=True)
    shown = capsys.readouterr()
    assert "100%" in shown.out + shown.err
    inpaint_image(NOISY[:20, :20], MASK[:20, :20], "fast", progress=True)
    shown = capsys.readouterr()
    assert "100%" in shown.out + shown.err
    denoise_image(NOISY[:20, :20], 0.1, progress=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (NOISY[:5], {}, "need at least 16 of both"),
        (np.zeros((0, 9)), {}, "is empty"),
        (np.where(MASK, np.nan, NOISY), {}, "are NaN or infinite"),
        (np.where(MASK, np.inf, NOISY), {}, "are NaN or infinite"),
        (PHOTO, {}, "channel_axis=-1"),
        (NOISY, {"channel_axis": -1}, r"shape \(64, 80\): need \(height, width\), and one"),
        (PHOTO, {"channel_axis": -1, "stack_axis": 2}, "the image has the shape"),
        (PHOTO[None], {"channel_axis": -1, "stack_axis": 3}, "are the same"),
        (PHOTO, {"stack_axis": 3}, "stack_axis=3 is no axis"),
        (PHOTO, {"channel_axis": 5}, "channel_axis=5"),
        (NOISY, {"sigma": -1.0}, r"sigma=-1.0: need a finite number, 0 or more"),
        (NOISY, {"preset": "nice"}, "'preset' parameter of denoise_image"),
        (np.ma.masked_array(NOISY, MASK), {}, "fill what is masked by inpaint_image"),
    ],
)
def test_pictures_that_cannot_be_denoised(image, options, message):
    with pytest.raises(ValueError, match=message):
        denoise_image(image, **options)


def test_masks_that_do_not_fit():
    with pytest.raises(ValueError, match="one entry per pixel"):
        inpaint_image(GRAY, MASK[:10])
    with pytest.raises(ValueError, match="every pixel of the image is masked"):
        inpaint_image(GRAY, np.ones(GRAY.shape))
    with pytest.raises(ValueError, match="outside the mask"):
        inpaint_image(np.where(MASK, np.nan, GRAY), np.eye(*GRAY.shape, dtype=bool))
    with pytest.raises(TypeError, match="need True and False"):
        inpaint_image(GRAY, np.full(GRAY.shape, "a"))
    with pytest.raises(TypeError, match="need real numbers"):
        denoise_image(np.full((20, 20), "a"))


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**60, 1e300])
def test_any_unit_will_do(scale):
    noisy, clean, mask = NOISY[:24, :32], GRAY[:24, :32], MASK[:24, :32]
    sigma = estimate_noise(noisy)
    assert estimate_noise(scale * noisy) == pytest.approx(scale * sigma, rel=1e-5)
    assert_allclose(denoise_image(scale * noisy) / scale, denoise_image(noisy), atol=1e-4)
    filled = inpaint_image(scale * clean, mask, "fast")
    assert np.array_equal(filled[~mask], (scale * clean)[~mask])
    assert_allclose(filled / scale, inpaint_image(clean, mask, "fast"), atol=1e-3)


def test_the_picture_given_is_not_changed():
    for image in (NOISY[:20, :20].copy(), NOISY[:20, :20].astype(np.float32)):
        before = image.copy()
        denoise_image(image, 0.1)
        inpaint_image(image, MASK[:20, :20], "fast")
        assert np.array_equal(image, before)


@pytest.mark.parametrize("preset", ["fast", "best"])
@pytest.mark.parametrize("level", [1, 3])
def test_slight_noise_is_removed_and_not_the_detail(preset, level):
    rng = np.random.default_rng(0)
    clean = load_sample_image("china.jpg")[150:246, 260:356].mean(axis=2) / 255
    noisy = clean + level / 255 * rng.standard_normal(clean.shape)
    denoised = denoise_image(noisy, level / 255, preset)
    assert np.mean((denoised - clean) ** 2) < np.mean((noisy - clean) ** 2)
