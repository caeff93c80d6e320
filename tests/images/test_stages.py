"""Learned stages equal literal loops over all patches, in every namespace and with any threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.images.patches import averaged
from polyspan.images.prior import Classifier, PatchPrior
from polyspan.images.stages import (
    FIRST_STEP,
    LEAST_FREEDOM,
    UNSEEN,
    Stage,
    apply_stage,
    by_class,
    expected_variance,
    first_estimate,
)

SIDE, AREA, N_CLASSES, SIGMA = 4, 16, 5, 0.3
RNG = np.random.default_rng(0)
SHAPE = (13, 18)


def made_prior():
    """Return classes of patches without their mean."""
    rng = np.random.default_rng(1)
    directions = []
    for _ in range(N_CLASSES):
        start = np.concatenate([np.ones((AREA, 1)), rng.standard_normal((AREA, AREA - 1))], axis=1)
        directions.append(np.linalg.qr(start)[0].T[1:])
    variances = np.sort(rng.gamma(0.5, 2.0, (N_CLASSES, AREA - 1)), axis=1)[:, ::-1]
    weights = rng.random(N_CLASSES)
    return PatchPrior(weights / weights.sum(), variances, np.array(directions))


def made_stage(n_channels, seed=2):
    rng = np.random.default_rng(seed)
    maps = 0.2 * rng.standard_normal((N_CLASSES, AREA, n_channels * AREA))
    return Stage(maps, rng.uniform(0.05, 0.5, (N_CLASSES, AREA)), 0.5, rng.uniform(0.5, 2.0))


PRIOR = made_prior()
PLANES = [RNG.standard_normal(SHAPE).astype(np.float32) for _ in range(3)]


def literal(channels, change, step):
    """Return the weighted mean of changed patches and the mean weight, patch by patch."""
    height, width = channels[0].shape
    tops, lefts = (range(0, n - SIDE + step, step) for n in (height, width))
    more = [(0, corners[-1] + SIDE - n) for corners, n in zip((tops, lefts), SHAPE, strict=True)]
    padded = [np.pad(one.astype(np.float64), more, mode="reflect") for one in channels]
    total, weights, counts = (np.zeros(padded[0].shape) for _ in range(3))
    for top in tops:
        for left in lefts:
            at = np.s_[top : top + SIDE, left : left + SIDE]
            changed, weight = change([one[at].ravel() for one in padded])
            total[at] += (changed * weight).reshape(SIDE, SIDE)
            weights[at] += weight.reshape(SIDE, SIDE)
            counts[at] += 1
    return (total / weights)[:height, :width], (weights / counts)[:height, :width]


def class_of(patch, noise):
    """Return the class of a patch; `test_prior` has a literal likelihood for that."""
    column = patch[:, None].astype(np.float32)
    return int(Classifier(PRIOR, noise, column)(column)[0])


def test_the_first_estimate_is_that_of_a_loop(place):
    def change(patches):
        mean = patches[0].mean()
        c = class_of(patches[0] - mean, SIGMA**2)
        covariance = PRIOR.directions[c].T @ (PRIOR.variances[c][:, None] * PRIOR.directions[c])
        kept = covariance @ np.linalg.inv(covariance + SIGMA**2 * np.eye(AREA))
        return kept @ (patches[0] - mean) + mean, 1 / (np.diag(kept) + LEAST_FREEDOM)

    plane = place.asarray(PLANES[0])
    found = first_estimate(plane, SIGMA, PRIOR)
    assert device(found) == device(plane)
    assert found.dtype == plane.dtype
    assert_allclose(to_numpy(found), literal(PLANES[:1], change, FIRST_STEP)[0], atol=1e-5)


@pytest.mark.parametrize(("n_channels", "step"), [(1, 1), (2, 2), (3, 3)])
def test_a_stage_is_that_of_a_loop(place, n_channels, step):
    stage = made_stage(n_channels)

    def change(patches):
        first, *others = patches
        inputs = np.concatenate([first - first.mean(), *(one - first for one in others)])
        c = class_of(first - first.mean(), stage.sharpness * SIGMA**2)
        return first + stage.maps[c] @ inputs, 1 / stage.errors[c]

    channels = PLANES[:n_channels]
    found, variance = apply_stage(
        [place.asarray(one) for one in channels], SIGMA, stage, PRIOR, step
    )
    wanted, certainty = literal(channels, change, step)
    assert_allclose(to_numpy(found), wanted, atol=2e-5)
    said = UNSEEN * stage.calibration * SIGMA**2 / certainty
    assert_allclose(to_numpy(variance), said, rtol=1e-4)


def test_the_variance_of_a_plane_that_was_denoised_otherwise(place):
    """A stage whose maps are zero changes nothing, and says the same of the first channel."""
    stage = made_stage(2)
    still = Stage(0 * stage.maps, stage.errors, stage.sharpness, stage.calibration)
    planes = [place.asarray(one) for one in PLANES[:2]]
    same, wanted = apply_stage(planes, SIGMA, still, PRIOR, FIRST_STEP)
    assert_allclose(to_numpy(same), PLANES[0], atol=1e-6)
    found = expected_variance(planes[0], SIGMA, stage, PRIOR)
    assert_allclose(to_numpy(found), to_numpy(wanted), rtol=1e-5)


@pytest.mark.parametrize("at_once", [1, 7, 20, 4096])
def test_threads_and_bands(monkeypatch, at_once):
    stage, channels = made_stage(2), PLANES[:2]
    whole = apply_stage(channels, SIGMA, stage, PRIOR, 1)
    monkeypatch.setattr("polyspan.images.patches.PATCHES_AT_ONCE", at_once)
    one = apply_stage(channels, SIGMA, stage, PRIOR, 1, n_jobs=1)
    three = apply_stage(channels, SIGMA, stage, PRIOR, 1, n_jobs=3)
    for a, b, c in zip(one, three, whole, strict=True):
        assert_array_equal(a, b)
        assert_allclose(a, c, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_patches_that_are_not_changed_give_the_plane(place, step):
    def change(patches):
        return patches[0], 0.0 * patches[0][:1, :] + 2.0

    found, weight = averaged([place.asarray(PLANES[0])], change, SIDE, step)
    assert_allclose(to_numpy(found), PLANES[0], atol=1e-6)
    assert_allclose(to_numpy(weight), 2.0, rtol=1e-6)


def test_every_column_has_the_map_of_its_class(place):
    maps = RNG.standard_normal((4, 3, 6)).astype(np.float32)
    inputs = RNG.standard_normal((6, 30)).astype(np.float32)
    labels = RNG.choice([0, 2, 3], 30)  # class 1 has no member
    found = by_class(*(place.asarray(a) for a in (inputs, labels, maps)))
    wanted = [maps[c] @ column for c, column in zip(labels, inputs.T, strict=True)]
    assert_allclose(to_numpy(found).T, wanted, atol=1e-5)


def test_a_stage_between_two():
    low, high = made_stage(2, 2), made_stage(2, 3)
    for part, wanted in ((0.0, low), (1.0, high)):
        found = low.between(high, part)
        assert_allclose(found.maps, wanted.maps)
        assert_allclose(found.errors, wanted.errors)
        assert found.calibration == pytest.approx(wanted.calibration)
    middle = low.between(high, 0.5)
    assert_allclose(middle.maps, (low.maps + high.maps) / 2)
    assert_allclose(middle.errors, np.sqrt(low.errors * high.errors))
