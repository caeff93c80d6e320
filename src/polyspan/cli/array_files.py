"""Arrays of numbers from .npy and .npz files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from polyspan.cli.errors import CommandError, counted, unreadable


def read_array(path: Path, key: str | None) -> tuple[np.ndarray, str | None]:
    """Return an array with two dimensions, and its key in a .npz file."""
    # Without pickles, which could run code.
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return _check_array(path, found), None
            keys = list(found.files)
            if key is None and len(keys) != 1:
                raise CommandError(
                    f"{path} holds {len(keys)} arrays ({', '.join(keys)}): say which with --key"
                )
            key = keys[0] if key is None else key
            if key not in keys:
                raise CommandError(f"{path} has no array {key!r}: it holds {', '.join(keys)}")
            return _check_array(path, found[key]), key
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        why = "it holds Python objects, which could run code"
        raise unreadable(f"cannot read {path}: {why}") from error


def _check_array(path: Path, found: np.ndarray) -> np.ndarray:
    if found.dtype.kind not in "fiub":
        raise CommandError(f"{path} holds entries of the type {found.dtype}: need real numbers")
    if found.ndim != 2:
        raise CommandError(
            f"{path} holds an array of shape {found.shape}: need two dimensions, samples as rows"
        )
    check_rows(path, found)
    kept = found.dtype.kind == "f" and found.dtype.itemsize in (4, 8)
    # In the byte order of this machine.
    return found.astype(found.dtype.newbyteorder("=") if kept else np.float64, copy=False)


def check_rows(path: Path, found: Any) -> None:
    """Refuse a table without any entry."""
    n, m = found.shape
    if n * m == 0:
        raise CommandError(f"{path} is empty: {counted(n, 'row')}, {counted(m, 'column')}")
