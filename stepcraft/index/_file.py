"""The SQLite file of an index: its layout, how it is opened and read, and its errors."""

import json
import os
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory, StepcraftError
from stepcraft.files import irregular, named_path
from stepcraft.text.words import PARTS_WEIGHT, stored_words

MEMORY = ":memory:"
"""The path of an index without a file."""

BUSY_S = 5.0
"""How long to wait for another process that is writing, in seconds."""

_APPLICATION_ID = 0x53544350
_VERSION = 3

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE groups (name TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
    " text TEXT NOT NULL, payload TEXT NOT NULL, folded TEXT, parts TEXT)",
    "CREATE TABLE vectors (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    "CREATE TABLE changed (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL)",
    "CREATE TRIGGER forgotten AFTER DELETE ON groups BEGIN"
    " DELETE FROM entries WHERE id > old.name || ':' AND id < old.name || ';'; END",
    "CREATE TRIGGER logged AFTER INSERT ON changed BEGIN"
    " DELETE FROM changed WHERE number <= new.number - 100000; END",
)
_OUTDATED = (
    *(f"DROP TRIGGER {name}" for name in ("added", "reworded", "deleted")),
    "DROP TABLE words",
    "ALTER TABLE entries RENAME COLUMN spaced TO folded",
    "ALTER TABLE entries ADD COLUMN parts TEXT",
    "UPDATE entries SET folded = folded(text), parts = parts(text)",
)
"""Statements that remove the words table from a file with layout 2 and update the columns from
which it is recreated.
"""
_ADD = (
    "INSERT INTO words (rowid, text, parts)"
    " VALUES (new.seq, coalesce(new.folded, new.text), new.parts);"
)
_REMOVE = (
    "INSERT INTO words (words, rowid, text, parts)"
    " VALUES ('delete', old.seq, coalesce(old.folded, old.text), old.parts);"
)
_UNEMBED = "DELETE FROM vectors WHERE seq = old.seq;"
_LOG = "INSERT INTO changed (seq) VALUES (old.seq);"
_WORDS = (
    # This tokenizer treats all non-ASCII characters as parts of words.
    "CREATE VIRTUAL TABLE words USING fts5 (text, parts, content='', tokenize='porter ascii')",
    f"INSERT INTO words (words, rank) VALUES ('rank', 'bm25(1, {PARTS_WEIGHT})')",  # noqa: S608
    "INSERT INTO words (rowid, text, parts) SELECT seq, coalesce(folded, text), parts FROM entries",
    f"CREATE TRIGGER added AFTER INSERT ON entries BEGIN {_ADD} END",
    "CREATE TRIGGER reworded AFTER UPDATE OF text ON entries WHEN old.text != new.text"
    " OR old.folded IS NOT new.folded OR old.parts IS NOT new.parts BEGIN"
    f" {_REMOVE} {_ADD} {_LOG} END",
    f"CREATE TRIGGER deleted AFTER DELETE ON entries BEGIN {_REMOVE} {_UNEMBED} {_LOG} END",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
"""Statements that create a file's words table and the triggers for it.

The triggers keep the table in step with the entries, since a contentless FTS5 table needs the old
text to remove a row. `folded` is the text for FTS5 if it differs from the entry's text, and `parts`
contains the parts of compounds. `changed` logs the latest rows that were deleted or reworded, so
that other processes can update the vectors they hold; new rows are found by their numbers, which
are never reused. The ids of a group's entries begin with its name and ":"; their range ends at ";",
the next character.
"""


_EMBEDDINGS = "SELECT max(value) FROM meta WHERE key = 'embeddings'"


class Entry(NamedTuple):
    """A searchable text with its id and any JSON values that belong to it."""

    id: str
    text: str
    payload: Mapping[str, Any]


class DamagedIndex(MemoryFailure):
    """The file of an index is damaged, or cannot be read by this version."""


class NoIndex(BadInput):
    """There is no file, or it is still empty."""


_REMEDY = "restore it from a copy, fill a new file, or import it if it holds procedures as text"
_DAMAGED = (DamagedIndex, f"; {_REMEDY}")
_FAILURES: dict[str, tuple[type[MemoryFailure], str]] = {
    "READONLY": (ReadOnlyMemory, "; check the permissions of the file and of its folder"),
    "BUSY": (
        MemoryFailure,
        f"; another process has been writing for more than {BUSY_S:.0f} s: try again when it is "
        "done",
    ),
    "CORRUPT": _DAMAGED,
    "NOTADB": _DAMAGED,
    "ERROR": _DAMAGED,  # a statement that does not fit the tables
}
"""The exception and the advice for each kind of SQLite error."""


def connect(
    path: str, embeddings: str = "", *, create: bool = True
) -> tuple[sqlite3.Connection, str | None]:
    """Open the index in a file; return the connection and the name of its embeddings.

    Args:
        path: The path of the file, or ":memory:" for an index without one.
        embeddings: The name to record if the file does not have one yet.
        create: Whether to create a missing file.

    Raises:
        BadInput: There is no such file or folder, or it is a pipe or a device.
        DamagedIndex: The file is damaged or not an index.
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
            if embeddings and connection.execute(_EMBEDDINGS).fetchone() == (None,):
                # Another process may have recorded it meanwhile.
                sql = "INSERT OR IGNORE INTO meta VALUES ('embeddings', ?)"
                connection.execute(sql, (embeddings,))
            (recorded,) = connection.execute(_EMBEDDINGS).fetchone()
        except BaseException:
            connection.close()
            raise
        return connection, recorded


def is_read_only(path: str) -> bool:
    """Return whether a file exists and is not writable."""
    return Path(path).exists() and not os.access(path, os.W_OK)


def state(path: str) -> tuple[int, ...] | None:
    """Return a value that changes whenever a file must be reopened, or None if there is no file.

    It consists of the device and the inode and, for a file that is read as immutable, the mtime and
    the size.
    """
    with suppress(OSError):
        status = Path(path).stat()
        content = (status.st_mtime_ns, status.st_size) if _is_immutable(path) else ()
        return status.st_dev, status.st_ino, *content
    return None


def entries_where(
    connection: sqlite3.Connection, condition: str, *values: object
) -> list[tuple[int, Entry]]:
    """Return the entries that match an SQL condition, each preceded by its row number."""
    sql = f"SELECT seq, id, text, payload FROM entries WHERE {condition}"  # noqa: S608 - ours
    return [
        (number, Entry(name, text, dict(json.loads(payload))))
        for number, name, text, payload in connection.execute(sql, values)
    ]


@contextmanager
def plain_failures(path: str) -> Generator[None]:
    """Turn failures in the block into a MemoryFailure that says in one sentence what to do."""
    try:
        yield
    except StepcraftError:
        raise
    except (LookupError, TypeError, ValueError) as error:  # a row is not as it was written
        raise DamagedIndex(f"{path} is damaged: {error!r:.200}; {_REMEDY}") from error
    except sqlite3.Error as error:
        code = f"{getattr(error, 'sqlite_errorname', '')}_".split("_")[1]
        kind, advice = _FAILURES.get(code, (MemoryFailure, ""))
        raise kind(f"{path} cannot be used: {error}{advice}") from error


def recorded_embeddings(path: str | Path) -> str | None:
    """Return the name of the embeddings that a file was made with, or None if none is recorded.

    Raises:
        MemoryFailure: The file cannot be opened, or contains something else.
    """
    try:
        connection, embeddings = connect(str(named_path(path)), create=False)
    except NoIndex:
        return None
    connection.close()
    return embeddings


def _check_place(path: Path, *, create: bool) -> None:
    if path.exists():
        what = "a folder" if path.is_dir() else irregular(path.stat().st_mode)
        if what:
            raise BadInput(f"{path} is {what}, not a file; name another one")
    elif not create:
        raise NoIndex(f"{path} does not exist; check the name, or import procedures into it first")
    elif not path.parent.is_dir():
        raise BadInput(
            f"{path} cannot be made: there is no folder {path.parent}; make the folder first"
        )


def _is_immutable(path: str) -> bool:
    """Return whether a file is not writable and cannot have a write-ahead log."""
    if not is_read_only(path):
        return False
    file = Path(path).resolve()
    has_log = file.with_name(f"{file.name}-wal").exists()
    return not (has_log or os.access(file.parent, os.W_OK))


def _read_only_uri(path: str) -> str:
    immutable = "&immutable=1" if _is_immutable(path) else ""
    return f"{Path(path).resolve().as_uri()}?mode=ro{immutable}"


def _prepare(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    """Check the file's type, create tables in a new file, and recreate an outdated words table."""
    connection.create_function("folded", 1, _folded, deterministic=True)
    connection.create_function("parts", 1, _parts, deterministic=True)
    layout = _layout(connection)
    if layout == _NEW and not create:
        raise NoIndex(f"{path} is empty; import procedures into it first")
    if layout == _OLD and is_read_only(path):
        raise ReadOnlyMemory(
            f"{path} was made by an earlier version of stepcraft, and its words have to be "
            "indexed anew: open it once where it may be written"
        )
    if layout in _STATEMENTS:
        with connection:
            connection.execute("BEGIN EXCLUSIVE")
            # Another process may have done this meanwhile.
            for statement in _STATEMENTS.get(_layout(connection), ()):
                connection.execute(statement)
            layout = _layout(connection)
    if layout[1:] != (_APPLICATION_ID, _VERSION):
        raise DamagedIndex(
            f"{path} is a database of something else, or of another version of stepcraft (layout "
            f"{layout[2]}, this one reads {_VERSION}); use that version, or name another file"
        )
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA synchronous = NORMAL")
    # If others are opening the new file too, SQLite fails here without waiting; they set the mode.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


_NEW = (0, 0, 0)
_OLD = (1, _APPLICATION_ID, 2)
_STATEMENTS: Mapping[tuple[int, int, int], tuple[str, ...]] = {
    _NEW: (*_TABLES, *_WORDS),
    _OLD: (*_OUTDATED, *_WORDS),
}
"""The statements that turn each of these layouts into the current one."""


def _layout(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return 1 if the file has tables, else 0, and its application and layout numbers."""
    layout: tuple[int, int, int] = connection.execute(
        "SELECT (SELECT count(*) FROM sqlite_master) > 0, *"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    return layout


def _folded(text: str) -> str | None:
    """Return the words of a text, or None for ASCII text, which FTS5 splits into words itself."""
    return None if text.isascii() else stored_words(text).words


def _parts(text: str) -> str | None:
    return stored_words(text).parts or None
