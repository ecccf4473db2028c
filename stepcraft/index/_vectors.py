"""The vectors of an index: made by an embedder, and held in one matrix that follows the file."""

import math
import sqlite3
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import MemoryFailure

Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """What makes vectors of texts."""

    @property
    def name(self) -> str:
        """Names the model, as recorded in the file; never holds a secret."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """One vector a text, of shape (texts, dimensions)."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query, of shape (dimensions,)."""
        ...

    async def aembed_query(self, text: str) -> Matrix:
        """As `embed_query`, without blocking the event loop."""
        ...


def embedded(embedder: Embedder, texts: Sequence[str]) -> dict[str, bytes | None]:
    """The unit vector of each text as bytes, zeros where it has none; None where it is not finite.

    Raises:
        MemoryFailure: the embedder failed, or gave something else than one vector a text.
    """
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    rows, finite = unit_vectors(embedder, distinct)
    return {
        text: row.tobytes() if good else None for text, row, good in zip(distinct, rows, finite, strict=True)
    }


def unit_vectors(embedder: Embedder, texts: Sequence[str]) -> tuple[Matrix, NDArray[np.bool_]]:
    """A unit vector a text, zeros where it has none, of shape (texts, dimensions), and which of them are finite.

    Raises:
        MemoryFailure: the embedder failed, or gave something else than one vector a text.
    """
    vectors = embedder.embed_documents(texts)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size:
        raise MemoryFailure(
            f"the embedding model {embedder.name} gave vectors of shape {vectors.shape} for {len(texts)} texts; "
            "use another model"
        )
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    with np.errstate(invalid="ignore", over="ignore"):
        return unit_rows(vectors), finite


def query_vector(embedder: Embedder, query: str) -> Matrix | None:
    """The unit vector of a query, or None where it is zero or not finite."""
    return _unit(embedder.embed_query(query))


async def aquery_vector(embedder: Embedder, query: str) -> Matrix | None:
    """As `query_vector`, without blocking the event loop."""
    return _unit(await embedder.aembed_query(query))


def _unit(vector: Matrix) -> Matrix | None:
    """A query has one vector: sums of its own are quicker than those of `unit_rows`, which look at a whole matrix."""
    wide = vector.astype(np.float64)
    length = math.sqrt(wide @ wide)
    return (wide / length).astype(np.float32) if 0 < length < math.inf else None


def unit_rows(vectors: Matrix) -> Matrix:
    """The rows scaled to length 1; a row of zeros stays what it is."""
    vectors = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


class Vectors:
    """The vectors of a file in one matrix, in the order of their numbers; grows by doubling."""

    def __init__(self) -> None:
        self._seen = (-1, -1)
        self._clear(0, 0)

    @property
    def dimensions(self) -> int:
        """Of the vectors that were taken in so far; 0 before."""
        return int(self._matrix.shape[1])

    def cosines(
        self, connection: sqlite3.Connection, vector: Matrix
    ) -> tuple[NDArray[np.int64], Matrix] | None:
        """Number and cosine of each row to a unit vector; None if there are no rows.

        Called within a transaction, so that the rows are those that the words are searched in.
        """
        _, writes, rewrites = connection.execute("SELECT next, writes, rewrites FROM state").fetchone()
        if (writes, rewrites) != self._seen:
            if rewrites != self._seen[1]:
                (total,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
                self._clear(total, len(vector))
            self._extend(connection)
            self._seen = (writes, rewrites)
        if not self._rows:
            return None
        similarities: Matrix = self._matrix[: self._rows] @ vector
        return self._numbers[: self._rows], similarities

    def _clear(self, room: int, dimensions: int) -> None:
        self._rows = 0
        self._numbers = np.empty(room, np.int64)
        self._matrix = np.empty((room, dimensions), np.float32)

    def _extend(self, connection: sqlite3.Connection) -> None:
        last = int(self._numbers[self._rows - 1]) if self._rows else 0
        for number, blob in connection.execute(
            "SELECT seq, vector FROM vectors WHERE seq > ? ORDER BY seq", (last,)
        ):
            if self._rows == len(self._matrix):
                self._grow(len(blob) // 4)
            self._numbers[self._rows] = number
            self._matrix[self._rows] = np.frombuffer(blob, np.float32)
            self._rows += 1

    def _grow(self, dimensions: int) -> None:
        numbers, matrix = self._numbers, self._matrix
        rows = self._rows
        self._clear(max(64, 2 * rows), dimensions)
        if rows:
            self._numbers[:rows], self._matrix[:rows], self._rows = numbers, matrix, rows
