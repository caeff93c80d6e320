"""Patches of a grid equal those of literal loops, in every namespace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.base.arrays import device, to_numpy
from polyspan.images.patches import Canvas, Grid

RNG = np.random.default_rng(0)
GRIDS = [
    Grid(16, 16, 8, 2), Grid(17, 19, 8, 2), Grid(8, 8, 8, 2), Grid(9, 23, 8, 3),
    Grid(18, 11, 8, 1), Grid(14, 13, 5, 4), Grid(12, 7, 3, 3), Grid(6, 9, 1, 1),
]  # fmt: skip


def corners(n, side, step):
    """Return the first corners that cover n pixels; the last patch may stand out."""
    found = [0]
    while found[-1] + side < n:
        found.append(found[-1] + step)
    return found


def literal_pad(plane, grid):
    more = [
        (0, corners(n, grid.side, grid.step)[-1] + grid.side - n) for n in (grid.height, grid.width)
    ]
    return np.pad(plane, more, mode="reflect")


def places(grid):
    """Return the pixels of all patches, row by row of the grid."""
    return [
        np.s_[i : i + grid.side, j : j + grid.side]
        for i in corners(grid.height, grid.side, grid.step)
        for j in corners(grid.width, grid.side, grid.step)
    ]


@pytest.mark.parametrize("grid", GRIDS)
def test_patches_are_those_of_a_loop(place, grid):
    plane = RNG.standard_normal((grid.height, grid.width)).astype(np.float32)
    moved = place.asarray(plane)
    padded = grid.padded(moved)
    assert device(padded) == device(moved)
    assert_array_equal(to_numpy(padded), literal_pad(plane, grid))
    n_rows, n_columns = grid.shape
    found = to_numpy(grid.patches(padded, slice(0, n_rows)))
    wanted = [literal_pad(plane, grid)[at].ravel() for at in places(grid)]
    assert_array_equal(found.T, wanted)
    some = slice(n_rows // 2, n_rows)
    part = to_numpy(grid.patches(padded, some))
    strip = grid.padded(moved, some)
    here = slice(0, some.stop - some.start)
    assert_array_equal(to_numpy(grid.patches(strip, here)), part)
    assert_array_equal(part.T, wanted[some.start * n_columns :])


@pytest.mark.parametrize("grid", GRIDS)
def test_sums_are_those_of_a_loop(place, grid):
    n_rows, n_columns = grid.shape
    patches = RNG.standard_normal((grid.side**2, n_rows * n_columns)).astype(np.float32)
    weights = RNG.random((1, n_rows * n_columns)).astype(np.float32)
    shape = literal_pad(np.zeros((grid.height, grid.width)), grid).shape
    wanted, wanted_weights, counts = (np.zeros(shape) for _ in range(3))
    for n, at in enumerate(places(grid)):
        wanted[at] += patches[:, n].reshape(grid.side, -1)
        wanted_weights[at] += weights[0, n]
        counts[at] += 1
    rows, like = slice(0, n_rows), place.asarray(patches)
    total = grid.sums(rows, like)
    grid.add(total, like, rows)
    assert_allclose(to_numpy(total), wanted, atol=1e-4)
    total = grid.sums(rows, like)
    grid.add(total, place.asarray(weights), rows)
    assert_allclose(to_numpy(total), wanted_weights, atol=1e-4)
    column, row = grid.coverage(like)
    assert_array_equal(to_numpy(column * row), counts)


def test_some_rows_are_added_at_their_place():
    grid = Grid(20, 17, 8, 3)
    patches = RNG.standard_normal((64, grid.shape[0] * grid.shape[1]))
    whole = grid.sums(slice(0, grid.shape[0]), patches)
    grid.add(whole, patches, slice(0, grid.shape[0]))
    parts = np.zeros_like(whole)
    for rows in (slice(0, 2), slice(2, 3), slice(3, grid.shape[0])):
        own = grid.sums(rows, patches)
        grid.add(own, patches[:, rows.start * grid.shape[1] : rows.stop * grid.shape[1]], rows)
        parts[rows.start * 3 : rows.start * 3 + len(own)] += own
    assert_allclose(parts, whole, atol=1e-12)


def test_a_sample_of_all_patches_is_all_of_them_in_order():
    plane = np.arange(30.0).reshape(5, 6)
    patches = Canvas(plane, 2, 1).sample(20, np.random.RandomState(0))
    assert_allclose(patches[:, 0], plane[:4, :5].ravel())
    fewer = Canvas(plane, 2, 1).sample(19, np.random.RandomState(0))
    assert len(np.unique(fewer[:, 0])) == 19
