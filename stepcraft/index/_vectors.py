"""The vectors of an index, and the ranking by words and vectors together."""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import MemoryFailure
from stepcraft.index._rows import Damage, Entry, state

Matrix = NDArray[np.float32]

_TIE = 1e-6
"""Scores closer than this count as equal: sums in another order differ by about a tenth of it."""


class Embedder(Protocol):
    """An embedding model."""

    @property
    def name(self) -> str:
        """The name of the model, as recorded in files; it never holds a secret."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one vector a text, of shape (texts, dimensions)."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, of shape (dimensions,)."""
        ...

    async def aembed_query(self, text: str) -> Matrix:
        """Like `embed_query`, without blocking the event loop."""
        ...


@dataclass(frozen=True)
class Hit:
    """An entry and how well it fits the query: higher is better, 1 is best."""

    entry: Entry
    score: float


def embedded(embedder: Embedder, texts: Sequence[str]) -> dict[str, bytes | None]:
    """Return the unit vector of each text as bytes: zeros if it has none, None if it is not finite.

    Raises:
        MemoryFailure: the embedder failed, or returned something else than one vector a text.
    """
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    vectors, finite = unit_vectors(embedder, distinct)
    return {
        text: vector.tobytes() if good else None
        for text, vector, good in zip(distinct, vectors, finite, strict=True)
    }


def unit_vectors(embedder: Embedder, texts: Sequence[str]) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return unit vectors of shape (texts, dimensions), zeros for a text without one, and which of them are finite.

    Raises:
        MemoryFailure: the embedder failed, or returned something else than one vector a text.
    """
    vectors = embedder.embed_documents(texts)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size:
        raise MemoryFailure(
            f"the embedding model {embedder.name} gave vectors of shape {vectors.shape} for {len(texts)} texts; "
            "use another model"
        )
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    vectors = np.asarray(vectors, dtype=np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0), finite


def query_vector(embedder: Embedder, query: str) -> Matrix | None:
    """Return the unit vector of a query, or None if it is zero or not finite."""
    return _unit(embedder.embed_query(query))


async def aquery_vector(embedder: Embedder, query: str) -> Matrix | None:
    """Like `query_vector`, without blocking the event loop."""
    return _unit(await embedder.aembed_query(query))


def _unit(vector: Matrix) -> Matrix | None:
    wide = vector.astype(np.float64)
    length = math.sqrt(wide @ wide)
    return (wide / length).astype(np.float32) if 0 < length < math.inf else None


def check_vectors(vectors: Mapping[int, object], dimensions: int) -> None:
    """Raise Damage for what is no finite vector of so many dimensions; the vectors are by the numbers of their rows."""
    for number, vector in vectors.items():
        if not isinstance(vector, bytes) or len(vector) != 4 * dimensions:
            raise Damage(f"the vector of its row {number} has not {dimensions} dimensions")
        if not np.isfinite(np.frombuffer(vector, np.float32)).all():
            raise Damage(f"the vector of its row {number} is not finite")


class Vectors:
    """The vectors of a file in one matrix, in the order of their rows' numbers; it grows by doubling."""

    def __init__(self) -> None:
        self._seen = (-1, -1)
        self._allocate(0, 0)

    @property
    def dimensions(self) -> int:
        """The length of the vectors read so far; 0 before."""
        return int(self._matrix.shape[1])

    def cosines(
        self, connection: sqlite3.Connection, vector: Matrix
    ) -> tuple[NDArray[np.int64], Matrix] | None:
        """Return number and cosine of each row with a vector to a unit vector; None if there are none.

        It is called within a transaction, so that the rows are those that the words are searched in. What was
        written since the last call is read first.
        """
        _, writes, rewrites = state(connection)
        if (writes, rewrites) != self._seen:
            if rewrites != self._seen[1]:
                total, good = connection.execute(
                    "SELECT count(*), total(length(vector) = ?) FROM vectors", (4 * len(vector),)
                ).fetchone()
                if (
                    good != total
                ):  # a file from elsewhere, where many short ones would take memory as long ones
                    raise Damage(f"not all of its vectors have {len(vector)} dimensions")
                self._allocate(total, len(vector))
            self._read_new(connection, len(vector))
            self._seen = (writes, rewrites)
        if not self._count:
            return None
        similarities: Matrix = self._matrix[: self._count] @ vector
        return self._numbers[: self._count], similarities

    def _allocate(self, rows: int, dimensions: int) -> None:
        self._count = 0
        self._numbers = np.empty(rows, np.int64)
        self._matrix = np.empty((rows, dimensions), np.float32)

    def _read_new(self, connection: sqlite3.Connection, dimensions: int) -> None:
        first = self._count
        last = int(self._numbers[first - 1]) if first else 0
        for number, blob in connection.execute(
            "SELECT seq, iif(typeof(vector) = 'blob' AND length(vector) = ?, vector, NULL) FROM vectors"
            " WHERE seq > ? ORDER BY seq",
            (4 * dimensions, last),
        ):
            if blob is None:
                raise Damage(f"the vector of its row {number} has not {dimensions} dimensions")
            if self._count == len(self._matrix):
                numbers, matrix, count = self._numbers, self._matrix, self._count
                self._allocate(max(64, 2 * count), dimensions)
                if count:
                    self._numbers[:count], self._matrix[:count], self._count = (
                        numbers,
                        matrix,
                        count,
                    )
            self._numbers[self._count] = number
            self._matrix[self._count] = np.frombuffer(blob, np.float32)
            self._count += 1
        with np.errstate(all="ignore"):
            if not np.isfinite(self._matrix[first : self._count].sum(axis=1)).all():
                raise Damage("one of its vectors is not finite")


def best(
    similarities: tuple[NDArray[np.int64], NDArray[np.float32]] | None,
    word_ranks: NDArray[np.float64],
    alpha: float,
    k: int,
) -> list[tuple[int, float]]:
    """Return the k best (number, score) by alpha · cosine + (1 - alpha) · bm25 / best bm25, ties in order of number.

    Without vectors the score is that of the words alone. A row that has no vector counts with a cosine of 0.

    Args:
        similarities: numbers, rising, and cosines of the rows that have a vector; None without a query vector.
        word_ranks: number and BM25 rank (lower is better) of each row that matches by words, of shape (matches, 2).
        alpha: the weight of the cosine.
        k: the most results.
    """
    matching = word_ranks[:, 0].astype(np.int64)
    by_words = word_ranks[:, 1] / word_ranks[:, 1].min() if len(word_ranks) else np.empty(0)
    if similarities is None:
        numbers, scores = matching, by_words
    else:
        numbers, cosines = similarities
        scores = alpha * cosines.astype(np.float64)
        by_words = (1 - alpha) * by_words
        places = np.searchsorted(numbers, matching)
        has_vector = numbers[np.minimum(places, len(numbers) - 1)] == matching
        scores[places[has_vector]] += by_words[has_vector]
        if not has_vector.all():
            numbers = np.concatenate((numbers, matching[~has_vector]))
            scores = np.concatenate((scores, by_words[~has_vector]))
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        near = np.flatnonzero(scores >= least - _TIE)
        numbers, scores = numbers[near], scores[near]
    ranked = np.lexsort((numbers, -np.round(scores / _TIE)))[:k]
    return [(int(numbers[row]), float(scores[row])) for row in ranked]
