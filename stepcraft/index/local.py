"""LocalIndex: texts, payloads and vectors in one SQLite file, searched by words and vectors."""

import itertools
import json
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from stepcraft.errors import AddReport, BadInput, MemoryFailure
from stepcraft.files import named_path
from stepcraft.index._file import connect, is_read_only, plain_failures
from stepcraft.index._rows import Entry, entries_where
from stepcraft.index._vectors import (
    Embedder,
    Hit,
    Vectors,
    best,
    embedded,
    query_vector,
    vectors_of,
)
from stepcraft.index._words import WordRanking, spaced
from stepcraft.text.clean import clean

Merge = Callable[[Entry, Entry], Entry]
"""Makes what is stored of the stored entry and of a new one with its id."""

MOST_RESULTS = 10_000
"""Limit on the results of a search, which is that of Weaviate."""

_PAGE = 1000
_AMONG = "IN (SELECT value FROM json_each(?))"


class LocalIndex:
    """Texts with payloads and vectors in one SQLite file, for threads and processes at once.

    What `put` and `delete` have returned from survives the death of the process. The vectors are
    held in memory, once for all indexes of a file in this process.

    Args:
        path: The file, made when missing; ":memory:" for none.
        embedder: The embedding model; None to search by words alone. Its name is recorded in the
            file, and a file that was made with another one is refused.
        create: Whether a missing file is made.

    Raises:
        BadInput: There is no such file or folder.
        MemoryFailure: The file cannot be opened, or was made with another embedder.
    """

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
        name = embedder.name if embedder else "none"
        self._connection, self._embeddings = connect(self.path, name, create=create)
        # An index that nobody uses any more closes its file at once.
        self._close = weakref.finalize(self, self._connection.close)
        self._vectors = vectors_of(self.path)
        self._words = WordRanking()
        # A file with vectors may be opened to search by words.
        if embedder and self._embeddings != name:
            self.close()
            raise MemoryFailure(
                f"{self.path} was made with embeddings {self._embeddings!r:.200}, not "
                f"{name!r:.200}: open it with the former, or fill a new file"
            )

    def put(
        self,
        entries: Iterable[Entry],
        *,
        merge: Merge = lambda _, new: new,
        then: Callable[[], None] = lambda: None,
    ) -> AddReport:
        """Store entries, all or none; an entry with the id of another replaces it in place.

        A text that is already stored under its id is not embedded again. An entry whose vector is
        zero or not finite is found by its words alone.

        Args:
            entries: What to store.
            merge: Makes what is stored of the stored entry and of a new one with its id.
            then: Called in the transaction, after all else.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was stored.
        """
        unique: dict[str, Entry] = {}
        repeats = 0
        for entry in entries:
            new = Entry(clean(entry.id), clean(entry.text), entry.payload)
            repeats += new.id in unique
            unique[new.id] = merge(unique[new.id], new) if new.id in unique else new

        def merged(stored: Mapping[str, Entry]) -> list[Entry]:
            return [
                merge(stored[entry.id], entry) if entry.id in stored else entry
                for entry in unique.values()
            ]

        _, report = self._store(unique, merged, then)
        report.present += repeats
        return report

    def update(self, id: str, change: Callable[[Entry | None], Entry]) -> Entry:  # noqa: A002
        """Read an entry, change it and write it, and return it.

        Args:
            id: The id of the entry.
            change: Makes the new entry, with the same id, of the stored one, or of None if there is
                none. It is called again where somebody else wrote the entry meanwhile, so that no
                change is lost.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was changed.
        """
        name = clean(id)
        [entry], _ = self._store([name], lambda stored: [change(stored.get(name))])
        return entry

    def delete(self, ids: Iterable[str]) -> int:
        """Delete entries; return how many of the ids were there."""
        with self._transaction("IMMEDIATE"):
            sql = "DELETE FROM entries WHERE id = ?"
            return self._connection.executemany(sql, ((clean(id_),) for id_ in ids)).rowcount

    def search(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """Return the k entries that fit best by alpha · cosine + (1 - alpha) · bm25 / best bm25.

        Equal scores are in the order in which the entries were added. Without an embedder, and with
        alpha 0, only entries that share a word with the query are found. Cosines are exact; in a
        large index the words of an entry count if a rare word of the query is among them.

        Raises:
            BadInput: k is below 1 or alpha not between 0 and 1.
            MemoryFailure: The file cannot be read, or the embedder failed.
        """
        check_search(k, alpha)
        query = clean(query)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        with self._transaction():
            words = query if alpha < 1 or not self._embedder else ""
            numbers, scores = self._words.scores(self._connection, words)
            if vector is not None:
                self._check_dimensions(vector.nbytes)
                matching, by_words = numbers, (1 - alpha) * scores
                numbers, cosines = self._vectors.cosines(self._connection, vector)
                scores = alpha * cosines.astype(np.float64)
                scores[np.searchsorted(numbers, matching)] += by_words
            ranked = best(numbers, scores, k)
            best_rows = json.dumps([number for number, _ in ranked])
            entries = dict(entries_where(self._connection, f"seq {_AMONG}", best_rows))
            return [Hit(entries[number], score) for number, score in ranked]

    def get(self, id: str) -> Entry | None:  # noqa: A002 - a field
        """Return the entry with this id, or None."""
        with self._transaction():
            return self._stored([clean(id)]).get(clean(id))

    def count(self) -> int:
        """Return the number of entries."""
        with self._transaction():
            return int(self._connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries in the order in which they were added."""
        last = 0
        while True:
            with self._transaction():
                page = entries_where(self._connection, "seq > ? ORDER BY seq LIMIT ?", last, _PAGE)
            if not page:
                return
            yield from (entry for _, entry in page)
            last = page[-1][0]

    def close(self) -> None:
        """Close the file and let go of the vectors; closing again does nothing."""
        with self._vectors.lock:
            self._close()
            self._vectors = Vectors()

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Generator[None]:
        """One consistent view of the file; "IMMEDIATE" to write, while no other process does."""
        with self._vectors.lock, plain_failures(self.path), self._connection:
            self._connection.execute(f"BEGIN {kind}")
            yield

    def _stored(self, ids: Iterable[str]) -> dict[str, Entry]:
        wanted = json.dumps(list(ids))
        entries = entries_where(self._connection, f"id {_AMONG}", wanted)
        return {entry.id: entry for _, entry in entries}

    def _store(
        self,
        ids: Collection[str],
        plan: Callable[[Mapping[str, Entry]], Sequence[Entry]],
        then: Callable[[], None] = lambda: None,
    ) -> tuple[Sequence[Entry], AddReport]:
        """Write what `plan` makes of the stored rows.

        The texts are embedded before the transaction, so that nobody waits for a model. Where
        somebody else wrote these rows meanwhile, all is done again.
        """
        vectors: dict[str, bytes] = {}
        while True:
            with self._transaction():
                stored = self._stored(ids)
            entries = plan(stored)
            changed = [entry for entry in entries if stored.get(entry.id) != entry]
            texts = [
                entry.text
                for entry in changed
                if entry.id not in stored or stored[entry.id].text != entry.text
            ]
            if self._embedder:
                vectors |= embedded(self._embedder, [text for text in texts if text not in vectors])
            elif texts and self._embeddings != "none":
                raise MemoryFailure(
                    f"{self.path} was made with embeddings {self._embeddings!r}: "
                    "open it with them to add"
                )
            with self._transaction("IMMEDIATE"):
                if self._stored(ids) != stored:
                    continue
                for vector in itertools.islice(vectors.values(), 1):
                    self._check_dimensions(len(vector))
                # In place of entries with the same ids, or after all others.
                self._connection.executemany(
                    "INSERT INTO entries (id, text, payload, spaced) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET"
                    " text = excluded.text, payload = excluded.payload, spaced = excluded.spaced",
                    (
                        (entry.id, entry.text, json.dumps(entry.payload), spaced(entry.text))
                        for entry in changed
                    ),
                )
                self._connection.executemany(
                    "INSERT OR REPLACE INTO vectors SELECT seq, ? FROM entries WHERE id = ?",
                    ((vectors[entry.text], entry.id) for entry in changed if entry.text in vectors),
                )
                then()
            updated = sum(entry.id in stored for entry in changed)
            report = AddReport(len(changed) - updated, len(entries) - len(changed), updated)
            return entries, report

    def _check_dimensions(self, size: int) -> None:
        """Refuse vectors of another size in bytes than the stored ones."""
        for (stored,) in self._connection.execute("SELECT length(vector) FROM vectors LIMIT 1"):
            if stored != size:
                raise MemoryFailure(
                    f"{self.path} holds vectors of {stored // 4} dimensions, and the embedding "
                    f"model gives {size // 4}: open it with the model that it was made with, or "
                    "fill a new file"
                )


def check_search(k: int, alpha: float) -> None:
    """Refuse a search without results, or with another weight of vectors than there is.

    Raises:
        BadInput: k is no whole number from 1 to `MOST_RESULTS`, or alpha not between 0 and 1.
    """
    if not (isinstance(k, int) and 1 <= k <= MOST_RESULTS and 0 <= alpha <= 1):
        raise BadInput(
            f"k must be a whole number from 1 to {MOST_RESULTS:,}, and alpha between 0 (words "
            f"alone) and 1 (vectors alone), not {k} and {alpha}"
        )
