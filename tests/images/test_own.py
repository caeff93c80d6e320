"""Denoising with a mixture of subspaces: one of the user, or one learned from the picture."""

import array_api_strict
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

from polyspan import SubspaceMixture
from polyspan.base.arrays import device, to_numpy
from polyspan.base.progress import Share
from polyspan.datasets import extract_patches
from polyspan.images import denoise_image
from polyspan.images.mixtures import PRESETS, OwnMixture, PatchModel
from polyspan.images.patches import sample_patches
from polyspan.mixture.prediction import gaussians_of, posterior_means
from support import made_picture, noisy_picture, psnr, require_torch

CLEAN, NOISY = noisy_picture(0.1, (32, 36))


def fitted(patches, dispatch=False):
    model = SubspaceMixture(3, 6, init="anneal", random_state=0, max_iter=10, tol=1e-3)
    with sklearn.config_context(array_api_dispatch=dispatch):
        return model.fit(patches)


MODEL = fitted(extract_patches(CLEAN, 5, step=1))


def own(preset="fast", model=None, seed=0):
    given = None if model is None else PatchModel.of(model)
    return OwnMixture(PRESETS[preset], given, np.random.RandomState(seed), 1)


def test_all_patches_or_some(place):
    plane = np.arange(30.0).reshape(5, 6).astype(np.float32)
    moved = place.asarray(plane)
    found = sample_patches(moved, (2, 2), 20, np.random.RandomState(0))
    assert device(found) == device(moved)
    windows = np.lib.stride_tricks.sliding_window_view(plane, (2, 2)).reshape(-1, 4)
    assert_array_equal(to_numpy(found), windows)
    some = to_numpy(sample_patches(moved, (2, 2), 7, np.random.RandomState(0)))
    assert len(np.unique(some[:, 0])) == 7
    assert {tuple(patch) for patch in some} <= {tuple(patch) for patch in windows}


def test_a_given_model_is_that_of_a_loop(place):
    """Each patch becomes its posterior mean; patches are averaged by their certainty."""
    plane, side, step = NOISY[:17, :20].astype(np.float32), 5, PRESETS["fast"].step
    more = [(0, -(-(n - side) // step) * step + side - n) for n in plane.shape]
    padded = np.pad(plane, more, mode="reflect").astype(np.float64)
    total, weights = np.zeros(padded.shape), np.zeros(padded.shape)
    for i in range(0, padded.shape[0] - side + 1, step):
        for j in range(0, padded.shape[1] - side + 1, step):
            at = np.s_[i : i + side, j : j + side]
            mean, certainty = posterior_means(
                padded[at].reshape(1, -1), MODEL.mean_, gaussians_of(MODEL), 0.1
            )
            total[at] += certainty[0] * mean.reshape(side, side)
            weights[at] += certainty[0]
    wanted = (total / weights)[:17, :20]
    moved = place.asarray(plane[None])
    found = own(model=MODEL).denoise(moved, 0.1, 1 / 255)
    assert device(found) == device(moved)
    assert_allclose(to_numpy(found)[0], wanted, atol=1e-5)


def test_models_of_other_namespaces():
    patches = extract_patches(CLEAN, 5, step=1)
    models = [fitted(array_api_strict.asarray(patches), dispatch=True)]
    torch = require_torch()
    models.append(fitted(torch.asarray(patches), dispatch=True))
    wanted = denoise_image(NOISY, 0.1, model=MODEL)
    assert psnr(wanted, CLEAN) > psnr(NOISY, CLEAN) + 4
    for model in models:
        assert_allclose(denoise_image(NOISY, 0.1, model=model), wanted, atol=2e-3)
    found = denoise_image(torch.asarray(NOISY), 0.1, model=MODEL)
    assert_allclose(to_numpy(found), wanted, atol=1e-4)


@pytest.mark.parametrize("preset", ["fast", "balanced", "best"])
def test_a_mixture_of_the_picture(preset, place):
    wanted = denoise_image(NOISY, 0.1, preset, model="own")
    assert psnr(wanted, CLEAN) > psnr(NOISY, CLEAN) + 4
    found = denoise_image(place.asarray(NOISY), 0.1, preset, model="own")
    assert_allclose(to_numpy(found), wanted, atol=1e-4)


def test_the_seed_is_that_of_the_user():
    first = denoise_image(NOISY, 0.1, model="own", random_state=1)
    assert_array_equal(first, denoise_image(NOISY, 0.1, model="own", random_state=1))
    assert not np.array_equal(first, denoise_image(NOISY, 0.1, model="own", random_state=2))
    shipped = denoise_image(NOISY, 0.1, random_state=1)
    assert_array_equal(shipped, denoise_image(NOISY, 0.1, random_state=2))


@pytest.mark.parametrize("preset", ["fast", "balanced"])
def test_pictures_unlike_photographs_have_their_own_mixture(preset):
    board = (np.indices((32, 36)).sum(axis=0) % 2) * 1.0
    noisy = board + 0.3 * np.random.default_rng(0).standard_normal(board.shape)
    found = denoise_image(noisy, 0.3, preset)
    assert_array_equal(found, denoise_image(noisy, 0.3, preset, model="own"))
    assert psnr(found, board) > psnr(noisy, board) + 12
    assert not np.array_equal(
        denoise_image(NOISY, 0.1, preset), denoise_image(NOISY, 0.1, preset, model="own")
    )


def test_strong_noise_has_a_coarse_scale_here_too(monkeypatch):
    clean = made_picture(96, 96)
    noisy = clean + 0.5 * np.random.default_rng(0).standard_normal(clean.shape)
    found = denoise_image(noisy, 0.5, model="own")
    monkeypatch.setattr("polyspan.images.mixtures.LEAST_TO_HALVE", 97)
    assert psnr(found, clean) > psnr(denoise_image(noisy, 0.5, model="own"), clean) + 0.2


def test_every_step_is_counted():
    for preset in PRESETS:
        for sigma in (0.02, 0.1, 0.3):
            ticks = []
            planes = np.stack([NOISY, NOISY]).astype(np.float32)
            one = own(preset, MODEL)
            one.denoise(planes, sigma, 1 / 255, Share(ticks.append))
            assert len(ticks) == one.n_steps(2, 255 * sigma)


def test_small_pictures_with_a_given_model():
    small = NOISY[:7, :9]
    assert denoise_image(small, 0.1, "fast", model=MODEL).shape == (7, 9)
    for options in ({"preset": "balanced"}, {"preset": "fast", "return_std": True}):
        with pytest.raises(ValueError, match=r"7 rows and 9 columns.* at least 16 of both"):
            denoise_image(small, 0.1, model=MODEL, **options)
