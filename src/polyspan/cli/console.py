"""What terminals and shells differ in: letters, patterns of file names, pipes that are closed."""

from __future__ import annotations

import codecs
import errno
import functools
import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from polyspan.cli.errors import Code, CommandError

WINDOWS = os.name == "nt"
#: What is written for signs of our messages that an encoding does not have.
WORDS = {
    "λ": "lambda", "σ": "sigma", "γ": "gamma", "κ": "kappa", "≥": ">=", "×": "x", "²": "^2",
    "°": " degrees", "…": "...", "–": "-", "é": "e",
}  # fmt: skip


def spell_out_signs() -> None:
    """Let the standard streams write words for signs that their encoding does not have.

    Files and pipes have a code page on Windows, and ASCII where there is no locale: there a λ in a
    message, or a letter in the name of a file, would end the command.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            name = f"polyspan-{stream.errors}"
            codecs.register_error(name, functools.partial(_word_for, before=stream.errors))
            stream.reconfigure(errors=name)


def _word_for(error: UnicodeError, *, before: str | None) -> tuple[str | bytes, int]:
    """Return what is written for the first sign that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    place = error.start
    sign = error.object[place]
    if sign in WORDS:
        return WORDS[sign], place + 1
    alone = UnicodeEncodeError(error.encoding, error.object, place, place + 1, error.reason)
    if before not in (None, "strict"):
        with suppress(UnicodeEncodeError):
            return codecs.lookup_error(str(before))(alone)
    return codecs.backslashreplace_errors(alone)


def given_words() -> list[str] | None:
    """Return the words after the command, patterns such as *.png replaced by names of files.

    Only on Windows, whose shells leave that to the command. None: the words are as they should be.
    """
    if not WINDOWS:
        return None
    return [found for word in sys.argv[1:] for found in _matches(word) or [word]]


def _matches(word: str) -> list[str]:
    """Return the files that a pattern of Windows means: * and ?, but not [], which names may have.

    A word that begins with ~ and a separator means a path below the home folder.
    """
    if word.startswith(("~/", "~\\")):
        word = os.path.expanduser(word)
    if word.startswith("-") or not set("*?") & set(word):
        return [word]
    return sorted(glob.glob(word.replace("[", "[[]")))


@contextmanager
def standard_output() -> Iterator[None]:
    """Write to the standard output; raise an error if nobody reads it, or if its disk is full."""
    try:
        yield
        sys.stdout.flush()
    except (OSError, SystemExit) as stopped:
        # Rich, which writes help, makes an exit with a code of its own of a closed pipe.
        error = stopped.__context__ if isinstance(stopped, SystemExit) else stopped
        if not isinstance(error, OSError):
            raise
        # Python writes what is left when it ends: to nowhere, so that it does not fail again.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # What Windows says of a pipe that nobody reads is an invalid argument.
        if error.errno == errno.EPIPE or (WINDOWS and error.errno == errno.EINVAL):
            raise CommandError("nobody reads the standard output any more", Code.CLOSED) from error
        why = error.strerror or error
        raise CommandError(
            f"cannot write to the standard output: {why}", Code.UNWRITABLE
        ) from error


def report(lines: Iterable[str], *, aside: bool = False) -> None:
    """Write lines about a result to the standard output.

    To the standard error with `aside`, where the result itself goes to the standard output.
    """
    with standard_output():
        for line in lines:
            print(line, file=sys.stderr if aside else sys.stdout)
