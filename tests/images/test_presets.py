"""A fitted mixture that is given: its units are those of the picture."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from polyspan import SubspaceMixture
from polyspan.datasets import extract_patches
from polyspan.images import denoise_image, inpaint_image
from polyspan.images.mixtures import PatchModel
from support import noisy_picture, require_torch

CLEAN, NOISY = noisy_picture(0.1, (32, 36))
PATCHES = extract_patches(CLEAN, 5, step=1)
MASK = np.random.default_rng(0).random(CLEAN.shape) < 0.3


def fitted(patches):
    return SubspaceMixture(3, 6, init="anneal", random_state=0, max_iter=10, tol=1e-3).fit(patches)


MODEL = fitted(PATCHES)


# Powers of two: the model of scaled patches is the scaled model, to the last digit.
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-12, 2.0**24, 2.0**70])
def test_the_unit_of_the_picture_does_not_matter(unit):
    model = fitted(unit * PATCHES)
    for preset in ("fast", "balanced"):
        wanted = denoise_image(NOISY, 0.1, preset, model=MODEL)
        found = denoise_image(unit * NOISY, unit * 0.1, preset, model=model)
        assert_allclose(found / unit, wanted, atol=2e-3)
        filled = inpaint_image(CLEAN, MASK, preset, model=MODEL)
        found = inpaint_image(unit * CLEAN, MASK, preset, model=model)
        assert_allclose(found / unit, filled, atol=2e-3)


def test_a_unit_by_hand():
    half = PatchModel.of(MODEL, 2.0)
    whole = PatchModel.of(MODEL)
    assert half.side == whole.side == 5
    assert_allclose(half.mean, MODEL.mean_ / 2)
    assert_allclose(half.gaussians.means, whole.gaussians.means / 2)
    assert_allclose(half.gaussians.variances, MODEL.variances_ / 4)
    assert_allclose(half.gaussians.noise, MODEL.noise_variances_ / 4)
    assert_allclose(half.gaussians.bases, MODEL.bases_)


def test_holes_are_filled_with_a_model_of_tensors():
    torch = require_torch()
    with sklearn.config_context(array_api_dispatch=True):
        model = fitted(torch.asarray(PATCHES))
    found = inpaint_image(CLEAN, MASK, model=model)
    assert_allclose(found, inpaint_image(CLEAN, MASK, model=MODEL), atol=5e-3)


COLOURS = np.stack([NOISY, NOISY[::-1], NOISY], axis=-1)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (NOISY, {"noise": "poisson"}, r'model= a mixture with noise="poisson".*leave model out'),
        (NOISY, {"sigma": np.linspace(0.05, 0.2, 36) * np.ones((32, 1))}, "one number as sigma"),
        (COLOURS, {"sigma": [0.05, 0.1, 0.2], "channel_axis": -1}, "channels one by one"),
        (COLOURS * [0.1, 1, 1], {"channel_axis": -1}, "channels one by one"),
        (np.dstack([COLOURS, COLOURS]), {"sigma": 0.1, "channel_axis": -1}, "6 channels"),
    ],
)
def test_noise_that_changes_units_is_refused(image, options, message):
    with pytest.raises(ValueError, match=message):
        denoise_image(image, preset="fast", model=MODEL, **options)


def test_a_map_that_is_even_is_one_number():
    wanted = denoise_image(NOISY, 0.1, "fast", model=MODEL)
    assert_allclose(denoise_image(NOISY, np.full(NOISY.shape, 0.1), "fast", model=MODEL), wanted)
