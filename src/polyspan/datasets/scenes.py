"""Photographs of city scenes: patches of the left half for training, of the right for testing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyspan.base.arrays import unit_rows
from polyspan.datasets.files import DataFile, find_file, read_gray
from polyspan.datasets.patches import Size, extract_patches

_ADVICE = (
    "It is not published under this checksum, so it cannot be downloaded: ask those who have it, "
    "or give load_city_scene the path of a photograph of your own."
)
SCENES = {
    "city_hall": DataFile(
        name="sf_city_hall_gray_576x1524.png",
        sha256="a89af7f8f6a75471488aa5893d53a64ea2d81c7de7d3ed3d65deebd59df7d3f1",
        advice=_ADVICE,
    ),
    "street": DataFile(
        name="nyc_street_gray_768x1536.png",
        sha256="159b46f677724c6cafe05c5e48c681d88629af1526f12630381fd1b9ea00c5ff",
        advice=_ADVICE,
    ),
}


@dataclass(frozen=True)
class Scene:
    """An image, and patches of its halves as samples.

    Parameters
    ----------
    image : ndarray of shape (height, width)
        Gray values between 0 and 1.
    train : ndarray of shape (n_patches, n_pixels)
        Patches of the left half; pixels row by row.
    test : ndarray of shape (n_patches, n_pixels)
        Patches of the right half.
    """

    image: np.ndarray
    train: np.ndarray
    test: np.ndarray


def load_city_scene(
    name: str | os.PathLike[str] = "city_hall",
    *,
    patch_shape: Size = (30, 20),
    normalize: bool = True,
    data_home: str | os.PathLike[str] | None = None,
) -> Scene:
    """Load a photograph, and cut its halves into patches that do not overlap.

    The files of the two scenes are read from `data_home`, or else from the folder that the
    environment variable POLYSPAN_DATA names, or from the cache folder. They cannot be downloaded.
    Any other image can be given by its path. Reading it needs pillow: `pip install pillow`.

    Parameters
    ----------
    name : {"city_hall", "street"} or path, default="city_hall"
        "city_hall": San Francisco City Hall, 722 patches in each half; "street": a street in New
        York, 950. They have the sizes of the paper's two photographs, but may be other ones. A
        path: an image file of your own, read as gray.
    patch_shape : int or (int, int), default=(30, 20)
        Rows and columns of a patch; the default is the paper's.
    normalize : bool, default=True
        Whether to scale every patch to norm 1, as in the paper. Black patches stay zero.
    data_home : path, default=None
        Folder of the files of the two scenes. If it is given, no other folder is searched.

    Returns
    -------
    Scene
        The image, and the patches of its halves, `train` and `test`. If the number of columns is
        odd, the last one is left out.

    Examples
    --------
    >>> from polyspan.datasets import load_city_scene
    >>> scene = load_city_scene("city_hall")
    >>> scene.image.shape, scene.train.shape, scene.test.shape
    ((576, 1524), (722, 600), (722, 600))
    """
    path = Path(name).expanduser()
    if isinstance(name, str) and name in SCENES:
        path = find_file(SCENES[name], data_home)
    elif not path.is_file():
        raise FileNotFoundError(
            f"name={str(name)!r} is neither one of {tuple(SCENES)} nor an image file that exists"
        )
    image = read_gray(path) / 255.0
    half = image.shape[1] // 2
    train, test = (
        extract_patches(image[:, start : start + half], patch_shape) for start in (0, half)
    )
    if normalize:
        train, test = unit_rows(train), unit_rows(test)
    return Scene(image=image, train=train, test=test)
