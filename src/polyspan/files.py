"""Atomic writing: a file is written completely, or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
    return target


def followed(path: str | Path) -> Path:
    """Return the path, or where it is a symbolic link the file at its end, which need not exist."""
    path = Path(path)
    if not path.is_symlink():
        return path
    end = Path(os.path.realpath(path))
    if end.is_symlink():  # realpath stops inside a circle
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return end


def same_file(a: str | Path, b: str | Path) -> bool:
    """Tell whether two names, through symbolic links, mean one file, which need not exist."""
    return os.path.realpath(a) == os.path.realpath(b)


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
    >>> from polyspan.files import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("content")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    target = check_target(path, overwrite=overwrite)
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.stem}.", suffix=f".part{target.suffix}"
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _flush(temporary)
        os.chmod(temporary, _mode(target))
        _rename(temporary, target, overwrite=overwrite)
    finally:
        # After the rename it no longer exists.
        with suppress(FileNotFoundError):
            temporary.unlink()


def _flush(path: Path) -> None:
    """Wait until the content is on the disk; some full disks raise their error only here."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of any new file."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _rename(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if not overwrite:
        # A link, unlike a rename, fails if another process has created the file meanwhile.
        try:
            os.link(temporary, target)
        except FileExistsError as error:
            raise FileExistsError(f"{target} exists already") from error
        except OSError:
            pass  # a file system without links
        else:
            return
    os.replace(temporary, target)
