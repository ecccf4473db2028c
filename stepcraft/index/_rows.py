"""The rows of an index: entries, the words that FTS5 finds them by, and their vectors."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepcraft.index._file import Damage
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
    """Entries that were already there, unchanged."""
    updated: int = 0
    """Entries whose id was there with another text or payload."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Why an entry was refused, by its id."""


Row = tuple[int, Entry]
"""A stored entry after its number, by which its words and its vector are found."""


def stored(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Row]:
    """Return the rows with these ids, by id; unknown ids are left out."""
    rows = _select(connection, "id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
    return {row[1].id: row for row in rows}


def entries_of(connection: sqlite3.Connection, numbers: Collection[int]) -> dict[int, Entry]:
    """Return the entries of the rows with these numbers.

    Raises:
        Damage: There is no such row.
    """
    condition = "seq IN (SELECT value FROM json_each(?))"
    entries = dict(_select(connection, condition, json.dumps(list(numbers))))
    if len(entries) < len(numbers):
        raise Damage("it has words or vectors of rows that there are not")
    return entries


def page_after(connection: sqlite3.Connection, number: int, limit: int) -> list[Row]:
    """Return the next rows with a greater number, in order."""
    return _select(connection, "seq > ? ORDER BY seq LIMIT ?", number, limit)


def _select(connection: sqlite3.Connection, condition: str, *values: object) -> list[Row]:
    rows = connection.execute(
        f"SELECT seq, id, text, payload FROM entries WHERE {condition}",
        values,
    )
    return [(number, _entry(name, text, payload)) for number, name, text, payload in rows]


def _entry(name: str, text: str, payload: str) -> Entry:
    try:
        return Entry(name, text, dict(json.loads(payload)))
    except (TypeError, ValueError) as error:
        raise Damage(f"the payload of the entry {name!r:.80} is no JSON object") from error


def insert(
    connection: sqlite3.Connection, entries: Collection[Entry], vectors: Mapping[str, bytes]
) -> None:
    """Add entries after all others, with the vectors of their texts."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM entries").fetchone()
    rows = list(enumerate(entries, last + 1))
    connection.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?)",
        ((number, entry.id, entry.text, json.dumps(dict(entry.payload))) for number, entry in rows),
    )
    _add_words_and_vectors(connection, rows, vectors)


def replace(
    connection: sqlite3.Connection,
    changed: Collection[tuple[Row, Entry]],
    vectors: Mapping[str, bytes],
) -> None:
    """Replace the entry of each row."""
    connection.executemany(
        "UPDATE entries SET text = ?, payload = ? WHERE seq = ?",
        ((entry.text, json.dumps(dict(entry.payload)), number) for (number, _), entry in changed),
    )
    reworded = [(row, entry) for row, entry in changed if row[1].text != entry.text]
    _drop_words_and_vectors(connection, [row for row, _ in reworded])
    _add_words_and_vectors(connection, [(row[0], entry) for row, entry in reworded], vectors)


def remove(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    """Delete rows."""
    connection.executemany("DELETE FROM entries WHERE seq = ?", ((number,) for number, _ in rows))
    _drop_words_and_vectors(connection, rows)


def _add_words_and_vectors(
    connection: sqlite3.Connection, rows: Collection[Row], vectors: Mapping[str, bytes]
) -> None:
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((number, spaced(entry.text)) for number, entry in rows),
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?)",
        ((number, vectors[entry.text]) for number, entry in rows if entry.text in vectors),
    )


def _drop_words_and_vectors(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    if not rows:
        return
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
