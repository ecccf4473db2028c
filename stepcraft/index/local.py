"""LocalIndex: texts, payloads and vectors in one SQLite file; GroupedIndex: the same with entries in groups."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import _rows as rows
from stepcraft.index._file import (
    agree,
    check_dimensions,
    connect,
    plain_failures,
    recorded,
    transaction,
    unwritable,
)
from stepcraft.index._rows import Changes, Damage, Entry, Merge, Row
from stepcraft.index._vectors import (
    Embedder,
    Hit,
    Matrix,
    Vectors,
    aquery_vector,
    best,
    check_vectors,
    embedded,
    query_vector,
)
from stepcraft.index.serial import SerialExecutor
from stepcraft.text.clean import clean

_PAGE = 1000


class LocalIndex:
    """Texts with payloads and vectors in one SQLite file; several threads and processes may use it at once.

    What `put` and `delete` have returned from survives the death of the process. The vectors are held in memory, in
    one matrix; before each search it takes in what other processes wrote.

    Args:
        path: the file, made when missing; ":memory:" for none.
        embedder: the embedding model; None to search by words alone. Its name is recorded in the file, and a file
            that was made with another one is refused.
        settings: further values to record when the file is made; a file with other values is refused.
        create: whether a missing file is made.

    Raises:
        BadInput: there is no such file or folder.
        MemoryFailure: the file cannot be opened, or was made with another embedder or other settings.
    """

    def __init__(
        self,
        path: str | Path,
        embedder: Embedder | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        create: bool = True,
    ) -> None:
        self.path = str(path)
        self._embedder = embedder
        self._lock = threading.RLock()
        self._connection, self.read_only = connect(self.path, create=create)
        self._reading = partial(_view, self._lock, self.path, self._connection)
        self._line = SerialExecutor(self._reading)
        self._close = weakref.finalize(self, self._connection.close)
        self._vectors = Vectors()
        wanted = dict(settings or {})
        try:
            if embedder:
                wanted["embeddings"] = embedder.name
            else:  # a file with vectors may be opened to search by words
                wanted.setdefault("embeddings", self.made_with.get("embeddings", "none"))
            agree(self._connection, self.path, wanted, read_only=self.read_only)
        except BaseException:
            self.close()
            raise
        self._embeddings = wanted["embeddings"]

    @property
    def made_with(self) -> dict[str, str]:
        """The settings, the name of the embeddings, and the dimensions once there is a vector."""
        with self._reading():
            return recorded(self._connection)

    def put(
        self,
        entries: Sequence[Entry],
        vectors: Mapping[str, bytes] | None = None,
        *,
        merge: Merge | None = None,
    ) -> Changes:
        """Store entries, all or none, in one transaction; an entry with the id of another replaces it in place.

        A text that is already stored under its id is not embedded again. An entry whose vector is not finite is
        refused and the others are stored; one whose vector is zero is found by its words alone.

        Args:
            entries: what to store.
            vectors: known unit vectors by text, empty for a text that has none; other texts are embedded.
            merge: makes what is stored of an entry that is there and another one with its id, as one of the transaction's
                steps; None stores the other one.

        Raises:
            MemoryFailure: the file cannot be written, or the embedder failed; nothing was stored.
        """
        unique, repeats = rows.unique(entries, merge)
        known: dict[str, bytes | None] = {**(vectors or {})}
        self._embed_ahead(unique, known)
        with self._writing():
            changes = self._write(unique, known, merge)
        changes.present += repeats.present
        changes.updated += repeats.updated
        return changes

    def update(self, id: str, change: Callable[[Entry], Entry]) -> Entry | None:  # noqa: A002 - the field is called id
        """Read an entry, change it and write it, in one transaction; return the new one, None if there is none.

        Args:
            id: the id of the entry.
            change: makes the new entry, with the same id. No other thread or process writes meanwhile, so it must be
                quick, and it cannot use the index.

        Raises:
            MemoryFailure: the file cannot be written, or the embedder failed; nothing was changed.
        """
        name = clean(id)
        with self._writing():
            row = rows.stored(self._connection, [name]).get(name)
            if row is None:
                return None
            entry = change(row.entry)
            for reason in self._write({name: entry}, {}).failed.values():
                raise MemoryFailure(f"{name} was not changed: {reason}")
        return entry

    def delete(self, ids: Iterable[str]) -> int:
        """Delete entries; return how many of the ids were there."""
        with self._writing():
            return self._remove(map(clean, ids))

    def search(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """Return the k entries that fit best by alpha · cosine + (1 - alpha) · bm25 / best bm25, best first.

        The ranking is exact; entries with equal scores are in the order in which they were added. Without an
        embedder, and with alpha 0, only entries that share a word with the query are found. An entry without a
        vector counts with a cosine of 0.

        Raises:
            BadInput: k is below 1 or alpha not between 0 and 1.
            MemoryFailure: the file cannot be read, or the embedder failed.
        """
        query = _checked(query, k, alpha)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._reading():
            return self._hits(query, vector, k, alpha)

    async def asearch(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """Like `search`, without blocking the event loop."""
        query = _checked(query, k, alpha)
        vector = await aquery_vector(self._embedder, query) if alpha and self._embedder else None
        return await self._line.submit(lambda: self._hits(query, vector, k, alpha))

    def scores(self, query: str, *, alpha: float) -> dict[str, float]:
        """Return the score of each entry that `search` finds, by its id.

        Raises:
            BadInput: alpha is not between 0 and 1.
            MemoryFailure: the file cannot be read, or the embedder failed.
        """
        query = _checked(query, 1, alpha)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._reading():
            ids: dict[int, str] = dict(self._connection.execute("SELECT seq, id FROM entries"))
            ranked = self._ranked(query, vector, max(1, len(ids)), alpha)
        return {ids[number]: score for number, score in ranked}

    def get(self, id: str) -> Entry | None:  # noqa: A002 - the field is called id
        """Return the entry with this id, or None."""
        with self._reading():
            row = rows.stored(self._connection, [clean(id)]).get(clean(id))
        return row.entry if row else None

    def count(self) -> int:
        """Return the number of entries."""
        with self._reading():
            return int(self._connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries in the order in which they were added."""
        return (row.entry for page, _ in self._pages(vectors=False) for row in page)

    def with_vectors(self) -> Iterator[tuple[Entry, bytes]]:
        """Yield all entries with their vectors, empty for none, in the order in which they were added."""
        pages = self._pages(vectors=True)
        return (
            (row.entry, vectors.get(row.number, b"")) for page, vectors in pages for row in page
        )

    def close(self) -> None:
        """Close the file and free the vectors; closing again does nothing. An index that is dropped closes itself."""
        with self._lock:
            self._close()
            self._vectors = Vectors()

    def _pages(self, *, vectors: bool) -> Iterator[tuple[list[Row], dict[int, bytes]]]:
        last = 0
        while True:
            with self._reading():
                page = rows.after(self._connection, last, _PAGE)
                found = rows.vectors_of(self._connection, page) if vectors else {}
                if found:
                    check_vectors(found, int(recorded(self._connection).get("dimensions", 0)))
            if not page:
                return
            last = page[-1].number
            yield page, found

    def _hits(self, query: str, vector: Matrix | None, k: int, alpha: float) -> list[Hit]:
        """Search within a transaction, which several searches may share."""
        with plain_failures(self.path):
            ranked = self._ranked(query, vector, k, alpha)
            entries = rows.by_number(self._connection, [number for number, _ in ranked])
            if len(entries) < len(ranked):
                raise Damage("it finds words or vectors of rows that there are not")
        return [Hit(entries[number], score) for number, score in ranked]

    def _ranked(
        self, query: str, vector: Matrix | None, k: int, alpha: float
    ) -> list[tuple[int, float]]:
        similarities = None
        if vector is not None:
            if self._vectors.dimensions != len(vector):
                check_dimensions(self._connection, self.path, len(vector))
            similarities = self._vectors.cosines(self._connection, vector)
        expression = rows.match_expression(query) if alpha < 1 or not self._embedder else ""
        return best(similarities, rows.word_ranks(self._connection, expression), alpha, k)

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction, during which no other process writes."""
        if self.read_only:
            raise unwritable(self.path)
        with self._lock, plain_failures(self.path), transaction(self._connection, "IMMEDIATE"):
            yield

    def _embed_ahead(self, entries: Mapping[str, Entry], vectors: dict[str, bytes | None]) -> None:
        """Add to `vectors` those of new texts, before a transaction keeps others from writing."""
        with self._reading():
            stored = rows.stored(self._connection, entries)
        vectors |= self._embed(
            [text for text in rows.new_texts(entries.values(), stored) if text not in vectors]
        )

    def _embed(self, texts: Sequence[str]) -> dict[str, bytes | None]:
        if self._embedder:
            return embedded(self._embedder, texts)
        if texts and self._embeddings != "none":
            raise MemoryFailure(
                f"{self.path} was made with embeddings {self._embeddings!r}: open it with them to add"
            )
        return dict.fromkeys(texts, b"")

    def _write(
        self,
        entries: Mapping[str, Entry],
        vectors: dict[str, bytes | None],
        merge: Merge | None = None,
    ) -> Changes:
        """Store entries within a transaction; another process may have changed rows since they were embedded."""
        stored = rows.stored(self._connection, entries)
        changed = [
            one for one in entries.values() if one.id not in stored or stored[one.id].entry != one
        ]
        if merge:
            whole = (
                merge(stored[one.id].entry, one) if one.id in stored else one for one in changed
            )
            changed = [one for one in whole if one.id not in stored or stored[one.id].entry != one]
        vectors |= self._embed(
            [text for text in rows.new_texts(changed, stored) if text not in vectors]
        )
        dimensions = next((len(vector) // 4 for vector in vectors.values() if vector), 0)
        if dimensions:
            self._connection.execute(
                "INSERT OR IGNORE INTO meta VALUES ('dimensions', ?)", (str(dimensions),)
            )
            check_dimensions(self._connection, self.path, dimensions)
        usable = {text: vector for text, vector in vectors.items() if vector is not None}
        refused = {one.id for one in changed if vectors.get(one.text, b"") is None}
        taken = [one for one in changed if one.id not in refused]
        added = [one for one in taken if one.id not in stored]
        updated = [(stored[one.id], one) for one in taken if one.id in stored]
        if added:
            rows.insert(self._connection, added, usable)
        if updated:
            rows.replace(self._connection, updated, usable)
        reason = f"the embedding model {self._embeddings} gave a vector that is not finite"
        return Changes(
            len(added), len(entries) - len(changed), len(updated), dict.fromkeys(refused, reason)
        )

    def _remove(self, ids: Iterable[str]) -> int:
        """Delete entries within a transaction; return how many there were."""
        found = rows.stored(self._connection, ids).values()
        if found:
            rows.remove(self._connection, found)
        return len(found)


@dataclass(frozen=True)
class Complete:
    """All that a group holds now, and the mark that says as of when."""

    mark: str
    ids: Collection[str]


def in_group(group: str, name: str) -> str:
    """Return the id of an entry of a group."""
    return f"{group}:{name}"


class GroupedIndex(LocalIndex):
    """A LocalIndex whose entries belong to groups, such as the passages of a file; an id is made by `in_group`.

    A group has a mark once it is complete. The mark is empty if the process was killed while it was filled; filling
    it again does not embed again what is stored.

    Args:
        path: the file, made when missing; ":memory:" for none.
        embedder: as in LocalIndex.

    Raises:
        MemoryFailure: the file cannot be opened, or was made with another embedder.
    """

    def __init__(self, path: str | Path, embedder: Embedder | None = None) -> None:
        super().__init__(path, embedder)
        if self.read_only:
            return
        try:
            with self._writing():
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID"
                )
        except BaseException:
            self.close()
            raise

    def marks(self) -> dict[str, str]:
        """Return the mark of each group, empty if the group is not complete."""
        with self._reading():
            return dict(self._connection.execute("SELECT name, mark FROM groups"))

    def mark(self, marks: Mapping[str, str]) -> None:
        """Give complete groups other marks."""
        with self._writing():
            self._mark(marks)

    def fill(self, entries: Sequence[Entry], complete: Mapping[str, Complete]) -> Changes:
        """Store entries like `put`, and delete what else the groups in `complete` held; all or nothing.

        Raises:
            MemoryFailure: the file cannot be written, or the embedder failed; nothing was stored.
        """
        unique, _ = rows.unique(entries)
        vectors: dict[str, bytes | None] = {}
        self._embed_ahead(unique, vectors)
        with self._writing():
            known = self._connection.execute(
                "SELECT name FROM groups WHERE name IN (SELECT value FROM json_each(?))",
                (json.dumps(list(complete)),),
            )
            begun = [name for (name,) in known]
            self._mark({entry.id.partition(":")[0]: "" for entry in entries})
            changes = self._write(unique, vectors)
            self._remove(
                stale for name in begun for stale in self._ids(name).difference(complete[name].ids)
            )
            self._mark({name: group.mark for name, group in complete.items()})
        return changes

    def forget(self, groups: Iterable[str]) -> None:
        """Delete groups with all their entries."""
        names = list(groups)
        with self._writing():
            self._remove(member for name in names for member in self._ids(name))
            self._connection.executemany(
                "DELETE FROM groups WHERE name = ?", ((name,) for name in names)
            )

    def _ids(self, group: str) -> set[str]:
        # ";" is the character after ":".
        found = self._connection.execute(
            "SELECT id FROM entries WHERE id > ? AND id < ?", (f"{group}:", f"{group};")
        )
        return {name for (name,) in found}

    def _mark(self, marks: Mapping[str, str]) -> None:
        self._connection.executemany("INSERT OR REPLACE INTO groups VALUES (?, ?)", marks.items())


def _checked(query: str, k: int, alpha: float) -> str:
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    if not 0 <= alpha <= 1:
        raise BadInput(f"alpha must be between 0 (words alone) and 1 (vectors alone), not {alpha}")
    return clean(query)


@contextmanager
def _view(
    lock: AbstractContextManager[object], path: str, connection: sqlite3.Connection
) -> Generator[None]:
    """One consistent view of a file for the statements of the block.

    It holds no reference to the index, so that an index that nobody uses is freed, and its file closed, at once.
    """
    with lock, plain_failures(path), transaction(connection):
        yield
