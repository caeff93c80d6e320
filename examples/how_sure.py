"""Show the expected error of each pixel of a denoised picture beside the real one.

`python examples/how_sure.py --output sure.png`. Nothing is downloaded.
"""

# %%
# Part of a photograph that comes with Matplotlib, with white noise of σ = 25 of 255 levels.
from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.ndimage import gaussian_filter

from polyspan.images import denoise_image

LEVELS, SIGMA = 255, 25 / 255


def draw(pictures: dict[str, np.ndarray], errors: dict[str, np.ndarray], output: Path) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
    for ax, (name, image) in zip(axes, pictures.items(), strict=False):
        ax.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(name, fontsize=11)
    most = np.percentile(errors["expected error"], 99.5) * LEVELS
    for ax, (name, image) in zip(axes[2:], errors.items(), strict=True):
        shown = ax.imshow(image * LEVELS, cmap="magma", vmin=0, vmax=most, interpolation="nearest")
        ax.set_title(name, fontsize=11)
    figure.colorbar(shown, ax=axes, label="levels of 255", shrink=0.8)
    for ax in axes:
        ax.set_axis_off()
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=64, pil_kwargs={"optimize": True})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/sure.png"))
    parser.add_argument("--side", type=int, default=128, help="pixels of a side of the crop")
    options = parser.parse_args(arguments)
    crop = np.s_[70 : 70 + options.side, 150 : 150 + options.side]
    with get_sample_data("grace_hopper.jpg") as file:
        truth = plt.imread(file, format="jpg")[crop].mean(axis=2) / LEVELS
    noisy = truth + SIGMA * np.random.default_rng(0).standard_normal(truth.shape)
    denoised, std = denoise_image(noisy, SIGMA, return_std=True)
    error = np.abs(denoised - truth)
    # %%
    # The surest tenth of the pixels should be much better than the others.
    sure = std <= np.quantile(std, 0.1)
    for name, which in (("all pixels", np.ones_like(sure)), ("the surest tenth", sure)):
        expected, real = (np.sqrt(np.mean(a[which] ** 2)) * LEVELS for a in (std, error))
        print(f"{name:17s} {expected:4.1f} levels expected, {real:4.1f} real")
    draw(
        {"with noise": noisy, "denoised": denoised},
        {"expected error": std, "real error, smoothed": np.sqrt(gaussian_filter(error**2, 2.5))},
        options.output,
    )
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
