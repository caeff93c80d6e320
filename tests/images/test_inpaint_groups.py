"""Groups that fill holes: the compiled loops equal the formulas; hidden pixels choose weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter

from polyspan.images.groups import Pass, corners
from polyspan.images.inpaint_groups import LEAST_VARIANCE, fill_groups
from polyspan.images.interpolation import guess_from_other_channels, interpolate

RNG = np.random.default_rng(0)
PLANES = gaussian_filter(RNG.standard_normal((3, 40, 36)), (0, 1.5, 1.5)).astype(np.float32)
SHARED = RNG.random((1, 40, 36)) < 0.3
OWN = RNG.random(PLANES.shape) < 0.3


def literal_round(planes, missing, one, joint, scale):
    """The conditional expectation of each reference patch, in double precision."""
    n_planes, height, width = planes.shape
    p, holes = one.side, np.broadcast_to(missing, planes.shape)
    guide = planes.mean(axis=0) if joint > 1 else planes[0]
    noise, floor = one.kappa * scale**2, LEAST_VARIANCE * scale**2
    totals, weights = np.zeros(planes.shape), np.zeros(planes.shape)
    for top in corners(height - p, one.step):
        for left in corners(width - p, one.step):
            places = [
                np.s_[:, i : i + p, j : j + p]
                for i in range(max(0, top - one.radius), min(height - p, top + one.radius) + 1)
                for j in range(max(0, left - one.radius), min(width - p, left + one.radius) + 1)
            ]
            own = np.s_[:, top : top + p, left : left + p]
            far = [((guide[None][at] - guide[None][own]) ** 2).sum() for at in places]
            near = [places[k] for k in np.argsort(far)[: one.n_similar]]
            for first in range(0, n_planes, joint):
                some = slice(first, first + joint)
                B = np.array([planes[some][at].ravel() for at in near], dtype=np.float64)
                mean, lost = B.mean(axis=0), holes[some][own].ravel()
                C = np.cov(B.T, bias=True) + noise * np.eye(len(mean))
                gain = C[np.ix_(lost, ~lost)] @ np.linalg.inv(C[np.ix_(~lost, ~lost)])
                values = planes[some][own].ravel()
                found = mean[lost] + gain @ (values - mean)[~lost]
                left_over = C[np.ix_(lost, lost)] - gain @ C[np.ix_(~lost, lost)]
                w = np.zeros(len(mean))
                w[lost] = 1 / (np.diag(left_over) + floor)
                weights[some][own] += w.reshape(joint, p, p)
                w[lost] *= found
                totals[some][own] += w.reshape(joint, p, p)
    return np.where(holes, totals / np.where(holes, weights, 1), planes)


@pytest.mark.parametrize(("missing", "joint"), [(SHARED, 1), (OWN, 3)])
def test_the_loops_equal_the_formulas(missing, joint):
    one = Pass(5, 12, (20 / 255) ** 2, 3, radius=6)
    holes = np.broadcast_to(missing, PLANES.shape)
    ranges = [np.ptp(plane[~hole]) for plane, hole in zip(PLANES, holes, strict=True)]
    scale = max(ranges) / (1 if joint == 3 else 3**0.5)
    wanted = literal_round(PLANES, missing, one, joint, scale)
    assert_allclose(fill_groups(PLANES, missing, (one,)), wanted, atol=2e-4)


def test_what_is_given_stays_and_threads_change_nothing():
    before = PLANES.copy()
    rounds = (Pass(8, 30, 0.002, 2, radius=12), Pass(6, 30, 0.0004, 1, radius=12))
    first = fill_groups(PLANES, OWN, rounds)
    assert_array_equal(PLANES, before)
    assert_array_equal(first[~OWN], PLANES[~OWN])
    assert (first[OWN] != PLANES[OWN]).all()
    assert_array_equal(fill_groups(PLANES, OWN, rounds, n_jobs=3), first)


def test_a_picture_smaller_than_a_patch_and_its_neighbourhood():
    small, holes = PLANES[:1, :6, :7], SHARED[:, :6, :7]
    assert np.isfinite(fill_groups(small, holes, (Pass(8, 30, 0.0004, 2, radius=12),))).all()


def test_detail_of_other_channels_is_found_in_the_holes():
    """The channels are one texture with factors, the last the negative of it; and a slope."""
    texture = RNG.standard_normal((40, 36))
    slope = np.linspace(0, 3, 36)
    channels = np.stack([texture, 2 * texture + slope, -texture]).astype(np.float32)
    found = guess_from_other_channels(np.where(OWN, 0, channels).astype(np.float32), OWN)
    assert_array_equal(found[~OWN], channels[~OWN])
    alone = np.repeat(OWN[1:2], 3, axis=0) & np.array([False, True, False])[:, None, None]
    found = guess_from_other_channels(np.where(alone, 0, channels).astype(np.float32), alone)
    error = np.abs(found - channels)[alone].mean()
    smooth = interpolate(np.where(alone[1], 0, channels[1]), alone[1])
    assert error < np.abs(smooth - channels[1])[alone[1]].mean()
