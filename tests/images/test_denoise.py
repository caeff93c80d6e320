"""What users of `denoise_image` rely on, for every kind of picture."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.images import denoise_image, estimate_noise
from support import made_picture, noisy_picture, psnr, require_torch

CLEAN, NOISY = noisy_picture(0.1, (40, 44))
RNG = np.random.default_rng(5)


def test_the_presets():
    fast, balanced, best = (denoise_image(NOISY, 0.1, p) for p in ("fast", "balanced", "best"))
    assert_array_equal(denoise_image(NOISY, 0.1), balanced)
    assert psnr(fast, CLEAN) > psnr(NOISY, CLEAN) + 6
    assert psnr(balanced, CLEAN) > psnr(fast, CLEAN)
    assert psnr(best, CLEAN) > psnr(balanced, CLEAN) - 0.1


@pytest.mark.parametrize("preset", ["fast", "balanced"])
def test_tensors_give_what_arrays_give(preset, place):
    colours = np.stack([NOISY[:24, :28], NOISY[:24, 2:30], NOISY[1:25, :28]], axis=-1)
    for image, axis in ((NOISY, None), (colours, -1)):
        wanted, spread = denoise_image(image, 0.1, preset, axis, return_std=True)
        moved = place.asarray(image)
        found, std = denoise_image(moved, 0.1, preset, axis, return_std=True)
        assert device(found) == device(std) == device(moved)
        assert found.dtype == moved.dtype
        assert_allclose(to_numpy(found), wanted, atol=1e-5)
        assert_allclose(to_numpy(std), spread, rtol=1e-3)
    assert estimate_noise(place.asarray(NOISY)) == estimate_noise(NOISY)


def test_tensors_of_all_types():
    torch = require_torch()
    for dtype in ("float16", "float32", "uint8", "int16", "bool"):
        unit = 9000 if dtype == "int16" else 90
        image = RNG.random((20, 24)) < 0.5 if dtype == "bool" else (unit * NOISY[:20, :24])
        image = image.astype(dtype)
        found = denoise_image(torch.asarray(image), preset="fast")
        assert_allclose(to_numpy(found), denoise_image(image, preset="fast"), rtol=1e-4, atol=1e-4)
    with torch.no_grad() if hasattr(torch, "no_grad") else warnings.catch_warnings():
        found = denoise_image(torch.asarray(NOISY), torch.asarray(0.1), "fast")
    assert_allclose(to_numpy(found), denoise_image(NOISY, 0.1, "fast"), atol=1e-5)


DTYPES = ["float16", "float32", "float64", "uint8", "int8", "uint16", "int16", "int32", "int64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_types_of_numbers(dtype):
    small = NOISY[:20, :24]
    unit = 1.0 if dtype.startswith("float") else float(np.iinfo(dtype).max)
    image = np.clip(0.9 * small * unit, 0, 0.999 * unit).astype(dtype)
    found, std = denoise_image(image, return_std=True)
    assert found.dtype == std.dtype == ("float32" if dtype in DTYPES[:2] else "float64")
    wanted = denoise_image(np.asarray(image / unit, dtype=np.float64))
    assert_allclose(found, wanted, atol=2e-3 if dtype in ("float16", "uint8", "int8") else 1e-5)


def test_two_values_alone():
    image = made_picture(24, 24) > 0.5
    flipped = image ^ (RNG.random(image.shape) < 0.05)
    found = denoise_image(flipped, 0.2)
    assert found.dtype == np.float64
    assert psnr(found, image) > psnr(flipped, image.astype(float)) + 2
    assert np.isfinite(denoise_image(flipped)).all()
    few = RNG.integers(0, 2, (20, 20)).astype(np.uint16)  # 1e-5 of the range of their type
    assert np.isfinite(denoise_image(few, return_std=True)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 1e-30, 1e30])
def test_constant_pictures(value):
    image = np.full((18, 21), value)
    assert_allclose(denoise_image(image), value, rtol=1e-6)
    found, std = denoise_image(image, return_std=True)
    assert_allclose(found, value, rtol=1e-6)
    assert_array_equal(std, 0.0)
    for sigma in (abs(value) / 10, abs(value) * 10, 1e-12):
        assert_allclose(denoise_image(image, sigma), value, rtol=1e-4, atol=1e-12)


def test_saturated_pictures():
    clean = np.clip(3 * (made_picture(40, 40) - 0.3), 0, 1)
    noisy = np.clip(clean + 0.1 * RNG.standard_normal(clean.shape), 0, 1)
    eight = (255 * noisy).round().astype(np.uint8)
    found = denoise_image(eight, 0.1)
    assert psnr(found, clean) > psnr(noisy, clean) + 4
    assert np.isfinite(denoise_image(eight)).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e-5, 1e5, 1e30, 1e300])
def test_any_scale(scale):
    small = NOISY[:24, :24]
    wanted, spread = denoise_image(small, 0.1, return_std=True)
    found, std = denoise_image(scale * small, scale * 0.1, return_std=True)
    assert_allclose(found / scale, wanted, atol=1e-4)
    assert_allclose(std / scale, spread, rtol=1e-2)


@pytest.mark.parametrize("sigma", [1e-40, 1e-25, 1e-12, 1e-7, 1e7, 1e15, 1e30])
def test_any_ratio_of_noise_and_picture(sigma):
    small, unit = NOISY[:20, :24], 1e3  # of fractions so much noise is refused
    for model in (None, "own"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = denoise_image(unit * small, unit * sigma, model=model) / unit
        if sigma < 1:
            assert_allclose(found, small, atol=1e-3)
        else:  # nothing but noise is seen, and means of patches are left
            assert found.std() < 0.7 * small.std()


def test_the_largest_number_there_is():
    image = np.where(CLEAN > 0.5, np.finfo(np.float64).max / (1 + 1e-6), 0.0)
    assert_allclose(denoise_image(image, 0.0), image, rtol=1e-6)


@pytest.mark.parametrize("preset", ["fast", "balanced", "best"])
@pytest.mark.parametrize("level", [0.1, 0.3, 1.0, 2.5])
def test_slight_noise_is_not_made_worse(preset, level):
    sigma = level / 255
    clean, noisy = noisy_picture(sigma, (48, 48))
    found = denoise_image(noisy, sigma, preset)
    assert np.mean((found - clean) ** 2) < sigma**2


@pytest.mark.parametrize("shape", [(16, 16), (16, 17), (19, 16), (16, 45), (23, 31)])
def test_small_pictures_of_any_size(shape):
    clean, noisy = noisy_picture(0.2, shape)
    for preset in ("fast", "balanced", "best"):
        found, std = denoise_image(noisy, 0.2, preset, return_std=True)
        assert found.shape == std.shape == shape
        assert psnr(found, clean) > psnr(noisy, clean) + 3
    for axis in ({"channel_axis": 0}, {"channel_axis": -1}):
        image = np.stack([noisy] * 2, axis=axis["channel_axis"])
        assert denoise_image(image, 0.2, "fast", **axis).shape == image.shape


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(bad):
    image = NOISY.copy()
    image[3, 4:6] = bad
    for options in ({}, {"sigma": 0.1}, {"noise": "poisson"}, {"noise": "correlated"}):
        with pytest.raises(ValueError, match="NaN or infinite"):
            denoise_image(image, **options)


def test_a_list_of_pictures():
    pictures = [NOISY, NOISY[:20, :24].astype(np.float32), NOISY[5:30, 3:40]]
    found = denoise_image(pictures, 0.1, "fast")
    assert isinstance(found, list)
    for one, picture in zip(found, pictures, strict=True):
        single = denoise_image(picture, 0.1, "fast")
        assert_array_equal(one, single)
        assert one.dtype == single.dtype
    both, stds = denoise_image(tuple(pictures), 0.1, "fast", return_std=True)
    assert [one.shape for one in stds] == [one.shape for one in pictures]
    assert_array_equal(both[2], found[2])
    # A picture that is written as numbers is no list of pictures.
    assert_array_equal(denoise_image(NOISY.tolist(), 0.1, "fast"), found[0])


def test_expected_errors():
    for sigma in (0.04, 0.1, 0.25):
        clean, noisy = noisy_picture(sigma, (64, 64), seed=1)
        for preset in ("fast", "balanced"):
            found, std = denoise_image(noisy, sigma, preset, return_std=True)
            squares = (found - clean) ** 2
            assert 0.5 < np.sqrt(squares.mean()) / np.sqrt((std**2).mean()) < 2
            order = np.argsort(std, axis=None)
            n = std.size // 10
            surest, least_sure = (squares.ravel()[part] for part in (order[:n], order[-n:]))
            assert surest.mean() < 0.7 * squares.mean() < 0.7 * least_sure.mean()


def test_expected_errors_of_all_kinds_of_pictures():
    colours = np.stack([NOISY, NOISY[::-1], 0.5 * NOISY], axis=-1)
    for options in ({}, {"model": "own"}, {"sigma": None, "noise": "correlated"}):
        found, std = denoise_image(
            colours, **{"sigma": 0.1, "channel_axis": -1, "return_std": True, **options}
        )
        assert std.shape == found.shape == colours.shape
        assert (std > 0).all()
        assert std.mean() < 0.1
    many = np.stack([k * NOISY for k in range(1, 8)])
    found, std = denoise_image(many, 0.1, "fast", 0, return_std=True)
    assert std.shape == many.shape
    assert (std > 0).all()
    found, std = denoise_image(NOISY.astype(np.float32), 0.0, return_std=True)
    assert_array_equal(found, NOISY.astype(np.float32))
    assert_array_equal(std, np.zeros(NOISY.shape))


@pytest.mark.parametrize("options", [{}, {"preset": "best"}, {"model": "own"}])
def test_threads_change_nothing(options):
    image = np.stack([NOISY, NOISY[::-1]])
    one, std = denoise_image(image, 0.1, channel_axis=0, return_std=True, **options)
    two, std2 = denoise_image(image, 0.1, channel_axis=0, return_std=True, n_jobs=2, **options)
    assert_array_equal(one, two)
    assert_array_equal(std, std2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "poisson", "sigma": 0.1}, r"sigma=0.1 with noise='poisson'.*leave it out"),
        ({"noise": "correlated", "sigma": 0.1}, "sigma=0.1 with noise='correlated'"),
        ({"gain": 1.0}, "gain, offset and read_noise with noise='gaussian': they need"),
        (
            {"noise": "correlated", "offset": 1.0},
            "gain, offset and read_noise with noise='correlated'",
        ),
        ({"read_noise": 0.0}, "gain, offset and read_noise with noise='gaussian'"),
        ({"noise": "correlated", "model": "own"}, 'model= with noise="correlated"'),
        ({"noise": "correlated", "stack_axis": 0}, "give a list of slices"),
        ({"noise": "poisson", "gain": -1.0}, "gain=-1.0: need a finite number above 0"),
        ({"noise": "poisson", "offset": np.inf}, "offset=inf: need a finite number$"),
        ({"noise": "poisson", "read_noise": -1.0}, "read_noise=-1.0: need .* at least 0"),
        ({"noise": "poisson", "gain": 0.0, "offset": 0.0}, "gain=0: need the value of one count"),
        ({"sigma": 0.1, "n_jobs": 0}, "n_jobs=0: need a number of threads"),
    ],
)
def test_parameters_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        denoise_image(NOISY[:20, :20], **options)


def test_counts():
    clean = 30 * made_picture(40, 40)
    counts = RNG.poisson(clean)
    found, std = denoise_image(counts, noise="poisson", gain=1.0, offset=0.0, return_std=True)
    assert np.mean((found - clean) ** 2) < 0.3 * np.mean((counts - clean) ** 2)
    assert 0.5 < np.sqrt(np.mean((found - clean) ** 2) / np.mean(std**2)) < 2


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_stacks(axis):
    clean = made_picture(24, 28)
    stack = clean + 0.1 * np.random.default_rng(0).standard_normal((4, 24, 28))
    wanted = denoise_image(stack, 0.1, "fast", stack_axis=0)
    moved = np.moveaxis(stack, 0, axis)
    found = denoise_image(moved, 0.1, "fast", stack_axis=axis)
    assert_array_equal(np.moveaxis(found, axis, 0), wanted)
    assert psnr(wanted, clean) > psnr(stack, clean) + 8
    single = denoise_image(stack[0], 0.1, "fast")
    assert psnr(wanted[0], clean) > psnr(single, clean)
    with pytest.raises(ValueError, match=f"return_std=True with stack_axis={axis}"):
        denoise_image(moved, 0.1, stack_axis=axis, return_std=True)


def test_stacks_with_colours_and_counts():
    clean = np.stack([made_picture(20, 24)] * 3, axis=-1)
    stack = clean + 0.1 * np.random.default_rng(0).standard_normal((3, 20, 24, 3))
    wanted = denoise_image(stack, 0.1, "fast", -1, stack_axis=0)
    assert psnr(wanted, clean) > psnr(stack, clean) + 8
    moved = np.transpose(stack, (3, 1, 0, 2))
    found = denoise_image(moved, 0.1, "fast", 0, stack_axis=2)
    assert_array_equal(found, np.transpose(wanted, (3, 1, 0, 2)))
    counts = RNG.poisson(30 * np.moveaxis(stack[..., 0].clip(0), 0, -1))
    found = denoise_image(counts, None, "fast", noise="poisson", stack_axis=-1)
    assert found.shape == counts.shape
    truth = 30 * clean[..., :1]
    assert np.mean((found - truth) ** 2) < 0.5 * np.mean((counts - truth) ** 2)


def test_correlated_noise_is_told():
    noise = RNG.standard_normal((98, 102))
    smooth = sum(noise[i : i + 96, j : j + 100] for i in range(3) for j in range(3)) / 3
    with pytest.warns(UserWarning, match="correlated from pixel to pixel") as told:
        denoise_image(made_picture(96, 100) + 0.1 * smooth, preset="fast")
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        denoise_image(made_picture(96, 100) + 0.1 * noise[2:, 2:], preset="fast")
