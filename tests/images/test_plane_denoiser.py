"""How much noise is left, measured by adding a little of it."""

import numpy as np
import pytest

from polyspan.images import denoise_image
from polyspan.images.job import LEAST_LEFT, noise_left
from support import noisy_picture

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("keep", [0.0, 0.25, 0.9])
def test_a_linear_map_leaves_its_trace(keep, place):
    planes, noise = (RNG.standard_normal((2, 40, 50)).astype(np.float32) for _ in range(2))
    gains = np.array([keep, keep / 2], dtype=np.float32)[:, None, None]
    moved, added, factor = (place.asarray(one) for one in (planes, noise, gains))
    found = noise_left(lambda noisy: factor * noisy + 3.0, moved, factor * moved + 3.0, added)
    assert found == pytest.approx([max(keep, LEAST_LEFT), max(keep / 2, LEAST_LEFT)], rel=1e-3)


def test_the_posterior_mean_of_a_gaussian():
    """Its error is known: v/(v + 1) of the noise, for pixels with the variance v."""
    truth = 2 * RNG.standard_normal((1, 200, 200))
    noisy = truth + RNG.standard_normal(truth.shape)
    found = 0.8 * noisy
    left = noise_left(lambda y: 0.8 * y, noisy, found, RNG.standard_normal(truth.shape))
    assert left[0] == pytest.approx(np.mean((found - truth) ** 2), rel=0.05)


ROWS, COLUMNS = np.indices((64, 64))
UNLIKE = {
    "random": RNG.random((64, 64)),
    "dots": (RNG.random((64, 64)) < 0.3) * 1.0,
    "fine": (ROWS + COLUMNS) % 2 * 0.5 + 0.3 * np.sin(ROWS),
    "grating": np.sin(ROWS * 1.3) * np.sin(COLUMNS * 0.9),
}


@pytest.mark.parametrize("kind", list(UNLIKE))
def test_expected_errors_of_pictures_unlike_photographs(kind):
    clean = UNLIKE[kind]
    noisy = clean + 0.1 * np.random.default_rng(5).standard_normal(clean.shape)
    for preset in ("fast", "balanced"):
        found, std = denoise_image(noisy, 0.1, preset, return_std=True)
        assert 0.5 < np.sqrt(np.mean((found - clean) ** 2) / np.mean(std**2)) < 2


@pytest.mark.parametrize("sigma", [0.004, 0.1, 0.25])
def test_expected_errors_of_a_mixture_of_its_own(sigma):
    clean, noisy = noisy_picture(sigma, (64, 64))
    found, std = denoise_image(noisy, sigma, model="own", return_std=True)
    assert 0.5 < np.sqrt(np.mean((found - clean) ** 2) / np.mean(std**2)) < 2


def test_generators_give_what_their_seeds_give():
    """The picture is denoised twice; what is returned is what it is without errors."""
    noisy = noisy_picture(0.1, (32, 32))[1]
    for seed in (3, np.random.RandomState(3)):
        found, _ = denoise_image(noisy, 0.1, model="own", random_state=seed, return_std=True)
        alone = denoise_image(noisy, 0.1, model="own", random_state=3)
        np.testing.assert_array_equal(found, alone)
