"""Checks of denoising on the pictures that chose nothing, half B of `pictures_table.py`.

    python benchmarks/pictures_checks.py unknown std counts memory --data ../shared/data

unknown: what it costs not to know σ. std: whether expected errors are right. counts: what
`noise="poisson"` gains. memory: a colour picture of 12 megapixels, on two threads.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from pictures_table import SIGMAS, gray_pictures, psnr
from polyspan.images import denoise_image

MEANS = (5, 10, 20, 50)
CROP = 160


def noisy_pictures(data: Path, sigma: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs (truth, noisy), with the noise of `pictures_table.py`."""
    pairs = []
    for number, truth in enumerate(gray_pictures(data, "B").values()):
        noise = np.random.default_rng(number).standard_normal(truth.shape)
        pairs.append((truth, truth + sigma / 255 * noise))
    return pairs


def unknown(data: Path) -> None:
    """Print how much is lost where σ is estimated."""
    for sigma in SIGMAS:
        lost = []
        for truth, noisy in noisy_pictures(data, sigma):
            known = psnr(denoise_image(noisy, sigma / 255), truth)
            lost.append(known - psnr(denoise_image(noisy), truth))
        print(
            f"σ = {sigma} unknown: {np.mean(lost):.3f} dB lost, at most {max(lost):.2f}; within "
            f".1 dB on {sum(one < 0.1 for one in lost)} of {len(lost)}",
            flush=True,
        )


def std(data: Path) -> None:
    """Print squared errors in units of the expected ones."""
    for sigma in SIGMAS:
        ratios, surest = [], []
        for truth, noisy in noisy_pictures(data, sigma):
            found, expected = denoise_image(noisy, sigma / 255, return_std=True)
            squares = (found - truth) ** 2
            ratios.append(squares.mean() / (expected**2).mean())
            chosen = expected <= np.quantile(expected, 0.1)
            surest.append(squares[chosen].mean() / squares.mean())
        print(
            f"σ = {sigma}: squared error over expected {np.mean(ratios):.2f} ({min(ratios):.2f} to "
            f"{max(ratios):.2f}); surest tenth {np.mean(surest):.2f} of the mean",
            flush=True,
        )


def counts(data: Path) -> None:
    """Print what the transform of counts gains."""
    crops = []
    for truth in list(gray_pictures(data, "B").values())[:8]:
        top, left = ((n - CROP) // 2 for n in truth.shape)
        crops.append(truth[top : top + CROP, left : left + CROP])
    for mean in MEANS:
        gains = []
        for number, truth in enumerate(crops):
            rate = truth / truth.mean() * mean
            drawn = np.random.default_rng(number).poisson(rate).astype(float)
            transformed = psnr(denoise_image(drawn, noise="poisson"), rate)
            even = denoise_image(drawn), denoise_image(drawn, np.sqrt(mean))
            gains.append([transformed - psnr(one, rate) for one in even])
        blind, given = np.mean(gains, axis=0)
        print(
            f"mean count {mean}: {blind:+.2f} dB over even noise that is estimated, {given:+.2f} "
            "over σ = √mean",
            flush=True,
        )


def memory(data: Path) -> None:
    """Print time and memory for pictures laid out as one of 3000×4000 pixels, with colours."""
    tiles = [one for one in gray_pictures(data, "B").values() if one.shape == (321, 481)]
    large = np.empty((3000, 4000, 3), dtype=np.uint8)
    rng = np.random.default_rng(0)
    for number, (top, left) in enumerate(np.ndindex(10, 9)):
        place = large[321 * top : 321 * (top + 1), 481 * left : 481 * (left + 1)]
        tile = tiles[number % len(tiles)][: place.shape[0], : place.shape[1], None]
        colours = 255 * tile * [1.0, 0.8, 0.6] + [0, 20, 40]
        place[:] = np.clip(colours + 15 * rng.standard_normal(place.shape), 0, 255)
    denoise_image(large[:64, :64], channel_axis=-1)  # compiles
    before, begin = peak(), (time.perf_counter(), time.process_time())
    denoise_image(large, channel_axis=-1, n_jobs=2)
    print(
        f"12 megapixels: {time.perf_counter() - begin[0]:.0f} s on two threads, "
        f"{time.process_time() - begin[1]:.0f} s of processor time, {peak() - before:.2f} GB more",
        flush=True,
    )


def peak() -> float:
    """Return the largest memory of the process so far, in GB (Linux)."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    """Run the checks that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    checks = {"unknown": unknown, "std": std, "counts": counts, "memory": memory}
    parser.add_argument("checks", nargs="+", choices=checks)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for name in arguments.checks:
        checks[name](arguments.data)


if __name__ == "__main__":
    main()
