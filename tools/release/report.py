"""How checks say what they found, and run other programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class FailedCheckError(Exception):
    """Something that a release promises does not hold. The message says what."""


def require(problems: Sequence[str]) -> None:
    """Fail if there are problems, and name all of them."""
    if problems:
        raise FailedCheckError("; ".join(problems))


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a program and return what it printed; fail with the line that says why if it fails.

    Parameters
    ----------
    command : sequence of str or Path
        The program and its arguments.
    cwd : Path, optional
        The folder where it runs.
    env : mapping, optional
        Variables to set beside those that are set already.
    """
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"$ {' '.join(words)}\n{done.stdout}{done.stderr}", file=sys.stderr)
        name = " ".join(Path(word).name for word in words[:3])
        said = telling_line(done.stderr.strip() or done.stdout.strip())
        raise FailedCheckError(f"`{name} …` ended with {done.returncode}: {said}")
    return done.stdout


def telling_line(output: str) -> str:
    """Return the last line of an output that names an error, or else its last line."""
    lines = [line.strip() for line in output.splitlines()] or ["nothing was said"]
    errors = [line for line in lines if re.search(r"(error|Error|ERROR|WARNING): ", line)]
    return (errors or lines)[-1]


def reported(name: str, check: Callable[[], str]) -> bool:
    """Run one check, print its line, and return whether it holds."""
    try:
        found, holds = check(), True
    except FailedCheckError as error:
        found, holds = str(error), False
    except Exception as error:  # a check that breaks is a check that failed
        found, holds = f"{type(error).__name__}: {error}", False
    print(f"{'ok' if holds else 'failed':<7} {name:<9} {' '.join(found.split())}", flush=True)
    return holds
