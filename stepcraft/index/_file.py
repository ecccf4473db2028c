"""The SQLite file of an index: opening it, its layout, and its errors as sentences that say what to do."""

import json
import os
import sqlite3
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.files import irregular, named_path
from stepcraft.index._rows import Damage, state

SCHEMA = 1
"""The version of the layout that is read and written."""

BUSY_S = 5.0
"""How long to wait for another process that is writing, in seconds."""

MAX_VALUE = 100_000_000
"""The largest text or vector in bytes that is read or written; a file from elsewhere may hold, or compute, gigabytes."""

_MAX_SETTINGS = 100
_MAX_DIMENSIONS = 100_000
_RETRY_S = 0.01
_APPLICATION_ID = 0x53544350

LAYOUT = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 1), next INTEGER, writes INTEGER, rewrites INTEGER);
INSERT INTO state VALUES (1, 1, 0, 0);
CREATE TABLE entries (seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, text TEXT NOT NULL, payload TEXT NOT NULL);
CREATE TABLE vectors (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='porter unicode61');
"""
"""The statements that lay out a new file. `state` counts writes, so that other processes see what is new."""

_REMEDY = "restore it from a copy, or import the procedures into a new file"
_REASONS = {
    "SQLITE_BUSY": f"is locked: another process has been writing for more than {BUSY_S:.0f} s; try again when it is done",
    "SQLITE_LOCKED": "is locked by another connection; try again when it is done",
    "SQLITE_TOOBIG": f"holds a value of more than {MAX_VALUE // 1_000_000} MB, which is not read; shorten it",
    "SQLITE_CORRUPT": f"is damaged; {_REMEDY}",
    "SQLITE_NOTADB": "is no SQLite database; name another file, or import it if it holds procedures as text",
    "SQLITE_CANTOPEN": "cannot be opened; check the permissions of the file and of its folder",
    "SQLITE_FULL": "cannot grow because the disk is full; make room and try again (what was reported as added is stored)",
}


class DamagedIndex(MemoryFailure):
    """The file of an index is damaged, or is none."""


class EmptyIndex(BadInput):
    """The file of an index has not been laid out yet."""


def connect(path: str, *, create: bool = True) -> tuple[sqlite3.Connection, bool]:
    """Open the index in a file (":memory:" for none); return the connection and whether it is read-only.

    Raises:
        BadInput: there is no such file or folder, or it is a pipe or a device.
        DamagedIndex: the file is damaged, or is no index.
        MemoryFailure: the file cannot be opened, or was written by a later version.
    """
    if path != ":memory:":
        _check_place(named_path(path), create=create)
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
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            _prepare(connection, path, create=create, read_only=read_only)
            _check_layout(connection)
        except BaseException:
            connection.close()
            raise
    return connection, read_only


@contextmanager
def plain_failures(path: str) -> Generator[None]:
    """Raise MemoryFailure, with one sentence that says what to do, for what SQLite raises in the block."""
    try:
        yield
    except Damage as error:
        raise DamagedIndex(f"{path} is damaged: {error}; {_REMEDY}") from error
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", None) or "")
        if name.startswith("SQLITE_READONLY"):
            raise unwritable(path) from error
        if "fts5" in str(error) and "no such module" in str(error):
            raise MemoryFailure(
                "this Python's SQLite has no full-text search (FTS5); use another build of Python"
            ) from error
        if "Could not decode to UTF-8" in str(error):
            raise DamagedIndex(f"{path} {_REASONS['SQLITE_CORRUPT']}") from error
        reason = next(
            (reason for start, reason in _REASONS.items() if name.startswith(start)), None
        )
        kind = (
            DamagedIndex if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) else MemoryFailure
        )
        raise kind(f"{path} {reason or f'cannot be used: {error}'}") from error


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


def recorded(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the settings that the file was made with.

    Raises:
        Damage: they are not what is written there.
    """
    found = dict(connection.execute("SELECT key, value FROM meta LIMIT ?", (_MAX_SETTINGS,)))
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise Damage(f"its setting {name!r:.80} is no text")
    dimensions = found.get("dimensions", "1")
    is_number = dimensions.isdecimal() and len(dimensions) <= len(str(_MAX_DIMENSIONS))
    if not is_number or not 0 < int(dimensions) <= _MAX_DIMENSIONS:
        raise Damage(f"its vectors have {dimensions:.80} dimensions")
    return found


def recorded_settings(path: str | Path) -> dict[str, str]:
    """Return what the index in a file was made with, its embeddings among it; {} if there is no file yet.

    Raises:
        MemoryFailure: the file cannot be opened, is no index, or was written by a later version.
    """
    if not named_path(path).is_file() or not Path(path).stat().st_size:
        return {}
    try:
        connection, _ = connect(str(path), create=False)
    except EmptyIndex:  # another process is about to lay it out
        return {}
    with closing(connection), plain_failures(str(path)):
        return recorded(connection)


def agree(
    connection: sqlite3.Connection, path: str, wanted: Mapping[str, str], *, read_only: bool
) -> None:
    """Record settings in the file if it has none of these names yet.

    Raises:
        MemoryFailure: the file was made with other values.
    """
    with plain_failures(path):
        if wanted.keys() - recorded(connection).keys() and not read_only:
            with transaction(connection, "IMMEDIATE"):
                connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", wanted.items())
        found = recorded(connection)
    for name, value in wanted.items():
        if found.get(name, value) != value:
            raise MemoryFailure(
                f"{path} was made with {name} {found[name]!r:.200}, not {value!r:.200}: "
                f"open it with {name} {found[name]!r:.200}, or fill a new file"
            )


def check_dimensions(connection: sqlite3.Connection, path: str, dimensions: int) -> None:
    """Raise MemoryFailure if the file holds vectors of another length."""
    found = recorded(connection).get("dimensions", str(dimensions))
    if found != str(dimensions):
        raise MemoryFailure(
            f"{path} holds vectors of {found} dimensions, and the embedding model gives {dimensions}: "
            "open it with the model that it was made with, or fill a new file"
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
    """Return the URI to read a file; as immutable if nobody writes it and no log can be put beside it."""
    file = Path(path).resolve()
    immutable = (
        not os.access(file.parent, os.W_OK) and not file.with_name(f"{file.name}-wal").exists()
    )
    return f"{file.as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"


def _prepare(connection: sqlite3.Connection, path: str, *, create: bool, read_only: bool) -> None:
    """Set the connection up, and lay the file out if it is new. The file of something else is not written to."""
    with transaction(connection):  # another process may be laying the file out
        is_index = _number(connection, "application_id") == _APPLICATION_ID
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and not is_index:
        raise DamagedIndex(f"{path} is a database of something else; name another file")
    if not tables and not create:
        raise EmptyIndex(f"{path} is empty; import procedures into it first")
    if not read_only:
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA cache_size = -65536")
    if not read_only and _number(connection, "user_version") == 0:
        with transaction(connection, "IMMEDIATE"):
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in LAYOUT.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
    if _number(connection, "application_id") != _APPLICATION_ID:
        raise DamagedIndex(f"{path} is a database of something else; name another file")
    found = _number(connection, "user_version")
    if found > SCHEMA:
        raise MemoryFailure(
            f"{path} was written by a later version of stepcraft (layout {found}, this one reads {SCHEMA}); upgrade"
        )


def _check_layout(connection: sqlite3.Connection) -> None:
    """Raise Damage for a file from elsewhere in which a view, a trigger or a computed column stands for a table."""
    names = ("meta", "state", "entries", "vectors", "words")
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type IN ('view', 'trigger')"
        " OR type = 'table' AND name IN (SELECT value FROM json_each(?)) LIMIT ?",
        (json.dumps(names), len(names) + 1),
    ).fetchall()
    wanted = (
        statement for statement in LAYOUT.split(";\n") if statement.strip().startswith("CREATE")
    )
    if sorted(sql for _, sql in found) != sorted(
        statement.strip().removesuffix(";") for statement in wanted
    ):
        raise Damage("its tables are not those of an index")
    state(connection)


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


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
