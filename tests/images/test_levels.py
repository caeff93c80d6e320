"""The level of the noise: one number, one per channel, or a map; and the planes of channels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import to_numpy
from polyspan.images import denoise_image
from polyspan.images.levels import LEAST_PART, NoiseLevel
from polyspan.images.planes import as_channels
from polyspan.images.split import Split
from support import made_picture, noisy_picture, psnr

RNG = np.random.default_rng(0)
COLOURS = RNG.random((6, 7, 3)).astype(np.float32)


def level_of(sigma, image=COLOURS, channel_axis=-1, stack_axis=None):
    channels, _, scale = as_channels(image, channel_axis, stack_axis=stack_axis)
    return NoiseLevel.of(sigma, channels, channel_axis, scale, stack_axis), channels


@pytest.mark.parametrize(
    "sigma", [0.2, np.float32(0.2), np.array(0.2), [0.2] * 3, np.full((6, 7), 0.2)]
)
def test_one_level_for_all(sigma):
    level, channels = level_of(sigma)
    assert level.sigma == pytest.approx(0.2)
    assert level.relative is None
    assert level.even(channels) is channels
    assert level.uneven(channels) is channels


def test_a_level_for_each_channel():
    level, channels = level_of([0.1, 0.2, 0.4])
    assert level.sigma == pytest.approx(np.sqrt(0.07))
    for channel, even, sigma in zip(channels, level.even(channels), (0.1, 0.2, 0.4), strict=True):
        assert_allclose(even * sigma, channel * level.sigma, rtol=1e-5)
    assert_allclose(level.uneven(level.even(channels)), channels, rtol=1e-6)


def test_maps_in_the_axes_of_the_picture():
    own = RNG.uniform(0.1, 0.2, (6, 7))
    wanted = level_of(own)[0]
    assert_allclose(wanted.exact[0], own, rtol=1e-6)
    # Channels are divided by a smooth map of the same mean square, nearly.
    assert wanted.relative.std() < 0.2 * own.std() / own.mean()
    assert (wanted.relative**2).mean() == pytest.approx(1.0, rel=0.02)
    for axis in (0, 1, 2, -1, -2, -3):
        image = np.moveaxis(COLOURS, -1, axis)
        assert_array_equal(level_of(own, image, axis)[0].relative, wanted.relative)
        whole = np.moveaxis(np.stack([own, 2 * own, 3 * own], axis=-1), -1, axis)
        found, _ = level_of(whole, image, axis)
        assert_allclose(found.exact, np.stack([own, 2 * own, 3 * own]), rtol=1e-6)


@pytest.mark.parametrize("channel_axis", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("stack_axis", [0, 1, 2, -1])
def test_maps_of_volumes(channel_axis, stack_axis):
    """All axes are equally long: their order alone tells them apart."""
    n_axes = 3 if channel_axis is None else 4
    if channel_axis == stack_axis % n_axes:
        return
    image = RNG.uniform(0.1, 0.2, [5] * n_axes)
    found, channels = level_of(image, image, channel_axis, stack_axis)
    assert_allclose(found.exact, channels, rtol=1e-6)
    if channel_axis is not None:
        one = np.take(image, 0, axis=channel_axis)
        found, _ = level_of(one, image, channel_axis, stack_axis)
        assert_allclose(found.exact[0], channels[0], rtol=1e-6)


def test_little_noise_and_none():
    own = np.full((6, 7), 0.1)
    own[0, :3] = 0.0
    own[1, :3] = 1e-9
    level, _ = level_of(own)
    usual = np.sqrt(np.mean(own[own > 0] ** 2))
    assert level.sigma == pytest.approx(usual, rel=1e-3)
    assert_allclose(level.exact[0, 1, :3], LEAST_PART * usual, rtol=1e-5)
    assert_allclose(level.exact[0, 0, :3], usual, rtol=1e-5)
    assert_array_equal(level.noiseless[0], own == 0)
    assert level_of(np.zeros((6, 7)))[0].sigma == 0


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (-1.0, "sigma=-1.0: need a finite number, 0 or more"),
        (np.nan, "sigma=nan"),
        (np.inf, "sigma=inf"),
        (
            [0.1, 0.2],
            r"shape \(2,\): need one number, 3 numbers, one per channel, or a map of the "
            r"shape \(6, 7\) or \(6, 7, 3\)",
        ),
        (np.ones((7, 6)), r"shape \(7, 6\)"),
        (np.ones((6, 7, 1)), r"shape \(6, 7, 1\)"),
        ([0.1, 0.1, -0.1], "negative, NaN or infinite"),
        (np.full((6, 7), np.nan), "negative, NaN or infinite"),
    ],
)
def test_levels_that_cannot_be(sigma, message):
    with pytest.raises(ValueError, match=message):
        level_of(sigma)


@pytest.mark.parametrize("sigma", ["a", ["a", "b", "c"], [True, False, True], [1j, 1, 1]])
def test_levels_that_are_no_numbers(sigma):
    with pytest.raises(TypeError, match=r"sigma has values of the type .*: need numbers"):
        level_of(sigma)
    with pytest.raises(ValueError, match="need one number or a map of the shape"):
        level_of([0.1], COLOURS[..., 0], None)


def test_levels_anywhere(place):
    image = place.asarray(COLOURS)
    level, channels = level_of(place.asarray(np.linspace(0.0, 0.2, 42).reshape(6, 7)), image)
    back = level.uneven(level.even(channels))
    assert_allclose(to_numpy(back), np.moveaxis(COLOURS, -1, 0), rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("own_basis", [False, True])
def test_channels_come_back_from_their_planes(n, own_basis):
    rng = np.random.default_rng(n)
    mixing = rng.random((n, 2))
    channels = np.tensordot(mixing, rng.random((2, 20, 24)), axes=1).astype(np.float32) + 3
    split = Split.of(channels, 1e-4, own_basis=own_basis)
    assert_allclose(split.basis @ split.basis.T, np.eye(len(split.basis)), atol=1e-6)
    assert_allclose(split.channels(split.planes), channels, atol=1e-3)
    assert split.planes.shape[0] == (n if n <= 4 else 2)
    assert split.alike == (n <= 4)
    # Errors of planes that are independent add up in the channels.
    assert_allclose(
        split.variances(np.ones_like(split.planes)).sum(axis=0), len(split.basis), rtol=1e-5
    )


def test_the_noise_of_planes_is_white():
    noise = 0.1 * RNG.standard_normal((9, 60, 60)).astype(np.float32)
    for channels in (noise, noise[:3], noise[:3] + RNG.random((60, 60)).astype(np.float32)):
        planes = Split.of(channels, 0.1, own_basis=True).planes
        assert_allclose(np.diff(planes, axis=2).std(axis=(1, 2))[1:], 0.1 * np.sqrt(2), rtol=0.1)


def test_a_map_is_better_than_its_mean():
    clean = made_picture(48, 64)
    sigma = np.full(clean.shape, 0.03)
    sigma[:, 32:] = 0.2
    noisy = clean + sigma * RNG.standard_normal(clean.shape)
    by_map = denoise_image(noisy, sigma, "fast")
    by_mean = denoise_image(noisy, float(np.sqrt(np.mean(sigma**2))), "fast")
    assert psnr(by_map, clean) > psnr(by_mean, clean) + 1
    for half in (np.s_[:, :28], np.s_[:, 36:]):
        assert psnr(by_map[half], clean[half]) > psnr(noisy[half], clean[half]) + 2


def test_channels_with_noise_of_their_own():
    clean = np.stack([made_picture(40, 40)] * 3, axis=-1)
    sigma = np.array([0.02, 0.05, 0.25])
    noisy = clean + sigma * RNG.standard_normal(clean.shape)
    each = denoise_image(noisy, sigma, "fast", -1)
    mean = denoise_image(noisy, float(np.sqrt(np.mean(sigma**2))), "fast", -1)
    assert psnr(each, clean) > psnr(mean, clean) + 1


@pytest.mark.parametrize("part", [0.1, 0.5])
def test_pixels_without_noise_are_kept_and_help_the_others(part):
    clean, noisy = noisy_picture(0.1, (48, 48))
    still = np.random.default_rng(3).random(clean.shape) < part
    noisy = np.where(still, clean, noisy).astype(np.float32)
    found, std = denoise_image(noisy, np.where(still, 0.0, 0.1), "fast", return_std=True)
    assert_array_equal(found[still], noisy[still])
    assert_array_equal(std[still], 0.0)
    assert (std[~still] > 0).all()
    single = denoise_image(noisy, 0.1, "fast")
    assert psnr(found[~still], clean[~still]) > psnr(single[~still], clean[~still]) - 0.2


def test_single_pixels_with_more_noise_are_pulled_to_those_around_them():
    clean = made_picture(64, 64)
    rng = np.random.default_rng(3)
    sigma = np.where(rng.random(clean.shape) < 0.3, 0.3, 0.05)
    noisy = clean + sigma * rng.standard_normal(clean.shape)
    by_map = denoise_image(noisy, sigma, "fast")
    assert (
        psnr(by_map, clean)
        > psnr(denoise_image(noisy, np.sqrt((sigma**2).mean()), "fast"), clean) + 1
    )
    _, std = denoise_image(noisy, sigma, "fast", return_std=True)
    assert 0.5 < np.mean((by_map - clean) ** 2) / np.mean(std**2) < 2


def test_a_smooth_map_is_taken_as_it_is():
    smooth = np.linspace(0.1, 0.2, 200) * np.ones((200, 1))
    level, _ = level_of(smooth, RNG.random((200, 200)), None)
    assert level.exact is None
    assert_allclose(level.relative[0] * level.sigma, smooth, rtol=0.02)
