import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from polyspan.datasets import extract_patches, load_city_scene
from polyspan.datasets.files import read_gray

PIXELS = np.random.RandomState(0).randint(1, 256, size=(61, 83)).astype(np.uint8)


@pytest.fixture
def path(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "own.png")
    return tmp_path / "own.png"


def test_halves_of_a_users_image(path):
    scene = load_city_scene(path)
    assert np.array_equal(scene.image, PIXELS / 255)
    assert scene.train.shape == scene.test.shape == (4, 600)
    for patches, half in ((scene.train, PIXELS[:, :41]), (scene.test, PIXELS[:, 41:82])):
        raw = extract_patches(half, (30, 20)).astype(float)
        assert_allclose(patches, raw / np.linalg.norm(raw, axis=1, keepdims=True))


def test_other_patches_without_scaling(path):
    scene = load_city_scene(str(path), patch_shape=10, normalize=False)
    assert scene.train.shape == (24, 100)
    assert np.array_equal(scene.test[0].reshape(10, 10), scene.image[:10, 41:51])


def test_black_patches_stay_zero(tmp_path):
    Image.fromarray(np.zeros((30, 40), np.uint8)).save(tmp_path / "black.png")
    scene = load_city_scene(tmp_path / "black.png")
    assert np.array_equal(scene.train, np.zeros((1, 600)))


def test_colour_becomes_gray(tmp_path):
    colour = np.repeat(PIXELS[:, :, None], 3, axis=2)
    Image.fromarray(colour).save(tmp_path / "colour.png")
    assert_allclose(load_city_scene(tmp_path / "colour.png").image, PIXELS / 255, atol=1 / 254)


def test_what_is_not_found(path, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"name='paris' is neither one of .*city_hall"):
        load_city_scene("paris")
    with pytest.raises(FileNotFoundError, match=r"not found in data_home.*photograph of your own"):
        load_city_scene("street", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"gone\.png"):
        read_gray(tmp_path / "gone.png")


def test_what_is_not_an_image(path, tmp_path):
    (tmp_path / "text.png").write_text("no pixels", encoding="utf-8")
    with pytest.raises(ValueError, match=r"text\.png is not an image"):
        load_city_scene(tmp_path / "text.png")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"own\.png is an incomplete image"):
        load_city_scene(path)
    Image.fromarray(np.full((61, 83), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(ValueError, match="8 bits per channel"):
        load_city_scene(tmp_path / "deep.png")


def test_an_image_too_small_for_its_patches(path):
    with pytest.raises(ValueError, match=r"does not fit into an image of 61 rows and 41 columns"):
        load_city_scene(path, patch_shape=50)


def test_without_pillow(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r'needs pillow: pip install "polyspan\[data\]"'):
        load_city_scene(path)


@pytest.mark.parametrize(
    ("name", "shape", "n"), [("city_hall", (576, 1524), 722), ("street", (768, 1536), 950)]
)
def test_the_real_scenes(needs_data, name, shape, n):
    needs_data(name)
    scene = load_city_scene(name)
    assert scene.image.shape == shape
    assert 0 <= scene.image.min() < scene.image.max() <= 1
    for patches in (scene.train, scene.test):
        assert patches.shape == (n, 600)
        assert_allclose(np.linalg.norm(patches, axis=1), 1)
