"""Denoising against BM3D: PSNR and processor time, one thread.

    python benchmarks/pictures_table.py --data ../shared/data --out build/pictures.json

It needs the package bm3d, which is free for research only and no dependency of polyspan, and the
file bsd68_odd.npz. Of its pictures in the order of their names the first, third, … ("half A") chose
settings. These tables are of the others ("half B"). Colour pictures are files of scikit-image that
`tools/picture_crops.py` leaves out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

COLOUR = ("astronaut", "coffee", "rocket", "ihc", "retina", "hubble_deep_field")
SIZE = 256
"""Side of the crops of colour pictures, from their middle."""
SIGMAS = (15, 25, 50)


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio of fractions, in dB."""
    return float(-10 * np.log10(np.mean((np.asarray(found, dtype=float) - truth) ** 2)))


def timed(denoise: Callable[[], np.ndarray], truth: np.ndarray) -> tuple[float, float]:
    """Return PSNR and seconds of processor time."""
    start = time.process_time()
    found = denoise()
    return psnr(found, truth), time.process_time() - start


def gray_pictures(data: Path, half: str) -> dict[str, np.ndarray]:
    """Return half of the pictures, as fractions."""
    with np.load(data / "bsd68_odd.npz", allow_pickle=False) as arrays:
        names = sorted(arrays.files)["AB".index(half) :: 2]
        return {name: arrays[name] / 255 for name in names}


def colour_pictures() -> dict[str, np.ndarray]:
    """Return crops of colour pictures of scikit-image, as fractions."""
    import skimage
    from PIL import Image

    found = {}
    for name in COLOUR:
        file = next((Path(skimage.__file__).parent / "data").glob(f"{name}.*"))
        pixels = np.asarray(Image.open(file).convert("RGB")) / 255
        top, left = ((n - SIZE) // 2 for n in pixels.shape[:2])
        found[name] = pixels[top : top + SIZE, left : left + SIZE]
    return found


def methods(axis: int | None, which: list[str]) -> dict[str, Callable[[np.ndarray, float], Any]]:
    """Return functions of a noisy picture and σ."""
    import bm3d

    from polyspan.images import denoise_image

    peer = bm3d.bm3d if axis is None else bm3d.bm3d_rgb
    found: dict[str, Callable[[np.ndarray, float], Any]] = {"bm3d": lambda y, s: peer(y, s)}
    for preset in ("fast", "balanced", "best"):
        found[preset] = lambda y, s, p=preset: denoise_image(y, s, p, axis)
        found[f"{preset}, own"] = lambda y, s, p=preset: denoise_image(y, s, p, axis, model="own")
        found[f"{preset}, σ unknown"] = lambda y, s, p=preset: denoise_image(y, None, p, axis)
    return {name: found[name] for name in which}


def main() -> None:
    """Measure all pictures; every result is written as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/pictures.json"))
    parser.add_argument("--kind", choices=("gray", "colour"), default="gray")
    parser.add_argument("--half", choices=("A", "B"), default="B")
    parser.add_argument("--sigmas", type=int, nargs="*", default=SIGMAS)
    parser.add_argument("--methods", nargs="*", default=["bm3d", "fast", "balanced", "best"])
    parser.add_argument("--first", type=int, help="so many pictures only")
    arguments = parser.parse_args()
    gray = arguments.kind == "gray"
    pictures = gray_pictures(arguments.data, arguments.half) if gray else colour_pictures()
    pictures = dict(list(pictures.items())[: arguments.first])
    compared = methods(None if gray else -1, arguments.methods)
    warm = next(iter(pictures.values()))[:64, :64]
    for denoise in compared.values():
        denoise(warm, 0.1)
    rows = []
    for sigma in arguments.sigmas:
        for number, (name, truth) in enumerate(pictures.items()):
            noise = np.random.default_rng(number).standard_normal(truth.shape)
            noisy = truth + sigma / 255 * noise
            row: dict[str, Any] = {"sigma": sigma, "picture": name}
            for method, denoise in compared.items():
                row[method] = timed(lambda d=denoise, y=noisy, s=sigma: d(y, s / 255), truth)
            rows.append(row)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        summary(rows, sigma, list(compared))


def summary(rows: list[dict[str, Any]], sigma: int, names: list[str]) -> None:
    """Print means over the pictures, in dB over the first method, and time relative to it."""
    some = [row for row in rows if row["sigma"] == sigma]
    first = names[0]
    base = np.array([row[first] for row in some])
    print(f"σ = {sigma}, {len(some)} pictures, {first} {base[:, 0].mean():.2f} dB")
    for name in names[1:]:
        values = np.array([row[name] for row in some])
        more = values[:, 0] - base[:, 0]
        print(
            f"  {name}: {more.mean():+.3f} dB (least {more.min():+.2f}), ahead on "
            f"{(more > 0).sum()}, time {values[:, 1].sum() / base[:, 1].sum():.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
