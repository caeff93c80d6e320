"""Read tables of numbers from .npy, .npz, .csv and .parquet files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.checks import first_ten
from polyspan.cli.csv_files import Layout, check_unique, read_csv
from polyspan.cli.errors import CommandError, counted, reading, say, unreadable

ENDINGS = (".npy", ".npz", ".csv", ".parquet")


@dataclass(frozen=True)
class Table:
    """The numbers of a file, and what is needed to write them back in the same form."""

    path: Path
    X: np.ndarray
    """Samples as rows; NaN where missing."""
    names: tuple[str, ...] | None
    """Names of the columns; None if the file has none."""
    frame: Any = None
    """All columns of a .csv or .parquet file."""
    used: tuple[int, ...] = ()
    """Which columns of `frame` are in `X`."""
    layout: Layout | None = None
    """Layout of a .csv file."""
    key: str | None = None
    """Name of the array in a .npz file."""

    @property
    def n_missing(self) -> int:
        """Number of missing entries."""
        return int(np.isnan(self.X).sum())

    def column(self, k: int) -> str:
        """Return the name of a column of `X`, or its position where it has none."""
        return str(k) if self.names is None else self.names[k]

    def for_fit(self) -> Any:
        """Return the data for `fit`, with the names of the columns if there are any."""
        return _as_frame(self.X, self.names)

    def for_model(self, model: Any) -> Any:
        """Return the data for a method of a fitted model; check the number of columns."""
        known = model_names(model)
        n, expected = self.X.shape[1], int(model.n_features_in_)
        if n != expected:
            shown = "" if known is None else f" ({first_ten(known)})"
            raise CommandError(
                f"{self.path} has {counted(n, 'column')}, but the model was fitted to "
                f"{expected}{shown}: choose them with --columns or --drop"
            )
        return _as_frame(self.X, known)


def model_names(model: Any) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def read_table(
    path: Path,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    key: str | None = None,
    header: str = "auto",
    model: Any = None,
    *,
    only_numbers: bool = False,
    carried: bool = False,
) -> Table:
    """Read the numbers of a file.

    Parameters
    ----------
    path : Path
    columns, drop : sequence of str, default=None
        Columns to take or to leave out: names, positions from 0, ranges "2:10".
    key : str, default=None
        Name of the array in a .npz file.
    header : {"auto", "yes", "no"}
        Whether the first line of a .csv file holds names.
    model : fitted estimator, default=None
        If both the model and the file have names of columns, the columns of the model are taken,
        in its order.
    only_numbers : bool, default=False
        Leave out columns of text, instead of refusing them; refuse a table without any number.
    carried : bool, default=False
        Whether columns that the model does not know will be copied to the output; this decides
        the wording of a note about them.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise unreadable(f"{path}: polyspan reads {', '.join(ENDINGS)}")
    if key is not None and ending != ".npz":
        raise CommandError(f"--key is for .npz files, and {path} is none")
    with reading(path):
        table = _read_array(path, key) if ending in (".npy", ".npz") else _read_frame(path, header)
    names = table.names
    taken = range(table.X.shape[1]) if not columns else _positions(table, columns)
    left_out = set(_positions(table, drop or ()))
    used = [k for k in dict.fromkeys(taken) if k not in left_out]
    wanted = None if model is None else model_names(model)
    if wanted is not None and names is not None and not columns:
        used = _columns_by_name(path, {names[k]: k for k in used}, wanted, carried)
    if only_numbers and table.frame is not None:
        used = _numeric(path, table.frame, used)
    if not used:
        raise CommandError(f"no column of {path} is left: see --columns and --drop")
    X = table.X[:, used] if table.frame is None else _numbers(table, used)
    _check_finite(table, X, used)
    if only_numbers and np.isnan(X).all():
        raise CommandError(f"{path} has no number at all: there is nothing to learn from")
    chosen = None if names is None else tuple(names[k] for k in used)
    return replace(table, X=X, names=chosen, used=tuple(used))


def _read_array(path: Path, key: str | None) -> Table:
    # Pickles are refused, since they could run code.
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return Table(path, _check_array(path, found), None)
            keys = list(found.files)
            if key is None and len(keys) != 1:
                raise CommandError(
                    f"{path} holds {len(keys)} arrays ({', '.join(keys)}): say which with --key"
                )
            key = keys[0] if key is None else key
            if key not in keys:
                raise CommandError(f"{path} has no array {key!r}: it holds {', '.join(keys)}")
            return Table(path, _check_array(path, found[key]), None, key=key)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        why = "it holds Python objects, which could run code" if "pickle" in str(error) else error
        raise unreadable(f"cannot read {path}: {why}") from error


def _check_array(path: Path, found: np.ndarray) -> np.ndarray:
    if found.dtype.kind not in "fiub":
        raise CommandError(f"{path} holds entries of the type {found.dtype}: need real numbers")
    if found.ndim != 2:
        raise CommandError(
            f"{path} holds an array of shape {found.shape}: need two dimensions, samples as rows"
        )
    _check_rows(path, found)
    kept = found.dtype.kind == "f" and found.dtype.itemsize in (4, 8)
    # Convert to the byte order of this machine.
    return found.astype(found.dtype.newbyteorder("=") if kept else np.float64, copy=False)


def _check_rows(path: Path, found: Any) -> None:
    n, m = found.shape
    if n * m == 0:
        raise CommandError(f"{path} is empty: {counted(n, 'row')}, {counted(m, 'column')}")


def _read_frame(path: Path, header: str) -> Table:
    layout = None
    if path.suffix.lower() == ".csv":
        frame, layout = read_csv(path, header)
        names = layout.names
    else:
        frame = _read_parquet(path)
        names = tuple(str(name) for name in frame.columns)
        check_unique(path, list(names))
    _check_rows(path, frame)
    return Table(path, np.empty(frame.shape), names, frame=frame, layout=layout)


def _read_parquet(path: Path) -> Any:
    import pandas as pd
    import pyarrow

    try:
        with path.open("rb") as file:
            return pd.read_parquet(file, engine="pyarrow").reset_index(drop=True)
    except (pyarrow.ArrowException, ValueError) as error:
        raise unreadable(f"cannot read {path}: {str(error).splitlines()[0]}") from error


def _check_finite(table: Table, X: np.ndarray, used: list[int]) -> None:
    """Refuse infinity, and say where it is."""
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise CommandError(
            f"{table.path} has {len(infinite)} infinite entries (the first in row {row} of column "
            f"{table.column(used[column])}): leave the cells blank where they mean missing, or "
            "mend them"
        )


def _numeric(path: Path, frame: Any, used: list[int]) -> list[int]:
    """Return those columns that hold numbers or are empty."""
    kept = [k for k in used if _is_numeric(frame, k)]
    if not kept:
        raise CommandError(
            f"{path} has no column of numbers among {len(used)}: there is nothing to fill; turn "
            "text into numbers first"
        )
    return kept


def _is_numeric(frame: Any, k: int) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(frame.dtypes.iloc[k]))


def _numbers(table: Table, used: list[int]) -> np.ndarray:
    """Return columns of a frame as numbers; refuse text, and say where it is."""
    import pandas as pd

    frame = table.frame
    text = [k for k in used if not _is_numeric(frame, k)]
    if text:
        names = [table.column(k) for k in text]
        cells = frame.iloc[:, text[0]]
        wrong = np.flatnonzero(cells.notna() & pd.to_numeric(cells, errors="coerce").isna())
        at = f" (row {wrong[0]} of {names[0]}: {str(cells.iloc[wrong[0]])!r})" if len(wrong) else ""
        raise CommandError(
            f"{table.path} has {counted(len(text), 'column')} with cells that are not numbers{at}: "
            f"leave out with --drop {','.join(names[:10])}{', …' * (len(names) > 10)}, or choose "
            "with --columns"
        )
    kinds = {str(frame.dtypes.iloc[k]).lower() for k in used}
    dtype = np.float32 if kinds == {"float32"} else np.float64
    X = np.empty((len(frame), len(used)), dtype=dtype)
    for j, k in enumerate(used):
        X[:, j] = frame.iloc[:, k].to_numpy(dtype=dtype, na_value=np.nan)
    return X


def _positions(table: Table, asked: Sequence[str]) -> list[int]:
    """Return the positions of the columns that were asked for, in that order."""
    n_columns, names = table.X.shape[1], table.names or ()
    known = {name: k for k, name in enumerate(names)}
    found: list[int] = []
    for item in asked:
        # A name may itself contain commas.
        for word in [item] if item in known else item.split(","):
            word = word.strip()
            first, colon, last = word.partition(":")
            if word in known:
                found.append(known[word])
            elif colon and all(part == "" or part.isdigit() for part in (first, last)):
                found.extend(range(n_columns)[int(first or 0) : int(last or n_columns)])
            elif word.isdigit() and int(word) < n_columns:
                found.append(int(word))
            else:
                shown = ", ".join(names[:10]) or f"numbered 0 to {n_columns - 1}"
                raise CommandError(f"{table.path} has no column {word!r}: its columns are {shown}")
    return found


def _columns_by_name(
    path: Path, positions: dict[str, int], wanted: tuple[str, ...], carried: bool
) -> list[int]:
    """Return the positions of the model's columns, in its order; or an error if one is missing."""
    missing = [name for name in wanted if name not in positions]
    if missing:
        raise CommandError(
            f"{path} lacks {len(missing)} of the {len(wanted)} columns that the model was fitted "
            f"to: {first_ten(missing)}"
        )
    others = [name for name in positions if name not in set(wanted)]
    if others:
        fate = "not used, carried over unchanged" if carried else "left out"
        say("note", f"columns that the model does not know, {fate}: {first_ten(others)}")
    return [positions[name] for name in wanted]


def _as_frame(X: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """Return a data frame if there are names, else the array."""
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(names))
