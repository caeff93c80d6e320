"""Formats of tables, by the endings of file names."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

#: Formats of lines with cells.
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
#: Formats with text beside numbers, to which all columns go.
FRAMES = (*TEXT, ".parquet")
ENDINGS = (".npy", ".npz", *FRAMES)


def ending_of(path: Path) -> str:
    """Return the ending in small letters; .gz together with the one before."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def numbered(path: Path, k: int) -> Path:
    """Return the path with a number before its ending: filled.csv.gz, filled-1.csv.gz."""
    n = len(ending_of(path))
    stem, ending = path.name[: len(path.name) - n], path.name[len(path.name) - n :]
    return path.with_name(f"{stem}-{k}{ending}")


def open_text(path: Path) -> Any:
    """Open a file of lines for reading; line ends are left to whoever reads."""
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    return gzip.open(path, **how) if ending_of(path).endswith(".gz") else path.open(**how)


@contextmanager
def packed(path: Path, ending: str) -> Iterator[IO[bytes]]:
    """Give a file to write bytes to, which are packed where the ending says so.

    Without the time and the name of the file, which gzip would note: the same table gives the same
    bytes.
    """
    with path.open("wb") as file:
        if not ending.endswith(".gz"):
            yield file
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packing:
            yield packing  # type: ignore[misc]  # it is no IO, but has all of its methods
