"""The SQLite file of an index: its layout, how it is opened, and its errors as one sentence each."""

import os
import sqlite3
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.files import irregular, named_path

MEMORY = ":memory:"
"""The path of an index without a file."""

BUSY_S = 5.0
"""How long to wait for another process that is writing, in seconds."""

_APPLICATION_ID = 0x53544350
_VERSION = 2
_RETRY_S = 0.01

LAYOUT = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries
  (seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, text TEXT NOT NULL, payload TEXT NOT NULL);
CREATE TABLE vectors (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE changed (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE groups (name TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='porter unicode61');
"""
"""The statements that lay out a new file.

`changed` logs the rows that were deleted or given another text, so that other processes correct the
vectors that they hold.
"""

_REMEDY = "restore it from a copy, or fill a new file"
_REASONS = {
    "SQLITE_BUSY": "is locked: another process has been writing for more than "
    f"{BUSY_S:.0f} s; try again when it is done",
    "SQLITE_CORRUPT": f"is damaged; {_REMEDY}",
    "SQLITE_NOTADB": "is no SQLite database; name another file, or import it if it holds "
    "procedures as text",
    "SQLITE_CANTOPEN": "cannot be opened; check the permissions of the file and of its folder",
    "SQLITE_FULL": "cannot grow because the disk is full; make room and try again "
    "(what was reported as added is stored)",
}


class DamagedIndex(MemoryFailure):
    """The file of an index is damaged, or is none that this version reads."""


class EmptyIndex(BadInput):
    """The file of an index has not been laid out yet."""


class Damage(Exception):
    """A file holds what cannot have been written there. The message is a clause."""


def connect(path: str, *, create: bool = True) -> tuple[sqlite3.Connection, bool]:
    """Open the index in a file, and return the connection and whether it is read-only.

    Raises:
        BadInput: There is no such file or folder, or it is a pipe or a device.
        DamagedIndex: The file is damaged, or is no index.
        MemoryFailure: The file cannot be opened.
    """
    if path != MEMORY:
        _check_place(Path(path), create=create)
    read_only = Path(path).exists() and not os.access(path, os.W_OK)
    with plain_failures(path):
        connection = sqlite3.connect(
            _read_only_uri(path) if read_only else path,
            uri=read_only,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(connection, path, create=create, read_only=read_only)
        except BaseException:
            connection.close()
            raise
    return connection, read_only


@contextmanager
def plain_failures(path: str) -> Generator[None]:
    """Raise MemoryFailure, in one sentence that says what to do, for what fails in the block."""
    try:
        yield
    except Damage as error:
        raise DamagedIndex(f"{path} is damaged: {error}; {_REMEDY}") from error
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", None) or "")
        if name.startswith("SQLITE_READONLY"):
            raise unwritable(path) from error
        reasons = (reason for start, reason in _REASONS.items() if name.startswith(start))
        reason = next(reasons, f"cannot be used: {error}")
        damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "no such table" in str(
            error
        )
        raise (DamagedIndex if damaged else MemoryFailure)(f"{path} {reason}") from error


def unwritable(path: str) -> ReadOnlyMemory:
    """Return the error for a file that cannot be written."""
    return ReadOnlyMemory(
        f"{path} cannot be written; check the permissions of the file and of its folder"
    )


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "DEFERRED") -> Generator[None]:
    """Run the block in one transaction, rolled back if it raises."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def settings_in(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the settings that the file was made with."""
    return dict(connection.execute("SELECT key, value FROM meta"))


def recorded_settings(path: str | Path) -> dict[str, str]:
    """Return what the index in a file was made with; {} if there is no file yet.

    Raises:
        MemoryFailure: The file cannot be opened, or is no index.
    """
    place = named_path(path)
    if not place.is_file() or not place.stat().st_size:
        return {}
    try:
        connection, _ = connect(str(place), create=False)
    except EmptyIndex:  # another process is about to lay it out
        return {}
    with closing(connection), plain_failures(str(place)):
        return settings_in(connection)


def agree(
    connection: sqlite3.Connection, path: str, wanted: Mapping[str, str], *, read_only: bool
) -> None:
    """Record settings in the file unless it has them already.

    Raises:
        MemoryFailure: The file was made with other values.
    """
    with plain_failures(path):
        if wanted.keys() - settings_in(connection).keys() and not read_only:
            with transaction(connection, "IMMEDIATE"):
                connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", wanted.items())
        settings = settings_in(connection)
    for name, value in wanted.items():
        if settings.get(name, value) != value:
            raise MemoryFailure(
                f"{path} was made with {name} {settings[name]!r:.200}, not {value!r:.200}: "
                f"open it with {name} {settings[name]!r:.200}, or fill a new file"
            )


def _check_place(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it")
    if path.exists() and (what := irregular(path.stat().st_mode)):
        raise BadInput(f"{path} is {what}, not a file; name another one")
    if not path.exists() and not create:
        raise BadInput(f"{path} does not exist; check the name, or import procedures into it first")
    if not path.parent.is_dir():
        raise BadInput(
            f"{path} cannot be made: there is no folder {path.parent}; make the folder first"
        )


def _read_only_uri(path: str) -> str:
    """Return the URI to read a file; as immutable if no log can be put or stands beside it."""
    file = Path(path).resolve()
    logged = os.access(file.parent, os.W_OK) or file.with_name(f"{file.name}-wal").exists()
    return f"{file.as_uri()}?mode=ro{'' if logged else '&immutable=1'}"


def _prepare(connection: sqlite3.Connection, path: str, *, create: bool, read_only: bool) -> None:
    """Check whose file it is, and lay it out if it is new."""
    application, version, tables = _header(connection)
    if not tables and not create:
        raise EmptyIndex(f"{path} is empty; import procedures into it first")
    if tables and application != _APPLICATION_ID:
        raise DamagedIndex(f"{path} is a database of something else; name another file")
    connection.execute("PRAGMA cache_size = -65536")
    if not read_only:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if not tables:
            with transaction(connection, "IMMEDIATE"):
                if not _header(connection)[2]:  # nobody else has laid it out meanwhile
                    for statement in LAYOUT.split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {_VERSION}")
            version = _header(connection)[1]
    if version != _VERSION:
        raise DamagedIndex(
            f"{path} was written by another version of stepcraft (layout {version}, this one "
            f"reads {_VERSION}); use that version, or fill a new file"
        )


def _header(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return whose the file is, the version of its layout, and the number of its tables."""
    return tuple(
        connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
    )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # SQLite itself does not wait if two connections change the mode of a new file at once.
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)
        else:
            return
