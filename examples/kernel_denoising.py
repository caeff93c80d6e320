"""Denoise digits by PCA, kernel PCA and MC-KUSaL, with dimensions chosen in the same way.

`python examples/kernel_denoising.py --output kernel.png`. Nothing is downloaded.
"""

# %%
# Clean training digits of norm 1, and test digits with noise of power .4.
from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from polyspan import MCKUSaL, MiCUSaL
from polyspan.model_selection import choose_by_noise

NOISE = 0.4


def split(n_train: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training digits, clean test digits and noisy ones (0 and 4)."""
    digits = load_digits()
    X = digits.data[np.isin(digits.target, (0, 4))]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    rng = np.random.RandomState(0)
    X = X[rng.permutation(len(X))]
    train, clean = X[:n_train], X[n_train : n_train + 120]
    return train, clean, clean + rng.standard_normal(clean.shape) * np.sqrt(NOISE / X.shape[1])


# %%
# A model with one subspace is PCA, in the input space or in the feature space. The dimension, and λ
# for two subspaces, are those that denoise held-out training digits best.
def denoise(train: np.ndarray, noisy: np.ndarray) -> dict[str, tuple[np.ndarray, str]]:
    """Return the denoised digits of each method, and its chosen dimension."""
    kernel = {"gamma": 1.0, "random_state": 0}
    several = [8, 16, 24, 32, 48]
    methods = {
        "PCA": (MiCUSaL(1, random_state=0), {"subspace_dim": [2, 4, 6, 8, 12, 16]}),
        "kernel PCA": (MCKUSaL(1, **kernel), {"subspace_dim": [*several, 64, 96]}),
        "MC-KUSaL": (MCKUSaL(2, **kernel), {"subspace_dim": several, "lam": [4.0, 20.0, 100.0]}),
    }
    found = {}
    for name, (model, grid) in methods.items():
        choice = choose_by_noise(model, train, NOISE, grid, random_state=0)
        model.set_params(**choice.best_params).fit(train)
        found[name] = (model.reconstruct(noisy), f"s={choice.best_params['subspace_dim']}")
    return found


def draw(rows: dict[str, tuple[np.ndarray, str]], output: Path) -> None:
    """Draw one row of digits per method."""
    n = 12
    figure, grid = plt.subplots(len(rows), n, figsize=(9, 4.2), layout="constrained")
    for row, (name, (images, note)) in zip(grid, rows.items(), strict=True):
        for ax, image in zip(row, images, strict=False):
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=images.max() * 0.7)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(f"{name}\n{note}", rotation=0, ha="right", va="center", fontsize=8)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/kernel.png"))
    parser.add_argument("--samples", type=int, default=239)
    options = parser.parse_args(arguments)
    train, clean, noisy = split(options.samples)
    rows = {"digits": (clean, ""), "with noise": (noisy, "")}
    for name, (denoised, chosen) in denoise(train, noisy).items():
        error = float(np.mean(np.sum((denoised - clean) ** 2, axis=1)))
        print(f"{name:12s} relative error {error:.4f}  ({chosen})")
        rows[name] = (denoised, f"{chosen}, error {error:.3f}")
    draw(rows, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
