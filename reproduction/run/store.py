"""The file of trials: one line each, written so that a killed run loses nothing but what it ran."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from reproduction.run.records import Key, Record

try:
    import fcntl
except ImportError:  # Windows: nothing there keeps two runs apart but their user
    fcntl = None  # type: ignore[assignment]


class TrialStore:
    """Hold a file of trials for writing; use it in a `with` statement.

    Opening takes a lock that the system drops when the process ends, however it ends. Lines that
    are no whole record, such as the last one after a kill in mid-write, go to `<file>.corrupt`.

    Parameters
    ----------
    path : path of the file
        It and its folder are made where they are missing.

    Attributes
    ----------
    records : dict
        Every trial in the file by its key; of several with one key, the last.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.records: dict[Key, Record] = {}
        self._lock = -1
        self._file = -1

    def __enter__(self) -> TrialStore:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self.path)
        try:
            content = _Content.of(self.path)
            _repair(self.path, content)
            self.records = content.records
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._file = os.open(self.path, flags, 0o644)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def append(self, record: Record) -> None:
        """Add a trial at the end of the file; it is on the disk when this returns."""
        line = record.to_line()
        before = os.fstat(self._file).st_size
        # One write for the whole line: a kill leaves the line, none of it, or a torn last line.
        written = os.write(self._file, line)
        if written != len(line):
            os.ftruncate(self._file, before)
            raise OSError(
                f"only {written} of {len(line)} bytes of a trial fit into {self.path}: "
                "make room on the disk and run again; the trials before it are kept"
            )
        os.fsync(self._file)
        self.records[record.key] = record

    def _close(self) -> None:
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1


def read_records(path: str | os.PathLike[str]) -> dict[Key, Record]:
    """Read a file of trials without changing it, even while a run writes to it.

    Lines that are no whole record are left out with a warning; a missing file has no trials.
    """
    content = _Content.of(Path(path))
    if content.bad:
        warnings.warn(f"{path}: left out {_named(content.bad)}", stacklevel=2)
    return content.records


@dataclass(frozen=True)
class _Content:
    """The lines of a file, whole ones and others."""

    records: dict[Key, Record]
    good: Sequence[bytes]
    bad: Sequence[tuple[int, bytes]]
    """Line number and content of what is no record."""
    tidy: bool
    """Whether the file ends where a line ends (or is empty)."""

    @classmethod
    def of(cls, path: Path) -> _Content:
        raw = path.read_bytes() if path.exists() else b""
        records: dict[Key, Record] = {}
        good, bad = [], []
        for number, line in enumerate(raw.split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                record = Record.from_line(line)
                # Taken out first, so that the order is that of the last lines.
                records.pop(record.key, None)
                records[record.key] = record
            except (ValueError, TypeError):
                bad.append((number, line))
            else:
                good.append(line)
        return cls(records, good, bad, tidy=not raw or raw.endswith(b"\n"))


def _repair(path: Path, content: _Content) -> None:
    """Leave only whole lines in the file, and what else it had beside it."""
    if not content.bad and content.tidy:
        return
    if content.bad:
        aside = path.with_name(path.name + ".corrupt")
        # First the copy, then the repair: a kill between the two copies twice but loses nothing.
        with aside.open("ab") as file:
            file.writelines(line + b"\n" for _, line in content.bad)
            file.flush()
            os.fsync(file.fileno())
        warnings.warn(
            f"{path}: {_named(content.bad)}, as after a kill in mid-write; moved to {aside.name}, "
            "those trials will run again",
            stacklevel=3,
        )
    repaired = path.with_name(path.name + ".repaired")
    with repaired.open("wb") as file:
        file.writelines(line + b"\n" for line in content.good)
        file.flush()
        os.fsync(file.fileno())
    os.replace(repaired, path)


def _named(bad: Sequence[tuple[int, bytes]]) -> str:
    """Say which lines are meant."""
    numbers = ", ".join(str(number) for number, _ in bad[:5])
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    one = len(bad) == 1
    return f"line{'' if one else 's'} {numbers}{more} {'is' if one else 'are'} no whole record"


def _lock(path: Path) -> int:
    """Take the lock of a file, or say who has it."""
    # A file of its own, because a repair puts another file in the place of the first.
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    if fcntl is None:
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RuntimeError(
            f"{path} is being written by another run (process {holder}): "
            "wait until it ends, stop it, or give another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor
