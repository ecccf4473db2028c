"""LocalIndex: texts, payloads and vectors in one SQLite file, searched by words and vectors."""

import asyncio
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.files import named_path
from stepcraft.index import _rows as rows
from stepcraft.index._file import (
    agree,
    connect,
    plain_failures,
    settings_in,
    transaction,
    unwritable,
)
from stepcraft.index._rows import Changes, Entry, Row
from stepcraft.index._vectors import (
    Embedder,
    Hit,
    Matrix,
    Vectors,
    aquery_vector,
    best,
    embedded,
    query_vector,
    vectors_of,
)
from stepcraft.index._words import WordRanking
from stepcraft.text.clean import clean

Merge = Callable[[Entry, Entry], Entry]
"""Makes what is stored of the stored entry and of a new one with its id."""

_PAGE = 1000


class LocalIndex:
    """Texts with payloads and vectors in one SQLite file, for several threads and processes at once.

    What `put` and `delete` have returned from survives the death of the process. The vectors are
    held in memory, once for all indexes of a file in this process.

    Args:
        path: The file, made when missing; ":memory:" for none.
        embedder: The embedding model; None to search by words alone. Its name is recorded in the
            file, and a file that was made with another one is refused.
        settings: Further values to record when the file is made; a file with others is refused.
        create: Whether a missing file is made.

    Raises:
        BadInput: There is no such file or folder.
        MemoryFailure: The file cannot be opened, or was made with another embedder or settings.
    """

    def __init__(
        self,
        path: str | Path,
        embedder: Embedder | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        create: bool = True,
    ) -> None:
        self.path = str(named_path(path))
        self._embedder = embedder
        self._connection, self.read_only = connect(self.path, create=create)
        # An index that nobody uses any more closes its file at once.
        self._close = weakref.finalize(self, self._connection.close)
        self._vectors = vectors_of(self.path)
        self._words = WordRanking()
        try:
            recorded = self.made_with.get("embeddings", "none")
            # A file with vectors may be opened to search by words.
            self._embeddings = embedder.name if embedder else recorded
            wanted = {**(settings or {}), "embeddings": self._embeddings}
            agree(self._connection, self.path, wanted, read_only=self.read_only)
        except BaseException:
            self.close()
            raise

    @property
    def made_with(self) -> dict[str, str]:
        """The settings, the name of the embeddings, and the dimensions once there is a vector."""
        with self._reading():
            return settings_in(self._connection)

    def put(self, entries: Iterable[Entry], *, merge: Merge | None = None) -> Changes:
        """Store entries, all or none; an entry with the id of another replaces it in place.

        A text that is already stored under its id is not embedded again. An entry whose vector is
        not finite is refused and the others are stored; one whose vector is zero is found by its
        words alone.

        Args:
            entries: What to store.
            merge: Makes what is stored of the stored entry and of a new one with its id; None
                stores the new one.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was stored.
        """
        with self._putting(entries, merge) as changes:
            return changes

    def update(self, id: str, change: Callable[[Entry], Entry]) -> Entry | None:  # noqa: A002 - the field is called id
        """Read an entry, change it and write it, and return it; None if there is none.

        Args:
            id: The id of the entry.
            change: Makes the new entry, with the same id. It is called again where somebody else
                wrote the entry meanwhile, so that no change is lost.

        Raises:
            MemoryFailure: The file cannot be written, or the embedder failed; nothing was changed.
        """
        name = clean(id)

        def changed(stored: Mapping[str, Row]) -> list[Entry]:
            return [change(row[1]) for row in stored.values()]

        with self._writing_planned([name], changed) as (entries, changes):
            for reason in changes.failed.values():
                raise MemoryFailure(f"{name} was not changed: {reason}")
        return entries[0] if entries else None

    def delete(self, ids: Iterable[str]) -> int:
        """Delete entries; return how many of the ids were there."""
        with self._writing():
            return self._remove(map(clean, ids))

    def search(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """Return the k entries that fit best by alpha · cosine + (1 - alpha) · bm25 / best bm25.

        Equal scores are in the order in which the entries were added. Without an embedder, and with
        alpha 0, only entries that share a word with the query are found. Cosines are exact; in a
        large index the words of an entry count if a rare word of the query is among them.

        Raises:
            BadInput: k is below 1 or alpha not between 0 and 1.
            MemoryFailure: The file cannot be read, or the embedder failed.
        """
        query = _checked(query, k, alpha)
        vector = query_vector(self._embedder, query) if alpha and self._embedder else None
        return self._hits(query, vector, k, alpha)

    async def asearch(self, query: str, k: int, *, alpha: float) -> list[Hit]:
        """Like `search`, without blocking the event loop."""
        query = _checked(query, k, alpha)
        vector = await aquery_vector(self._embedder, query) if alpha and self._embedder else None
        return await asyncio.to_thread(self._hits, query, vector, k, alpha)

    def get(self, id: str) -> Entry | None:  # noqa: A002 - the field is called id
        """Return the entry with this id, or None."""
        with self._reading():
            row = rows.stored(self._connection, [clean(id)]).get(clean(id))
        return row[1] if row else None

    def count(self) -> int:
        """Return the number of entries."""
        with self._reading():
            return int(self._connection.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries in the order in which they were added."""
        last = 0
        while True:
            with self._reading():
                page = rows.page_after(self._connection, last, _PAGE)
            if not page:
                return
            yield from (entry for _, entry in page)
            last = page[-1][0]

    def close(self) -> None:
        """Close the file and let go of the vectors; closing again does nothing."""
        with self._vectors.lock:
            self._close()
            self._vectors = Vectors()

    def _hits(self, query: str, vector: Matrix | None, k: int, alpha: float) -> list[Hit]:
        with self._reading():
            similarities = None
            if vector is not None:
                self._check_dimensions(len(vector))
                similarities = self._vectors.cosines(self._connection, vector)
            words = query if alpha < 1 or not self._embedder else ""
            ranks = self._words.ranks(self._connection, words)
            ranked = best(similarities, ranks, alpha, k)
            entries = rows.entries_of(self._connection, [number for number, _ in ranked])
        return [Hit(entries[number], score) for number, score in ranked]

    @contextmanager
    def _reading(self, kind: str = "DEFERRED") -> Generator[None]:
        """One transaction, with one consistent view of the file."""
        with self._vectors.lock, plain_failures(self.path), transaction(self._connection, kind):
            yield

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction, during which no other process writes."""
        if self.read_only:
            raise unwritable(self.path)
        with self._reading("IMMEDIATE"):
            yield

    @contextmanager
    def _putting(self, entries: Iterable[Entry], merge: Merge | None = None) -> Generator[Changes]:
        """Store entries in a transaction in which the block runs."""
        merge = merge or _newer
        unique: dict[str, Entry] = {}
        repeats = Changes()
        for entry in entries:
            new = Entry(clean(entry.id), clean(entry.text), entry.payload)
            if before := unique.get(new.id):
                repeats.present += new == before
                repeats.updated += new != before
                new = merge(before, new)
            unique[new.id] = new

        def plan(stored: Mapping[str, Row]) -> list[Entry]:
            return [
                merge(stored[name][1], entry) if name in stored else entry
                for name, entry in unique.items()
            ]

        with self._writing_planned(unique, plan) as (_, changes):
            changes.present += repeats.present
            changes.updated += repeats.updated
            yield changes

    @contextmanager
    def _writing_planned(
        self, ids: Collection[str], plan: Callable[[Mapping[str, Row]], Collection[Entry]]
    ) -> Generator[tuple[list[Entry], Changes]]:
        """Write what `plan` makes of the stored rows, in a transaction in which the block runs.

        The texts are embedded before it, so that nobody waits for a model. Where somebody else
        wrote these rows meanwhile, all is done again.
        """
        vectors: dict[str, bytes | None] = {}
        while True:
            with self._reading():
                stored = rows.stored(self._connection, ids)
            entries = list(plan(stored))
            changed = [
                entry for entry in entries if entry.id not in stored or stored[entry.id][1] != entry
            ]
            vectors |= self._embed(
                [
                    entry.text
                    for entry in changed
                    if entry.text not in vectors
                    and (entry.id not in stored or stored[entry.id][1].text != entry.text)
                ]
            )
            with self._writing():
                if rows.stored(self._connection, ids) == stored:
                    changes = self._write(stored, changed, vectors)
                    changes.present = len(entries) - len(changed)
                    yield entries, changes
                    return

    def _embed(self, texts: Sequence[str]) -> dict[str, bytes | None]:
        if self._embedder:
            return embedded(self._embedder, texts)
        if texts and self._embeddings != "none":
            raise MemoryFailure(
                f"{self.path} was made with embeddings {self._embeddings!r}: "
                "open it with them to add"
            )
        return {}

    def _write(
        self,
        stored: Mapping[str, Row],
        changed: Collection[Entry],
        vectors: Mapping[str, bytes | None],
    ) -> Changes:
        """Store entries within a transaction, and leave out those whose vector is None."""
        usable = {text: vector for text, vector in vectors.items() if vector is not None}
        if usable:
            dimensions = len(next(iter(usable.values()))) // 4
            self._connection.execute(
                "INSERT OR IGNORE INTO meta VALUES ('dimensions', ?)", (str(dimensions),)
            )
            self._check_dimensions(dimensions)
        refused = [entry.id for entry in changed if vectors.get(entry.text, b"") is None]
        taken = [entry for entry in changed if entry.id not in refused]
        added = [entry for entry in taken if entry.id not in stored]
        updated = [(stored[entry.id], entry) for entry in taken if entry.id in stored]
        rows.insert(self._connection, added, usable)
        rows.replace(self._connection, updated, usable)
        reason = f"the embedding model {self._embeddings} gave a vector that is not finite"
        return Changes(
            added=len(added), updated=len(updated), failed=dict.fromkeys(refused, reason)
        )

    def _remove(self, ids: Iterable[str]) -> int:
        """Delete entries within a transaction; return how many there were."""
        stored = rows.stored(self._connection, ids).values()
        rows.remove(self._connection, stored)
        return len(stored)

    def _check_dimensions(self, dimensions: int) -> None:
        recorded = settings_in(self._connection).get("dimensions", str(dimensions))
        if recorded != str(dimensions):
            raise MemoryFailure(
                f"{self.path} holds vectors of {recorded} dimensions, and the embedding model "
                f"gives {dimensions}: open it with the model that it was made with, or fill a new "
                "file"
            )


def _newer(_: Entry, new: Entry) -> Entry:
    return new


def _checked(query: str, k: int, alpha: float) -> str:
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    if not 0 <= alpha <= 1:
        raise BadInput(f"alpha must be between 0 (words alone) and 1 (vectors alone), not {alpha}")
    return clean(query)
