"""Where a data file is found: a folder given, POLYSPAN_DATA, the cache, or its publisher."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Environment variable that names a folder of data files.
VARIABLE = "POLYSPAN_DATA"


@dataclass(frozen=True)
class DataFile:
    """A file that a loader reads, and how to come by it."""

    name: str
    sha256: str
    how: str
    """What to do where it is missing or wrong: a sentence for error messages."""
    url: str | None = None
    """Where its publisher keeps this very file; None: nowhere, so it cannot be downloaded."""


def find_file(
    file: DataFile,
    data_home: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    verify: bool = True,
) -> Path:
    """Return the path of a data file whose content is the expected one.

    It is looked for in `data_home`, or else in the folder that POLYSPAN_DATA names, then in the
    cache folder, and at last downloaded from its publisher into the cache folder.

    Parameters
    ----------
    file : DataFile
    data_home : path, default=None
        The folder that has the file. No other place is looked at when it is given.
    download : bool, default=True
        Whether the network may be used.
    verify : bool, default=True
        Whether to compare the SHA-256 of a file found. A download is always compared.

    Returns
    -------
    path : Path

    Raises
    ------
    FileNotFoundError
        No place has the file, and it cannot or must not be downloaded.
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
    ...     file = DataFile("a.txt", hashlib.sha256(b"abc").hexdigest(), how="Write it.")
    ...     find_file(file, folder).name
    'a.txt'
    """
    places = _places(data_home)
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
        looked = f"{file.name} was not looked for, as {VARIABLE} is not set"
    raise FileNotFoundError(f"{looked}. {file.how} {_put(file)}")


def cache_folder() -> Path | None:
    """Return where downloads are kept; None without pooch, which would have put them there."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("polyspan"))


def _places(data_home: str | os.PathLike[str] | None) -> dict[str, Path]:
    if data_home is not None:
        return {"data_home": _folder("data_home", data_home)}
    places = {}
    if variable := os.environ.get(VARIABLE):
        places[VARIABLE] = _folder(VARIABLE, variable)
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


def _put(file: DataFile) -> str:
    return (
        f"Put {file.name} into a folder, and name that folder by data_home or by the environment "
        f"variable {VARIABLE}."
    )


def _check(file: DataFile, path: Path) -> None:
    state = path.stat()
    found = _sha256(path.resolve(), state.st_mtime_ns, state.st_size)
    if found != file.sha256:
        raise ValueError(
            f"{path} ({state.st_size} bytes) has the SHA-256 {found}, expected {file.sha256}: it "
            f"is incomplete or another version. Replace or delete it. {file.how}"
        )


# Time and size are there so that a file that changed is read again; an unchanged one is read once.
@lru_cache(maxsize=64)
def _sha256(path: Path, mtime_ns: int, size: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(file: DataFile, url: str) -> Path:
    folder = cache_folder()
    if folder is None:
        raise ImportError(
            f"{file.name} is not on this machine, and its download needs pooch: "
            f"pip install pooch. Or do it by hand. {file.how} {_put(file)}"
        )
    import pooch
    import requests

    try:
        # pooch writes to a temporary name beside the target and renames it only after the
        # comparison, so that an interrupted or wrong download leaves no file of this name.
        path = pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=folder)
    except requests.exceptions.RequestException as error:
        raise ConnectionError(
            f"{file.name} could not be downloaded from {url}: {error}. Check the network and try "
            f"again, or do it by hand where there is one. {file.how} {_put(file)}"
        ) from error
    except OSError as error:
        raise OSError(
            f"{file.name} could not be kept in the cache folder {folder}: {error}. Do it by hand. "
            f"{file.how} {_put(file)}"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"What {url} sent has not the SHA-256 {file.sha256} of {file.name}; it was not kept. "
            f"Try again. If it happens again, the network answers in the publisher's place, or "
            f"the publisher has changed the file: take it from another source. {_put(file)}"
        ) from error
    return Path(path)
