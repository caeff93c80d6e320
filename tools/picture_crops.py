"""Pictures that `learn_pictures.py` learns from: free photographs, and dead leaves that are made.

Photographs come with scikit-image, with scikit-learn, and from `scipy.datasets`, which downloads
them; their licences are in docs/licences-of-pictures.md. Astronaut, coffee, rocket, retina, ihc and
hubble_deep_field of scikit-image are left out: benchmarks measure colour on them. Where there is no
network, `--folder` names a folder with files such as ascent.npy.

    python tools/picture_crops.py build/crops.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

SIZE = 176
"""Side of a crop."""
# Scales at which each photograph is used. Those with grain or blocks of JPEG are made smaller.
SCALES = {
    "camera": (1, 0.7, 0.5), "brick": (0.6, 0.35), "grass": (0.6, 0.35), "gravel": (0.6, 0.35),
    "coins": (1, 0.6),
    "chelsea": (0.9, 0.6, 0.4), "cell": (0.5,), "text": (1,), "face": (0.9, 0.6, 0.4, 0.25),
    "ascent": (1, 0.7, 0.45), "china": (0.8, 0.55, 0.35), "flower": (0.7, 0.45, 0.3),
}  # fmt: skip
GRAY = np.array([0.299, 0.587, 0.114])
N_LEAVES = 30


def photograph(name: str, folder: Path | None) -> np.ndarray:
    """Return a photograph as floats from 0 to 255."""
    if folder is not None and (folder / f"{name}.npy").is_file():
        return np.asarray(np.load(folder / f"{name}.npy", allow_pickle=False), dtype=np.float32)
    if name in ("china", "flower"):
        from sklearn.datasets import load_sample_image

        return np.asarray(load_sample_image(f"{name}.jpg"), dtype=np.float32)
    if name in ("face", "ascent"):
        import scipy.datasets

        return np.asarray(getattr(scipy.datasets, name)(), dtype=np.float32)
    import skimage

    found = next((Path(skimage.__file__).parent / "data").glob(f"{name}.*"))
    return np.asarray(Image.open(found)).astype(np.float32)


def crops_of(name: str, folder: Path | None, rng: np.random.Generator) -> list[np.ndarray]:
    """Return gray crops of one photograph, each scale with another mix of its colours."""
    found, pixels = [], photograph(name, folder)
    for scale in SCALES[name]:
        gray = pixels
        if pixels.ndim == 3:
            gray = pixels @ (GRAY if scale == SCALES[name][0] else rng.dirichlet([2, 3, 1.5]))
        size = (int(gray.shape[1] * scale), int(gray.shape[0] * scale))
        shrunk = Image.fromarray(gray.astype(np.float32)).resize(size, Image.Resampling.LANCZOS)
        gray = np.asarray(shrunk)
        for top in range(0, max(1, gray.shape[0] - SIZE // 2), SIZE):
            for left in range(0, max(1, gray.shape[1] - SIZE // 2), SIZE):
                crop = gray[top : top + SIZE, left : left + SIZE]
                if min(crop.shape) >= SIZE // 2:
                    contrast = rng.uniform(0.75, 1.1)
                    found.append((crop - crop.mean()) * contrast + crop.mean())
    return found


def dead_leaves(size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a picture of shapes that cover each other, each with shading and perhaps texture."""
    n = 2 * size
    out, empty = np.zeros((n, n), dtype=np.float32), np.ones((n, n), dtype=bool)
    least, most = 2 * rng.uniform(3, 16), n / 2
    middle, spread, texture = rng.uniform(30, 225), rng.uniform(20, 80), fractal(n, rng)
    while empty.any():
        radius = (least**-2 + (most**-2 - least**-2) * rng.random()) ** -0.5
        centre = rng.uniform(-radius, n + radius, 2)
        first = np.clip(np.floor(centre - 1.5 * radius), 0, n).astype(int)
        last = np.clip(np.ceil(centre + 1.5 * radius), 0, n).astype(int)
        here = np.s_[first[0] : last[0], first[1] : last[1]]
        if not empty[here].any():
            continue
        rows, columns = np.ogrid[here]
        turn = rng.uniform(0, np.pi)
        y, x = rows - centre[0], columns - centre[1]
        along = np.cos(turn) * x + np.sin(turn) * y
        across = np.cos(turn) * y - np.sin(turn) * x
        inside = shape(along, across, radius, rng)
        values = np.clip(middle + spread * rng.standard_normal(), 0, 255)
        values = values + rng.normal(0, 25) * rng.random() / radius * along
        kind = rng.random()
        if kind < 0.4:
            shifts = rng.integers(0, n, 2)
            values = values + rng.gamma(1.0, 6.0) * np.roll(texture, shifts, (0, 1))[here]
        elif kind < 0.5:
            period = 2 * rng.uniform(2.5, 12)
            values = values + rng.gamma(1.5, 8.0) * np.sin(2 * np.pi * along / period)
        new = inside & empty[here]
        out[here][new] = values[new]
        empty[here] &= ~inside
    out = gaussian_filter(np.clip(out, 0, 255), rng.uniform(0, 1.2))
    return np.asarray(out.reshape(size, 2, size, 2).mean(axis=(1, 3)))


def shape(
    along: np.ndarray, across: np.ndarray, radius: float, rng: np.random.Generator
) -> np.ndarray:
    """Return where an ellipse, a rectangle or a polygon with a round side is."""
    kind, narrow = rng.integers(3), rng.uniform(0.25, 1)
    if kind == 0:
        return np.asarray((along / radius) ** 2 + (across / (narrow * radius)) ** 2 <= 1)
    if kind == 1:
        return np.asarray((np.abs(along) <= radius) & (np.abs(across) <= narrow * radius))
    inside = along**2 + across**2 <= (1.4 * radius) ** 2
    for turn in rng.uniform(0, 2 * np.pi, 3):
        inside &= np.cos(turn) * along + np.sin(turn) * across <= 0.6 * radius
    return np.asarray(inside)


def fractal(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return noise whose spectrum falls with a power of the frequency."""
    frequencies = np.hypot(np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n))
    frequencies[0, 0] = 1.0
    spectrum = np.fft.fft2(rng.standard_normal((n, n))) / frequencies ** rng.uniform(0.7, 1.6)
    noise = np.fft.ifft2(spectrum).real
    return np.asarray(noise / noise.std(), dtype=np.float32)


def main() -> None:
    """Write all crops to one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    crops = {}
    for name in SCALES:
        for number, crop in enumerate(crops_of(name, arguments.folder, rng)):
            crops[f"{name}_{number}"] = np.clip(crop, 0, 255).astype(np.float16)
    for number in range(N_LEAVES):
        crops[f"leaves_{number}"] = dead_leaves(SIZE, rng).astype(np.float16)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez(arguments.out, **crops)
    print(f"{len(crops)} crops")


if __name__ == "__main__":
    main()
