"""The stored trials of a folder: one SQLite database, which survives a kill at any moment.

With its write-ahead log others can read while a run writes, and no trial is half-written. The log
needs shared memory, so the folder has to be on a local disk.
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
# In brackets, because SQLite reads an unknown name in double quotes as a string.
NAMES = ", ".join(f"[{name}]" for name in COLUMNS)
SELECT = f"SELECT {NAMES} FROM trials ORDER BY rowid"
VALUES = ", ".join(f":{name}" for name in COLUMNS)
INSERT = f"INSERT OR REPLACE INTO trials ({NAMES}) VALUES ({VALUES})"

# The second of two runs that start at once waits this long before it gives up.
SECONDS_FOR_LOCK = 1.0
# Error codes of SQLite for a file that is no database, is damaged, or has other tables.
UNUSABLE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}


class DamagedError(ValueError):
    """A file of trials that cannot be read."""


class UnwritableError(OSError):
    """A folder that cannot be written: disk full, no permission, or another run uses it."""


class TrialStore:
    """A file of trials that is open for writing; `open_store` returns it."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._database = database

    def records(self) -> dict[Key, Record]:
        """Return all trials by their keys, in the order in which they were added."""
        with _readable_errors(self.path):
            return _records(self._database)

    def append(self, record: Record) -> None:
        """Add a trial, or replace the one with its key; it is on the disk when this returns."""
        with _readable_errors(self.path):
            self._database.execute(INSERT, record.to_row())


@contextmanager
def open_store(path: str | os.PathLike[str]) -> Iterator[TrialStore]:
    """Open a file of trials for writing; create it and its folder if they do not exist.

    Raises
    ------
    DamagedError
        If the file cannot be read.
    UnwritableError
        If the file cannot be written, or another run has it open.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(f"{error}: give another folder for the trials") from error
    with _locked(path), closing(_connect(path)) as database:
        with _readable_errors(path):
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(SCHEMA)
        yield TrialStore(path, database)


def read_records(path: str | os.PathLike[str]) -> dict[Key, Record]:
    """Return all trials of a file by their keys, even while a run writes to it.

    If the file does not exist there are no trials.
    """
    path = Path(path)
    if not path.exists():
        return {}
    with closing(_connect(path)) as database, _readable_errors(path):
        # A run that has just started may not have made the table yet.
        table = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'")
        return _records(database) if table.fetchone() else {}


def _connect(path: Path, timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database in which every statement is one transaction."""
    with _readable_errors(path):
        return sqlite3.connect(path, timeout=timeout, isolation_level=None)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file against other runs until this block ends.

    The lock is a transaction that never writes, on an empty database beside the file. On the file
    itself it would block readers as well.
    """
    beside = path.with_name(path.name + ".lock")
    with closing(_connect(beside, timeout=SECONDS_FOR_LOCK)) as lock:
        with _readable_errors(beside):
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
def _readable_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors that say what the user can do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) not in (sqlite3.DatabaseError, sqlite3.OperationalError):
            raise  # a mistake in our code, such as a record that violates the schema
        # The error has no code if Python itself could not decode a text.
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
