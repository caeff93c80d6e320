"""Digits with 30 % of their entries hidden, filled by three imputers.

`python examples/data_with_holes.py --output holes.png`. Nothing is downloaded.
"""

# %%
# All imputers get the same table with the same missing entries; features have unit variance.
from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from polyspan import RobustMiCUSaL
from polyspan.datasets import mask_entries


# %%
# λ weighs squared residuals of samples of norm about 1: scale the table, fill it, scale back.
def fill_by_subspaces(X: np.ndarray) -> np.ndarray:
    """Fill with ten subspaces of dimension ten; a larger prior, because the data are noisy."""
    size = np.sqrt(np.nanmean(X**2) * X.shape[1])
    model = RobustMiCUSaL(10, 10, center=True, fill_prior=0.1, random_state=0).fit(X / size)
    return model.impute(X / size) * size


def measure(n_samples: int) -> tuple[dict[str, tuple[float, float]], dict[str, np.ndarray]]:
    """Return RMSE and seconds of each imputer, and the filled tables in pixels."""
    pixels = load_digits().data[:n_samples]
    seen = pixels.std(axis=0) > 0
    mean, scale = pixels[:, seen].mean(axis=0), pixels[:, seen].std(axis=0)
    X = (pixels[:, seen] - mean) / scale
    holes = mask_entries(X, 0.3, random_state=0)
    hidden = np.isnan(holes)
    imputers = {
        "KNNImputer, 10 neighbours": KNNImputer(n_neighbors=10).fit_transform,
        "IterativeImputer": IterativeImputer(random_state=0).fit_transform,
        "RobustMiCUSaL, L=10, s=10": fill_by_subspaces,
    }
    figures, tables = {}, {"digits": X, "30 % hidden": np.where(hidden, np.nan, X)}
    for name, impute in imputers.items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = impute(holes)
        seconds = time.perf_counter() - begin
        figures[name] = (float(np.sqrt(np.mean((filled - X)[hidden] ** 2))), seconds)
        tables[name] = filled
    pictures = {}
    for name, table in tables.items():
        pictures[name] = np.zeros_like(pixels)
        pictures[name][:, seen] = table * scale + mean
    return figures, pictures


def draw(
    figures: dict[str, tuple[float, float]], pictures: dict[str, np.ndarray], output: Path
) -> None:
    """Draw one row of digits per imputer."""
    n = 12
    figure, grid = plt.subplots(len(pictures), n, figsize=(9, 4.2), layout="constrained")
    colours = mpl.colormaps["gray_r"].with_extremes(bad="tab:red")
    for row, (name, images) in zip(grid, pictures.items(), strict=True):
        for ax, image in zip(row, images, strict=False):
            ax.imshow(image.reshape(8, 8), cmap=colours, vmin=0, vmax=16)
            ax.set(xticks=[], yticks=[])
        error = f"\nRMSE {figures[name][0]:.3f}" if name in figures else ""
        label = f"{name.split(',')[0]}{error}"
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/holes.png"))
    parser.add_argument("--samples", type=int, default=1797)
    options = parser.parse_args(arguments)
    figures, pictures = measure(options.samples)
    for name, (error, seconds) in figures.items():
        print(f"{name:32s} RMSE {error:.3f}  {seconds:6.2f} s")
    draw(figures, pictures, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
