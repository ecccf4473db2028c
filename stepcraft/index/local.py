"""LocalIndex: texts, payloads and vectors in one SQLite file, searched by words and vectors together."""

import sqlite3
import threading
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepcraft.concurrency import SerialExecutor
from stepcraft.errors import MemoryFailure, ReadOnlyMemory
from stepcraft.index import _rows as rows
from stepcraft.index._file import agree, check_dimensions, connect, plain_failures, recorded, transaction
from stepcraft.index._rank import Hit, checked, fused
from stepcraft.index._rows import Changes, Entry, Row
from stepcraft.index._vectors import Embedder, Matrix, Vectors, aquery_vector, embedded, query_vector
from stepcraft.index._words import match_expression
from stepcraft.text.clean import clean

_PAGE = 1000


class LocalIndex:
    """Texts with payloads and vectors in one SQLite file; several threads and processes may use it at once.

    What `put` and `delete` have returned from survives the death of the process. The vectors are held in one
    matrix, which takes in what other processes wrote before each search.

    Args:
        path: the file, made when missing; ":memory:" for none.
        embedder: what makes the vectors; None for words alone. The name is recorded: another one is refused.
        settings: further values to record when the file is made, and to refuse the file for if they differ.
        create: whether a missing file is made.

    Raises:
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
        try:
            self._open_as(dict(settings or {}))
        except BaseException:
            self.close()
            raise

    @property
    def made_with(self) -> dict[str, str]:
        """The settings, the name of the embeddings, and the dimensions once there is a vector."""
        with self._reading():
            return recorded(self._connection)

    def put(self, entries: Sequence[Entry], vectors: Mapping[str, bytes] | None = None) -> Changes:
        """Keep entries, all or none, in one transaction; the same id replaces in place.

        `vectors` are unit vectors that are known, by text, empty where a text has none. Of the other texts only
        those that are not kept already are embedded, each once. An entry whose vector is not finite is
        refused and the others go in; one with a vector of zeros is found by its words alone.

        Raises:
            MemoryFailure: the file cannot be written, or the embedder failed; nothing was kept.
        """
        unique, repeats = rows.unique(entries)
        with self._reading():
            kept = rows.kept(self._connection, unique)
        known: dict[str, bytes | None] = dict(vectors or {})
        known |= self._embedded([text for text in rows.reworded(unique.values(), kept) if text not in known])
        with self._writing():
            changes = self._write(unique, known)
        changes.present += repeats.present
        changes.updated += repeats.updated
        return changes

    def delete(self, ids: Iterable[str]) -> int:
        """Forget entries; how many of the ids there were."""
        with self._writing():
            kept = rows.kept(self._connection, map(clean, ids)).values()
            if kept:
                rows.remove(self._connection, kept)
            return len(kept)

    def search(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """The k entries that fit best by alpha · cosine + (1 - alpha) · bm25 / best bm25, best first.

        The ranking is exact; equal scores stand in the order in which their entries were added. Without
        vectors, and with alpha 0, only entries that share a word with the query are found.

        Raises:
            BadInput: k is below 1 or alpha not between 0 and 1.
        """
        query = checked(query, k, alpha)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._reading():
            return self._ranked(query, vector, k, alpha)

    async def asearch(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """As `search`, without blocking the event loop."""
        query = checked(query, k, alpha)
        vector = await aquery_vector(self._embedder, query) if alpha and self._embedder else None
        return await self._line.submit(lambda: self._ranked(query, vector, k, alpha))

    def scores(self, query: str, *, alpha: float) -> dict[str, float]:
        """How well each entry fits, by its id, as `search` scores it; what `search` does not find is left out.

        Raises:
            BadInput: alpha is not between 0 and 1.
        """
        query = checked(query, 1, alpha)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._reading():
            ids = rows.ids(self._connection)
            ranked = self._fused(query, vector, max(1, len(ids)), alpha)
        return {ids[number]: score for number, score in ranked}

    def _ranked(self, query: str, vector: Matrix | None, k: int, alpha: float) -> list[Hit]:
        """Called in a transaction, of which several searches may share one."""
        with plain_failures(self.path):
            ranked = self._fused(query, vector, k, alpha)
            entries = rows.by_number(self._connection, [number for number, _ in ranked])
        return [Hit(entries[number], score) for number, score in ranked]

    def _fused(self, query: str, vector: Matrix | None, k: int, alpha: float) -> list[tuple[int, float]]:
        expression = match_expression(query) if alpha < 1 or not self._embedder else ""
        cosines = None if vector is None else self._cosines(vector)
        return fused(cosines, rows.matches(self._connection, expression), alpha, k)

    def get(self, id: str) -> Entry | None:  # noqa: A002 - the field is called id
        """The entry with this id, or None."""
        with self._reading():
            row = rows.kept(self._connection, [clean(id)]).get(clean(id))
        return row.entry if row else None

    def count(self) -> int:
        """How many entries there are."""
        with self._reading():
            return int(self._connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __iter__(self) -> Iterator[Entry]:
        """All entries in the order in which they were added."""
        return (row.entry for page, _ in self._pages(vectors=False) for row in page)

    def with_vectors(self) -> Iterator[tuple[Entry, bytes]]:
        """All entries with their vectors, empty where there is none, in the order in which they were added."""
        return (
            (row.entry, found.get(row.number, b""))
            for page, found in self._pages(vectors=True)
            for row in page
        )

    def close(self) -> None:
        """Close the file; it may be called twice."""
        with self._lock:
            self._close()

    def _pages(self, *, vectors: bool) -> Iterator[tuple[list[Row], dict[int, bytes]]]:
        last = 0
        while True:
            with self._reading():
                page = rows.after(self._connection, last, _PAGE)
                found = rows.vectors_of(self._connection, page) if vectors else {}
            if not page:
                return
            last = page[-1].number
            yield page, found

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction, to which no other process writes meanwhile."""
        if self.read_only:
            raise ReadOnlyMemory(
                f"{self.path} cannot be written; check the permissions of the file and its folder"
            )
        with self._lock, plain_failures(self.path), transaction(self._connection, "IMMEDIATE"):
            yield

    def _open_as(self, settings: dict[str, str]) -> None:
        """Agree on the settings; a file with vectors may be opened without embedder, to search by words."""
        if self._embedder:
            settings["embeddings"] = self._embedder.name
        else:
            with plain_failures(self.path):
                settings.setdefault("embeddings", recorded(self._connection).get("embeddings", "none"))
        agree(self._connection, self.path, settings, read_only=self.read_only)
        self._embeddings = settings["embeddings"]

    def _embedded(self, texts: Sequence[str]) -> dict[str, bytes | None]:
        if self._embedder:
            return embedded(self._embedder, texts)
        if texts and self._embeddings != "none":
            raise MemoryFailure(
                f"{self.path} was made with embeddings {self._embeddings!r}: open it with them to add"
            )
        return dict.fromkeys(texts, b"")

    def _cosines(self, vector: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        if self._vectors.dimensions != len(vector):
            check_dimensions(self._connection, self.path, len(vector))
        return self._vectors.cosines(self._connection, vector)

    def _write(self, entries: Mapping[str, Entry], vectors: dict[str, bytes | None]) -> Changes:
        """Called in a transaction: what was there before may have been changed by another process since."""
        kept = rows.kept(self._connection, entries)
        changed = [
            entry for entry in entries.values() if entry.id not in kept or kept[entry.id].entry != entry
        ]
        vectors |= self._embedded([text for text in rows.reworded(changed, kept) if text not in vectors])
        self._same_dimensions(vectors.values())
        refused = {entry.id for entry in changed if vectors.get(entry.text, b"") is None}
        usable = {text: vector for text, vector in vectors.items() if vector is not None}
        added = [entry for entry in changed if entry.id not in kept and entry.id not in refused]
        updated = [
            (kept[entry.id], entry) for entry in changed if entry.id in kept and entry.id not in refused
        ]
        if added:
            rows.insert(self._connection, added, usable)
        if updated:
            rows.replace(self._connection, updated, usable)
        reason = f"the embedding model {self._embeddings} gave a vector that is not finite"
        return Changes(len(added), len(entries) - len(changed), len(updated), dict.fromkeys(refused, reason))

    def _same_dimensions(self, vectors: Iterable[bytes | None]) -> None:
        dimensions = next((len(vector) // 4 for vector in vectors if vector), 0)
        if dimensions:
            self._connection.execute(
                "INSERT OR IGNORE INTO meta VALUES ('dimensions', ?)", (str(dimensions),)
            )
            check_dimensions(self._connection, self.path, dimensions)


@contextmanager
def _view(lock: AbstractContextManager[object], path: str, connection: sqlite3.Connection) -> Generator[None]:
    """One consistent view of a file for the statements of the block.

    It does not hold the index, which otherwise would not go at once when nobody uses it any more.
    """
    with lock, plain_failures(path), transaction(connection):
        yield
