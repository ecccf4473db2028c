"""LocalIndex: texts, payloads and vectors in one SQLite file, searched by words and vectors."""

import json
import sqlite3
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import numpy as np

from stepcraft.errors import AddReport, BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.index._file import (
    MEMORY,
    Entry,
    connect,
    entries_where,
    is_read_only,
    plain_failures,
    state,
)
from stepcraft.index._vectors import (
    Embedder,
    Hit,
    Vectors,
    best,
    embedded,
    fork,
    query_vector,
    vectors_of,
)
from stepcraft.index._words import WordRanking
from stepcraft.text.clean import clean

Merge = Callable[[Entry, Entry], Entry]
"""Merges a new entry into the stored one with the same id, and returns the entry to store."""

Then: TypeAlias = Callable[[sqlite3.Connection, Sequence[Failed]], None]
"""Called at the end of the transaction that stores entries, with those that were refused."""

MOST_RESULTS = 10_000
"""The maximum number of search results, the same as in Weaviate."""

COPY = "`stepcraft memory copy OLD NEW --embeddings NAME`"
"""The command that embeds the procedures of a memory with another model."""

_PAGE = 1000
_TRIES = 100
"""The maximum number of attempts to write rows that others keep changing."""
_inherited: list[sqlite3.Connection] = []
"""Connections inherited through a fork. They are not closed, since that could remove the log of the
process that opened them.
"""

_AMONG = "IN (SELECT value FROM json_each(?))"
_KIND = "SELECT EXISTS (SELECT 1 FROM entries), EXISTS (SELECT 1 FROM groups)"
_HELD = "procedures", "passages"
_DELETED = "INSERT OR IGNORE INTO meta SELECT 'deleted ' || id, '' FROM entries WHERE id = ?"


class LocalIndex:
    """Texts with payloads and vectors in one SQLite file, for many threads and processes.

    Once `put` or `delete` has returned, its changes survive a process crash. The vectors are held
    in memory and shared by all indexes of the same file in this process.

    Args:
        path: The file, created if missing, or ":memory:" to use none.
        embedder: The embedding model, or None for keyword search only. Its name is recorded in the
            file, and a file made with another one is refused.
        create: Whether to create a missing file.

    Raises:
        BadInput: There is no such file or folder.
        MemoryFailure: The file cannot be opened, was made with another embedder, or holds passages
            in place of procedures, or the reverse.
    """

    _is_grouped = False

    def __init__(
        self,
        path: str | Path,
        embedder: Embedder | None = None,
        *,
        create: bool = True,
    ) -> None:
        self.path = str(named_path(path))
        self.read_only = is_read_only(self.path)
        self._embedder = embedder
        self._words = WordRanking()
        self._vectors = Vectors()
        self._writing = Lock()
        self._connections: list[sqlite3.Connection] = []
        # An index that is no longer used closes its file at once.
        self._close = weakref.finalize(self, _close_all, self._connections)
        self._close.atexit = False  # a thread whose run has ended may still be searching
        name = embedder.name if embedder else "none"
        self._embeddings = self._open(name, create=create)
        try:
            check_recorded(self.path, embedder, self._embeddings, COPY)
            self._check_kind()
        except MemoryFailure:
            self.close()
            raise

    def put(
        self,
        entries: Iterable[Entry],
        *,
        merge: Merge = lambda _, new: new,
        then: Then = lambda _connection, _failed: None,
    ) -> AddReport:
        """Store entries, all or none; an entry with an existing id replaces the stored one.

        A text that is already stored under its id is not embedded again. An entry whose text the
        embedder refuses is not stored, but listed in the report.

        Args:
            entries: The entries to store.
            merge: Merges a new entry into the stored one with the same id, and returns the entry to
                store.
            then: Called at the end of the transaction, with the entries that were refused.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was stored.
        """
        unique: dict[str, Entry] = {}
        repeats = changed = 0
        for entry in entries:
            new = Entry(clean(entry.id), clean(entry.text), entry.payload)
            if before := unique.get(new.id):
                new = merge(before, new)
                repeats += 1
                changed += new != before
            unique[new.id] = new

        def merged(stored: Mapping[str, Entry]) -> list[Entry]:
            return [
                merge(stored[entry.id], entry) if entry.id in stored else entry
                for entry in unique.values()
            ]

        _, report = self._store(unique, merged, then)
        report.present += repeats - changed
        report.updated += changed
        return report

    def update(self, id: str, change: Callable[[Entry | None], Entry]) -> Entry:  # noqa: A002
        """Read, change and write an entry, and return it.

        Args:
            id: The id of the entry.
            change: Takes the stored entry, or None if there is none, and returns the new entry with
                the same id. It is called again if somebody else has written the entry in the
                meantime, so that no change is lost.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was changed.
        """
        name = clean(id)
        [entry], report = self._store([name], lambda stored: [change(stored.get(name))])
        for failure in report.failed:
            raise MemoryFailure(f"{name} was not changed: {failure.reason}")
        return entry

    def delete(self, ids: Iterable[str]) -> int:
        """Delete entries, and return how many of the given ids existed."""
        rows = [(clean(id_),) for id_ in ids]
        with self._written() as connection:
            connection.executemany(_DELETED, rows)
            return connection.executemany("DELETE FROM entries WHERE id = ?", rows).rowcount

    def has_deleted(self, id: str) -> bool:  # noqa: A002 - a field
        """Return whether `delete` has ever deleted an entry with this id."""
        with self._read() as connection:
            sql = "SELECT 1 FROM meta WHERE key = 'deleted ' || ?"
            return bool(connection.execute(sql, (clean(id),)).fetchone())

    def search(
        self, query: str, k: int, *, alpha: float, tags: Mapping[str, str] | None = None
    ) -> list[Hit]:
        """Return the k entries with the highest alpha · cosine + (1 - alpha) · bm25 / best bm25.

        Ties are returned in the order in which the entries were added. Without an embedder, or with
        alpha 0, only entries that share a word with the query are found. Cosines are exact; in a
        large index, the words of an entry count only if it contains a rare word of the query.

        Args:
            query: The query.
            k: The maximum number of results.
            alpha: The weight of the cosines.
            tags: Names and values that the payload of an entry must have under `tags`.

        Raises:
            BadInput: k is below 1, or alpha is not between 0 and 1.
            MemoryFailure: The file cannot be read, or the embedder failed.
        """
        check_search(k, alpha)
        query = clean(query)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._read() as connection:
            words = query if alpha < 1 or not self._embedder else ""
            numbers, scores = self._words.scores(connection, words)
            if vector is not None:
                self._check_dimensions(connection, vector.nbytes)
                matching, by_words = numbers, (1 - alpha) * scores
                numbers, cosines = self._vectors.cosines(connection, vector)
                scores = alpha * cosines.astype(np.float64)
                scores[np.searchsorted(numbers, matching)] += by_words
            if tags:
                is_tagged = np.isin(numbers, _tagged(connection, tags))
                numbers, scores = numbers[is_tagged], scores[is_tagged]
            ranked = best(numbers, scores, k)
            best_rows = json.dumps([number for number, _ in ranked])
            entries = dict(entries_where(connection, f"seq {_AMONG}", best_rows))
            return [Hit(entries[number], score) for number, score in ranked]

    def get(self, id: str) -> Entry | None:  # noqa: A002 - a field
        """Return the entry with this id, or None."""
        with self._read() as connection:
            return _stored(connection, [clean(id)]).get(clean(id))

    def count(self) -> int:
        """Return the number of entries."""
        with self._read() as connection:
            return int(connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries in the order in which they were added."""
        last = 0
        while True:
            with self._read() as connection:
                page = entries_where(connection, "seq > ? ORDER BY seq LIMIT ?", last, _PAGE)
            if not page:
                return
            yield from (entry for _, entry in page)
            last = page[-1][0]

    def close(self) -> None:
        """Close the file and release the vectors; closing again does nothing."""
        with self._vectors.lock, self._writing:
            self._close()
            self._vectors = Vectors()

    def _open(self, name: str = "", *, create: bool = False) -> str | None:
        """Open the file, and return the name of the embeddings that it was made with."""
        before = state(self.path)
        self._reader, embeddings = connect(self.path, name, create=create)
        self._state = before or state(self.path)
        self._writer = self._reader if self.path == MEMORY else None
        self._generation = fork.generation
        self._vectors = vectors_of(self.path)
        self._connections.append(self._reader)
        return embeddings

    @contextmanager
    def _read(self) -> Generator[sqlite3.Connection]:
        """Provide a consistent view of the file without waiting for any writer."""
        self._renew()
        with self._vectors.lock, plain_failures(self.path), self._reader as connection:
            connection.execute("BEGIN DEFERRED")
            yield connection

    def _renew(self) -> None:
        """Reopen the file if the connection is unusable.

        A connection is unusable if it was inherited through a fork, if another file has taken the
        place of its file, or if its file has no log and another user has since written to it.
        """
        if self.path == MEMORY:
            return
        with self._vectors.lock, plain_failures(self.path):
            if self._generation != fork.generation:
                _inherited.extend(self._connections)
                self._writing = Lock()
            elif state(self.path) not in (None, self._state):
                with self._writing:
                    _close_all(self._connections)
            else:
                return
            self._connections.clear()
            self._open()

    @contextmanager
    def _written(self) -> Generator[sqlite3.Connection]:
        """Provide a transaction for writing, excluding other processes."""
        self._renew()
        lock = self._vectors.lock if self._writer is self._reader else self._writing
        with lock, plain_failures(self.path):
            if not self._writer:
                self._reader.execute("SELECT 1")  # which fails after the index has been closed
                self._writer, _ = connect(self.path, create=False)
                self._connections.append(self._writer)
            with self._writer as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection

    def _store(
        self,
        ids: Collection[str],
        plan: Callable[[Mapping[str, Entry]], Sequence[Entry]],
        then: Then = lambda _connection, _failed: None,
    ) -> tuple[Sequence[Entry], AddReport]:
        """Write the entries that `plan` returns for the stored rows.

        The texts are embedded before the transaction, so that no other writer waits for the model.
        If others have written these rows in the meantime, `plan` is called again with the new rows.

        Raises:
            MemoryFailure: They have done so `_TRIES` times.
        """
        vectors: dict[str, bytes] = {}
        refused: dict[str, str] = {}
        for _ in range(_TRIES):
            with self._read() as connection:
                stored = _stored(connection, ids)
                size = _vector_size(connection)
            entries = plan(stored)
            changed = [entry for entry in entries if stored.get(entry.id) != entry]
            texts = [
                entry.text
                for entry in changed
                if entry.id not in stored or stored[entry.id].text != entry.text
            ]
            if self._embedder:
                tried = vectors.keys() | refused.keys()
                new = [text for text in texts if text not in tried]
                result = embedded(self._embedder, new, size)
                vectors |= result.vectors
                refused |= result.refused
            elif texts and self._embeddings != "none":
                raise MemoryFailure(
                    f"{self.path} was made with embeddings {self._embeddings!r}: "
                    "open it with them to add"
                )
            failed = [
                Failed(entry.id, refused[entry.text]) for entry in changed if entry.text in refused
            ]
            changed = [entry for entry in changed if entry.text not in refused]
            with self._written() as connection:
                if _stored(connection, ids) != stored:
                    continue
                if vectors:
                    self._check_dimensions(connection, len(next(iter(vectors.values()))))
                # Entries with existing ids are replaced in place; the others are added at the end.
                connection.executemany(
                    "INSERT INTO entries (id, text, payload, folded, parts)"
                    " VALUES (?1, ?2, ?3, folded(?2), parts(?2)) ON CONFLICT (id) DO UPDATE SET"
                    " text = excluded.text, payload = excluded.payload,"
                    " folded = excluded.folded, parts = excluded.parts",
                    ((entry.id, entry.text, json.dumps(entry.payload)) for entry in changed),
                )
                connection.executemany(
                    "INSERT OR REPLACE INTO vectors SELECT seq, ? FROM entries WHERE id = ?",
                    ((vectors[entry.text], entry.id) for entry in changed if entry.text in vectors),
                )
                then(connection, failed)
            updated = sum(entry.id in stored for entry in changed)
            present = len(entries) - len(changed) - len(failed)
            return entries, AddReport(len(changed) - updated, present, updated, failed)
        raise MemoryFailure(
            f"{self.path}: others keep changing what was to be written; start again when they are "
            "done"
        )

    def _check_kind(self) -> None:
        """Reject a file with the entries of a memory if this is a corpus, and the reverse."""
        with self._read() as connection:
            has_entries, is_grouped = connection.execute(_KIND).fetchone()
        if has_entries and is_grouped != self._is_grouped:
            found, wanted = _HELD[is_grouped], _HELD[self._is_grouped]
            raise MemoryFailure(f"{self.path} holds {found}, not {wanted}; name another file")

    def _check_dimensions(self, connection: sqlite3.Connection, size: int) -> None:
        """Reject vectors whose size in bytes differs from the stored ones."""
        if (stored := _vector_size(connection)) not in (0, size):
            raise MemoryFailure(
                f"{self.path} holds vectors of {stored // 4} dimensions, and the embedding model "
                f"gives {size // 4}: open it with the model that it was made with, or fill a new "
                f"file, as {COPY} does"
            )


def _stored(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, Entry]:
    entries = entries_where(connection, f"id {_AMONG}", json.dumps(list(ids)))
    return {entry.id: entry for _, entry in entries}


def _tagged(connection: sqlite3.Connection, tags: Mapping[str, str]) -> list[int]:
    """Return the numbers of the rows whose payload has the given tags."""
    # In older versions of SQLite, json_extract does not find names that JSON escapes.
    has_tag = "EXISTS (SELECT 1 FROM json_each(payload, '$.tags') WHERE key = ? AND value = ?)"
    conditions = " AND ".join([has_tag] * len(tags))
    values = [each for pair in tags.items() for each in pair]
    query = f"SELECT seq FROM entries WHERE {conditions}"  # noqa: S608 - our own constants
    return [number for (number,) in connection.execute(query, values)]


def _vector_size(connection: sqlite3.Connection) -> int:
    """Return the size of a stored vector in bytes, or 0 if there is none."""
    row = connection.execute("SELECT length(vector) FROM vectors LIMIT 1").fetchone()
    return row[0] if row else 0


def _close_all(connections: Sequence[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


def check_search(k: int, alpha: float) -> None:
    """Reject a search with an invalid number of results or weight of vectors.

    Raises:
        BadInput: k is not an integer from 1 to `MOST_RESULTS`, or alpha is not between 0 and 1.
    """
    if not (isinstance(k, int) and 1 <= k <= MOST_RESULTS and 0 <= alpha <= 1):
        raise BadInput(
            f"k must be a whole number from 1 to {MOST_RESULTS:,}, and alpha between 0 (words "
            f"alone) and 1 (vectors alone), not {k} and {alpha}"
        )


def check_recorded(place: str, embedder: Embedder | None, recorded: str | None, again: str) -> None:
    """Reject an embedding model other than the recorded one; None means keyword search.

    Raises:
        MemoryFailure: The model differs; the message suggests `again`, a command that fills another
        location.
    """
    if embedder and recorded != embedder.name:
        raise MemoryFailure(
            f"{place} was made with embeddings {recorded!r:.200}, not {embedder.name!r:.200}: "
            f"open it with the former, or fill another one with the latter, as {again} does"
        )
