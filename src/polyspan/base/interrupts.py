"""Ctrl-C while a command is still importing: one line, not a traceback.

Imports take a second or two, and most of them run before `polyspan.cli` has any code of its own:
the package comes first. Nothing has been written by then, so that the process can end at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C has ended


def is_command() -> bool:
    """Tell whether this process is the command `polyspan`, or `python -m polyspan.cli`."""
    # While the package is imported for -m, argv[0] is "-m".
    module = sys.argv[:1] == ["-m"] and "polyspan.cli" in sys.orig_argv
    # On Windows it is polyspan.exe, or polyspan-script.py of older installers, in any letters.
    name = Path(sys.argv[0] if sys.argv else "").stem.lower()
    return module or name in ("polyspan", "polyspan-script")


@contextmanager
def ended_by_interrupt(wanted: bool = True) -> Iterator[None]:
    """Let Ctrl-C end the process with one line.

    A handler, since what is raised within an import may be caught there, or come out as an
    ImportError. One that is there already (a shell has told a background process to ignore Ctrl-C,
    say) stays.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if not wanted or before is not signal.default_int_handler:
        yield
        return
    try:
        signal.signal(signal.SIGINT, _end)
    except ValueError:  # another thread than the first
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(*_: Any) -> None:
    os.write(2, b"error: interrupted; no output was written\n")
    os._exit(INTERRUPTED)
