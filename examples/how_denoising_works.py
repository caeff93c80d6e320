"""Show what `denoise_image` looks at: patches, what photographs have in them, similar patches.

`python examples/how_denoising_works.py --output how.png`. Nothing is downloaded.
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
from matplotlib.patches import Rectangle

from polyspan.images import denoise_image
from polyspan.images.stages import learned

SIGMA, SIDE, N_SHOWN = 25 / 255, 8, 8


# %%
# Patches that look like a given one, the nearest first. They are looked for where most of the noise
# is gone already.
def similar(picture: np.ndarray, corner: tuple[int, int]) -> list[tuple[int, int]]:
    windows = np.lib.stride_tricks.sliding_window_view(picture, (SIDE, SIDE))
    distances = ((windows - windows[corner]) ** 2).sum(axis=(2, 3))
    found: list[tuple[int, int]] = []
    for place in np.argsort(distances, axis=None):
        row, column = (int(n) for n in np.unravel_index(place, distances.shape))
        # Neighbours overlap and would look alike in the figure.
        if all(max(abs(row - r), abs(column - c)) > 2 for r, c in found):
            found.append((row, column))
        if len(found) == N_SHOWN:
            break
    return found


def patch(picture: np.ndarray, corner: tuple[int, int]) -> np.ndarray:
    return picture[corner[0] : corner[0] + SIDE, corner[1] : corner[1] + SIDE]


# %%
# Of the kinds of patches that were learned from photographs, those with the most contrast: the
# pattern in which patches of a kind differ most.
def patterns() -> list[np.ndarray]:
    known = learned()
    assert known is not None, "the file learned.npz is missing: install polyspan again"
    strongest = np.argsort(-known.prior.variances[:, 0])[::5][:N_SHOWN]
    return [known.prior.directions[c, 0].reshape(SIDE, SIDE) for c in strongest]


def draw(noisy: np.ndarray, denoised: np.ndarray, corner: tuple[int, int], output: Path) -> None:
    places = similar(denoised, corner)
    figure = plt.figure(figsize=(9.6, 3.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2))
    ax = left.subplots()
    ax.imshow(noisy, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    for n, (row, column) in enumerate(places):
        box = {"fill": False, "linewidth": 1.5, "edgecolor": "yellow" if n else "red"}
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), SIDE, SIDE, **box))
    ax.set_title("a patch (red), and similar ones", fontsize=10)
    ax.set_axis_off()
    rows = {
        "patterns that photographs are made of": patterns(),
        "the patch and similar ones, with noise": [patch(noisy, place) for place in places],
        "the same after denoising": [patch(denoised, place) for place in places],
    }
    strips = right.subfigures(len(rows), 1)
    for strip, (title, patches) in zip(strips, rows.items(), strict=True):
        strip.suptitle(title, fontsize=10)
        limits = {} if "patterns" in title else {"vmin": 0, "vmax": 1}
        for ax, one in zip(strip.subplots(1, N_SHOWN), patches, strict=True):
            ax.imshow(one, cmap="gray", interpolation="nearest", **limits)
            ax.set_axis_off()
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/how.png"))
    parser.add_argument("--side", type=int, default=96, help="pixels of a side of the crop")
    options = parser.parse_args(arguments)
    crop = np.s_[30 : 30 + options.side, 40 : 40 + options.side]
    with get_sample_data("grace_hopper.jpg") as file:
        truth = plt.imread(file, format="jpg")[crop].mean(axis=2) / 255
    noisy = truth + SIGMA * np.random.default_rng(0).standard_normal(truth.shape)
    denoised = denoise_image(noisy, SIGMA)
    for name, picture in (("with noise", noisy), ("denoised", denoised)):
        print(f"{name:10s} {np.sqrt(np.mean((picture - truth) ** 2)) * 255:.1f} levels off")
    windows = np.lib.stride_tricks.sliding_window_view(denoised, (SIDE, SIDE))
    edge = np.argmax(windows.var(axis=(2, 3)))
    row, column = np.unravel_index(edge, windows.shape[:2])
    draw(noisy, denoised, (int(row), int(column)), options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
