"""The rows of an index: read, inserted, replaced and deleted, each with its words and its vector."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepcraft.index._words import spaced
from stepcraft.text.clean import clean


@dataclass(frozen=True)
class Entry:
    """A text to be found, under its id, with whatever JSON values belong to it."""

    id: str
    text: str
    payload: Mapping[str, Any]


@dataclass
class Changes:
    """What became of the entries that were put."""

    added: int = 0
    present: int = 0
    updated: int = 0
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Why an entry was refused, by its id."""


@dataclass(frozen=True)
class Row:
    """An entry as it is kept, with its number."""

    number: int
    entry: Entry


def kept(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Row]:
    """Those of the ids that there are."""
    found = connection.execute(
        "SELECT seq, id, text, payload FROM entries WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {row.entry.id: row for row in _rows(found)}


def ids(connection: sqlite3.Connection) -> dict[int, str]:
    """The ids of all entries, by number."""
    return dict(connection.execute("SELECT seq, id FROM entries"))


def by_number(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    """The entries with these numbers."""
    found = connection.execute(
        "SELECT seq, id, text, payload FROM entries WHERE seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    )
    return {row.number: row.entry for row in _rows(found)}


def after(connection: sqlite3.Connection, number: int, limit: int) -> list[Row]:
    """The next entries above this number."""
    found = connection.execute(
        "SELECT seq, id, text, payload FROM entries WHERE seq > ? ORDER BY seq LIMIT ?", (number, limit)
    )
    return list(_rows(found))


def vectors_of(connection: sqlite3.Connection, rows: Collection[Row]) -> dict[int, bytes]:
    """The vectors of these rows by their numbers, of those that have one."""
    found = connection.execute(
        "SELECT seq, vector FROM vectors WHERE seq IN (SELECT value FROM json_each(?))",
        (json.dumps([row.number for row in rows]),),
    )
    return dict(found.fetchall())


def _rows(found: Iterable[tuple[int, str, str, str]]) -> Iterator[Row]:
    return (Row(number, Entry(name, text, json.loads(payload))) for number, name, text, payload in found)


def matches(connection: sqlite3.Connection, expression: str) -> NDArray[np.float64]:
    """Number and FTS5 rank (negative, lower is better) of each row that matches, of shape (matches, 2).

    All of them: sorting them in SQLite to get only the best would take as long as fetching them.
    """
    if not expression:
        return np.empty((0, 2))
    found = connection.execute("SELECT rowid, rank FROM words WHERE words MATCH ?", (expression,)).fetchall()
    return np.fromiter((value for row in found for value in row), np.float64, 2 * len(found)).reshape(-1, 2)


def reworded(entries: Iterable[Entry], kept: Mapping[str, Row]) -> list[str]:
    """The texts that are not kept yet under the ids of their entries."""
    return [
        entry.text for entry in entries if entry.id not in kept or kept[entry.id].entry.text != entry.text
    ]


def unique(entries: Iterable[Entry]) -> tuple[dict[str, Entry], Changes]:
    """The last entry of each id, cleaned, and what the ones before it count as."""
    last: dict[str, Entry] = {}
    repeats = Changes()
    for given in entries:
        entry = Entry(clean(given.id), clean(given.text), given.payload)
        if entry.id in last:
            repeats.present += last[entry.id] == entry
            repeats.updated += last[entry.id] != entry
        last[entry.id] = entry
    return last, repeats


def insert(connection: sqlite3.Connection, entries: Collection[Entry], vectors: Mapping[str, bytes]) -> None:
    """New entries, after all others; `vectors` by text, empty where there is none."""
    (first,) = connection.execute("SELECT next FROM state").fetchone()
    rows = [Row(number, entry) for number, entry in enumerate(entries, first)]
    connection.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?)",
        ((row.number, row.entry.id, row.entry.text, json.dumps(row.entry.payload)) for row in rows),
    )
    _index(connection, rows, vectors)
    connection.execute("UPDATE state SET next = next + ?, writes = writes + 1", (len(rows),))


def replace(
    connection: sqlite3.Connection, rows: Collection[tuple[Row, Entry]], vectors: Mapping[str, bytes]
) -> None:
    """Other entries in the places of these rows."""
    connection.executemany(
        "UPDATE entries SET text = ?, payload = ? WHERE seq = ?",
        ((entry.text, json.dumps(entry.payload), row.number) for row, entry in rows),
    )
    reworded = [(row, entry) for row, entry in rows if row.entry.text != entry.text]
    if reworded:
        _unindex(connection, [row for row, _ in reworded])
        _index(connection, [Row(row.number, entry) for row, entry in reworded], vectors)
        connection.execute("UPDATE state SET writes = writes + 1, rewrites = rewrites + 1")


def remove(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    """Forget these rows."""
    connection.executemany("DELETE FROM entries WHERE seq = ?", ((row.number,) for row in rows))
    _unindex(connection, rows)
    connection.execute("UPDATE state SET writes = writes + 1, rewrites = rewrites + 1")


def _index(connection: sqlite3.Connection, rows: Iterable[Row], vectors: Mapping[str, bytes]) -> None:
    rows = list(rows)
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((row.number, spaced(row.entry.text)) for row in rows),
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?)",
        ((row.number, vectors[row.entry.text]) for row in rows if vectors[row.entry.text]),
    )


def _unindex(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    """A contentless FTS5 table wants the old text to take a row out."""
    connection.executemany(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
        ((row.number, spaced(row.entry.text)) for row in rows),
    )
    connection.executemany("DELETE FROM vectors WHERE seq = ?", ((row.number,) for row in rows))
