"""Embeddings kept in the user's cache folder, so that no text is embedded again at each start."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from stepcraft.index._vectors import Embedder, Matrix

_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (model TEXT, digest TEXT, vector BLOB NOT NULL,"
    " PRIMARY KEY (model, digest)) WITHOUT ROWID"
)


class CachedEmbedder:
    """An embedder that keeps the vectors of documents by its name and their text.

    The cache may be deleted at any time. One that cannot be read or written is passed over.

    Args:
        embedder: What embeds texts that are not in the cache. Its name must stand for one model.
        path: The file of the cache; one in the user's cache folder by default.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._path = path or user_cache_path("stepcraft", appauthor=False) / "embeddings.db"

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._embedder.name

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one vector a text, of shape (texts, dimensions)."""
        digests = [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]
        vectors = self._kept(digests)
        missing = {
            digest: text
            for digest, text in zip(digests, texts, strict=True)
            if digest not in vectors
        }
        if missing:
            rows = self._embedder.embed_documents(list(missing.values()))
            vectors |= dict(zip(missing, rows, strict=True))
            self._keep({digest: vectors[digest] for digest in missing})
        if len({len(vector) for vector in vectors.values()}) > 1:  # another model by the same name
            return self._embedder.embed_documents(texts)
        return np.array([vectors[digest] for digest in digests], np.float32)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query, of shape (dimensions,)."""
        return self._embedder.embed_query(text)

    async def aembed_query(self, text: str) -> Matrix:
        """Like `embed_query`, without blocking the event loop."""
        return await self._embedder.aembed_query(text)

    def _kept(self, digests: Sequence[str]) -> dict[str, Matrix]:
        sql = (
            "SELECT digest, vector FROM vectors"
            " WHERE model = ? AND digest IN (SELECT value FROM json_each(?))"
        )
        with suppress(OSError, sqlite3.Error), closing(self._open()) as connection:
            rows = connection.execute(sql, (self.name, json.dumps(digests))).fetchall()
            return {digest: np.frombuffer(vector, np.float32) for digest, vector in rows}
        return {}

    def _keep(self, vectors: Mapping[str, Matrix]) -> None:
        rows = [
            (self.name, digest, vector.astype(np.float32).tobytes())
            for digest, vector in vectors.items()
        ]
        with suppress(OSError, sqlite3.Error), closing(self._open()) as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)  # vectors tell what a text is about
        connection = sqlite3.connect(self._path)
        try:
            connection.execute(_TABLE)
        except sqlite3.Error:
            connection.close()
            raise
        return connection
