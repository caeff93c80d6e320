"""Find data files: in a given folder, in POLYSPAN_DATA, in the cache, or at the publisher.

Also what several loaders need: gray pixels of a file, and checks of integers.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.base.optional import import_optional

#: Environment variable that names a folder of data files.
DATA_VARIABLE = "POLYSPAN_DATA"
# Modes of Pillow with at most 8 bits per channel; Pillow would clip larger values at 255.
_EIGHT_BIT = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}


@dataclass(frozen=True)
class DataFile:
    """A file that a loader reads, and where to get it."""

    name: str
    sha256: str
    advice: str
    """Sentence for error messages: what to do if the file is missing or wrong."""
    url: str | None = None
    """Address from which it can be downloaded; None: it cannot be downloaded."""


def find_file(
    file: DataFile,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    verify: bool = True,
) -> Path:
    """Return the path of a data file whose content is the expected one.

    With `data_home` only that folder is searched. Otherwise the file is searched for in the folder
    that POLYSPAN_DATA names, then in the cache folder; if it is in neither, it is downloaded from
    its publisher into the cache folder.

    Parameters
    ----------
    file : DataFile
    data_home : path, default=None
        The folder that has the file. If it is given, no other folder is searched.
    download : bool, default=True
        Whether the network may be used.
    verify : bool, default=True
        Whether to check the SHA-256 of a file that was found. A download is always checked.

    Returns
    -------
    path : Path

    Raises
    ------
    FileNotFoundError
        No folder has the file, and it cannot or must not be downloaded.
    NotADirectoryError
        `data_home` or POLYSPAN_DATA is not a folder.
    ValueError
        The file has another SHA-256.
    ConnectionError
        The publisher could not be reached.
    OSError
        The cache folder cannot be written.
    ImportError
        The file would have to be downloaded, and pooch is not installed.

    Examples
    --------
    >>> import hashlib, tempfile
    >>> from pathlib import Path
    >>> from polyspan.datasets.files import DataFile, find_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_bytes(b"abc")
    ...     file = DataFile("a.txt", hashlib.sha256(b"abc").hexdigest(), advice="Write it.")
    ...     find_file(file, folder).name
    'a.txt'
    """
    places = _search_folders(data_home)
    for folder in places.values():
        path = folder / file.name
        if path.is_file():
            if verify:
                _check(file, path)
            return path
    if data_home is None and download and file.url is not None:
        return _download(file, file.url)
    if places:
        where = " or ".join(f"{place} ({folder})" for place, folder in places.items())
        looked = f"{file.name} was not found in {where}"
    else:
        looked = f"{file.name} was not looked for, as {DATA_VARIABLE} is not set"
    raise FileNotFoundError(f"{looked}. {file.advice} {_placing_advice(file)}")


def cache_folder() -> Path | None:
    """Return the folder of downloads; None if pooch, which downloads, is not installed."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("polyspan"))


def _search_folders(data_home: str | os.PathLike[str] | None) -> dict[str, Path]:
    if data_home is not None:
        return {"data_home": _folder("data_home", data_home)}
    places = {}
    if variable := os.environ.get(DATA_VARIABLE):
        places[DATA_VARIABLE] = _folder(DATA_VARIABLE, variable)
    if cache := cache_folder():
        places["the cache folder"] = cache
    return places


def _folder(name: str, given: str | os.PathLike[str]) -> Path:
    folder = Path(given).expanduser()
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise NotADirectoryError(
            f"{name}={str(given)!r} {found}: it must be the folder that holds the data files"
        )
    return folder


def _placing_advice(file: DataFile) -> str:
    return (
        f"Put {file.name} into a folder, and name that folder by data_home or by the environment "
        f"variable {DATA_VARIABLE}."
    )


def _check(file: DataFile, path: Path) -> None:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"{path} ({path.stat().st_size} bytes) has the SHA-256 {found}, expected "
            f"{file.sha256}: it is incomplete or another version. Replace or delete it. "
            f"{file.advice}"
        )


def _download(file: DataFile, url: str) -> Path:
    pooch = import_optional(
        "pooch",
        f"{file.name} is not on this machine, and its download",
        f"or download it by hand. {file.advice} {_placing_advice(file)}",
    )
    import requests

    folder = cache_folder()

    try:
        # pooch writes to a temporary file and renames it only after the SHA-256 was checked, so
        # that an interrupted or wrong download leaves no file of this name.
        path = pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=folder)
    except requests.exceptions.RequestException as error:
        raise ConnectionError(
            f"{file.name} could not be downloaded from {url}: {error}. Check the network and try "
            f"again, or download it by hand elsewhere. {file.advice} {_placing_advice(file)}"
        ) from error
    except OSError as error:
        raise OSError(
            f"{file.name} could not be kept in the cache folder {folder}: {error}. "
            f"Download it by hand. {file.advice} {_placing_advice(file)}"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"What {url} sent does not have the SHA-256 {file.sha256} of {file.name}; it was not "
            f"kept. Try again. If it happens again, the network has replaced the file, or the "
            f"publisher has changed it: take it from another source. {_placing_advice(file)}"
        ) from error
    return Path(path)


def read_gray(path: str | os.PathLike[str]) -> np.ndarray:
    """Return an image file as gray values, shape (height, width), uint8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan.datasets.files import read_gray
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.pgm"
    ...     _ = path.write_bytes(b"P5 3 1 255 " + bytes([0, 7, 255]))
    ...     read_gray(path).tolist()
    [[0, 7, 255]]
    """
    Image = import_optional("PIL.Image", f"{path} is an image, and reading it")
    try:
        with Image.open(path) as image:
            if image.mode not in _EIGHT_BIT:
                raise ValueError(
                    f"{path} has the mode {image.mode!r}: save it with 8 bits per channel"
                )
            try:
                image.load()
            except ValueError as error:  # a truncated file, before pillow 12
                raise OSError(str(error)) from error
            return np.array(image.convert("L"))
    except (Image.UnidentifiedImageError, SyntaxError) as error:
        raise ValueError(f"{path} is not an image that pillow can read: {error}") from error
    except OSError as error:
        if error.errno is not None:  # the file system's own message: no such file, no permission
            raise
        raise ValueError(f"{path} is an incomplete image: {error}") from error


def whole_numbers(given: Any) -> tuple[int, ...]:
    """Return an integer, or a sequence of integers, as a tuple; an empty tuple for anything else.

    Examples
    --------
    >>> from polyspan.datasets.files import whole_numbers
    >>> whole_numbers(3), whole_numbers([1, 2]), whole_numbers(0.5)
    ((3,), (1, 2), ())
    """
    listed = (given,) if np.ndim(given) == 0 else tuple(given)
    if not all(isinstance(number, Integral) for number in listed):
        return ()
    return tuple(int(number) for number in listed)
