"""The rows of an index: entries, the words that FTS5 finds them by, and their vectors."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from stepcraft.index._words import spaced


class Entry(NamedTuple):
    """A text to be found, with its id and any JSON values that belong to it."""

    id: str
    text: str
    payload: Mapping[str, Any]


def entries_where(
    connection: sqlite3.Connection, condition: str, *values: object
) -> list[tuple[int, Entry]]:
    """Return the entries that meet an SQL condition, after the numbers of their rows."""
    sql = f"SELECT seq, id, text, payload FROM entries WHERE {condition}"  # noqa: S608 - ours
    return [
        (number, Entry(name, text, dict(json.loads(payload))))
        for number, name, text, payload in connection.execute(sql, values)
    ]


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
