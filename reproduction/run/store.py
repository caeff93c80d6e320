"""The trials of a folder: one SQLite database, which survives a kill at any moment.

A write-ahead log lets others read while a run writes, and leaves a trial whole or absent. It needs
memory that processes share, so the folder has to be on a disk of this machine.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from reproduction.run.records import Key, Record

SCHEMA = """
CREATE TABLE IF NOT EXISTS trials (
    experiment TEXT NOT NULL,
    revision INTEGER NOT NULL,
    params TEXT NOT NULL,
    results TEXT,
    error TEXT,
    seconds REAL NOT NULL,
    cpu_seconds REAL NOT NULL,
    versions TEXT NOT NULL,
    [commit] TEXT,
    started TEXT NOT NULL,
    PRIMARY KEY (experiment, revision, params),
    CHECK ((results IS NULL) <> (error IS NULL))
)
"""
COLUMNS = list(Record.__dataclass_fields__)
# In brackets, since SQLite takes an unknown name in double quotes for a string.
NAMES = ", ".join(f"[{name}]" for name in COLUMNS)
SELECT = f"SELECT {NAMES} FROM trials ORDER BY rowid"
VALUES = ", ".join(f":{name}" for name in COLUMNS)
INSERT = f"INSERT OR REPLACE INTO trials ({NAMES}) VALUES ({VALUES})"

# The second of two runs that start at once waits this long before it gives up.
SECONDS_FOR_LOCK = 1.0
# What SQLite says of a file that is no database, is damaged, or has other tables.
UNUSABLE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}


class DamagedError(ValueError):
    """A file of trials that cannot be read."""


class UnwritableError(OSError):
    """A folder that cannot be written, for lack of room or permission or because of another run."""


class TrialStore:
    """A file of trials that is open for writing; `open_store` gives it."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._database = database

    def records(self) -> dict[Key, Record]:
        """Return all trials by their keys, in the order in which they were added."""
        with _explained(self.path):
            return _records(self._database)

    def append(self, record: Record) -> None:
        """Add a trial, or replace the one with its key; it is on the disk when this returns."""
        with _explained(self.path):
            self._database.execute(INSERT, record.to_row())


@contextmanager
def open_store(path: str | os.PathLike[str]) -> Iterator[TrialStore]:
    """Open a file of trials for writing; it and its folder are made where they are missing.

    Raises
    ------
    DamagedError
        Where it cannot be read.
    UnwritableError
        Where it cannot be written, or another run has it open.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(f"{error}: give another folder for the trials") from error
    with _alone(path), closing(_connected(path)) as database:
        with _explained(path):
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(SCHEMA)
        yield TrialStore(path, database)


def read_records(path: str | os.PathLike[str]) -> dict[Key, Record]:
    """Return all trials of a file by their keys, even while a run writes to it.

    A missing file has no trials.
    """
    path = Path(path)
    if not path.exists():
        return {}
    with closing(_connected(path)) as database, _explained(path):
        # A run that has just started may not have made the table yet.
        table = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'")
        return _records(database) if table.fetchone() else {}


def _connected(path: Path, timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database in which every statement is a transaction of its own."""
    with _explained(path):
        return sqlite3.connect(path, timeout=timeout, isolation_level=None)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other runs from a file as long as this process lives.

    The lock is a transaction that never writes, on an empty database beside the file: on the file
    itself it would shut out readers.
    """
    beside = path.with_name(path.name + ".lock")
    with closing(_connected(beside, timeout=SECONDS_FOR_LOCK)) as lock:
        with _explained(beside):
            lock.execute("BEGIN EXCLUSIVE")
        yield


def _records(database: sqlite3.Connection) -> dict[Key, Record]:
    (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)
    rows = (dict(zip(COLUMNS, row, strict=True)) for row in database.execute(SELECT))
    try:
        return {record.key: record for record in map(Record.from_row, rows)}
    except (TypeError, ValueError) as error:
        raise sqlite3.DatabaseError(f"a row is no trial: {error}") from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says about a file into what its user can do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) not in (sqlite3.DatabaseError, sqlite3.OperationalError):
            raise  # such as a record that breaks the rules of the table: our mistake
        # Without a code where Python itself found text that is none.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in UNUSABLE:
            found = " ".join(str(error).split())
            raise DamagedError(
                f"{path} is damaged or no file of trials ({found}): move it away to run its trials "
                "again, or put a copy in its place"
            ) from error
        if code == sqlite3.SQLITE_BUSY:
            raise UnwritableError(
                f"another run writes to {path.parent}: wait until it ends, stop it, or give "
                "another folder"
            ) from None
        raise UnwritableError(
            f"{path} cannot be used ({error}): make room on the disk, or give a folder that can be "
            "written; trials that have ended are kept"
        ) from error
