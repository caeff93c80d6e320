"""Groups of similar patches: the compiled loops equal the formulas, in any number of threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter

from polyspan.images.cascade import passed
from polyspan.images.groups import (
    LEAST_LEVERAGE,
    RADIUS,
    Pass,
    corners,
    group_pass,
    passes_for,
)


def literal_pass(planes, estimate, sigma, one):
    """The formulas, group by group, in double precision."""
    _, height, width = planes.shape
    totals, weights = np.zeros(planes.shape), np.zeros(planes.shape)
    p, K = one.side, one.n_similar

    def patches(plane, places):
        return np.array([plane[i : i + p, j : j + p].ravel() for i, j in places], dtype=float)

    for top in corners(height - p, one.step):
        for left in corners(width - p, one.step):
            places = [
                (i, j)
                for i in range(max(0, top - RADIUS), min(height - p, top + RADIUS) + 1)
                for j in range(max(0, left - RADIUS), min(width - p, left + RADIUS) + 1)
            ]
            every = patches(estimate[0], places)
            own = patches(estimate[0], [(top, left)])
            distances = ((every - own) ** 2).sum(axis=1)
            distances[places.index((top, left))] = -1.0
            order = np.argsort(distances, kind="stable")[:K]
            group = [places[q] for q in order]
            for c in range(len(planes)):
                B, Y = patches(estimate[c], group), patches(planes[c], group)
                mean = B.mean(axis=0)
                B, Y = B - mean, Y - mean
                inverse = np.linalg.inv(B @ B.T + K * one.kappa * sigma**2 * np.eye(K))
                X = Y @ B.T @ inverse @ B + mean
                leverage = np.einsum("qt,qr,rt->t", B, inverse, B)
                weight = (1.0 / (leverage + LEAST_LEVERAGE)).reshape(p, p)
                for (i, j), x in zip(group, X, strict=True):
                    totals[c, i : i + p, j : j + p] += weight * x.reshape(p, p)
                    weights[c, i : i + p, j : j + p] += weight
    return totals / weights


def pictures(n_planes=1, shape=(30, 41), sigma=0.1):
    rng = np.random.default_rng(0)
    rows, columns = np.indices(shape)
    clean = np.stack(
        [np.sin((k + 1) * rows / 5) * np.cos(columns / (4 + k)) for k in range(n_planes)]
    )
    noisy = (clean + sigma * rng.standard_normal(clean.shape)).astype(np.float32)
    pilot = (clean + 0.3 * sigma * rng.standard_normal(clean.shape)).astype(np.float32)
    return clean, noisy, pilot


@pytest.mark.parametrize("n_planes", [1, 3])
@pytest.mark.parametrize("one", [Pass(6, 20, 0.8, 4), Pass(5, 30, 1.0, 3)])
def test_compiled_loops_equal_the_formulas(n_planes, one):
    _, noisy, pilot = pictures(n_planes)
    found = group_pass(noisy, pilot, 0.1, one)
    assert_allclose(found, literal_pass(noisy, pilot, 0.1, one), atol=2e-4)


def test_the_number_of_threads_changes_no_bit():
    _, noisy, pilot = pictures(2, (90, 50))
    one = Pass(6, 20, 0.8, 3)
    expected = group_pass(noisy, pilot, 0.1, one, n_jobs=1)
    for n_jobs in (2, 3):
        assert_array_equal(group_pass(noisy, pilot, 0.1, one, n_jobs=n_jobs), expected)


def test_noise_is_removed():
    clean, noisy, _ = pictures(1, (64, 64), 0.2)
    pilot = gaussian_filter(noisy, (0, 1, 1))
    found = passed(noisy, pilot, 0.2, passes_for(51))
    assert np.mean((found - clean) ** 2) < 0.06 * np.mean((noisy - clean) ** 2)


@pytest.mark.parametrize("shape", [(11, 11), (12, 40), (24, 24)])
def test_a_constant_picture_stays(shape):
    flat = np.full((1, *shape), 0.5, dtype=np.float32)
    for sigma in (15, 25, 50):
        assert_allclose(passed(flat, flat, 0.1, passes_for(sigma)), 0.5, atol=1e-6)
