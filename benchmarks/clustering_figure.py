"""Draw the error of `SubspaceClustering` against its certainty: docs/images/certainty.png.

    python benchmarks/clustering_figure.py

Reads what `clustering_table.py` has stored, and prints the mean error of every level of certainty.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Record = dict[str, Any]
LEVELS = (0.0, 0.3, 0.6, 0.8, 1.01)
#: How names of data begin, and what they are called in the figure.
KINDS = {
    "Yale B": "faces", "USPS": "handwritten digits", "scikit-learn": "handwritten digits",
    "synthetic": "made subspaces", "dimensions": "made subspaces",
}  # fmt: skip
MARKERS = {"faces": "o", "handwritten digits": "s", "made subspaces": "^"}


def by_method(fits: dict[str, Record], method: str) -> list[tuple[str, Record]]:
    """Return the kind of data and the record of every fit of a method."""
    found = []
    for key, record in fits.items():
        name, one, _ = key.split("|")
        if one == method:
            kind = next(kind for start, kind in KINDS.items() if name.startswith(start))
            found.append((kind, record))
    return found


def levels(records: list[Record]) -> str:
    """Return the fits, the mean and the largest error of every level of certainty."""
    certainty = np.array([r["certainty"] for r in records])
    error = np.array([r["error"] for r in records])
    lines = ["| certainty | fits | mean error | largest |", "|---|---|---|---|"]
    for low, high in pairwise(LEVELS):
        own = error[(low <= certainty) & (certainty < high)]
        if len(own):
            lines.append(
                f"| {low:g} to {min(high, 1):g} | {len(own)} | {own.mean():.1f} | {own.max():.1f} |"
            )
    return "\n".join(lines)


def draw(panels: dict[str, list[tuple[str, Record]]], output: Path) -> None:
    """Draw one panel for each method."""
    figure, axes = plt.subplots(1, len(panels), figsize=(9, 3.6), sharey=True, squeeze=False)
    for ax, (title, fits) in zip(axes[0], panels.items(), strict=True):
        for kind, marker in MARKERS.items():
            own = [record for one, record in fits if one == kind]
            x, y = ([r[key] for r in own] for key in ("certainty", "error"))
            ax.plot(x, y, marker, ms=5, alpha=0.6, mew=0, label=kind)
        for level in LEVELS[1:-1]:
            ax.axvline(level, color="0.8", lw=0.8, zorder=0)
        ax.set(title=title, xlabel="certainty_", xlim=(0, 1.02), ylim=(-3, 103))
    axes[0][0].set_ylabel("wrong labels in %")
    axes[0][0].legend(frameon=False, loc="upper right")
    figure.tight_layout()
    figure.savefig(output, dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=Path, default=Path("build/clustering.json"))
    parser.add_argument("--output", type=Path, default=Path("docs/images/certainty.png"))
    options = parser.parse_args()
    fits = json.loads(options.fits.read_text(encoding="utf-8"))["fits"]
    panels = {
        "number of clusters given": by_method(fits, "ours"),
        "number of clusters found": by_method(fits, "ours, L unknown"),
    }
    draw(panels, options.output)
    for title, found in panels.items():
        print(f"{title}\n\n{levels([record for _, record in found])}\n")


if __name__ == "__main__":
    main()
