"""The data of the experiments: the real files, or data of scikit-learn instead of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_sample_image

from polyspan.datasets import (
    extract_patches,
    load_city_scene,
    load_extended_yale_b,
    load_usps,
)

REAL, STAND_IN = "real", "stand-in"

_REAL_NAMES = {
    "usps": "USPS digits",
    "faces": "Extended Yale B faces",
    "scene": "The San Francisco City Hall photograph",
    "street": "A New York street, in place of the Paris City Hall photograph, which was not found",
}
_STAND_IN_NAMES = {
    "usps": "Scikit-learn's 8×8 digits stand in for USPS",
    "faces": "Scikit-learn's 8×8 digits stand in for Extended Yale B, each digit for one subject",
    "scene": "Scikit-learn's photograph “china” stands in for the City Hall",
    "street": "Scikit-learn's photograph “flower” stands in for the second scene",
}


@dataclass(frozen=True)
class Source:
    """Where experiments get their data. It loads lazily, because it is sent to every worker."""

    data_home: str | None = None
    """Folder of the files; None means POLYSPAN_DATA, then the cache."""
    stand_in: bool = False
    """Whether to use the data of scikit-learn even if the files exist."""

    def kind(self, needs: str) -> str:
        """Return REAL if the real data can be loaded, else STAND_IN."""
        if self.stand_in:
            return STAND_IN
        try:
            _real(needs, self.data_home)
        except (FileNotFoundError, ImportError, ConnectionError):
            return STAND_IN
        return REAL

    def describe(self, needs: str, kind: str) -> str:
        """Say which data an experiment ran on."""
        return f"{(_REAL_NAMES if kind == REAL else _STAND_IN_NAMES)[needs]}."

    def digits(self, kind: str, first: int = 200) -> dict[int, np.ndarray]:
        """Return the first samples of every digit, of norm 1."""
        if kind == REAL:
            data = _real("usps", self.data_home)
            return {d: data.X[data.target == d][:first] for d in range(10)}
        return _stand_in_digits(first)

    def faces(self, kind: str, downsampling: str = "nearest") -> np.ndarray:
        """Return images of all subjects, (n_subjects, n_images, n_pixels), not normalised."""
        if kind == REAL:
            data = _faces(self.data_home, downsampling)
            return np.asarray(data.X.reshape(38, 64, -1))
        groups = _stand_in_digits(64, scaled=False)
        return np.stack([groups[d] for d in range(10)])

    def scene(self, kind: str, needs: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the picture, and patches of norm 1 from its left and its right half."""
        if kind == REAL:
            data = _real(needs, self.data_home)
            return data.image, data.train, data.test
        return _stand_in_scene("china.jpg" if needs == "scene" else "flower.jpg")


@lru_cache(maxsize=8)
def _real(needs: str, data_home: str | None) -> Any:
    if needs == "usps":
        return load_usps(data_home=data_home, download=False)
    if needs == "faces":
        return _faces(data_home, "nearest")
    return load_city_scene({"scene": "city_hall", "street": "street"}[needs], data_home=data_home)


@lru_cache(maxsize=2)
def _faces(data_home: str | None, downsampling: str) -> Any:
    return load_extended_yale_b(downsampling=downsampling, normalize=False, data_home=data_home)


def _stand_in_digits(first: int, scaled: bool = True) -> dict[int, np.ndarray]:
    data = load_digits()
    groups = {d: data.data[data.target == d][:first] for d in range(10)}
    if not scaled:
        return groups
    return {d: X / np.linalg.norm(X, axis=1, keepdims=True) for d, X in groups.items()}


@lru_cache(maxsize=2)
def _stand_in_scene(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    image = load_sample_image(name).mean(axis=2) / 255.0
    half = image.shape[1] // 2
    parts = [extract_patches(image[:, k : k + half], (30, 20)) for k in (0, half)]
    train, test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts)
    return image, train, test
