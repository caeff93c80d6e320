"""Checks of samples, and the command line of an exported file."""

from __future__ import annotations

import base64
import csv
import sys
from typing import Any

import numpy as np

from polyspan.export.standalone.constants import (
    ESTIMATOR,
    FEATURES,
    N_FEATURES,
    TAKES_MISSING,
)


def predict(X: Any) -> np.ndarray:
    """Return labels; every exported file has its own."""
    raise NotImplementedError


def _array(dtype: str, shape: tuple[int, ...], text: str) -> np.ndarray:
    """Return the array whose little-endian bytes are written in base 64."""
    stored = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(base64.b64decode(text), dtype=stored).reshape(shape).astype(dtype)


def _checked(X: Any) -> np.ndarray:
    """Check samples; return them as an array of float64, or of float32 if they are float32."""
    names = getattr(X, "columns", None)
    if names is not None and FEATURES is not None and list(names) != FEATURES:
        raise ValueError(
            f"the columns of X are {list(names)[:10]}, and {ESTIMATOR} was fitted to "
            f"{FEATURES[:10]}: pass the same columns in the same order"
        )
    if hasattr(X, "toarray"):
        raise ValueError(f"X is a {type(X).__name__}, a sparse matrix: pass X.toarray()")
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("X is complex, and samples are real numbers")
    if X.dtype != np.float32:
        X = X.astype(np.float64, copy=False)
    if X.ndim != 2 or X.shape[1] != N_FEATURES or not len(X):
        raise ValueError(
            f"X has the shape {X.shape}, and {ESTIMATOR} needs rows of {N_FEATURES} numbers, "
            f"(n_samples, {N_FEATURES}), at least one"
        )
    if np.isinf(X).any():
        raise ValueError(f"{int(np.isinf(X).sum())} entries of X are infinite: leave them out")
    n_missing = int(np.isnan(X).sum())
    if n_missing and not TAKES_MISSING:
        raise ValueError(
            f"{n_missing} of {X.size} entries of X are NaN, and {ESTIMATOR} needs complete data: "
            "fill them first, or export a model that takes missing entries"
        )
    return np.asarray(X)


def _is_missing(cell: str) -> bool:
    """Tell whether a cell of a table is missing; the names are those of pandas."""
    marks = ("", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#na", "#n/a", "#n/a n/a")
    odd = ("1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan")
    return cell.strip().lower() in (*marks, *odd)


def _number(cell: str) -> float:
    """Return the number in a cell of a table, NaN where it is missing."""
    if _is_missing(cell):
        return float("nan")
    if "_" in cell:  # which Python takes for a separator of digits
        raise ValueError(f"{cell.strip()!r} is no number")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _has_names(path: str, first: list[str]) -> bool:
    """Tell whether the first line of a table holds names; say so where it is not certain."""
    if FEATURES is not None and set(FEATURES) <= set(first):
        return True
    numbers = [cell for cell in first if _is_number(cell) and not _is_missing(cell)]
    if not all(_is_number(cell) for cell in first):
        if numbers:
            _note(f"the first line of {path} is read as names, though it has numbers: {first[:10]}")
        return True
    counted = first[1:] if first[:1] == [""] else first
    if not counted or counted != [str(k) for k in range(len(counted))]:
        return False
    # As pandas names columns that have no names; two columns are too few to tell.
    named = len(counted) < len(first) or len(counted) >= 3
    _note(
        f"the first line of {path}, {', '.join(first[:4])}{', …' * (len(first) > 4)}, is read as "
        + ("names of the columns, not as a sample" if named else "a sample, not as names")
    )
    return named


def _chosen(path: str, names: list[str]) -> list[int]:
    """Return which columns the model takes, by their names where it knows them."""
    if FEATURES is None:
        return list(range(len(names)))
    absent = [name for name in FEATURES if name not in names]
    if absent:
        raise ValueError(f"{path} has no columns {absent[:10]}: its columns are {names[:10]}")
    twice = [name for name in FEATURES if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path} has more than one column called {twice[0]!r}: rename one")
    return [names.index(name) for name in FEATURES]


def _read(path: str) -> np.ndarray:
    """Read a .npy file, or a .csv file with or without names in its first line."""
    if path.lower().endswith(".npy"):
        return np.asarray(np.load(path, allow_pickle=False))
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if len(row) > 1 or "".join(row).strip()]
    width = len(rows[0]) if rows else 0
    columns = list(range(width))
    first = [cell.strip() for cell in rows[0]] if rows else []
    if rows and _has_names(path, first):
        columns = _chosen(path, first)
        del rows[0]
    found = []
    for k, row in enumerate(rows):
        try:
            if len(row) != width:
                raise ValueError(f"{len(row)} cells, but {width} in the first line")
            found.append([_number(row[column]) for column in columns])
        except ValueError as error:
            raise ValueError(f"{path}, row {k + 1} of the numbers: {error}") from error
    return np.asarray(found, dtype=np.float64).reshape(len(found), len(columns))


def main(arguments: list[str]) -> int:
    """Print the label of every row of a file, one in a line."""
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        if hasattr(sys.stdout, "reconfigure"):  # not every encoding has all letters of the names
            sys.stdout.reconfigure(errors="backslashreplace")
        print(__doc__)
        return 0 if arguments else 2
    try:
        labels = predict(_read(arguments[0]))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.write("".join(f"{label}\n" for label in labels))
    return 0
