"""Atomic writing: a file is written completely, or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WINDOWS = os.name == "nt"
# Codes of Windows for a file that is read-only, or that another program has open.
_IN_USE = (5, 32)
# Seconds to wait before Windows is asked again: scanners for viruses open every new file for a
# moment.
_PAUSES = (0.05, 0.1, 0.2, 0.4)
# Letters of a name that its temporary file has too: with all, a long name would become too long.
_MOST_LETTERS = 40


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """Raise an error if a file could not be written, before its content is computed.

    Parameters
    ----------
    path : str or Path
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Returns
    -------
    path : Path
        Of the file that will be written: where `path` is a symbolic link, the one it points to.
    """
    target = followed(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists already")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: make it first")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {target.parent} does not let you write")
    if WINDOWS and target.exists():
        try:  # now what Windows would refuse at the end: to replace a file in use
            with target.open("r+b"):
                pass
        except PermissionError as error:
            raise _in_use(target) from error
    return target


def _in_use(target: Path) -> PermissionError:
    why = "it is read-only, or open in another program: close it there, or give another name"
    return PermissionError(errno.EACCES, why, str(target))


def followed(path: str | Path) -> Path:
    """Return the path, or where it is a symbolic link the file at its end, which need not exist."""
    path = Path(path)
    if not path.is_symlink():
        return path
    end = Path(os.path.realpath(path))
    if end.is_symlink():  # realpath stops inside a circle
        # In words, since Windows has none for this number.
        raise OSError(errno.ELOOP, "Too many levels of symbolic links", str(path))
    return end


def same_file(a: str | Path, b: str | Path) -> bool:
    """Tell whether two names, through symbolic links, mean one file, which need not exist.

    Where a file system does not tell capitals from small letters, names that differ in them alone
    mean one file.
    """
    a, b = os.path.realpath(a), os.path.realpath(b)
    return a == b or (_folded(a) == _folded(b) and _ignores_case(Path(a).parent))


def _folded(path: str) -> str:
    # One letter é and the pair of e and an accent are the same to macOS.
    return unicodedata.normalize("NFC", path.casefold())


def _ignores_case(folder: Path) -> bool:
    """Tell whether a file system finds a folder also by its name in the other letters."""
    for place in (folder, *folder.parents):
        # Only those of ASCII: of others a file system may know less than Python.
        name = re.sub("[A-Za-z]", lambda letter: letter[0].swapcase(), place.name)
        if name == place.name or not place.exists():
            continue
        try:
            return os.path.samestat(os.lstat(place), os.lstat(place.with_name(name)))
        except OSError:  # there is none of that name
            return False
    return WINDOWS


@contextmanager
def atomic_write(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary file to write to, and rename it to `path` at the end.

    The temporary file lies in the same folder, so that it is renamed and not copied: a reader sees
    the old file or the new one. Whatever goes wrong before, interrupts included, it is removed and
    what was at `path` stays. A symbolic link stays a link: the file it points to is replaced.

    Parameters
    ----------
    path : str or Path
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Yields
    ------
    temporary : Path
        With the suffix of `path`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyspan.base.files import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("content", encoding="utf-8")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    target = check_target(path, overwrite=overwrite)
    temporary = _new_file(target)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())  # some full disks raise their error only here
        os.chmod(temporary, _mode(target))
        _rename(temporary, target, overwrite=overwrite)
    except BaseException:
        with suppress(OSError):  # the error that came first says more
            _insist(temporary, temporary.unlink)
        raise
    # After the rename it no longer exists.
    with suppress(FileNotFoundError):
        _insist(temporary, temporary.unlink)


def _new_file(target: Path) -> Path:
    """Create an empty file in the folder of the target, of a name that no other file has.

    Not by `tempfile`, which until Python 3.12 tries two thousand million names where Windows does
    not let one write.
    """
    folder, stem = os.path.abspath(target.parent), target.stem[:_MOST_LETTERS]
    while True:
        path = Path(folder, f".{stem}.{secrets.token_hex(4)}.part{target.suffix}")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            return path


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of any new file."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _rename(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite:
        _insist(target, os.replace, temporary, target)
        return
    try:
        try:
            # A link, unlike a rename, fails if another process has created the file meanwhile.
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            # Windows, unlike others, does not rename to a name that exists.
            _insist(target, os.rename, temporary, target)
    except FileExistsError as error:
        raise FileExistsError(f"{target} exists already") from error


def _insist(path: Path, change: Callable[..., Any], *arguments: Path) -> None:
    """Rename or remove a file; where Windows says that it is in use, try again for a second."""
    for pause in (*_PAUSES, None):
        try:
            change(*arguments)
            return
        except PermissionError as error:
            if getattr(error, "winerror", None) not in _IN_USE:
                raise
            if pause is None:
                raise _in_use(path) from error
        time.sleep(pause)
