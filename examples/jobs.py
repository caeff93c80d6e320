"""Three jobs: a picture denoised, its holes filled, and a table's holes filled.

`python examples/jobs.py --output jobs.png`. Nothing is downloaded.
"""

# %%
# A photograph that comes with scikit-learn, in gray, and a table of digits.
from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_sample_image

from polyspan import SubspaceImputer
from polyspan.datasets import mask_entries
from polyspan.images import denoise_image, inpaint_image


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((image - truth) ** 2)))


# %%
# The noise level is estimated from the picture; subspaces are learned from its own patches.
def denoise(truth: np.ndarray, rng: np.random.Generator) -> list[tuple[str, np.ndarray]]:
    noisy = truth + 0.1 * rng.standard_normal(truth.shape)
    denoised = denoise_image(noisy)
    print(f"denoise_image: {psnr(noisy, truth):.1f} dB to {psnr(denoised, truth):.1f} dB")
    return [("noisy", noisy), (f"denoised, {psnr(denoised, truth):.1f} dB", denoised)]


# %%
# Half of the pixels are missing; what is there stays as it is.
def inpaint(truth: np.ndarray, rng: np.random.Generator) -> list[tuple[str, np.ndarray]]:
    mask = rng.random(truth.shape) < 0.5
    filled = inpaint_image(np.where(mask, 0, truth), mask, "fast")
    print(f"inpaint_image: {psnr(filled, truth):.1f} dB")
    return [
        ("half missing", np.where(mask, np.nan, truth)),
        (f"filled, {psnr(filled, truth):.1f} dB", filled),
    ]


# %%
# Eight-by-eight digits as rows of a table, 30 % of the entries hidden.
def impute(n_samples: int) -> list[tuple[str, np.ndarray]]:
    truth = load_digits().data[:n_samples]
    holes = mask_entries(truth, 0.3, random_state=1)
    imputer = SubspaceImputer(keep_empty_features=True).fit(holes)
    filled = imputer.transform(holes)
    hidden = np.isnan(holes)
    error = np.sqrt(np.mean((filled - truth)[hidden] ** 2))
    mean = np.sqrt(np.mean((np.nanmean(holes, axis=0) - truth)[hidden] ** 2))
    sure = imputer.impute_std(holes)[hidden]
    print(f"SubspaceImputer: error {error:.2f} (mean of the column {mean:.2f}), ", end="")
    print(f"expected {np.sqrt(np.nanmean(sure**2)):.2f}")
    return [("rows of a table", _sheet(holes)), (f"filled, error {error:.2f}", _sheet(filled))]


def _sheet(table: np.ndarray) -> np.ndarray:
    """Arrange sixteen rows as digits."""
    return table[:16].reshape(4, 4, 8, 8).transpose(0, 2, 1, 3).reshape(32, 32) / 16


def draw(pictures: list[tuple[str, np.ndarray]], output: Path) -> None:
    figure, grid = plt.subplots(2, 3, figsize=(9, 6), layout="constrained")
    colours = mpl.colormaps["gray"].with_extremes(bad="tab:red")
    for k, (title, image) in enumerate(pictures):
        ax = grid[k % 2, k // 2]
        ax.imshow(image, cmap=colours, vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], title=title)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=90)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/jobs.png"))
    parser.add_argument("--samples", type=int, default=1797)
    options = parser.parse_args(arguments)
    side = 128 if options.samples > 500 else 48
    photo = load_sample_image("china.jpg")[150 : 150 + side, 200 : 200 + side]
    truth, rng = photo.mean(axis=2) / 255, np.random.default_rng(0)
    pictures = denoise(truth, rng) + inpaint(truth, rng) + impute(options.samples)
    draw(pictures, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
