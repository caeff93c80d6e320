"""Volumes and stacks: blocks over slices where these tell of each other, else slice by slice."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter

from polyspan.base.progress import Share
from polyspan.images.groups import LEAST_LEVERAGE, Pass, corners, group_pass
from polyspan.images.volume_pilot import DEEP, FLAT, mixture_pilot, slices_tell_of_each_other
from polyspan.images.volumes import (
    VolumePass,
    denoise_blocks,
    denoise_volume,
    frame_passes,
    group_volume_pass,
    volume_passes,
)

SIGMA = 0.1


def smooth(planes, sigma):
    """A pilot for one slice."""
    return gaussian_filter(planes, (0, 1, 1))


def refused(planes, sigma):
    raise AssertionError("slices that tell of each other need no pilot")


def volumes(n_planes=1, shape=(9, 22, 25)):
    """Waves that change slowly from slice to slice; clean, noisy, and an estimate."""
    rng = np.random.default_rng(0)
    s, i, j = np.indices(shape)
    clean = np.stack([np.sin(i / 4 + s / 6 + c) * np.cos(j / 5 - s / 8) for c in range(n_planes)])
    noisy = (clean + SIGMA * rng.standard_normal(clean.shape)).astype(np.float32)
    pilot = (clean + 0.3 * SIGMA * rng.standard_normal(clean.shape)).astype(np.float32)
    return clean, noisy, pilot


def literal_pass(noisy, estimate, sigma, one):
    """The formulas, group by group, in double precision."""
    shape, size = noisy.shape[1:], (one.thick, one.side, one.side)
    reach, step = (one.reach, one.radius, one.radius), (one.step[0], one.step[1], one.step[1])
    totals, weights = np.zeros(noisy.shape), np.zeros(noisy.shape)

    def box(place):
        return tuple(slice(p, p + q) for p, q in zip(place, size, strict=True))

    for own in product(*(corners(n - p, q) for n, p, q in zip(shape, size, step, strict=True))):
        near = [
            range(max(0, o - r), min(n - p, o + r) + 1)
            for o, r, n, p in zip(own, reach, shape, size, strict=True)
        ]
        places = list(product(*near))
        distances = [
            -1.0 if place == own else np.sum((estimate[0][box(place)] - estimate[0][box(own)]) ** 2)
            for place in places
        ]
        group = [places[q] for q in np.argsort(distances, kind="stable")[: one.n_similar]]
        K = len(group)
        for c in range(len(noisy)):
            B, Y = (
                np.array([a[c][box(place)].ravel() for place in group], dtype=float)
                for a in (estimate, noisy)
            )
            mean = B.mean(axis=0)
            B, Y = B - mean, Y - mean
            inverse = np.linalg.inv(B @ B.T + K * one.kappa * sigma**2 * np.eye(K))
            X = Y @ B.T @ inverse @ B + mean
            weight = 1.0 / (np.einsum("qt,qr,rt->t", B, inverse, B) + LEAST_LEVERAGE)
            for place, x in zip(group, X, strict=True):
                totals[c][box(place)] += (weight * x).reshape(size)
                weights[c][box(place)] += weight.reshape(size)
    return totals / weights


@pytest.mark.parametrize("n_planes", [1, 2])
@pytest.mark.parametrize(
    "one", [VolumePass(3, 5, 20, 0.8, (2, 4), 2, 4), VolumePass(1, 6, 12, 1.0, (1, 5), 1, 5)]
)
def test_compiled_loops_equal_the_formulas(n_planes, one):
    _, noisy, pilot = volumes(n_planes, (6, 16, 19))
    found = group_volume_pass(noisy, pilot, SIGMA, one)
    assert_allclose(found, literal_pass(noisy, pilot, SIGMA, one), atol=3e-4)


def test_one_slice_equals_a_picture():
    _, noisy, pilot = volumes(2, (1, 40, 43))
    found = group_volume_pass(noisy, pilot, SIGMA, VolumePass(1, 6, 30, 0.8, (1, 4), 0, 18))
    expected = group_pass(noisy[:, 0], pilot[:, 0], SIGMA, Pass(6, 30, 0.8, 4))
    assert_allclose(found[:, 0], expected, atol=1e-5)


def test_the_number_of_threads_changes_no_bit():
    _, noisy, _ = volumes(1, (16, 28, 20))
    ticks = []
    expected = denoise_volume(noisy[0], SIGMA, refused, share=Share(ticks.append))
    assert len(ticks) > 4
    assert sum(ticks) == pytest.approx(1)
    assert_array_equal(denoise_volume(noisy[0], SIGMA, refused, n_jobs=3), expected)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_sums_of_parts_are_added_in_their_order(n_jobs):
    _, noisy, pilot = volumes(1, (16, 90, 20))
    one = VolumePass(2, 4, 8, 0.8, (2, 4), 1, 3)
    expected = group_volume_pass(noisy, pilot, SIGMA, one)
    assert_array_equal(group_volume_pass(noisy, pilot, SIGMA, one, n_jobs), expected)


def test_neighbouring_slices_help():
    clean, noisy, _ = volumes(1, (9, 28, 28))
    before = noisy.copy()
    found = denoise_volume(noisy[0], SIGMA, refused)
    assert found.dtype == np.float32
    assert_array_equal(noisy, before)
    alone = [denoise_volume(one[None], SIGMA, smooth)[0] for one in noisy[0]]
    assert np.mean((found - clean[0]) ** 2) < 0.5 * np.mean((np.stack(alone) - clean[0]) ** 2)


def test_slices_with_nothing_in_common_are_recognised():
    rng = np.random.default_rng(0)
    clean = gaussian_filter(rng.standard_normal((6, 40, 40)), (0, 2, 2))
    clean /= clean.std()
    noisy = (clean + 0.3 * rng.standard_normal(clean.shape)).astype(np.float32)
    assert not slices_tell_of_each_other(noisy, 0.3, np.random.RandomState(0))
    _, related, _ = volumes(1, (6, 40, 40))
    assert slices_tell_of_each_other(related[0], SIGMA, np.random.RandomState(0))
    asked = []

    def pilot(planes, sigma):
        asked.append((planes.shape, sigma))
        return smooth(planes, sigma)

    found = denoise_volume(noisy, 0.3, pilot)
    assert asked == [((1, 40, 40), 0.3)] * 6
    assert np.mean((found - clean) ** 2) < 0.3 * np.mean((noisy - clean) ** 2)


def test_planes_share_the_groups_of_the_first():
    clean, noisy, pilot = volumes(2)
    one = VolumePass(3, 5, 20, 0.8, (2, 4), 2, 4)
    both = group_volume_pass(noisy, pilot, SIGMA, one)
    swapped = group_volume_pass(noisy[::-1].copy(), pilot[::-1].copy(), SIGMA, one)
    assert_array_equal(both[0], group_volume_pass(noisy[:1], pilot[:1], SIGMA, one)[0])
    assert np.abs(both[1] - swapped[0]).max() > 1e-4
    found = denoise_volume(noisy, SIGMA, refused)
    assert found.shape == noisy.shape
    for c in range(2):
        assert np.mean((found[c] - clean[c]) ** 2) < 0.1 * SIGMA**2


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_small_volumes(depth):
    clean, noisy, _ = volumes(1, (depth, 16, 17))
    found = denoise_volume(noisy[0], SIGMA, smooth)
    assert np.mean((found - clean[0]) ** 2) < 0.5 * SIGMA**2


@pytest.mark.parametrize("shape", [(1, 16, 16), (2, 16, 16), (7, 24, 18)])
def test_a_constant_volume_stays(shape):
    flat = np.full(shape, 0.5, dtype=np.float32)
    assert_allclose(denoise_volume(flat, SIGMA, smooth), 0.5, atol=1e-5)
    for levels in (15, 25, 50):
        for passes in (volume_passes(levels), frame_passes(levels)):
            found = denoise_blocks(flat[None], flat[None], SIGMA, passes)
            assert_allclose(found, 0.5, atol=1e-6)


def test_without_noise_nothing_changes():
    _, noisy, _ = volumes()
    found = denoise_volume(noisy, 0.0, refused)
    assert_array_equal(found, noisy)
    assert not np.shares_memory(found, noisy)


@pytest.mark.parametrize("block", [DEEP, FLAT])
def test_the_first_estimate(block):
    clean, noisy, _ = volumes(1, (9, 30, 31))
    found = mixture_pilot(noisy[0], SIGMA, block, np.random.RandomState(0))
    threads = mixture_pilot(noisy[0], SIGMA, block, np.random.RandomState(0), n_jobs=3)
    assert_array_equal(found, threads)
    assert np.mean((found - clean[0]) ** 2) < (0.1 if block == DEEP else 0.3) * SIGMA**2
