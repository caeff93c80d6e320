"""The steps of denoising: what they keep, what they improve, and when a coarse scale helps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import polyspan.images.cascade as module
from polyspan.base.arrays import device, to_numpy
from polyspan.base.progress import Share
from polyspan.images.cascade import ROUNDS, Cascade, n_ticks, rounds_for, value_of_level
from polyspan.images.stages import learned
from support import noisy_picture, psnr

SIZE = (40, 46)


def run(noisy, sigma, n_rounds=1, **options):
    """Return one plane denoised, and its variance, as floats of 0 to 1."""
    planes = np.asarray(noisy, dtype=np.float32)[None]
    units = [value_of_level(planes[0], sigma)]
    found, variance = Cascade(learned(), n_rounds, **options).denoise(planes, sigma, units)
    return found[0], variance[0]


@pytest.mark.parametrize("n_rounds", [0, 1, 2])
def test_constant_pictures_stay_constant(n_rounds):
    for value in (0.0, 0.7, -3.0):
        found, variance = run(np.full(SIZE, value), 0.1, n_rounds)
        assert_allclose(found, value, atol=1e-5)
        assert (variance > 0).all()
        assert (variance < 0.1**2).all()


@pytest.mark.parametrize("sigma", [0.02, 0.3])
def test_units_do_not_matter(sigma):
    _, noisy = noisy_picture(sigma, SIZE)
    noisy = noisy.astype(np.float32)
    found, variance = run(noisy, sigma, 2)
    for a in (2.0**-9, 2.0**8):
        other, spread = run(np.float32(a) * noisy, a * sigma, 2)
        assert_array_equal(other, np.float32(a) * found)
        assert_allclose(spread, a**2 * variance, rtol=1e-5)
    other, _ = run(3 * noisy - 1, 3 * sigma, 2)
    # A patch now and then falls to another class by rounding.
    assert np.sqrt(np.mean((other - (3 * found - 1)) ** 2)) < 0.01 * 3 * sigma


@pytest.mark.parametrize("turn", [np.rot90, np.transpose, np.fliplr])
def test_pictures_that_are_turned(turn):
    """The grid of patches does not turn with the picture: results are similar, and as good."""
    sigma = 0.1
    clean, noisy = noisy_picture(sigma, SIZE)
    found, _ = run(noisy, sigma)
    other, _ = run(np.ascontiguousarray(turn(noisy)), sigma)
    assert np.sqrt(np.mean((other - turn(found)) ** 2)) < 0.15 * sigma
    assert abs(psnr(other, turn(clean)) - psnr(found, clean)) < 0.5


@pytest.mark.parametrize(("sigma", "size"), [(0.06, 64), (0.2, 128)])
def test_more_rounds_are_better(sigma, size):
    clean, noisy = noisy_picture(sigma, (size, size))
    fast, balanced, best = (psnr(run(noisy, sigma, n)[0], clean) for n in (0, 1, 2))
    assert fast > psnr(noisy, clean) + 6
    assert balanced > fast + 0.2
    assert best > balanced - 0.1


def test_strong_noise_uses_a_coarse_scale(monkeypatch):
    clean, noisy = noisy_picture(0.4, (128, 128))
    found, _ = run(noisy, 0.4, 0)
    monkeypatch.setattr(module, "LEAST_TO_HALVE", 129)
    without, _ = run(noisy, 0.4, 0)
    assert psnr(found, clean) > psnr(without, clean) + 1
    weak = noisy_picture(0.02)[1]
    before, _ = run(weak, 0.02)
    monkeypatch.setattr(module, "LEAST_TO_HALVE", 32)
    assert_array_equal(run(weak, 0.02)[0], before)


def test_only_planes_with_strong_noise_take_the_coarse_scale():
    """The second plane has a tenth of the range, and so ten times the noise in its levels."""
    _, noisy = noisy_picture(0.05)
    planes = np.stack([noisy, 0.1 * noisy[::-1] + 0.05 * noisy]).astype(np.float32)
    cascade = Cascade(learned(), 0)
    estimate = np.zeros_like(planes)
    found = cascade._with_coarse_scale(estimate.copy(), planes, 0.05, [1 / 255, 0.1 / 255])
    assert_array_equal(found[0], 0.0)
    assert np.abs(found[1]).max() > 0.01


def test_every_step_is_counted():
    _, noisy = noisy_picture(0.4)  # with a coarse scale, which is not counted
    for preset, n_rounds in ROUNDS.items():
        ticks = []
        run(noisy, 0.4, n_rounds, step=Share(ticks.append))
        assert len(ticks) == n_ticks(preset)
    assert [len(r) for r, _ in rounds_for(0.0)] == [len(r) for r, _ in rounds_for(99.0)]


def test_threads_change_nothing():
    _, noisy = noisy_picture(0.3)
    for one, two in zip(run(noisy, 0.3, 2), run(noisy, 0.3, 2, n_jobs=2), strict=True):
        assert_array_equal(one, two)


def test_all_places_agree(place):
    _, noisy = noisy_picture(0.1, (24, 29))
    planes = np.stack([noisy, 0.3 * noisy[::-1]]).astype(np.float32)
    units = [0.004, 0.002]
    cascade = Cascade(learned(), 1)
    wanted = cascade.denoise(planes, 0.1, units)
    moved = place.asarray(planes)
    found = cascade.denoise(moved, 0.1, units)
    for a, b in zip(found, wanted, strict=True):
        assert device(a) == device(moved)
        # Patches whose classes are nearly equally likely may change theirs.
        assert np.mean(np.abs(to_numpy(a) - b) > 1e-5 * np.abs(b).max()) < 0.02
        assert_allclose(to_numpy(a), b, atol=0.02)


def test_the_value_of_a_level(place):
    """The range of means of 4×4 pixels, less what noise adds; never less than two sigmas."""
    ramp = np.repeat(np.linspace(0, 1, 16), 4) * np.ones((64, 1))
    plane = place.asarray(ramp.astype(np.float32))
    assert value_of_level(plane, 0.0) == pytest.approx(1 / 255)
    assert value_of_level(plane, 0.1) == pytest.approx(0.85 / 255)
    assert value_of_level(plane, 5.0) == pytest.approx(10 / 255)
    clean, noisy = noisy_picture(0.1)
    assert value_of_level(noisy, 0.1) == pytest.approx(value_of_level(clean, 0.0), rel=0.15)
