"""Fill the missing entries of tables, and compare with scikit-learn's imputers.

`python examples/fill_table.py --output impute.png`. Nothing is downloaded.
"""

# %%
# Tables that come with scikit-learn, standardised; 30 % of the entries are hidden.
from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from polyspan import SubspaceImputer
from polyspan.datasets import mask_entries

TABLES = ("digits", "breast_cancer", "diabetes")
IMPUTERS = {
    "mean of the column": SimpleImputer(),
    "KNNImputer": KNNImputer(),
    "IterativeImputer": IterativeImputer(random_state=0),
    "SubspaceImputer": SubspaceImputer(),
}


def table(name: str, n_samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a standardised table without constant columns, and the means and deviations."""
    X = getattr(datasets, f"load_{name}")().data[:n_samples].astype(float)
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), X.mean(axis=0), X.std(axis=0)


# %%
# Every imputer gets the same table. The error is that of the hidden entries, in standard deviations
# of their column.
def compare(truth: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    holes = mask_entries(truth, 0.3, random_state=0)
    hidden = np.isnan(holes)
    filled, errors = {"30 % hidden": holes}, {}
    for name, imputer in IMPUTERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            filled[name] = imputer.fit_transform(holes)
        errors[name] = float(np.sqrt(np.mean((filled[name] - truth)[hidden] ** 2)))
    return filled, errors


# %%
# The figure: some rows of the first table as pictures of digits, and the errors on all tables.
def draw(sheets: dict[str, np.ndarray], errors: dict[str, dict[str, float]], output: Path) -> None:
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.15))
    colours = mpl.colormaps["gray_r"].with_extremes(bad="tab:red")
    for ax, (name, sheet) in zip(left.subplots(2, 2).flat, sheets.items(), strict=True):
        ax.imshow(sheet, cmap=colours, vmin=0, vmax=16)
        ax.set_title(name, fontsize=11)
        ax.set_axis_off()
    ax = right.subplots()
    width = 0.8 / len(IMPUTERS)
    for k, name in enumerate(IMPUTERS):
        heights = [errors[title][name] for title in errors]
        places = np.arange(len(heights)) + (k - 1.5) * width
        bars = ax.bar(places, heights, width, label=name, color=f"C{(7, 0, 1, 2)[k]}")
        ax.bar_label(bars, fmt="%.2f", fontsize=8)
    ax.set_xticks(range(len(errors)), [title.replace("_", " ") for title in errors])
    ax.set(ylim=(0, 1.45), xlabel="table")
    ax.set_ylabel("error of hidden entries (RMSE, standardised)")
    ax.legend(fontsize=9, ncols=2, loc="upper center")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=80, pil_kwargs={"optimize": True})
    plt.close(figure)


def as_digits(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Arrange eight rows, with the constant pixels put back, as digits."""
    pixels = np.zeros((8, 64))
    pixels[:, kept] = rows[:8]
    return pixels.reshape(2, 4, 8, 8).transpose(0, 2, 1, 3).reshape(16, 32)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("build/impute.png"))
    parser.add_argument("--samples", type=int, default=1797)
    options = parser.parse_args(arguments)
    errors, sheets = {}, {}
    for title in TABLES:
        truth, mean, spread = table(title, options.samples)
        filled, errors[title] = compare(truth)
        shown = "   ".join(f"{name} {error:.3f}" for name, error in errors[title].items())
        print(f"{title}: {shown}")
        if title == "digits":
            kept = datasets.load_digits().data[: options.samples].std(axis=0) > 0
            names = [name for name in filled if name != "mean of the column"]
            sheets = {name: as_digits(filled[name] * spread + mean, kept) for name in names}
    draw(sheets, errors, options.output)
    print(f"figure: {options.output}")


if __name__ == "__main__":
    main()
