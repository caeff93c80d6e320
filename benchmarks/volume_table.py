"""Tables of volumes, stacks of frames and hyperspectral cubes: PSNR and processor time.

    python benchmarks/volume_table.py [--small] [--only volumes|frames|cubes]
        [--frames PICTURES.npz] [--pines CUBE.npy]

Made data: seed 0 chose settings and is not reported. `--frames` takes gray pictures, over which a
camera pans: every second one is reported, the others chose. `--pines` takes a cube
(height, width, bands): a corner of its even bands chose, the rest of its odd bands is reported.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from polyspan.images import denoise_image
from volume_data import make_cube, make_volume, pan

SIGMA = 25 / 255
SPEEDS = ((1, 1), (0, 2), (1.5, 0.7), (5, 8))
Method = Callable[[np.ndarray], np.ndarray]


def psnr(found: np.ndarray, clean: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((found - clean) ** 2)))


def one_by_one(stack: np.ndarray) -> np.ndarray:
    return np.stack([denoise_image(one, SIGMA) for one in stack])


def by_blocks(stack: np.ndarray) -> np.ndarray:
    return np.asarray(denoise_image(stack, SIGMA, stack_axis=0))


def by_subspace(cube: np.ndarray) -> np.ndarray:
    return np.asarray(denoise_image(cube, SIGMA, channel_axis=0))


STACKS: dict[str, Method] = {"volume": by_blocks, "slice by slice": one_by_one}
CUBES: dict[str, Method] = {"subspace": by_subspace, "band by band": one_by_one}


def best_pca(cube: np.ndarray, clean: np.ndarray) -> tuple[int, float]:
    """Return the rank that the truth shows to be best, and its PSNR."""
    mean = cube.mean(axis=(1, 2), keepdims=True)
    rows = (cube - mean).reshape(len(cube), -1)
    vectors = np.linalg.eigh(rows @ rows.T)[1][:, ::-1]
    best, found = (0, -np.inf), np.zeros_like(rows)
    for rank, vector in enumerate(vectors.T, start=1):
        found += np.outer(vector, vector @ rows)
        best = max(best, (rank, psnr(found.reshape(cube.shape) + mean, clean)), key=lambda b: b[1])
    return best


def measure(name: str, clean: np.ndarray, methods: dict[str, Method]) -> np.ndarray:
    """Print a line for each method; return the noisy data."""
    rng = np.random.default_rng(1)
    noisy = (clean + SIGMA * rng.standard_normal(clean.shape)).astype(np.float32)
    print(f"{name}, {'×'.join(map(str, clean.shape))}, noisy {psnr(noisy, clean):.2f}", flush=True)
    for label, method in methods.items():
        start = time.process_time()
        found = method(noisy)
        took = time.process_time() - start
        print(f"    {label:16s} {psnr(found, clean):6.2f} dB {took:7.1f} s", flush=True)
    return noisy


def frames(path: Path, size: int) -> Iterator[tuple[str, np.ndarray]]:
    with np.load(path) as pictures:
        names = sorted(pictures.files)[1::2]
        for name, speed in zip(names[1::3], SPEEDS, strict=False):
            picture = np.asarray(pictures[name], dtype=np.float64)
            picture = picture / 255 if picture.max() > 1.5 else picture
            yield f"frames, {speed} pixels each", pan(picture, 16, (size, size), speed)


def volumes(small: bool) -> None:
    shape, seeds = ((12, 48, 48), (1,)) if small else ((64, 128, 128), (1, 2))
    for seed in seeds:
        measure(f"volume, seed {seed}", make_volume(shape, random_state=seed), STACKS)


def cubes(small: bool, pines: Path | None) -> None:
    n_bands, size = (20, 48) if small else (100, 96)
    made = [("cube, seed 1", make_cube(n_bands, size, random_state=1))]
    if pines:
        cube = np.moveaxis(np.load(pines).astype(np.float64), -1, 0)
        rest = (cube / cube.max())[1::2, 64:, 64:]
        made.append(("Indian Pines", rest.astype(np.float32)))
    for name, clean in made:
        noisy = measure(name, clean, CUBES)
        rank, best = best_pca(noisy, clean)
        print(f"    {'PCA, best rank':16s} {best:6.2f} dB  (rank {rank})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", choices=["volumes", "frames", "cubes"])
    parser.add_argument("--frames", type=Path)
    parser.add_argument("--pines", type=Path)
    given = parser.parse_args()
    # Compile first, so that no time includes it.
    by_blocks(np.random.default_rng(0).random((6, 24, 24), dtype=np.float32))
    one_by_one(np.random.default_rng(0).random((1, 64, 64), dtype=np.float32))
    if given.only in (None, "volumes"):
        volumes(given.small)
    if given.frames and given.only in (None, "frames"):
        for name, clean in frames(given.frames, 48 if given.small else 96):
            measure(name, clean, STACKS)
    if given.only in (None, "cubes"):
        cubes(given.small, given.pines)


if __name__ == "__main__":
    main()
