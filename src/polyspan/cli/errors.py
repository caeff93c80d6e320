"""Errors of the command line: exit codes, and messages in place of tracebacks."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum

import typer

COLOURS = {"error": typer.colors.RED, "warning": typer.colors.YELLOW, "note": typer.colors.CYAN}


class Code(IntEnum):
    """Exit codes, the same for all commands, and what they say."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Code:
        """Keep the meaning beside the number."""
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    DATA = 1, "the data or the options do not fit (shape, sizes, missing entries)"
    USAGE = 2, "an unknown command, option or value of one, or an option that is missing"
    UNREADABLE = (
        3,
        "an input file is missing, damaged, of an unknown kind, no model, or may not be read",
    )
    EXISTS = 4, "the output exists already; --force replaces it"
    UNWRITABLE = 5, "the output could not be written (full disk, no permission in its folder)"
    SYSTEM = 6, "the system refused something else (a folder for temporary or compiled files)"
    BUG = 70, "an error in polyspan itself; --debug shows where"
    INTERRUPTED = 130, "interrupted with Ctrl-C"
    CLOSED = 141, "whoever read the standard output has closed it"
    TERMINATED = 143


EXPLAINED: dict[int, str] = {
    0: "all went well",
    **{code: code.meaning for code in Code if code.meaning},
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
    if isinstance(error, MemoryError):
        return Code.DATA, f"not enough memory: {error}"
    if isinstance(error, ModuleNotFoundError) and "pip install" not in str(error):
        return Code.DATA, f'{error}: pip install "polyspan[cli]"'
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


def tell(
    error: BaseException, *, debug: bool, about: str = "", words: Mapping[str, str] | None = None
) -> Code:
    """Say what went wrong, and with what file unless the message names it; return the exit code."""
    code, message = explain(error)
    if code == Code.CLOSED:  # as other commands: silently
        return code
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    message = in_words_of_options(message, words or {})
    say("error", message if about in message else f"{about}: {message}")
    return code


def in_words_of_options(message: str, words: Mapping[str, str]) -> str:
    """Return what the library says of its parameters with the options that set them.

    A parameter whose name is a plain word stands in a message with a value: noise="poisson".
    """
    for name, option in words.items():
        message = re.sub(rf"\b{name}=", f"{option} ", message)
        if "_" in name:
            message = re.sub(rf"\b{name}\b", option, message)
    return message


def say(kind: str, message: str) -> None:
    """Write one line to the standard error: an error, a warning or a note."""
    typer.secho(f"{kind}: ", fg=COLOURS[kind], bold=kind == "error", err=True, nl=False)
    print(" ".join(message.split()), file=sys.stderr, flush=True)


def counted(n: int, noun: str) -> str:
    """Return a number with its noun in singular or plural: 1 column, 2 columns."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


@contextmanager
def short_warnings(words: Mapping[str, str]) -> Iterator[None]:
    """Show the warnings that models raise as one line each, and each only once."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # These are meant for programmers, not for users of the command.
        for kind in (DeprecationWarning, FutureWarning, ImportWarning):
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = lambda message, *_, **__: say(
            "warning", in_words_of_options(str(message), words)
        )
        yield
