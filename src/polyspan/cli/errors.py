"""Errors of the command line: exit codes, and messages in place of tracebacks."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from polyspan.base.files import check_target
from polyspan.cli.console import closed_pipes
from polyspan.cli.formats import ending_of
from polyspan.storage.models import ModelFileError

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


class Code(IntEnum):
    """Exit codes, the same for all commands."""

    DATA = 1
    USAGE = 2  # typer's own
    UNREADABLE = 3
    EXISTS = 4
    UNWRITABLE = 5
    SYSTEM = 6
    BUG = 70
    INTERRUPTED = 130
    TERMINATED = 143


EXPLAINED = {
    0: "all went well",
    Code.DATA: "the data or the options do not fit (shape, sizes, missing entries)",
    Code.USAGE: "an unknown command, option or value of one, or an option that is missing",
    Code.UNREADABLE: "an input file is missing, damaged, of an unknown kind, no model, or may not "
    "be read",
    Code.EXISTS: "the output exists already; --force replaces it",
    Code.UNWRITABLE: "the output could not be written (full disk, no permission in its folder)",
    Code.SYSTEM: "the system refused something else (a folder for temporary or compiled files)",
    Code.BUG: "an error in polyspan itself; --debug shows where",
    Code.INTERRUPTED: "interrupted with Ctrl-C",
}


class CommandError(Exception):
    """A failure with a message for the user and an exit code."""

    def __init__(self, message: str, code: Code = Code.DATA) -> None:
        super().__init__(message)
        self.code = code


def unreadable(message: str) -> CommandError:
    """Return the error for an input file that cannot be read."""
    return CommandError(message, Code.UNREADABLE)


def explain(error: BaseException) -> tuple[Code, str]:
    """Return the exit code and the message of an error."""
    if isinstance(error, CommandError):
        return error.code, str(error)
    if isinstance(error, KeyboardInterrupt):
        return Code.INTERRUPTED, "interrupted; no output was written"
    if isinstance(error, ModelFileError):
        return Code.UNREADABLE, str(error)
    if isinstance(error, MemoryError):
        return Code.DATA, f"not enough memory: {error}"
    if isinstance(error, ValueError | ImportError):
        return Code.DATA, str(error)
    if isinstance(error, OSError):  # of neither input nor output: those are caught where they are
        return Code.SYSTEM, f"the system refused: {error}"
    if isinstance(error, RuntimeError) and str(error).startswith("cannot cache function"):
        return Code.SYSTEM, (
            "numba may write compiled code neither beside polyspan nor below the home folder: set "
            "NUMBA_CACHE_DIR to a folder that may be written"
        )
    return Code.BUG, f"unexpected {type(error).__name__}: {error} (--debug shows where)"


def tell(error: BaseException, *, debug: bool, about: str = "") -> Code:
    """Say what went wrong, and with what file unless the message names it; return the exit code."""
    code, message = explain(error)
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    say("error", message if about in message else f"{about}: {message}")
    return code


def say(kind: str, message: str) -> None:
    """Write one line to the standard error: an error, a warning or a note."""
    # A new console each time, since the stream may have been replaced. Soft wrap keeps the message
    # on one line, so that it can be searched for.
    text = Text.assemble((f"{kind}: ", STYLES[kind]), " ".join(message.split()))
    Console(stderr=True).print(text, soft_wrap=True, highlight=False)


def report(line: str) -> None:
    """Write one line about a result to the standard output."""
    with closed_pipes():
        Console(highlight=False).print(line, soft_wrap=True, markup=False)


def counted(n: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: 1 column, 2 columns."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


@contextmanager
def short_warnings(kind: str = "warning", old: str = "", new: str = "") -> Iterator[None]:
    """Show the warnings that models raise as one line each, and each only once.

    Where `old` is given, such as the name of a parameter, `new` stands in its place.
    """
    seen = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # These warnings are meant for programmers, not for users of the command.
        if issubclass(category, DeprecationWarning | FutureWarning | ImportWarning):
            return
        if str(message) not in seen:
            seen.add(str(message))
            say(kind, str(message).replace(old, new) if old else str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn file system errors during reading into errors of the command."""
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable(f"{path} does not exist") from error
    except IsADirectoryError as error:
        raise unreadable(f"{path} is a folder: give a file") from error
    except OSError as error:
        raise unreadable(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes a decoder stumble over into a message.

    Decoders raise errors of any kind (IndexError, TypeError, ZeroDivisionError), since they trust
    the numbers in a file.
    """
    try:
        yield
    except (CommandError, OSError, ImportError, MemoryError):
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        raise unreadable(f"cannot read {path}: {why}; it may be damaged") from error


def check_input(*paths: Path | None) -> None:
    """Raise an error where an input is missing, before anything is said about outputs."""
    for path in paths:
        if path is None:
            continue
        with reading(path):
            if path.is_dir():
                raise IsADirectoryError
            path.stat()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn file system errors during writing into errors of the command."""
    try:
        yield
    except FileExistsError as error:
        raise CommandError(f"{path} exists already: --force replaces it", Code.EXISTS) from error
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise CommandError(message, Code.UNWRITABLE) from error


def check_output(path: Path, *, force: bool, endings: tuple[str, ...] | None = None) -> None:
    """Raise an error before the work where its output could not be written."""
    if endings is not None and ending_of(path) not in endings:
        raise CommandError(f"{path}: the name of an output must end in {', '.join(endings)}")
    with writing(path):
        check_target(path, overwrite=force)
