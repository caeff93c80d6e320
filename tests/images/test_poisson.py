"""Noise that grows with the signal: the transform, its unbiased inverse, and its estimation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

from polyspan.images import denoise_image
from polyspan.images.poisson import (
    Stabiliser,
    denoise_poisson,
    estimate_stabiliser,
    fit_growth,
    noise_levels,
)

GRAY = load_sample_image("china.jpg")[:220, :220].mean(axis=2)
GRAY = GRAY / GRAY.mean()


def blur(stabilised, sigma):
    assert sigma == 1.0
    return gaussian_filter(stabilised, 1.5)


@pytest.mark.parametrize(("gain", "offset", "read"), [(1, 0, 0), (0.02, -3, 0), (3, 100, 9)])
@pytest.mark.parametrize("mean", [5.0, 30.0, 3000.0])
def test_the_noise_has_unit_deviation_and_the_inverse_no_bias(gain, offset, read, mean):
    rng = np.random.default_rng(0)
    n = 400_000
    y = gain * rng.poisson(mean, n) + offset + read * rng.standard_normal(n)
    known = Stabiliser(gain, offset, read)
    transformed = known.forward(y)
    assert transformed.std() == pytest.approx(1, abs=0.05)
    found = known.inverse(transformed.mean())
    error = np.sqrt(gain**2 * mean + read**2)  # of one pixel
    assert found == pytest.approx(gain * mean + offset, abs=5 * error / np.sqrt(n))


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.5, 2.0, 399.0, 401.0])
@pytest.mark.parametrize("read", [0.0, 0.7])
def test_the_inverse_of_an_expectation(mean, read):
    """Expectations by another way: sampling where there is read noise, a long sum where not."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(mean, 2_000_000) + read * rng.standard_normal(2_000_000)
    expected = Stabiliser(1.0, 0.0, read).forward(counts).mean()
    found = Stabiliser(1.0, 0.0, read).inverse(expected)
    assert found == pytest.approx(mean, abs=5 * np.sqrt(max(mean, 0.2) + read**2) / 1400)


def test_the_inverse_is_continuous_and_grows():
    known = Stabiliser(2.0, 7.0, 1.0)
    at = np.linspace(0, 60, 20001)
    values = known.inverse(at)
    assert values[0] == 7.0
    assert (np.diff(values) >= 0).all()
    assert np.diff(values).max() < 0.25
    slope = known.inverse_slope(at)
    inner = values[1:-1] > 7.1
    assert_allclose(slope[1:-1][inner], np.gradient(values, at)[1:-1][inner], rtol=0.02)
    assert (slope > 0).all()


def test_types_and_units():
    counts = np.arange(12.0).reshape(3, 4)
    known = Stabiliser(1.0)
    assert known.forward(counts.astype(np.float32)).dtype == np.float32
    assert known.inverse(counts.astype(np.float32)).dtype == np.float32
    assert known.forward(counts.astype(np.uint16)).dtype == np.float64
    assert_allclose(Stabiliser(1e-30).forward(1e-30 * counts), known.forward(counts))
    assert_allclose(Stabiliser(1e30).inverse(counts), 1e30 * known.inverse(counts))


@pytest.mark.parametrize(
    "wrong", [{"gain": 0.0}, {"gain": -1.0}, {"gain": np.nan}, {"gain": 1.0, "read_noise": -2.0}]
)
def test_impossible_noise(wrong):
    with pytest.raises(ValueError, match=r"gain=|read_noise="):
        Stabiliser(**wrong)


@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_the_gain_is_estimated(unit):
    counts = np.random.default_rng(0).poisson(20 * GRAY)
    found = estimate_stabiliser(unit * counts)
    assert found.gain == pytest.approx(unit, rel=0.15)
    assert found.offset == 0
    assert found.read_noise == 0


def test_offset_and_read_noise_are_estimated():
    rng = np.random.default_rng(2)
    ramp = np.linspace(5, 200, 256) * np.ones((256, 1))
    counts = 2.0 * rng.poisson(ramp / 2)
    shifted = estimate_stabiliser(counts + 100)
    assert shifted.gain == pytest.approx(2, rel=0.1)
    assert shifted.offset == pytest.approx(100, abs=4)
    assert shifted.read_noise == 0
    noisy = estimate_stabiliser(counts + 15 * rng.standard_normal(ramp.shape))
    assert noisy.gain == pytest.approx(2, rel=0.15)
    assert noisy.read_noise == pytest.approx(15, rel=0.1)
    both = counts + 100 + 15 * rng.standard_normal(ramp.shape)
    assert estimate_stabiliser(both, offset=100).read_noise == pytest.approx(15, rel=0.1)
    given = estimate_stabiliser(counts + 100, gain=2.0)
    assert given.gain == 2.0
    assert given.offset == pytest.approx(100, abs=4)


def test_channels_share_one_line():
    rng = np.random.default_rng(3)
    ramp = np.linspace(5, 60, 128) * np.ones((128, 1))
    counts = rng.poisson(np.stack([ramp, 2 * ramp, 4 * ramp]))
    assert estimate_stabiliser(counts, 0).gain == pytest.approx(1, rel=0.1)
    assert_allclose(
        estimate_stabiliser(np.moveaxis(counts, 0, -1), -1).gain,
        estimate_stabiliser(counts, 0).gain,
    )


def test_noise_levels_of_small_pictures():
    counts = np.random.default_rng(0).poisson(9.0, (16, 16)).astype(np.float32)
    means, variances = noise_levels(counts)
    assert means.shape == variances.shape == (1,)
    assert means[0] == pytest.approx(9, rel=0.2)
    assert estimate_stabiliser(counts).gain == pytest.approx(1, rel=0.5)


def test_the_line():
    means = np.arange(1.0, 9)
    assert_allclose(fit_growth(means, 3 * means), (3, 0), atol=1e-6)
    assert_allclose(fit_growth(means, 3 * means + 6), (3, 6), rtol=1e-3)
    assert_allclose(fit_growth(means, 3 * means + 6, 3.0), (3, 6), rtol=1e-3)
    assert fit_growth(means, 3 * means, 3.0) == (3.0, 0.0)
    textured = 3 * means
    textured[[2, 5]] *= 10  # points of texture, far above
    assert_allclose(fit_growth(means, textured), (3, 0), rtol=0.02)
    assert fit_growth(means, 0 * means) == (0.0, 0.0)


def test_counts_are_denoised_and_zeros_too():
    clean = 4 * GRAY
    counts = np.random.default_rng(4).poisson(clean)
    assert (counts == 0).any()
    denoised = denoise_poisson(counts, blur, gain=1.0, offset=0.0)
    assert denoised.mean() == pytest.approx(clean.mean(), rel=0.02)
    assert np.mean((denoised - clean) ** 2) < 0.4 * np.mean((counts - clean) ** 2)
    guessed = denoise_poisson(counts, blur)
    assert_allclose(guessed.mean(), denoised.mean(), rtol=0.03)
    assert np.isfinite(denoise_poisson(counts - 3.0, blur, 1.0, 0.0, read_noise=2.0)).all()


def test_the_error_goes_through_the_inverse():
    counts = np.random.default_rng(5).poisson(40.0, (64, 64))

    def denoise(stabilised, sigma):
        return stabilised, np.full(stabilised.shape, sigma)

    _, std = denoise_poisson(counts, denoise, 1.0, 0.0, return_std=True)
    assert std.mean() == pytest.approx(np.sqrt(40), rel=0.05)


def test_constant_pictures():
    assert_allclose(denoise_poisson(np.full((20, 20), 7, np.uint8), blur), 7.0)
    _, std = denoise_poisson(np.full((20, 20), 7.0), blur, return_std=True)
    assert_allclose(std, 0)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.full((20, 20), np.inf), {}, "NaN or infinite"),
        (np.ones((20, 20)), {"gain": -1.0}, "gain=-1.0: need a finite number above 0"),
        (np.ones((20, 20)), {"read_noise": -1.0}, "read_noise=-1.0"),
        (np.ones((1, 3)), {}, "1 rows and 3 columns"),
        (np.ones((3, 20, 15)), {"channel_axis": 0}, "20 rows and 15 columns"),
    ],
)
def test_constant_pictures_are_checked_too(image, options, message):
    with pytest.raises(ValueError, match=message):
        denoise_poisson(image, blur, **options)


def test_a_few_counts_with_a_known_gain():
    sparse = np.random.default_rng(7).poisson(0.002, (64, 64))
    assert 0 < sparse.sum() < 20
    assert fit_growth(np.zeros(4), np.zeros(4), 2.0) == (2.0, 0.0)
    assert estimate_stabiliser(sparse, gain=1.0) == Stabiliser(1.0)
    found = denoise_image(sparse, noise="poisson", gain=1.0, offset=0.0)
    assert 0 <= found.min() <= found.max() < 1


def test_the_noise_of_reading_out_can_be_given():
    rate = 1e4 * (0.3 + GRAY[:64, :64])
    counts = np.random.default_rng(0).poisson(rate)
    known = {"noise": "poisson", "gain": 1.0, "offset": 0.0}
    found = denoise_image(counts, None, "fast", read_noise=0.0, **known)
    wanted = denoise_poisson(
        counts, lambda even, sigma: denoise_image(even, sigma, "fast"), 1.0, 0.0, read_noise=0.0
    )
    assert_allclose(found, wanted)
    strong = denoise_image(counts, None, "fast", read_noise=1e3, **known)
    assert strong.std() < 0.9 * found.std()


def test_what_cannot_be_estimated():
    with pytest.raises(ValueError, match="no noise that grows"):
        estimate_stabiliser(np.indices((64, 64)).sum(axis=0))
    with pytest.raises(ValueError, match="NaN or infinite"):
        denoise_poisson(np.full((20, 20), np.nan), blur)
