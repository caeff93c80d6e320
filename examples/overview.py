"""The picture of the first page: what polyspan does, in three panels.

`python examples/overview.py --output overview.png`. Nothing is downloaded.
"""

# %%
# Each panel is a real result: clusters of samples near planes and a line, noise out of a
# photograph, and missing pixels of digits filled in.
from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import get_sample_data
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from sklearn.datasets import load_digits

from polyspan import MiCUSaL, SubspaceImputer
from polyspan.datasets import mask_entries
from polyspan.images import denoise_image

COLOURS = np.array(["#0072b2", "#d55e00", "#009e73"])  # told apart by colour-blind readers too


# %%
# Two planes and a line through the origin. The dimensions are given, the labels are found.
def show_clusters(ax: Axes) -> None:
    rng = np.random.default_rng(3)
    planes = [[[1, 0, 0.1], [0, 1, 0.05]], [[0.25, 1, 0.2], [0.2, -0.1, 1]]]
    parts = [rng.uniform(-1, 1, (220, 2)) @ np.array(plane) for plane in planes]
    parts.append(rng.uniform(-1.3, 1.3, (120, 1)) * [0.75, -0.3, 0.75])
    X = np.concatenate(parts) + 0.03 * rng.standard_normal((560, 3))
    model = MiCUSaL(3, (2, 2, 1), lam=np.inf, center=False, n_init=10, random_state=0).fit(X)
    for basis, dim, colour in zip(model.bases_, model.subspace_dims_, COLOURS, strict=True):
        if dim == 2:
            corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) @ basis[:, :2].T
            ax.add_collection3d(Poly3DCollection([corners], color=colour, alpha=0.15))
    ax.scatter(*X.T, c=COLOURS[model.labels_], s=7, depthshade=False)
    ax.set(xticks=[], yticks=[], zticks=[], xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.view_init(16, -58)
    ax.set_box_aspect(None, zoom=1.25)


# %%
# The portrait of Grace Hopper comes with Matplotlib and is in the public domain.
def show_picture(ax: Axes) -> None:
    with get_sample_data("grace_hopper.jpg") as file:
        photo = plt.imread(file)[40:360, 110:430].mean(axis=2) / 255
    noisy = photo + 25 / 255 * np.random.default_rng(0).standard_normal(photo.shape)
    half = photo.shape[1] // 2
    ax.imshow(
        np.hstack([noisy[:, :half], denoise_image(noisy)[:, half:]]), cmap="gray", vmin=0, vmax=1
    )
    ax.axvline(half - 0.5, color="white", lw=2)
    ax.set(xticks=[], yticks=[])


# %%
# Rows of a table are pictures here, so that the result can be seen.
def show_table(ax: Axes) -> None:
    X = load_digits().data
    seen = mask_entries(X, 0.5, random_state=0)
    filled = SubspaceImputer(random_state=0).fit_transform(seen)
    chosen = [10, 12, 13]
    rows = [np.hstack([np.pad(table[k].reshape(8, 8), 1, constant_values=0) for k in chosen])
            for table in (seen, filled)]  # fmt: skip
    ax.set_facecolor("#e8c4c4")
    ax.imshow(np.vstack(rows), cmap="gray_r", vmin=0, vmax=16)
    ax.axhline(9.5, color="0.4", lw=1)
    ax.set(xticks=[], yticks=[4.5, 14.5])
    ax.set_yticklabels(["half\nmissing", "filled"], fontsize=12)


def main(output: Path) -> None:
    figure = plt.figure(figsize=(12, 4.1), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=[1, 1, 1.25])
    axes = [
        figure.add_subplot(grid[0], projection="3d"),
        figure.add_subplot(grid[1]),
        figure.add_subplot(grid[2]),
    ]
    titles = ("finds groups of samples", "cleans pictures", "fills what is missing")
    for ax, show, title in zip(
        axes, (show_clusters, show_picture, show_table), titles, strict=True
    ):
        show(ax)
        ax.set_title(title, fontsize=16)
    figure.savefig(output, dpi=100)
    print(f"written: {output}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("overview.png"))
    main(parser.parse_args().output)
