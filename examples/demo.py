"""The first example to run: what polyspan does, in a table and a picture.

`make demo`, or `python examples/demo.py --output demo.png`. Nothing is downloaded.
"""

# %%
# Two parts: the paper's synthetic experiment, where the truth is known, and handwritten digits
# with noise added.
from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from polyspan import MiCUSaL
from polyspan.datasets import UnionOfSubspaces, make_union_of_subspaces
from polyspan.metrics import (
    average_subspace_distance,
    clustering_error,
    relative_reconstruction_error,
)
from polyspan.union._solve.alternation import update_exactly
from polyspan.union._solve.problem import prepare

LAM = 4.0
METHODS = ("Algorithm 1 as printed, 8 random starts", "polyspan, annealed, 1 start", "known labels")


@dataclass(frozen=True)
class Measured:
    """Result of one method on one draw."""

    distance: float
    error: float
    seconds: float


# %%
# The bound: on average, no method that has to find the labels is better than one that knows them.
def fit_known_labels(data: UnionOfSubspaces, lam: float) -> np.ndarray:
    """Return the bases that minimise the objective for the true labels."""
    problem, _ = prepare(data.X, lam, center=True)
    bases = data.bases
    for _ in range(50):
        bases = update_exactly(problem, bases, data.labels[:, None], 0)
    return bases


def measure_synthetic(n_draws: int) -> dict[str, list[Measured]]:
    """Run the paper's setting (m=180, L=5, s=13, N=650) on several draws of the subspaces."""
    models = (
        MiCUSaL(5, 13, lam=LAM, init="random", solver="exact", n_init=8, random_state=0),
        MiCUSaL(5, 13, lam=LAM, random_state=0),
    )
    found: dict[str, list[Measured]] = {name: [] for name in METHODS}
    for seed in range(n_draws):
        data = make_union_of_subspaces(random_state=seed)
        for name, model in zip(METHODS, models, strict=False):
            begin = time.perf_counter()
            model.fit(data.X)
            seconds = time.perf_counter() - begin
            distance = average_subspace_distance(model.bases_, data.bases)
            error = clustering_error(data.labels, model.labels_)
            found[name].append(Measured(distance, error, seconds))
        bound = average_subspace_distance(fit_known_labels(data, LAM), data.bases)
        found[METHODS[2]].append(Measured(bound, 0.0, 0.0))
    return found


# %%
# Denoising: learn from noisy digits alone, then project other noisy digits on what was learned.
def denoise_digits(noise: float = 0.3) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Return the relative error of each method and some pictures."""
    clean = load_digits().data
    clean = clean / np.linalg.norm(clean, axis=1, keepdims=True)
    rng = np.random.RandomState(0)
    clean = clean[rng.permutation(len(clean))]
    noisy = clean + rng.standard_normal(clean.shape) * np.sqrt(noise / clean.shape[1])
    train, test, truth = noisy[:1200], noisy[1200:], clean[1200:]

    def pca(s: int) -> float:
        model = PCA(s).fit(train)
        return relative_reconstruction_error(truth, model.inverse_transform(model.transform(test)))

    model = MiCUSaL(10, 10, lam=LAM, random_state=0).fit(train)
    separate = MiCUSaL(10, 10, lam=float("inf"), random_state=0).fit(train)
    denoised = model.reconstruct(test)
    best = min(range(1, 64), key=pca)
    errors = {
        "noisy": relative_reconstruction_error(truth, test),
        "K-subspaces (λ=∞), L=10, s=10": relative_reconstruction_error(
            truth, separate.reconstruct(test)
        ),
        "PCA, s=10": pca(10),
        f"PCA, best s for these digits ({best})": pca(best),
        "polyspan MiCUSaL, λ=4, L=10, s=10": relative_reconstruction_error(truth, denoised),
    }
    return errors, {"clean": truth[:10], "noisy": test[:10], "denoised": denoised[:10]}


# %%
# The table and the figure.
def print_table(synthetic: dict[str, list[Measured]], digits: dict[str, float]) -> None:
    n_draws = len(synthetic[METHODS[0]])
    print(f"\nSynthetic: 5 subspaces of dimension 13 in R^180, mean of {n_draws} draws")
    print(f"{'':42s}{'d_avg':>8s}{'wrong labels':>14s}{'seconds':>9s}")
    for name, values in synthetic.items():
        distance = np.mean([value.distance for value in values])
        error = np.mean([value.error for value in values])
        seconds = np.mean([value.seconds for value in values])
        shown = f"{seconds:9.2f}" if seconds else f"{'-':>9s}"
        print(f"{name:42s}{distance:8.4f}{error:13.1%} {shown}")
    print("\nDigits with noise: relative error of the reconstruction")
    for name, error in digits.items():
        print(f"{name:42s}{error:8.4f}")


def draw(
    synthetic: dict[str, list[Measured]],
    digits: dict[str, float],
    pictures: dict[str, np.ndarray],
    output: Path,
) -> None:
    figure = plt.figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
    axes = left.subplots(2, 1)
    colours = ("tab:gray", "tab:blue", "tab:green")
    short = ("Algorithm 1,\n8 starts", "annealed,\n1 start", "known labels\n(bound)")
    for ax, field, title in (
        (axes[0], "distance", "distance to the true subspaces, $d_{avg}$"),
        (axes[1], "error", "fraction of wrong labels"),
    ):
        heights = [np.mean([getattr(v, field) for v in synthetic[name]]) for name in METHODS]
        bars = ax.bar(short, heights, color=colours)
        ax.bar_label(bars, fmt="%.3f", padding=2)
        ax.set_title(title, fontsize=10)
        ax.margins(y=0.2)
        ax.spines[["top", "right"]].set_visible(False)
    grid = right.subplots(3, 10)
    for row, (name, images) in zip(grid, pictures.items(), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=0.35)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(name)
    names = list(digits)
    right.suptitle(
        f"digits: relative error {digits[names[0]]:.3f} noisy, {digits[names[-1]]:.3f} denoised",
        fontsize=10,
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/demo.png"))
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args(arguments)
    synthetic = measure_synthetic(options.draws)
    digits, pictures = denoise_digits()
    print_table(synthetic, digits)
    draw(synthetic, digits, pictures, options.output)
    print(f"\nfigure: {options.output}")


if __name__ == "__main__":
    main()
