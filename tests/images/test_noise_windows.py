"""A picture of windows from all over a large one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.images import denoise_image, estimate_noise
from polyspan.images.noise import mosaic, step_for

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3, 40, 57), (40, 57), (2, 20, 100)])
def test_the_windows_are_those_of_the_picture(shape, place):
    picture = RNG.random(shape)
    moved = place.asarray(picture)
    small, step = mosaic(moved, 4, 9)
    assert step == 4
    assert device(small) == device(moved)
    rows, columns = (n // 9 for n in shape[-2:])
    assert small.shape == (*shape[:-2], 4 * rows, 4 * columns)
    for i in range(rows):
        for j in range(columns):
            window = to_numpy(small)[..., 4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
            assert_array_equal(window, picture[..., 9 * i : 9 * i + 4, 9 * j : 9 * j + 4])


def test_windows_that_overlap_are_all_pixels():
    picture = RNG.random((30, 40))
    for side, step in ((8, 3), (8, 8), (5, 31)):
        assert mosaic(picture, side, step)[0] is picture


def test_there_are_at_most_so_many():
    for height, width, most in ((100, 300, 50), (64, 64, 10**6), (3, 3, 4)):
        step = step_for((height, width), 8, most)
        rows, columns = (len(range(0, max(1, n - 7), step)) for n in (height, width))
        assert rows * columns <= 1.5 * most  # of rows or columns one more than the quotient
        assert step == 1 or max(1, height - 7) * max(1, width - 7) > most


def test_of_a_large_picture_windows_alone_are_computed_with(monkeypatch):
    picture = (99 * RNG.random((300, 400, 3))).astype(np.uint8)
    monkeypatch.setattr("polyspan.images.noise.MOST_PATCHES", 10000)
    monkeypatch.setattr("polyspan.images.noise.SOME_PATCHES", 500)
    seen = []
    for name in ("as_channels", "to_numpy"):
        path = f"polyspan.images.noise.{name}"
        real = getattr(__import__("polyspan.images.noise", fromlist=[name]), name)

        def spy(pixels, *args, real=real):
            seen.append(pixels.size)
            return real(pixels, *args)

        monkeypatch.setattr(path, spy)
    part = estimate_noise(picture, -1)
    assert len(seen) == 2
    assert max(seen) <= 3 * 500 * 64
    monkeypatch.undo()
    assert part == pytest.approx(estimate_noise(picture, -1), rel=0.1)


def test_the_noise_is_that_of_estimate_noise(monkeypatch):
    monkeypatch.setattr("polyspan.images.noise.MOST_PATCHES", 1000)
    monkeypatch.setattr("polyspan.images.noise.SOME_PATCHES", 100)
    rows, columns = np.indices((120, 130)) / 130
    noisy = rows + columns + 0.1 * RNG.standard_normal(rows.shape)
    sigma = estimate_noise(noisy)
    assert sigma == pytest.approx(0.1, rel=0.25)
    assert_array_equal(denoise_image(noisy, preset="fast"), denoise_image(noisy, sigma, "fast"))
