"""The ledger of builds: a SQLite file with extracted procedures and verdicts on pairs.

The row for a document is written when its procedures have been found, and again once they are in
the memory. So no document is read by a model twice, and procedures that were found but not added
are added by the next build.
"""

import json
import os
import re
import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path
from pydantic import TypeAdapter

from stepcraft.building.documents import Listed, key_of
from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.errors import BadInput, RunStopped
from stepcraft.llm.usage import Usage, no_usage
from stepcraft.memory.urls import scheme_of

How = Literal["added", "present", "merged", "linked", "removed"]

# The lock is released when the process ends, even if it is killed.
_SCHEMA = """\
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS documents (
    memory TEXT, key TEXT, record TEXT, PRIMARY KEY (memory, key));
CREATE INDEX IF NOT EXISTS digests ON documents (json_extract(record, '$.digest'));
CREATE TABLE IF NOT EXISTS verdicts (question TEXT PRIMARY KEY, verdict TEXT);
"""


@dataclass(frozen=True)
class Placed:
    """The outcome of placing a procedure in the memory."""

    id: str
    """Its id in the memory, or the id of the procedure it was merged into."""
    how: How
    reason: str
    """The reason, such as how it differs from the procedure that it is linked to, or ""."""


@dataclass
class Record:
    """The procedures extracted from a document."""

    source: str
    stamp: str
    title: str
    digest: str
    """A digest that identifies the content of the document."""
    identity: str
    """A digest that identifies the models and settings with which the document was read."""
    model: str
    warnings: list[str]
    error: str = ""
    """Why it must be read again, or "" if it need not be."""
    procedures: list[Drafted] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    usage: Usage = field(default_factory=no_usage)
    done: bool = False
    """Whether its procedures are in the memory."""
    placed: list[Placed] = field(default_factory=list)
    """The outcome of placing each procedure, in order."""
    taught: list[str] = field(default_factory=list)
    """The ids of procedures that it taught before, to be marked stale if it no longer teaches them.
    """
    removed: dict[str, str] = field(default_factory=dict)
    """The procedures that someone removed from the memory: their ids, each with its place in the
    document and, on a second line, what it achieves.
    """
    root: str = ""
    """The resolved path of the folder from which a file was last listed; its key is its path
    relative to this folder.
    """

    def moved(self, source: str, root: str) -> "Record":
        """Return the record with its source renamed, including in the places of its procedures."""

        def renamed(place: str) -> str:
            return source + place.removeprefix(self.source)

        return replace(
            self,
            source=source,
            root=root,
            procedures=[each | {"source": renamed(each["source"])} for each in self.procedures],
            removed={id_: renamed(place) for id_, place in self.removed.items()},
        )

    def of(self, listed: Listed) -> "Record":
        """Return the record for another document with the same content."""
        return replace(
            self.moved(listed.source, listed.root),
            stamp=listed.stamp,
            usage=no_usage(),
            done=False,
            placed=[],
            taught=[],
        )

    def taught_so_far(self) -> list[str]:
        """Return the ids of the procedures it taught before and of those placed now."""
        return [*self.taught, *(placed.id for placed in self.placed)]


_RECORD = TypeAdapter(Record)


class Ledger:
    """A file that keeps the results of paid model calls, opened by one process at a time.

    Args:
        path: The file, which is created if missing.
        memory: The full name of the memory. Memories that use the same ledger file have separate
            records.

    Raises:
        BadInput: A build has the file open, the file is not a ledger, or it cannot be written.
    """

    def __init__(self, path: Path, memory: str) -> None:
        self.path = path
        self.page = path.with_name(f"{path.name}.html")
        """The path of the page that shows the records."""
        key = key_of(memory.removeprefix("file://"))
        # A folder containing a memory and its ledger may be moved.
        is_beside = Path(key).parent == path.parent.resolve()
        self._memory = Path(key).name if is_beside else key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._database.text_factory = os.fsdecode  # keys may be paths that are not UTF-8
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        except (OSError, sqlite3.Error) as error:
            locked = f"a build is running with {path}; wait for it or name another ledger"
            other = f"{path} cannot be a ledger: {error}; name another file"
            is_locked = isinstance(error, sqlite3.Error) and "locked" in str(error)
            raise BadInput(locked if is_locked else other) from error

    def _prepare(self) -> None:
        tables = self._database.execute("SELECT name FROM sqlite_schema").fetchall()
        if ("entries",) in tables:
            raise BadInput(f"{self.path} is a memory or an index; name another file for the ledger")
        self._database.executescript(_SCHEMA)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def get(self, key: str) -> Record | None:
        """Return the record for a document."""
        query = "SELECT record FROM documents WHERE memory = ? AND key = CAST(? AS TEXT)"
        return next(iter(self._records(query, self._memory, os.fsencode(key))), None)

    def same(self, digest: str, identity: str) -> Record | None:
        """Return any document's error-free record with this digest and identity, or None.

        The record says what was added to the memory or removed from it only if it belongs to this
        memory.
        """
        query = (
            "SELECT record, memory = ? FROM documents WHERE json_extract(record, '$.digest') = ?"
            " AND json_extract(record, '$.identity') = ? AND json_extract(record, '$.error') = ''"
            " ORDER BY memory = ? DESC LIMIT 1"
        )
        for text, is_ours in self._rows(query, self._memory, digest, identity, self._memory):
            record = _RECORD.validate_python(json.loads(text))
            return record if is_ours else replace(record, done=False, removed={})
        return None

    def put(self, key: str, record: Record) -> None:
        """Write a record. Once this returns, the record survives a process crash.

        Raises:
            RunStopped: It cannot be written, for example because the disk is full.
        """
        text = json.dumps(_RECORD.dump_python(record))
        query = "REPLACE INTO documents VALUES (?, CAST(? AS TEXT), ?)"
        self._rows(query, self._memory, os.fsencode(key), text)

    def touch(self, key: str, stamp: str) -> None:
        """Write the stamp of a document whose content is the same."""
        query = (
            "UPDATE documents SET record = json_set(record, '$.stamp', ?)"
            " WHERE memory = ? AND key = CAST(? AS TEXT)"
        )
        self._rows(query, stamp, self._memory, os.fsencode(key))

    def latest(self, number: int) -> list[Record]:
        """Return the most recently written records, newest first, up to the given number."""
        query = "SELECT record FROM documents WHERE memory = ? ORDER BY rowid DESC LIMIT ?"
        return self._records(query, self._memory, number)

    def latest_placed(self, number: int) -> list[str]:
        """Return the ids of the procedures of the documents most recently placed in the memory."""
        query = (
            "SELECT json_extract(value, '$.id') FROM (SELECT record FROM documents WHERE memory = ?"
            " AND EXISTS (SELECT 1 FROM json_each(record, '$.placed')"
            " WHERE json_extract(value, '$.how') != 'removed') ORDER BY rowid DESC LIMIT ?),"
            " json_each(record, '$.placed') WHERE json_extract(value, '$.how') != 'removed'"
        )
        return [id_ for (id_,) in self._rows(query, self._memory, number)]

    def keys(self) -> set[str]:
        """Return the keys of all documents that have a record."""
        rows = self._rows("SELECT key FROM documents WHERE memory = ?", self._memory)
        return {key for (key,) in rows}

    def calls(self) -> int:
        """Return the number of model calls made for all records."""
        return self.counts()[2]

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of documents, procedures and model calls in all records."""
        query = (
            "SELECT count(*), total(json_array_length(record, '$.procedures')),"
            " total(json_extract(record, '$.usage.calls')) FROM documents WHERE memory = ?"
        )
        documents, procedures, calls = map(int, self._rows(query, self._memory)[0])
        return documents, procedures, calls

    def place_again(self) -> None:
        """Mark all procedures as missing from the memory, so that they are added again."""
        query = "UPDATE documents SET record = json_set(record, '$.done', 0) WHERE memory = ?"
        self._rows(query, self._memory)
        query = (
            "SELECT key, record FROM documents WHERE memory = ?"
            " AND json_extract(record, '$.error') != ''"
        )
        for key, text in self._rows(query, self._memory):  # or they would look removed by people
            record = _RECORD.validate_python(json.loads(text))
            self.put(key, replace(record, placed=[], taught=record.taught_so_far()))

    def merge(self, id_: str, into: str) -> None:
        """Write the id of the procedure that another was merged into in place of the other's."""
        query = "UPDATE documents SET record = replace(record, ?, ?) WHERE memory = ?"
        self._rows(query, json.dumps(id_), json.dumps(into), self._memory)

    def verdict(self, question: str) -> dict[str, Any] | None:
        """Return a model's stored answer to this question, if there is one."""
        rows = self._rows("SELECT verdict FROM verdicts WHERE question = ?", question)
        return json.loads(rows[0][0]) if rows else None

    def put_verdict(self, question: str, verdict: dict[str, Any]) -> None:
        """Store a model's answer."""
        self._rows("REPLACE INTO verdicts VALUES (?, ?)", question, json.dumps(verdict))

    def _records(self, query: str, *values: object) -> list[Record]:
        rows = self._rows(query, *values)
        return [_RECORD.validate_python(json.loads(text)) for (text,) in rows]

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunStopped(
                f"{self.path} cannot be used: {error}; make room and start the same command again"
            ) from error


def ledger_of(memory: str) -> Path:
    """Return the path of a memory's ledger: next to its file, or in the user's data folder."""
    path = Path(memory.removeprefix("file://"))
    if path.suffix and not scheme_of(str(path)):
        return path.with_name(f"{path.name}.build")
    name = re.sub(r"\W", "-", memory)
    return user_data_path("stepcraft", appauthor=False) / f"{name}.build"
