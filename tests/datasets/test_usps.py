import hashlib

import numpy as np
import pytest
import scipy.io
from numpy.testing import assert_allclose

from polyspan.datasets import load_usps, usps
from polyspan.datasets.files import DataFile


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A file of 5 samples per digit in the layout of the real one; returns its pixels."""
    data = np.random.RandomState(0).randint(0, 256, size=(256, 5, 10)).astype(np.uint8)
    path = tmp_path / "small.mat"
    scipy.io.savemat(path, {"data": data})
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(usps, "USPS", DataFile("small.mat", sha256, "Here."))
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    return data.astype(float)


def test_digits_are_where_the_file_has_them(small):
    data = load_usps((7, 0), n_per_digit=3, normalize=False)
    assert np.array_equal(data.X, np.concatenate([small[:, :3, 6].T, small[:, :3, 9].T]))
    assert data.target.tolist() == [7] * 3 + [0] * 3
    assert np.array_equal(load_usps(normalize=False).X[-5:], small[:, :, 8].T)
    assert load_usps().target.tolist() == np.repeat(range(10), 5).tolist()


def test_samples_have_norm_one(small):
    data = load_usps(4)
    assert data.X.shape == (5, 256)
    assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert_allclose(data.X * np.linalg.norm(small[:, :, 3], axis=0)[:, None], small[:, :, 3].T)


def test_images_are_the_columns_of_the_file_column_by_column(small):
    data = load_usps((1, 2), normalize=False)
    assert data.X.flags.c_contiguous
    assert np.array_equal(data.images[2], small[:, 2, 0].reshape(16, 16, order="F"))
    assert np.shares_memory(data.images, data.X)
    assert np.array_equal(data.to_images(data.X[2]), data.images[2:3])


@pytest.mark.parametrize("digits", [(), 10, (1, -1), 2.5, "3"])
def test_bad_digits(small, digits):
    with pytest.raises(ValueError, match="must be whole numbers from 0 to 9"):
        load_usps(digits)


@pytest.mark.parametrize("n", [0, 6, 2.0, [3]])
def test_bad_numbers(small, n):
    with pytest.raises(ValueError, match="must be a whole number from 1 to 5"):
        load_usps(n_per_digit=n)


def test_a_damaged_file_is_not_read(small, tmp_path):
    path = tmp_path / "small.mat"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"small\.mat .* has the SHA-256"):
        load_usps()


def test_the_network_is_not_used_against_the_users_will(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"Sam Roweis publishes it at https://cs\.nyu\.edu/"
    ):
        load_usps(data_home=tmp_path)


def test_the_real_digits(needs_data):
    needs_data("usps")
    data = load_usps(download=False)
    assert data.X.shape == (11000, 256)
    assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    # Upright: a seven has most of its ink in the right corner on top, then in the left one.
    seven = data.images[data.target == 7].mean(axis=0)
    top, bottom, left, right = slice(0, 4), slice(12, 16), slice(0, 4), slice(12, 16)
    corners = [seven[corner].sum() for corner in ((top, right), (top, left), (bottom, left))]
    assert corners == sorted(corners, reverse=True)
    assert corners[-1] > 2 * seven[bottom, right].sum()
