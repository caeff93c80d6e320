"""Benchmark rows for denoising and filling pictures, for filling tables, and their memory.

The comparison needs scikit-image and bm3d, which nothing else here needs:
`pip install scikit-image bm3d`. Without the photograph of the city hall its rows are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from polyspan import SubspaceImputer
from polyspan.datasets.files import find_file, read_gray
from polyspan.datasets.scenes import SCENES
from polyspan.images import denoise_image, inpaint_image
from usps import data_home

Row = dict[str, Any]
STRENGTHS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)
WINDOWS = ((5, 6), (7, 11))


def pictures() -> dict[str, np.ndarray]:
    """Return the 256×256 crops on which the docs state their numbers."""
    from skimage import color, data

    found = {
        "camera": data.camera()[100:356, 130:386] / 255.0,
        "astronaut": color.rgb2gray(data.astronaut())[20:276, 100:356],
    }
    try:
        hall = read_gray(find_file(SCENES["city_hall"], data_home=data_home(), download=False))
        found["city hall"] = hall[70:326, 600:856] / 255.0
    except FileNotFoundError as error:
        print(f"left out: {error}")
    return found


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((np.clip(image, 0, 1) - truth) ** 2)))


def timed(run: Any) -> tuple[Any, float]:
    """Return the result of a run, and its processor time over all threads."""
    begin = time.process_time()
    result = run()
    return result, time.process_time() - begin


def non_local_means(noisy: np.ndarray, truth: np.ndarray, sigma: float) -> float:
    """Return the PSNR of non-local means at its best strength and window."""
    from skimage.restoration import denoise_nl_means

    found = [
        denoise_nl_means(
            noisy, patch_size=size, patch_distance=reach, h=h * sigma, sigma=sigma, fast_mode=True
        )
        for h in STRENGTHS
        for size, reach in WINDOWS
    ]
    return max(psnr(image, truth) for image in found)


def denoise() -> Iterator[Row]:
    """Denoise three pictures at three noise levels."""
    import bm3d

    for name, truth in pictures().items():
        for level in (15, 25, 50):
            sigma = level / 255
            noise = np.random.default_rng(0).standard_normal(truth.shape)
            noisy = truth + sigma * noise
            theirs, their_time = timed(lambda n=noisy, s=sigma: bm3d.bm3d(n, s))
            fast, fast_time = timed(lambda n=noisy, s=sigma: denoise_image(n, s, "fast"))
            best, best_time = timed(lambda n=noisy, s=sigma: denoise_image(n, s, "best"))
            blind = denoise_image(noisy)
            means = non_local_means(noisy, truth, sigma)
            yield {
                "row": f"denoise {name}, sigma {level}",
                "best dB": psnr(best, truth),
                "fast dB": psnr(fast, truth),
                "fast dB, noise estimated": psnr(blind, truth),
                "non-local means dB": means,
                "BM3D dB": psnr(theirs, truth),
                "best - non-local means": psnr(best, truth) - means,
                "best - BM3D": psnr(best, truth) - psnr(theirs, truth),
                "fast - non-local means": psnr(fast, truth) - means,
                "fast CPU over BM3D's": fast_time / their_time,
                "best CPU over BM3D's": best_time / their_time,
            }


def inpaint() -> Iterator[Row]:
    """Fill three pictures with three fractions of their pixels missing."""
    from skimage.restoration import inpaint_biharmonic

    for name, truth in pictures().items():
        for fraction in (0.2, 0.5, 0.8):
            mask = np.random.default_rng(0).random(truth.shape) < fraction
            holes = np.where(mask, 0, truth)
            ours, seconds = timed(lambda h=holes, m=mask: inpaint_image(h, m))
            theirs = psnr(inpaint_biharmonic(holes, mask), truth)
            yield {
                "row": f"inpaint {name}, {fraction:.0%} missing",
                "best dB": psnr(ours, truth),
                "biharmonic dB": theirs,
                "gain": psnr(ours, truth) - theirs,
                "CPU s": seconds,
            }


def tables() -> dict[str, np.ndarray]:
    """Return scikit-learn's toy tables, standardised, without constant columns."""
    from sklearn import datasets

    found = {}
    for name in ("breast_cancer", "diabetes", "iris", "wine", "linnerud", "digits"):
        X = getattr(datasets, f"load_{name}")().data.astype(float)
        X = X[:, X.std(axis=0) > 0]
        found[name] = (X - X.mean(axis=0)) / X.std(axis=0)
    return found


def impute() -> Iterator[Row]:
    """Fill tables with three fractions missing; means over five masks."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    imputers = {
        "ours": SubspaceImputer,
        "neighbours": KNNImputer,
        "iterative": lambda: IterativeImputer(random_state=0),
        "mean": SimpleImputer,
    }
    for name, truth in tables().items():
        for fraction in (0.1, 0.3, 0.5):
            errors: dict[str, list[float]] = {key: [] for key in imputers}
            seconds: dict[str, list[float]] = {key: [] for key in imputers}
            for seed in range(5):
                mask = np.random.RandomState(seed).uniform(size=truth.shape) < fraction
                mask[0, mask.all(axis=0)] = False
                holes = np.where(mask, np.nan, truth)
                for key, make in imputers.items():
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        filled, spent = timed(lambda m=make, h=holes: m().fit_transform(h))
                    errors[key].append(float(np.sqrt(np.mean((filled - truth)[mask] ** 2))))
                    seconds[key].append(spent)
            mean = {key: float(np.mean(values)) for key, values in errors.items()}
            yield {
                "row": f"impute {name}, {fraction:.0%} missing",
                **{f"RMSE {key}": value for key, value in mean.items()},
                "over neighbours": mean["ours"] / mean["neighbours"],
                "over iterative": mean["ours"] / mean["iterative"],
                "over mean": mean["ours"] / mean["mean"],
                "CPU over iterative's": float(
                    np.mean(seconds["ours"]) / np.mean(seconds["iterative"])
                ),
                "CPU s": float(np.mean(seconds["ours"])),
            }


def photograph_memory() -> Iterator[Row]:
    """Measure the peak memory of denoising and of filling a 3000×4000 colour photograph."""
    for job in ("denoise", "inpaint"):
        command = [sys.executable, str(Path(__file__)), job]
        output = subprocess.run(command, check=True, capture_output=True, text=True)
        peak, seconds = (float(x) for x in output.stdout.split())
        yield {"row": f"{job} 3000x4000 colour, fast", "peak RssAnon GB": peak, "CPU s": seconds}


def _photograph(job: str) -> None:
    from sklearn.datasets import load_sample_image

    tile = load_sample_image("china.jpg")
    large = np.tile(tile, (8, 7, 1))[:3000, :4000]
    rng = np.random.default_rng(0)
    mask = np.empty(large.shape[:2], dtype=bool)
    for k in range(0, 3000, 100):  # in bands, so that only the picture itself is large
        band = large[k : k + 100]
        band[:] = np.clip(band + 20 * rng.standard_normal(band.shape) * (job == "denoise"), 0, 255)
        mask[k : k + 100] = rng.random(band.shape[:2]) < 0.2
    begin = time.process_time()
    with peak_memory() as peak:
        if job == "denoise":
            denoise_image(large, channel_axis=-1)
        else:
            inpaint_image(large, mask, "fast", channel_axis=-1)
    print(peak[0], time.process_time() - begin)


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Yield a list whose only entry becomes the largest RssAnon of the block, in GB (Linux)."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            status = Path("/proc/self/status").read_text(encoding="utf-8")
            (kilobytes,) = re.findall(r"RssAnon:\s+(\d+)", status)
            peak[0] = max(peak[0], int(kilobytes) * 1024 / 1e9)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def jobs() -> Iterator[Row]:
    """Run all rows of this file."""
    for row in (denoise, inpaint, impute, photograph_memory):
        yield from row()


if __name__ == "__main__":
    _photograph(sys.argv[1])
