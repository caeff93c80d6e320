"""Filling entries that are not missing at random: errors, and how far means of columns are off.

    python benchmarks/mechanisms_table.py

Three ways to hide 30 % of the entries of half of the columns: by chance; where the first column,
which is complete, is large (MAR); where the entry itself is large (MNAR). The tables chose nothing.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import warnings

import numpy as np
from scipy.stats import rankdata

from polyspan import SubspaceImputer
from table_data import load

TABLES = ("star98", "Caschool", "Crime", "fgl", "barro", "quakes", "smooth surfaces", "clusters")
FRACTION = 0.3
#: How much likelier the largest value is hidden than the least one: the logarithm.
STEEP = 3.0


def hidden_entries(X: np.ndarray, how: str, seed: int) -> np.ndarray:
    """Return which entries are hidden; about `FRACTION` of every second column."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(X.shape, dtype=bool)
    for j in range(1, X.shape[1], 2):
        cause = {"chance": None, "other": X[:, 0], "itself": X[:, j]}[how]
        weight = np.ones(len(X))
        if cause is not None:
            weight = np.exp(STEEP * rankdata(cause) / len(X))
        hidden[:, j] = rng.random(len(X)) < np.minimum(1, FRACTION * weight / weight.mean())
    return hidden


def main() -> None:
    """Print one row for each way to hide entries."""
    warnings.simplefilter("ignore")
    print("| hidden by | RMSE, mean of the column | RMSE, filled | bias, observed | bias, filled |")
    print("|---|---|---|---|---|")
    for how in ("chance", "other", "itself"):
        rows = []
        for name in TABLES:
            X = load(name).to_numpy(float)
            scale = X.std(axis=0)
            for seed in range(3):
                hidden = hidden_entries(X, how, seed)
                holes = np.where(hidden, np.nan, X)
                mean = np.nanmean(holes, axis=0)
                filled = SubspaceImputer(random_state=0).fit_transform(holes)
                columns = hidden.any(axis=0)
                errors = [
                    np.sqrt(np.mean((((guess - X) / scale)[hidden]) ** 2))
                    for guess in (np.where(hidden, mean, X), filled)
                ]
                biases = [
                    np.mean(np.abs((found - X.mean(axis=0)) / scale)[columns])
                    for found in (mean, filled.mean(axis=0))
                ]
                rows.append(errors + biases)
        print(f"| {how} |", " | ".join(f"{one:.3f}" for one in np.mean(rows, axis=0)), "|")


if __name__ == "__main__":
    main()
