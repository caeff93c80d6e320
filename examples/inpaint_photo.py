"""Fill the missing pixels of a photograph, and compare with biharmonic interpolation.

`python examples/inpaint_photo.py --output inpaint.png`. Nothing is downloaded. Biharmonic
interpolation is included if scikit-image is installed.
"""

# %%
# A photograph that comes with scikit-learn, in gray; half of its pixels are missing, and also
# two lines, like scratches.
from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from polyspan.images import inpaint_image


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((np.clip(image, 0, 1) - truth) ** 2)))


def holes(shape: tuple[int, ...]) -> np.ndarray:
    missing = np.random.default_rng(0).random(shape) < 0.5
    rows, columns = np.indices(shape)
    return missing | (np.abs(rows - columns) < 2) | (np.abs(rows + columns - shape[0]) < 2)


# %%
# The values under the mask are not used; observed pixels stay as they are.
def fill(truth: np.ndarray, missing: np.ndarray) -> dict[str, np.ndarray]:
    given = np.where(missing, 0, truth)
    found = {"half missing": np.where(missing, np.nan, truth)}
    if find_spec("skimage"):
        from skimage.restoration import inpaint_biharmonic

        found["biharmonic"] = inpaint_biharmonic(given, missing)
    found['polyspan, "fast"'] = inpaint_image(given, missing, "fast")
    found['polyspan, "best"'] = inpaint_image(given, missing, "best")
    return found


def draw(pictures: dict[str, np.ndarray], truth: np.ndarray, output: Path) -> None:
    figure, axes = plt.subplots(
        1, len(pictures), figsize=(2.6 * len(pictures), 3), layout="constrained"
    )
    colours = mpl.colormaps["gray"].with_extremes(bad="tab:red")
    for ax, (name, image) in zip(axes, pictures.items(), strict=True):
        quality = f": {psnr(image, truth):.1f} dB" if np.isfinite(image).all() else ""
        ax.imshow(image, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(name + quality, fontsize=11)
        ax.set_axis_off()
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/inpaint.png"))
    parser.add_argument("--side", type=int, default=128, help="pixels of a side of the crop")
    options = parser.parse_args(arguments)
    crop = np.s_[150 : 150 + options.side, 200 : 200 + options.side]
    truth = load_sample_image("china.jpg")[crop].mean(axis=2) / 255
    missing = holes(truth.shape)
    print(f"missing: {missing.mean():.0%} of the pixels")
    pictures = fill(truth, missing)
    for name, image in pictures.items():
        if np.isfinite(image).all():
            print(f"{name:20s} {psnr(image, truth):.2f} dB")
    draw(pictures, truth, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
