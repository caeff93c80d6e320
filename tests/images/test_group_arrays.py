"""Group passes in every namespace, and on a device that is no CPU, equal the compiled loops."""

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import polyspan.images.group_arrays as group_arrays
import polyspan.images.groups as groups
from polyspan.base.arrays import device, to_numpy
from polyspan.images.cascade import passed
from polyspan.images.group_arrays import group_pass_arrays
from polyspan.images.groups import LEAST_LEVERAGE, Pass
from support import require_torch


@pytest.fixture(params=["numpy", "strict", "torch", "accelerator"])
def place(request, accelerator):
    """Return where arrays are made: a namespace, or a device that is not the CPU."""
    if request.param == "torch":
        return require_torch()
    return {"numpy": np, "strict": array_api_strict, "accelerator": accelerator}[request.param]


def pictures(n_planes=1, shape=(27, 33), sigma=0.1, dtype="float32"):
    rng = np.random.default_rng(0)
    rows, columns = np.indices(shape)
    clean = np.stack(
        [np.sin((k + 1) * rows / 5) * np.cos(columns / (4 + k)) for k in range(n_planes)]
    )
    noisy, pilot = (clean + s * rng.standard_normal(clean.shape) for s in (sigma, 0.3 * sigma))
    return noisy.astype(dtype), pilot.astype(dtype)


def literal_groups(z, side, step, k):
    """Return the corners of the patches of all groups, found one by one in double precision."""
    height, width = z.shape
    found = []
    for top in groups.corners(height - side, step):
        for left in groups.corners(width - side, step):
            near = {}
            for i in range(max(0, top - 18), min(height - side, top + 18) + 1):
                for j in range(max(0, left - 18), min(width - side, left + 18) + 1):
                    apart = z[i : i + side, j : j + side] - z[top : top + side, left : left + side]
                    near[i * width + j] = np.sum(apart**2)
            found.append(sorted(sorted(near, key=near.get)[:k]))
    return found


@pytest.mark.parametrize("one", [Pass(6, 20, 0.8, 4), Pass(5, 30, 1.0, 3)])
def test_a_pass_equals_the_compiled_loops(place, one):
    noisy, pilot = pictures(2)
    moved = place.asarray(noisy)
    found = group_pass_arrays(moved, place.asarray(pilot), 0.1, one)
    assert device(found) == device(moved)
    assert found.dtype == moved.dtype
    assert_allclose(to_numpy(found), groups.group_pass(noisy, pilot, 0.1, one), atol=5e-6)


def test_the_patches_of_all_groups_are_the_nearest(place):
    z = pictures(dtype="float64")[1][0]
    for side, step, k in [(6, 4, 12), (7, 5, 20)]:
        corners = [groups.corners(n - side, step) for n in z.shape]
        found = group_arrays._similar_patches(place.asarray(z), *corners, k, Pass(side, k, 1.0, 1))
        assert_array_equal(
            np.sort(to_numpy(found)[:, :, 0], axis=1), literal_groups(z, side, step, k)
        )


def test_all_namespaces_agree_in_double_precision(place):
    one = Pass(6, 20, 0.8, 4)
    noisy, pilot = pictures(2, dtype="float64")
    found = group_pass_arrays(place.asarray(noisy), place.asarray(pilot), 0.1, one)
    assert_allclose(to_numpy(found), group_pass_arrays(noisy, pilot, 0.1, one), atol=1e-9)


@pytest.mark.parametrize("shape", [(6, 6), (6, 31), (29, 7)])
def test_pictures_that_are_hardly_larger_than_a_patch(place, shape):
    one = Pass(6, 34, 0.8, 4)
    noisy, pilot = pictures(1, shape)
    found = group_pass_arrays(place.asarray(noisy), place.asarray(pilot), 0.1, one)
    assert_allclose(to_numpy(found), groups.group_pass(noisy, pilot, 0.1, one), atol=5e-6)


def test_the_size_of_strips_changes_no_more_than_rounding(place, monkeypatch):
    one = Pass(6, 20, 0.8, 4)
    noisy, pilot = (place.asarray(a) for a in pictures(2))
    strips = []
    literal = group_arrays._similar_patches
    monkeypatch.setattr(
        group_arrays,
        "_similar_patches",
        lambda z, tops, *rest: strips.append(len(tops)) or literal(z, tops, *rest),
    )
    expected = to_numpy(group_pass_arrays(noisy, pilot, 0.1, one))
    found = to_numpy(group_pass_arrays(noisy, pilot, 0.1, one, memory=1))
    assert strips == [7, 1, 1, 1, 1, 1, 1, 1]
    assert_allclose(found, expected, atol=1e-6)


def test_sums_do_not_depend_on_the_order():
    torch = require_torch()
    rng = np.random.default_rng(0)
    places, values = rng.integers(0, 7, 500), rng.integers(-(2**60), 2**60, 500)
    expected = [sum(int(v) for v in values[places == q]) for q in range(9)]
    expected = [(v + 2**63) % 2**64 - 2**63 for v in expected]
    for order in (np.arange(500), rng.permutation(500)):
        for xp in (np, array_api_strict, torch):
            add = group_arrays._sums_at(xp.asarray(places[order]), 9)
            assert_array_equal(to_numpy(add(xp.asarray(values[order]))), expected)


def test_a_scale_is_a_matter_of_units(place):
    one = Pass(6, 20, 0.8, 4)
    noisy, pilot = pictures()
    expected = to_numpy(group_pass_arrays(place.asarray(noisy), place.asarray(pilot), 0.1, one))
    for scale in (2.0**-100, 2.0**100):
        moved = (place.asarray(a * np.float32(scale)) for a in (noisy, pilot))
        found = group_pass_arrays(*moved, 0.1 * scale, one)
        assert_array_equal(to_numpy(found) / np.float32(scale), expected)


@pytest.mark.parametrize("sigma", [1e-30, 1e-9, 1e-5])
def test_pictures_without_noise_stay(place, sigma):
    one = Pass(8, 40, 0.8, 6)
    ramp = (np.indices((24, 30)).sum(axis=0)[None] / 54).astype(np.float32)
    for picture in (ramp, 0 * ramp, 0 * ramp + 1):
        moved = place.asarray(picture)
        assert_allclose(to_numpy(group_pass_arrays(moved, moved, sigma, one)), picture, atol=1e-4)


def test_largest_sums_fit_their_integers():
    largest = (2 * 16 + 1) / LEAST_LEVERAGE * 37**2 * 16**2
    assert largest * group_arrays.UNITS < 2**63


def test_all_passes(place):
    passes = (Pass(6, 20, 0.8, 4), Pass(5, 30, 1.0, 3))
    noisy, pilot = pictures(2)
    found = passed(place.asarray(noisy), place.asarray(pilot), 0.1, passes)
    # A near tie of the second pass may be decided otherwise.
    assert_allclose(to_numpy(found), passed(noisy, pilot, 0.1, passes), atol=1e-4)
