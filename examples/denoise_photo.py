"""Denoise a photograph, and compare with other methods.

`python examples/denoise_photo.py --output denoise.png`. Nothing is downloaded. Non-local means and
BM3D are included if scikit-image and bm3d are installed.
"""

# %%
# A photograph that comes with Matplotlib (a portrait of Grace Hopper by the US Navy, in the public
# domain), in gray, with white noise of σ = 25 of 255 levels. Nothing was learned from it.
from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

from polyspan.images import denoise_image, estimate_noise

SIGMA = 25 / 255


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((np.clip(image, 0, 1) - truth) ** 2)))


# %%
# The other methods are given the noise level, and non-local means gets the best of eight settings.
# Our method estimates the level from the picture.
def other_methods(noisy: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    found = {}
    if find_spec("skimage"):
        from skimage.restoration import denoise_nl_means

        tried = [
            denoise_nl_means(noisy, patch_size=size, patch_distance=reach, h=h * SIGMA, sigma=SIGMA)
            for h in (0.5, 0.7, 0.9, 1.1)
            for size, reach in ((5, 6), (7, 11))
        ]
        found["non-local means"] = max(tried, key=lambda image: psnr(image, truth))
    if find_spec("bm3d"):
        import bm3d

        found["BM3D"] = bm3d.bm3d(noisy, SIGMA)
    return found


def draw(pictures: dict[str, np.ndarray], truth: np.ndarray, output: Path) -> None:
    n_columns = -(-len(pictures) // 2)
    figure, grid = plt.subplots(2, n_columns, figsize=(3 * n_columns, 6.4), layout="constrained")
    for ax in grid.flat:
        ax.set_axis_off()
    for ax, (name, image) in zip(grid.flat, pictures.items(), strict=False):
        quality = "" if name == "photograph" else f": {psnr(image, truth):.1f} dB"
        ax.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(name + quality, fontsize=12)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=64, pil_kwargs={"optimize": True})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/denoise.png"))
    parser.add_argument("--side", type=int, default=128, help="pixels of a side of the crop")
    options = parser.parse_args(arguments)
    crop = np.s_[135 : 135 + options.side, 165 : 165 + options.side]
    with get_sample_data("grace_hopper.jpg") as file:
        truth = plt.imread(file, format="jpg")[crop].mean(axis=2) / 255
    noisy = truth + SIGMA * np.random.default_rng(0).standard_normal(truth.shape)
    print(f"noise: {estimate_noise(noisy) * 255:.1f} levels estimated, {SIGMA * 255:.0f} added")
    pictures = {"photograph": truth, "with noise": noisy, **other_methods(noisy, truth)}
    for preset in ("fast", "balanced", "best"):
        pictures[f'polyspan, "{preset}"'] = denoise_image(noisy, preset=preset)
    for name, image in pictures.items():
        if name != "photograph":
            print(f"{name:20s} {psnr(image, truth):.2f} dB")
    draw(pictures, truth, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
