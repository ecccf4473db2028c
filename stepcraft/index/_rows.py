"""The rows of an index: entries, the words that FTS5 finds them by, and their vectors."""

import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepcraft.text.clean import STOP_WORDS, clean

MAX_TERMS = 128
"""The number of different words of a query that are searched for; further ones are ignored."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_CJK_RUN = re.compile(f"[{_CJK}]+")
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")

_SELECT = "SELECT seq, id, text, payload FROM entries WHERE"


class Damage(Exception):
    """A file holds what cannot have been written there. The message is a clause."""


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


@dataclass(frozen=True)
class Row:
    """A stored entry and its number, by which its words and its vector are found."""

    number: int
    entry: Entry


def cjk_words(text: str) -> str:
    """Return the CJK characters of a text and their pairs, for an index that takes a whole run for one word."""
    runs: list[str] = [] if text.isascii() else _CJK_RUN.findall(text)
    return " ".join(word for run in runs for word in (*run, *_pairs(run)))


def query_words(query: str) -> list[str]:
    """Return the different words of a query in lower case, at most `MAX_TERMS`; a run of CJK gives its pairs.

    Stop words are left out unless there are no others.
    """
    runs: list[str] = _RUN.findall(clean(query).lower())
    words = dict.fromkeys(
        word
        for run in runs
        for word in (_pairs(run) if _CJK_CHARACTER.match(run) and len(run) > 1 else [run])
    )
    return ([word for word in words if word not in STOP_WORDS] or list(words))[:MAX_TERMS]


def match_expression(query: str) -> str:
    """Return the FTS5 expression for a query: its words, quoted and joined by OR; "" if it has none."""
    return " OR ".join(f'"{_spaced(word)}"' for word in query_words(query))


def _spaced(text: str) -> str:
    """Put blanks around each CJK character, so that FTS5 takes it for a word of its own."""
    return text if text.isascii() else _CJK_CHARACTER.sub(r" \g<0> ", text)


def _pairs(run: str) -> list[str]:
    return [first + second for first, second in itertools.pairwise(run)]


def stored(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Row]:
    """Return the rows with these ids, by id; unknown ids are left out."""
    found = _rows(connection, "id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
    return {row.entry.id: row for row in found}


def by_number(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Entry]:
    """Return the entries of the rows with these numbers."""
    found = _rows(connection, "seq IN (SELECT value FROM json_each(?))", json.dumps(list(numbers)))
    return {row.number: row.entry for row in found}


def after(connection: sqlite3.Connection, number: int, limit: int) -> list[Row]:
    """Return the next rows with a greater number, in order."""
    return _rows(connection, "seq > ? ORDER BY seq LIMIT ?", number, limit)


def _rows(connection: sqlite3.Connection, condition: str, *values: object) -> list[Row]:
    found = connection.execute(f"{_SELECT} {condition}", values)
    return [Row(number, _entry(name, text, payload)) for number, name, text, payload in found]


def _entry(name: object, text: object, payload: object) -> Entry:
    if not isinstance(name, str) or not isinstance(text, str) or not isinstance(payload, str):
        raise Damage(f"the entry {name!r:.80} is no text")
    try:
        values = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Damage(f"the payload of the entry {name!r:.80} is no JSON") from error
    if not isinstance(values, dict):
        raise Damage(f"the payload of the entry {name!r:.80} is no object")
    return Entry(name, text, values)


def state(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return the number of the next row, and how often rows were written and rewritten."""
    found = connection.execute("SELECT next, writes, rewrites FROM state").fetchone()
    if not found or not all(isinstance(value, int) for value in found):
        raise Damage(f"its count of rows is {found!r:.80}")
    first, writes, rewrites = found
    return first, writes, rewrites


def vectors_of(connection: sqlite3.Connection, rows: Collection[Row]) -> dict[int, bytes]:
    """Return the vectors of rows by number; rows without a vector are left out."""
    found = connection.execute(
        "SELECT seq, vector FROM vectors WHERE seq IN (SELECT value FROM json_each(?))",
        (json.dumps([row.number for row in rows]),),
    )
    return dict(found.fetchall())


def word_ranks(connection: sqlite3.Connection, expression: str) -> NDArray[np.float64]:
    """Return number and BM25 rank (negative, lower is better) of each matching row, of shape (matches, 2).

    All of them: sorting in SQLite to fetch only the best takes as long as fetching all.
    """
    if not expression:
        return np.empty((0, 2))
    found = connection.execute(
        "SELECT rowid, rank FROM words WHERE words MATCH ?", (expression,)
    ).fetchall()
    return np.fromiter(
        (value for row in found for value in row), np.float64, 2 * len(found)
    ).reshape(-1, 2)


Merge = Callable[[Entry, Entry], Entry]
"""Makes what is stored of the stored entry and of a new one with its id."""


def unique(
    entries: Iterable[Entry], merge: Merge | None = None
) -> tuple[dict[str, Entry], Changes]:
    """Return the last entry of each id, cleaned, and the changes that the earlier ones count as."""
    last: dict[str, Entry] = {}
    repeats = Changes()
    for given in entries:
        entry = Entry(clean(given.id), clean(given.text), given.payload)
        if before := last.get(entry.id):
            is_same = before == entry
            repeats.present += is_same
            repeats.updated += not is_same
            entry = merge(before, entry) if merge and not is_same else entry
        last[entry.id] = entry
    return last, repeats


def new_texts(entries: Iterable[Entry], rows: Mapping[str, Row]) -> list[str]:
    """Return the texts of the entries that `rows` does not hold under the same id."""
    return [
        entry.text
        for entry in entries
        if entry.id not in rows or rows[entry.id].entry.text != entry.text
    ]


def insert(
    connection: sqlite3.Connection, entries: Collection[Entry], vectors: Mapping[str, bytes]
) -> None:
    """Add entries after all others. `vectors` are by text, empty for none."""
    first, _, _ = state(connection)
    rows = [Row(number, entry) for number, entry in enumerate(entries, first)]
    connection.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?)",
        ((row.number, row.entry.id, row.entry.text, json.dumps(row.entry.payload)) for row in rows),
    )
    _add_words_and_vectors(connection, rows, vectors)
    connection.execute("UPDATE state SET next = next + ?, writes = writes + 1", (len(rows),))


def replace(
    connection: sqlite3.Connection,
    changed: Collection[tuple[Row, Entry]],
    vectors: Mapping[str, bytes],
) -> None:
    """Replace the entry of each row. `vectors` are by text, empty for none."""
    connection.executemany(
        "UPDATE entries SET text = ?, payload = ? WHERE seq = ?",
        ((entry.text, json.dumps(entry.payload), row.number) for row, entry in changed),
    )
    reworded = [(row, entry) for row, entry in changed if row.entry.text != entry.text]
    if reworded:
        _drop_words_and_vectors(connection, [row for row, _ in reworded])
        _add_words_and_vectors(
            connection, [Row(row.number, entry) for row, entry in reworded], vectors
        )
        connection.execute("UPDATE state SET writes = writes + 1, rewrites = rewrites + 1")


def remove(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    """Delete rows."""
    connection.executemany("DELETE FROM entries WHERE seq = ?", ((row.number,) for row in rows))
    _drop_words_and_vectors(connection, rows)
    connection.execute("UPDATE state SET writes = writes + 1, rewrites = rewrites + 1")


def _add_words_and_vectors(
    connection: sqlite3.Connection, rows: Collection[Row], vectors: Mapping[str, bytes]
) -> None:
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((row.number, _spaced(row.entry.text)) for row in rows),
    )
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?)",
        ((row.number, vectors[row.entry.text]) for row in rows if vectors[row.entry.text]),
    )


def _drop_words_and_vectors(connection: sqlite3.Connection, rows: Collection[Row]) -> None:
    # A contentless FTS5 table needs the old text to take a row out.
    connection.executemany(
        "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
        ((row.number, _spaced(row.entry.text)) for row in rows),
    )
    connection.executemany("DELETE FROM vectors WHERE seq = ?", ((row.number,) for row in rows))
