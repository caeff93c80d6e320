"""Pictures become planes and planes pictures; pictures of half the size, and back."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import map_coordinates

from polyspan.base.arrays import to_numpy
from polyspan.images.planes import (
    as_channels,
    as_image,
    brightness_basis,
    brightness_of,
    enlarge,
    halve,
    mixed,
    with_coarse_scale,
)

SHAPES = pytest.mark.parametrize("shape", [(20, 30), (21, 31), (21, 30)])


def literal_half(plane):
    padded = np.pad(plane, [(0, n % 2) for n in plane.shape], mode="edge")
    height, width = (n // 2 for n in padded.shape)
    return padded.reshape(height, 2, width, 2).mean(axis=(1, 3))


def literal_double(plane, shape):
    """Bilinear between the centres of the pixels."""
    at = [
        np.clip((np.arange(n) - 0.5) / 2, 0, m - 1) for n, m in zip(shape, plane.shape, strict=True)
    ]
    return map_coordinates(plane, np.meshgrid(*at, indexing="ij"), order=1)


@SHAPES
def test_half_and_double_equal_the_formulas(place, shape):
    planes = np.random.default_rng(0).standard_normal((2, *shape))
    small = np.stack([literal_half(one) for one in planes])
    assert_allclose(to_numpy(halve(place.asarray(planes))), small, atol=1e-14)
    found = to_numpy(enlarge(place.asarray(small), shape))
    assert_allclose(found, [literal_double(one, shape) for one in small], atol=1e-14)
    coarse = small + np.random.default_rng(1).standard_normal(small.shape)
    found = to_numpy(with_coarse_scale(place.asarray(planes), place.asarray(coarse)))
    more = [literal_double(one, shape) for one in coarse - small]
    assert_allclose(found, planes + more, atol=1e-14)


@SHAPES
def test_a_ramp_comes_back(shape):
    planes = np.indices(shape).sum(axis=0)[None].astype(float)
    back = enlarge(halve(planes), shape)
    assert_allclose(back[0, 2:-3, 2:-3], planes[0, 2:-3, 2:-3], atol=1e-9)


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_planes_become_the_picture_again(axis, kind):
    picture = (255 * np.random.default_rng(0).random((5, 7, 3))).astype(kind)
    moved = np.moveaxis(picture, 2, axis)
    channels, dtype, scale = as_channels(moved, axis)
    basis = brightness_basis(3)
    assert_allclose(basis @ basis.T, np.eye(3), atol=1e-6)
    planes = mixed(basis, channels)
    assert planes.shape == (3, 5, 7)
    expected = moved / (255 if kind is np.uint8 else 1)
    assert_allclose(as_image(mixed(basis.T, planes), axis, dtype, scale), expected, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 2.0**40])
def test_brightness_is_in_the_units_of_the_picture(scale):
    picture = scale * np.random.default_rng(0).random((5, 7, 3))
    expected = picture.sum(axis=2) / 3**0.5
    assert_allclose(brightness_of(picture, -1), expected, rtol=1e-5)
    assert_allclose(brightness_of(picture[..., 0], None), picture[..., 0], rtol=1e-5)
