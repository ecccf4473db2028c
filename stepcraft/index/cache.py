"""Embeddings kept in the user's cache folder, so that no text is embedded again at each start."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from stepcraft.index._vectors import Embedder, Matrix


class CachedEmbedder:
    """An embedder that keeps the vectors of documents, by its name and their text.

    The cache may be deleted at any time. One that cannot be read or written is passed over.

    Args:
        embedder: What embeds texts that are not in the cache. Its name must stand for one model.
        path: The file of the cache; one in the user's cache folder by default.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._path = path or user_cache_path("stepcraft", appauthor=False) / "embeddings.db"
        self.name = embedder.name
        self.embed_query = embedder.embed_query

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return one vector a text, of shape (texts, dimensions)."""
        keys = {text: sha256(f"{self.name}\n{text}".encode()).digest() for text in texts}
        vectors = dict(self._execute("SELECT * FROM vectors WHERE key = ?", zip(keys.values())))
        missing = [text for text, key in keys.items() if key not in vectors]
        if missing:
            rows = self._embedder.embed_documents(missing).astype(np.float32)
            added = [(keys[text], bytes(row)) for text, row in zip(missing, rows, strict=True)]
            self._execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", added)
            vectors |= added
        if len(set(map(len, vectors.values()))) > 1:  # the model by this name is another one now
            return self._embedder.embed_documents(texts)
        return np.array([np.frombuffer(vectors[keys[text]], np.float32) for text in texts])

    def _execute(self, sql: str, rows: Iterable[tuple[bytes, ...]]) -> list[tuple[bytes, bytes]]:
        """Execute a statement for each row, and return what it selects."""
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # vectors tell what a text is about
        try:
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS vectors"
                    " (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
                )
                return [result for row in rows for result in connection.execute(sql, row)]
        except sqlite3.Error:
            return []
