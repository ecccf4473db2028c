"""The SQLite file of an index: its layout, how it is opened, and its errors as one sentence each."""

import os
import sqlite3
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory, StepcraftError
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


class NoIndex(BadInput):
    """There is no file, or nothing in it yet."""


def connect(
    path: str, settings: Mapping[str, str] | None = None, *, create: bool = True
) -> tuple[sqlite3.Connection, dict[str, str]]:
    """Open the index in a file, and return the connection and the settings of the file.

    Args:
        path: The file; ":memory:" for none.
        settings: What to record where the file does not have it yet.
        create: Whether a missing file is made.

    Raises:
        BadInput: There is no such file or folder, or it is a pipe or a device.
        DamagedIndex: The file is damaged, or is no index.
        MemoryFailure: The file cannot be opened.
    """
    if path != MEMORY:
        _check_place(Path(path), create=create)
    read_only = is_read_only(path)
    with plain_failures(path):
        connection = sqlite3.connect(
            _read_only_uri(path) if read_only else path,
            uri=read_only,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _prepare(connection, path, create=create)
            return connection, _recorded(connection, settings or {})
        except BaseException:
            connection.close()
            raise


def is_read_only(path: str) -> bool:
    """Tell whether there is a file that cannot be written."""
    return Path(path).exists() and not os.access(path, os.W_OK)


@contextmanager
def plain_failures(path: str) -> Generator[None]:
    """Raise MemoryFailure, in one sentence that says what to do, for what fails in the block."""
    try:
        yield
    except StepcraftError:
        raise
    except (LookupError, TypeError, ValueError) as error:  # a row is not as it was written
        raise DamagedIndex(f"{path} is damaged: {error!r:.200}; {_REMEDY}") from error
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", None) or "")
        if name.startswith("SQLITE_READONLY"):
            raise ReadOnlyMemory(
                f"{path} cannot be written; check the permissions of the file and of its folder"
            ) from error
        reasons = (reason for start, reason in _REASONS.items() if name.startswith(start))
        reason = next(reasons, f"cannot be used: {error}")
        damaged = name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "no such table" in str(
            error
        )
        raise (DamagedIndex if damaged else MemoryFailure)(f"{path} {reason}") from error


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


def recorded_settings(path: str | Path) -> dict[str, str]:
    """Return what the index in a file was made with; {} if there is none yet.

    Raises:
        MemoryFailure: The file cannot be opened, or holds something else.
    """
    try:
        connection, settings = connect(str(named_path(path)), create=False)
    except NoIndex:
        return {}
    connection.close()
    return settings


def _recorded(connection: sqlite3.Connection, settings: Mapping[str, str]) -> dict[str, str]:
    sql = "SELECT key, value FROM meta"
    if settings.keys() - dict(connection.execute(sql)).keys():
        with transaction(connection, "IMMEDIATE"):
            connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", settings.items())
    return dict(connection.execute(sql))


def _check_place(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it")
    if path.exists() and (what := irregular(path.stat().st_mode)):
        raise BadInput(f"{path} is {what}, not a file; name another one")
    if not path.exists() and not create:
        raise NoIndex(f"{path} does not exist; check the name, or import procedures into it first")
    if not path.parent.is_dir():
        raise BadInput(
            f"{path} cannot be made: there is no folder {path.parent}; make the folder first"
        )


def _read_only_uri(path: str) -> str:
    """Return the URI to read a file; as immutable if no log can be put or stands beside it."""
    file = Path(path).resolve()
    logged = os.access(file.parent, os.W_OK) or file.with_name(f"{file.name}-wal").exists()
    return f"{file.as_uri()}?mode=ro{'' if logged else '&immutable=1'}"


def _prepare(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    """Check whose file it is, and lay it out if it is new."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables and not create:
        raise NoIndex(f"{path} is empty; import procedures into it first")
    if not tables:
        _lay_out(connection)
    application, version = connection.execute(
        "SELECT * FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application != _APPLICATION_ID:
        raise DamagedIndex(f"{path} is a database of something else; name another file")
    if version != _VERSION:
        raise DamagedIndex(
            f"{path} was written by another version of stepcraft (layout {version}, this one "
            f"reads {_VERSION}); use that version, or fill a new file"
        )
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA synchronous = NORMAL")


def _lay_out(connection: sqlite3.Connection) -> None:
    _use_write_ahead_log(connection)
    with transaction(connection, "EXCLUSIVE"):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return  # another process was faster
        for statement in LAYOUT.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


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
