import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from polyspan.datasets import assemble_patches, extract_patches

GRAY = np.arange(7 * 9, dtype=float).reshape(7, 9)
COLOUR = np.random.RandomState(0).uniform(size=(7, 9, 3))


def test_patches_are_the_pieces_row_by_row():
    patches = extract_patches(GRAY, (3, 4))
    expected = [GRAY[i : i + 3, j : j + 4].ravel() for i in (0, 3) for j in (0, 4)]
    assert np.array_equal(patches, expected)


def test_colour_patches_have_channels_last():
    patches = extract_patches(COLOUR, (3, 4), step=(2, 5))
    expected = [COLOUR[i : i + 3, j : j + 4] for i in (0, 2, 4) for j in (0, 5)]
    assert np.array_equal(patches.reshape(-1, 3, 4, 3), expected)


def test_a_copy_of_the_same_type():
    image = GRAY.astype(np.uint8)
    patches = extract_patches(image, 7)
    assert patches.dtype == np.uint8
    patches[:] = 0
    assert image.any()


@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    patch=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    step=st.one_of(st.none(), st.tuples(st.integers(1, 6), st.integers(1, 6))),
    channels=st.sampled_from([(), (1,), (3,)]),
    cover=st.booleans(),
)
def test_patches_assemble_to_the_image(shape, patch, step, channels, cover):
    image = np.random.RandomState(0).uniform(size=shape + channels)
    if patch[0] > shape[0] or patch[1] > shape[1]:
        with pytest.raises(ValueError, match="does not fit"):
            extract_patches(image, patch, step=step, cover=cover)
        return
    patches = extract_patches(image, patch, step=step, cover=cover)
    back = assemble_patches(patches, image.shape, patch, step=step, cover=cover)
    seen = ~np.isnan(back)
    assert_allclose(back[seen], image[seen], rtol=1e-12)
    index = np.arange(shape[0] * shape[1]).reshape(shape)
    taken = np.isin(index, extract_patches(index, patch, step=step, cover=cover))
    assert np.array_equal(seen.reshape(*shape, -1).all(axis=2), taken)
    assert np.array_equal(seen.reshape(*shape, -1).any(axis=2), taken)
    if cover and (step is None or (step[0] <= patch[0] and step[1] <= patch[1])):
        assert seen.all()


def test_the_mean_where_patches_overlap():
    patches = np.array([[1.0, 1.0], [4.0, 7.0]])
    assert assemble_patches(patches, (1, 3), (1, 2), step=1).tolist() == [[1.0, 2.5, 7.0]]


def test_types_of_an_assembled_image():
    assert assemble_patches(np.ones((1, 4), "float32"), (2, 2), 2).dtype == np.float32
    assert assemble_patches(np.ones((1, 4), int), (2, 2), 2).dtype == np.float64


def test_the_patches_of_the_paper():
    assert extract_patches(np.zeros((576, 762)), (30, 20)).shape == (722, 600)
    assert extract_patches(np.zeros((768, 768)), (30, 20)).shape == (950, 600)


@pytest.mark.parametrize(
    ("image", "patch", "step", "message"),
    [
        (GRAY[0], 2, None, r"found shape \(9,\)"),
        (GRAY[:0], 2, None, r"found shape \(0, 9\)"),
        (GRAY, (8, 2), None, r"patch_shape=\(8, 2\) does not fit into an image of 7 rows and 9"),
        (GRAY, (2, 2, 2), None, r"patch_shape=\(2, 2, 2\) must be one or two whole numbers"),
        (GRAY, 2.5, None, "patch_shape=2.5 must be"),
        (GRAY, 0, None, "patch_shape=0 must be"),
        (GRAY, 2, (1, 0), r"step=\(1, 0\) must be"),
    ],
)
def test_bad_input(image, patch, step, message):
    with pytest.raises(ValueError, match=message):
        extract_patches(image, patch, step=step)


def test_patches_that_do_not_make_up_the_image():
    patches = extract_patches(GRAY, 3)
    with pytest.raises(ValueError, match=r"shape \(6, 9\) do not make up .* \(9, 9\) is needed"):
        assemble_patches(patches, (9, 9), 3)
    with pytest.raises(ValueError, match=r"image_shape must be \(height, width\)"):
        assemble_patches(patches, (9,), 3)
