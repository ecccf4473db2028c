"""The ledger of builds: one SQLite file with what documents gave, and what models said of pairs.

The row of a document is written when its procedures are found, and again when they are in the
memory. So no document is asked about twice, and what was found but not added is added by the next
build.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path
from pydantic import TypeAdapter

from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.errors import BadInput, RunStopped
from stepcraft.llm.usage import Usage, no_usage

How = Literal["added", "present", "merged", "linked", "failed"]

# The lock lasts until the process ends, however it does.
_SCHEMA = """\
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS documents (
    memory TEXT, key TEXT, calls INTEGER, record TEXT, PRIMARY KEY (memory, key));
CREATE TABLE IF NOT EXISTS verdicts (question TEXT PRIMARY KEY, verdict TEXT);
"""


@dataclass(frozen=True)
class Placed:
    """What became of a procedure."""

    id: str
    """Its id in the memory, or that of the procedure it was merged into; "" if it was not added."""
    how: How
    reason: str
    """Why it was not added, or in what it differs from the one that it is linked to."""


@dataclass
class Record:
    """What a document gave."""

    source: str
    spec: str
    stamp: str
    title: str
    digest: str
    """Identifies its content."""
    identity: str
    """Identifies the models and the settings that read it."""
    model: str
    at: str
    """When it was read, as ISO 8601 in UTC."""
    warnings: list[str]
    error: str = ""
    """Why it is to be read again; "" if it is not."""
    procedures: list[Drafted] = field(default_factory=list[Drafted])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    usage: Usage = field(default_factory=no_usage)
    done: bool = False
    """Whether its procedures are in the memory."""
    placed: list[Placed] = field(default_factory=list[Placed])
    """What became of the procedures, in their order, once they were placed."""
    taught: list[str] = field(default_factory=list[str])
    """The ids of procedures that it taught before, to be marked as stale if it no longer does."""


_RECORD = TypeAdapter(Record)


class Ledger:
    """What builds and comparisons of a memory have paid for; held by one process at a time.

    Args:
        path: The file; it is made if it is not there.
        memory: The whole name of the memory. Memories that share a file share no record.

    Raises:
        BadInput: A build holds it, it is another file, or it cannot be written.
    """

    def __init__(self, path: Path, memory: str) -> None:
        self.path = path
        self.page = path.with_name(f"{path.name}.html")
        """Where the page that shows the records is written."""
        file = file_of(memory)
        # A memory and its ledger can be moved together.
        self._memory = os.path.relpath(file.resolve(), path.resolve().parent) if file else memory
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, 0, isolation_level=None, check_same_thread=False)
            self._database.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            if "locked" in str(error):
                raise BadInput(
                    f"a build is running with {path}; wait for it or name another ledger"
                ) from error
            raise BadInput(f"{path} cannot be a ledger: {error}; name another file") from error

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def get(self, key: str) -> Record | None:
        """Return the record of a document."""
        rows = self._rows(
            "SELECT record FROM documents WHERE memory = ? AND key = ?", self._memory, key
        )
        return _record(rows[0]) if rows else None

    def put(self, key: str, record: Record) -> None:
        """Write a record; when this returns, the end of the process loses nothing of it.

        Raises:
            RunStopped: It cannot be written, for example because the disk is full.
        """
        query = "REPLACE INTO documents VALUES (?, ?, ?, ?)"
        text = json.dumps(_RECORD.dump_python(record))
        self._rows(query, self._memory, key, record.usage["calls"], text)

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        query = "SELECT record FROM documents WHERE memory = ? ORDER BY key"
        for row in self._database.execute(query, (self._memory,)):
            yield _record(row)

    def latest(self) -> list[Record]:
        """Return the records that were written last."""
        query = "SELECT record FROM documents WHERE memory = ? ORDER BY rowid DESC LIMIT 20"
        return [*map(_record, self._rows(query, self._memory))]

    def calls(self) -> int:
        """Return the number of calls that the records have cost."""
        query = "SELECT sum(calls) FROM documents WHERE memory = ?"
        return self._rows(query, self._memory)[0][0] or 0

    def place_again(self) -> None:
        """Note that no procedures are in the memory, so that they are added again."""
        query = "UPDATE documents SET record = json_set(record, '$.done', 0) WHERE memory = ?"
        self._rows(query, self._memory)

    def verdict(self, question: str) -> dict[str, Any] | None:
        """Return what a model answered to this question."""
        rows = self._rows("SELECT verdict FROM verdicts WHERE question = ?", question)
        return json.loads(rows[0][0]) if rows else None

    def put_verdict(self, question: str, verdict: Mapping[str, Any]) -> None:
        """Keep what a model answered."""
        self._rows("REPLACE INTO verdicts VALUES (?, ?)", question, json.dumps(verdict))

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise RunStopped(
                f"{self.path} cannot be used: {error}; make room and start the same command again"
            ) from error


def _record(row: tuple[Any, ...]) -> Record:
    return _RECORD.validate_python(json.loads(row[0]))


def file_of(memory: str) -> Path | None:
    """Return the file of a memory by its name or its URL; None if it has none."""
    path = Path(memory.removeprefix("file://"))
    return path if path.suffix and ":" not in str(path)[2:] else None


def ledger_of(memory: str) -> Path:
    """Return where the ledger of a memory is: beside its file, or in the user's data folder."""
    if file := file_of(memory):
        return file.with_name(f"{file.name}.build")
    name = "".join(letter if letter.isalnum() else "-" for letter in memory)
    return user_data_path("stepcraft", appauthor=False) / f"{name}.build"
