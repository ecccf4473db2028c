"""Embedding models, an index's vectors in memory, and ranking by vectors."""

import math
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from stepcraft.index._file import MEMORY, Entry
from stepcraft.index._refusals import BrokenModel, refusals

Matrix = NDArray[np.float32]

_BLOCK = 8192
_READ = 256
"""The number of rows read at once; larger reads would fragment the process's memory."""

_TIE = 1e-6
"""Scores that differ by less than this count as equal; summing in a different order changes a score
by a tenth of this.
"""


class Embedder(Protocol):
    """An embedding model."""

    name: str
    """The name of the model as recorded in files; it never contains a secret."""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one vector per text, of shape (texts, dimensions)."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, of shape (dimensions,)."""
        ...


class Hit(NamedTuple):
    """An entry and how well it fits the query: higher is better, and 1 is the best."""

    entry: Entry
    score: float


class Embedded(NamedTuple):
    """The embedding vectors of some texts."""

    vectors: dict[str, bytes]
    """The unit vector of each text that has one, as 32-bit floats."""
    refused: dict[str, str]
    """The reason why each of the other texts has no vector."""


def embedded(embedder: Embedder, texts: Sequence[str], stored: int = 0) -> Embedded:
    """Return the unit vectors of texts.

    A text has no vector if the model refuses it, or returns one that is zero, not finite, or of a
    different length from the others.

    Args:
        embedder: The model.
        texts: The texts.
        stored: The size in bytes of a vector already stored, or 0 if there is none.

    Raises:
        MemoryFailure: The embedder failed for all texts, or did not return one vector per text.
    """
    vectors: dict[str, bytes] = {}

    def embed(some: Sequence[str]) -> None:
        vectors.update(zip(some, map(bytes, unit_vectors(embedder, some)), strict=True))

    probe = partial(embedder.embed_documents, ["a text"])
    refused = {text: str(why) for text, why in refusals(list(dict.fromkeys(texts)), embed, probe)}
    sizes = Counter(map(len, vectors.values()))
    usual = stored if stored in sizes else max(sizes, key=sizes.__getitem__, default=0)
    for text, vector in vectors.items():
        if len(vector) != usual or not any(vector):
            wrong = f"of {len(vector) // 4} numbers" if any(vector) else "that is zero or no number"
            refused[text] = f"the embedding model {embedder.name} gave a vector {wrong}"
    usable = {text: vector for text, vector in vectors.items() if text not in refused}
    return Embedded(usable, refused)


def unit_vectors(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return unit vectors of shape (texts, dimensions), with zeros for those that are not finite.

    Raises:
        MemoryFailure: The embedder failed, or did not return one vector per text.
    """
    vectors = embedder.embed_documents(texts)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size:
        raise BrokenModel(
            f"the embedding model {embedder.name} gave vectors of shape {vectors.shape} for "
            f"{len(texts)} texts; use another model"
        )
    return _units(vectors)


def query_vector(embedder: Embedder, query: str) -> Matrix | None:
    """Return the unit vector of a query, or None if it is zero or not finite."""
    [vector] = _units(embedder.embed_query(query)[np.newaxis])
    return vector if vector.any() else None


def _units(vectors: Matrix) -> Matrix:
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        return np.asarray(np.nan_to_num(vectors / lengths), np.float32)


class Vectors:
    """The vectors of one file, shared by all its indexes in this process.

    They are kept in blocks of equal size, so that nothing is copied when the file grows; a row is
    found by its position. A thread must hold `lock` from the beginning of a transaction to the end
    of the search, so that it never reads rows older than the vectors held here.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()
        with _sharing:
            _all.add(self)

    def clear(self) -> None:
        """Free the vectors; the next search reads them again."""
        self._numbers = np.empty(0, np.int64)
        self._blocks: list[Matrix] = []
        self._gone = 0
        """The approximate number of deleted rows, whose vectors are NaN."""
        self._changes = 0
        """The last number read from the log of changed rows."""

    def cosines(
        self, connection: sqlite3.Connection, vector: Matrix
    ) -> tuple[NDArray[np.int64], Matrix]:
        """Return each row's number and its cosine with a unit vector, or -inf for deleted rows.

        Anything written since the last call is read first.
        """
        self._update(connection)
        rows = len(self._numbers)
        starts = zip(range(0, rows, _BLOCK), self._blocks, strict=True)
        parts = [block[: rows - start] @ vector for start, block in starts]
        cosines = np.concatenate([vector[:0], *parts])
        return self._numbers, np.nan_to_num(cosines, copy=False, nan=-np.inf)

    def _update(self, connection: sqlite3.Connection) -> None:
        """Read the rows written since the last call, or all rows if too much has changed."""
        first, last = connection.execute(
            "SELECT coalesce(min(number), 0), coalesce(max(number), 0) FROM changed"
        ).fetchone()
        if first > self._changes + 1 or 2 * self._gone > len(self._numbers):
            self.clear()
        if not self._blocks:
            self._changes = last
        self._read_new(connection)
        for number, vector in connection.execute(
            "SELECT DISTINCT seq, vector FROM changed LEFT JOIN vectors USING (seq)"
            " WHERE number > ?",
            (self._changes,),
        ):
            place = int(np.searchsorted(self._numbers, number))
            # A row that is not here was written and deleted since the last call.
            if number in self._numbers[place : place + 1]:
                row = np.frombuffer(vector, np.float32) if vector else np.nan
                self._blocks[place // _BLOCK][place % _BLOCK] = row
                self._gone += vector is None
        self._changes = last

    def _read_new(self, connection: sqlite3.Connection) -> None:
        numbers, place = [self._numbers], len(self._numbers)
        cursor = connection.execute(
            "SELECT seq, vector FROM vectors WHERE seq > ? ORDER BY seq",
            (int(self._numbers.max(initial=0)),),
        )
        while rows := cursor.fetchmany(min(_READ, _BLOCK - place % _BLOCK)):
            added, vectors = zip(*rows, strict=True)
            if place % _BLOCK == 0:
                self._blocks.append(np.empty((_BLOCK, len(vectors[0]) // 4), np.float32))
            block = np.frombuffer(b"".join(vectors), np.float32).reshape(len(rows), -1)
            self._blocks[-1][place % _BLOCK :][: len(rows)] = block
            numbers.append(np.array(added))
            place += len(rows)
        self._numbers = np.concatenate(numbers)


_files: WeakValueDictionary[tuple[int, int], Vectors] = WeakValueDictionary()
_all: WeakSet[Vectors] = WeakSet()
_sharing = threading.RLock()


class _Fork:
    """Prevents forks during a search, since the child would inherit locks that nobody releases."""

    def __init__(self) -> None:
        self.generation = 0
        """The number of forks between this process and the first one."""
        self._forking = threading.Lock()
        self._held: list[Vectors] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._hold, after_in_parent=self._release, after_in_child=self._begin
            )

    def _hold(self) -> None:
        # After a lock on forking, in the order in which others acquire them: the locks of vectors,
        # then the global one.
        while True:
            self._forking.acquire()
            with _sharing:
                self._held = [*_all]
            for vectors in self._held:
                vectors.lock.acquire()
            _sharing.acquire()
            if {*_all} <= {*self._held}:
                return
            self._release()

    def _release(self) -> None:
        _sharing.release()
        for vectors in self._held:
            vectors.lock.release()
        self._held = []
        self._forking.release()

    def _begin(self) -> None:
        self.generation += 1
        self._release()


fork = _Fork()


def vectors_of(path: str) -> Vectors:
    """Return the vectors of the file at a path, as one object for all callers."""
    if path == MEMORY:
        return Vectors()
    status = Path(path).stat()
    with _sharing:
        return _files.setdefault((status.st_dev, status.st_ino), Vectors())


def best(
    numbers: NDArray[np.int64], scores: NDArray[np.float64], k: int
) -> list[tuple[int, float]]:
    """Return the numbers and scores of the k best rows, with ties in numerical order."""
    if len(scores) > k:
        least = np.partition(scores, -k)[-k]
        near = np.flatnonzero(scores >= least - _TIE)
        numbers, scores = numbers[near], scores[near]
    ranked = np.lexsort((numbers, -np.round(scores / _TIE)))[:k]
    return [(int(numbers[row]), float(scores[row])) for row in ranked if scores[row] > -math.inf]
