"""Files that commands read and write: checked before the work, written whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import polyspan
from polyspan.base.files import atomic_write, check_target, same_file
from polyspan.cli.console import report, standard_output
from polyspan.cli.errors import Code, CommandError, unreadable
from polyspan.cli.options import Run

#: Means the standard input and the standard output, for tables.
STANDARD = Path("-")
PIPE = "is a pipe or a device"
#: Writes the content of a file.
Writer = Callable[[IO[bytes]], object]


def ending_of(path: Path) -> str:
    """Return the ending in small letters; .gz together with the one before."""
    if path == STANDARD:
        return ".csv"
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a message with its name.

    Decoders raise errors of any kind (IndexError, TypeError, ZeroDivisionError), since they trust
    the numbers in a file.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable(f"{path} does not exist") from error
    except IsADirectoryError as error:
        raise unreadable(f"{path} is a folder: give a file") from error
    except OSError as error:
        raise unreadable(f"cannot read {path}: {error.strerror or error}") from error
    except (CommandError, ImportError, MemoryError):
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        raise unreadable(f"cannot read {path}: {why}; it may be damaged") from error


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


def check_inputs(*paths: Path | None) -> None:
    """Raise an error where an input is missing, before anything is said about outputs.

    A pipe with a name is refused: to open one that nobody writes to would never end.
    """
    for path in paths:
        if path is None or path == STANDARD:
            continue
        with reading(path):
            if path.is_dir():
                raise IsADirectoryError
            path.stat()
        if not path.is_file():
            raise unreadable(f"{path} {PIPE}: give a file, or for a table - and the standard input")


class Job:
    """The files of a command: checked before the work, and written together at its end.

    Parameters
    ----------
    run : Run
        Says whether files that are there may be replaced.
    inputs : mapping of str to Path or None
        Files that are read, by what they are.
    """

    def __init__(self, run: Run, inputs: Mapping[str, Path | None]) -> None:
        check_inputs(*inputs.values())
        self.run = run
        self._known = list(inputs.items())
        self.writers: dict[Path, Writer] = {}

    def check(self, what: str, path: Path | None, endings: tuple[str, ...] | None = None) -> None:
        """Raise an error where an output could not be written, or is another file of the job.

        Its name must have one of the endings.
        """
        if path is None:
            return
        if endings is not None and ending_of(path) not in endings:
            raise CommandError(f"{path}: the name of an output must end in {', '.join(endings)}")
        if path == STANDARD:
            return
        for known, other in self._known:
            if other is not None and same_file(path, other):
                raise CommandError(
                    f"the output is the {known} itself, {other}: give it another name"
                )
        if path.exists() and not (path.is_file() or path.is_dir()):
            message = f"{path} {PIPE}, which would be replaced: give the name of a file"
            raise CommandError(message, Code.UNWRITABLE)
        with writing(path):
            check_target(path, overwrite=self.run.force)
        self._known.append((what, path))

    def save(self, model: Any, path: Path | None) -> None:
        """Write a model at the end, where the path is given."""
        if path is not None:
            from polyspan.storage.models import model_bytes

            self.writers[path] = lambda file: file.write(model_bytes(model))

    def finish(self, lines: Iterable[str]) -> None:
        """Write all files, and then say what was done; on the standard error where one is -."""
        shown = self.writers.pop(STANDARD, None)
        with ExitStack() as stack:
            # None gets its name before all of them are written.
            for path, write in self.writers.items():
                stack.enter_context(writing(path))
                part = stack.enter_context(atomic_write(path, overwrite=self.run.force))
                with part.open("wb") as file:
                    write(file)
            if shown is not None:
                with standard_output():
                    shown(sys.stdout.buffer)
        if not self.run.quiet:
            report(lines, aside=shown is not None)


def load_model(path: Path, kind: str, learned: Mapping[str, Any]) -> Any:
    """Read a model that --save-model wrote: an estimator, or a pipeline that ends in one.

    Parameters
    ----------
    path : Path
    kind : str
        The name of its class.
    learned : mapping
        Values of options that say how to learn, by these; they are refused beside a model.
    """
    flags = [flag for flag, value in learned.items() if value]
    if flags:
        raise CommandError(f"--model has learned already: leave {', '.join(flags)} out")
    from polyspan.storage.archive import ModelFileError

    with reading(path):
        try:
            model = polyspan.load_model(path)
        except ModelFileError as error:
            raise unreadable(str(error)) from error
    found = type(model[-1] if hasattr(model, "steps") else model).__name__
    if found != kind:
        raise CommandError(f"{path} holds a {found}: need a {kind}, as --save-model writes")
    return model
