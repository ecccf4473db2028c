"""The rows of an index: entries, the words that FTS5 finds them by, and their vectors."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepcraft.index._words import spaced


@dataclass(frozen=True)
class Entry:
    """A text to be found, with its id and any JSON values that belong to it."""

    id: str
    text: str
    payload: Mapping[str, Any]


@dataclass
class Changes:
    """The outcome of `LocalIndex.put`, in entries."""

    added: int = 0
    present: int = 0
    """Entries that were already there, unchanged, or were given twice."""
    updated: int = 0
    """Entries whose id was there with another text or payload."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Why an entry was refused, by its id."""


def stored_entries(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Entry]:
    """Return the entries with these ids, by id; unknown ids are left out."""
    entries = _select(connection, "id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
    return {entry.id: entry for _, entry in entries}


def numbered(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    """Return the entries of the rows with these numbers."""
    condition = "seq IN (SELECT value FROM json_each(?))"
    return dict(_select(connection, condition, json.dumps(list(numbers))))


def page_after(connection: sqlite3.Connection, number: int, limit: int) -> list[tuple[int, Entry]]:
    """Return the next entries after a row, with the numbers of their rows."""
    return _select(connection, "seq > ? ORDER BY seq LIMIT ?", number, limit)


def write(
    connection: sqlite3.Connection, entries: Iterable[Entry], vectors: Mapping[str, bytes]
) -> None:
    """Store entries in the place of those with the same ids, or after all others.

    Args:
        connection: In a transaction.
        entries: What to store.
        vectors: The vectors of new texts, where the index has vectors.
    """
    connection.executemany(
        "INSERT INTO entries (id, text, payload, spaced) VALUES (?, ?, ?, ?) ON CONFLICT (id)"
        " DO UPDATE SET text = excluded.text, payload = excluded.payload, spaced = excluded.spaced",
        (
            (entry.id, entry.text, json.dumps(dict(entry.payload)), spaced(entry.text))
            for entry in entries
        ),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO vectors SELECT seq, ? FROM entries WHERE id = ?",
        ((vectors[entry.text], entry.id) for entry in entries if entry.text in vectors),
    )


def _select(
    connection: sqlite3.Connection, condition: str, *values: object
) -> list[tuple[int, Entry]]:
    sql = f"SELECT seq, id, text, payload FROM entries WHERE {condition}"  # noqa: S608 - ours
    return [
        (number, Entry(name, text, dict(json.loads(payload))))
        for number, name, text, payload in connection.execute(sql, values)
    ]
