"""Look at a model: a summary in words, and one figure for each question.

`python examples/looking.py --output build/looking`. Nothing is downloaded.
"""

# %%
# Digits 0 to 4, scaled to norm 1, near five affine subspaces; and 13 measurements of wines, whose
# columns have names.
from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from polyspan import MiCUSaL, SubspaceMixture
from polyspan.plotting import (
    plot_basis_images,
    plot_loadings,
    plot_residuals,
    plot_samples,
    plot_subspaces,
)


def save(axes: Any, output: Path) -> None:
    figure = np.ravel(axes)[0].figure
    figure.savefig(output, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)
    print(f"figure: {output}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/looking"), help="a folder")
    parser.add_argument("--samples", type=int, default=901, help="number of digits, 901 are all")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    X = load_digits(n_class=5).data[: options.samples]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = MiCUSaL(n_subspaces=5, subspace_dim=4, affine=True, random_state=0).fit(X)
    # %%
    # In words: how large the subspaces are, how well they fit, which samples are unsure.
    print(model.summary(X))
    # %%
    # One figure for each question.
    save(plot_subspaces(model, X), options.output / "subspaces.png")
    save(plot_residuals(model, X), options.output / "residuals.png")
    save(plot_samples(model, X), options.output / "samples.png")
    save(plot_basis_images(model, (8, 8), X), options.output / "basis-images.png")
    # %%
    # Loadings are read by the names of the columns. A mixture has learned the order of its
    # directions.
    wine = load_wine(as_frame=True).data
    scaled = StandardScaler().set_output(transform="pandas").fit_transform(wine)
    mixture = SubspaceMixture(3, 2, random_state=0).fit(scaled)
    save(plot_loadings(mixture, 0, n_features=8), options.output / "loadings.png")


if __name__ == "__main__":
    main()
