"""The rows of an index: entries, the words that FTS5 finds them by, and their vectors."""

import itertools
import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepcraft.index._words import spaced

CHANGES_LOGGED = 100_000
"""How many deleted and rewritten rows the log keeps; whoever is further behind reads all again."""


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


Row = tuple[int, Entry]
"""A stored entry after its number, by which its words and its vector are found."""


def stored_rows(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Row]:
    """Return the rows with these ids, by id; unknown ids are left out."""
    rows = _select(connection, "id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
    return {row[1].id: row for row in rows}


def entries_of(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    """Return the entries of the rows with these numbers."""
    condition = "seq IN (SELECT value FROM json_each(?))"
    return dict(_select(connection, condition, json.dumps(list(numbers))))


def page_after(connection: sqlite3.Connection, number: int, limit: int) -> list[Row]:
    """Return the next rows with a greater number, in order."""
    return _select(connection, "seq > ? ORDER BY seq LIMIT ?", number, limit)


def _select(connection: sqlite3.Connection, condition: str, *values: object) -> list[Row]:
    sql = f"SELECT seq, id, text, payload FROM entries WHERE {condition}"  # noqa: S608 - ours
    return [
        (number, Entry(name, text, dict(json.loads(payload))))
        for number, name, text, payload in connection.execute(sql, values)
    ]


def write(
    connection: sqlite3.Connection,
    stored: Mapping[str, Row],
    entries: Iterable[Entry],
    vectors: Mapping[str, bytes],
) -> None:
    """Store entries in the place of the rows with their ids, or after all others.

    Args:
        connection: In a transaction.
        stored: The rows that there are, by id.
        entries: What to store.
        vectors: The vectors of new texts, where the index has vectors.
    """
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
    new = itertools.count(last + 1)
    rows = [(stored[entry.id][0] if entry.id in stored else next(new), entry) for entry in entries]
    connection.executemany(
        "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
        ((number, entry.id, entry.text, json.dumps(dict(entry.payload))) for number, entry in rows),
    )
    reworded = [(number, entry) for number, entry in rows if is_new_text(entry, stored)]
    _drop(connection, [stored[entry.id] for _, entry in reworded if entry.id in stored])
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((number, spaced(entry.text)) for number, entry in reworded),
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?)",
        ((number, vectors[entry.text]) for number, entry in reworded if vectors),
    )


def is_new_text(entry: Entry, stored: Mapping[str, Row]) -> bool:
    """Tell whether the text of an entry is not stored under its id."""
    return entry.id not in stored or stored[entry.id][1].text != entry.text


def remove(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Delete entries; return how many of the ids were there."""
    rows = stored_rows(connection, ids).values()
    connection.executemany("DELETE FROM entries WHERE seq = ?", ((number,) for number, _ in rows))
    _drop(connection, rows)
    return len(rows)


def _drop(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    """Delete the words and vectors of rows."""
    # A contentless FTS5 table needs the old text to take a row out.
    connection.executemany(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
        ((number, spaced(entry.text)) for number, entry in rows),
    )
    numbers = [(number,) for number, _ in rows]
    connection.executemany("DELETE FROM vectors WHERE seq = ?", numbers)
    connection.executemany("INSERT INTO changed (seq) VALUES (?)", numbers)
    connection.execute(
        "DELETE FROM changed WHERE number <= (SELECT max(number) FROM changed) - ?",
        (CHANGES_LOGGED,),
    )
