"""The passages of a corpus in two tables of a Postgres database with pgvector."""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import finalize

import numpy as np
import psycopg
from psycopg import sql

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Entry, Hit, Matrix, check_search, query_vector
from stepcraft.memory.local import recorded_embedder
from stepcraft.memory.postgres import (
    BEST_WORDS,
    LOCK,
    QUERY_WORDS,
    WORDS,
    connected,
    parts_of,
    pool_of,
    words_of,
)
from stepcraft.memory.store import CANDIDATES, fused
from stepcraft.sources.passage import ALPHA
from stepcraft.sources.shared.passages import (
    FILL,
    Item,
    PageRecord,
    SharedPassages,
    as_filters,
    digest_in,
    version_in,
)
from stepcraft.text.clean import clean
from stepcraft.text.words import query_words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_Some: TypeAlias = Any
"""Stands for psycopg's value and connection types, which depend on each other."""

_MOST_INDEXED = 2000
"""The maximum number of dimensions that pgvector can index."""

_RECORDED = "SELECT obj_description(to_regclass(%s), 'pg_class') AS embeddings"
_MAKE = """
CREATE TABLE {name}_pages (
    path text, tags text[], version text NOT NULL, mark text NOT NULL, passages int NOT NULL,
    PRIMARY KEY (path, tags));
CREATE TABLE {name} (
    key text PRIMARY KEY, version text NOT NULL, number int NOT NULL, digest text NOT NULL,
    path text NOT NULL, tags text[] NOT NULL, title text NOT NULL, place text NOT NULL,
    body text NOT NULL, words tsvector NOT NULL, vector vector({dimensions}));
CREATE INDEX ON {name} (version, number);
CREATE INDEX ON {name} (digest);
CREATE INDEX ON {name} USING gin (words);
"""
_INDEX = "CREATE INDEX ON {name} USING hnsw (vector vector_cosine_ops)"

_STORE = f"""
INSERT INTO {{name}}
SELECT key, version, number, digest, path, %(tags)s::text[], title, place, body,
    {WORDS}, vector::vector
FROM unnest(%(key)s::text[], %(version)s::text[], %(number)s::int[], %(digest)s::text[],
    %(path)s::text[], %(title)s::text[], %(place)s::text[], %(body)s::text[], %(words)s::text[],
    %(parts)s::text[], %(vector)s::text[])
    AS new (key, version, number, digest, path, title, place, body, words, parts, vector)
ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own constants
_PUBLISH = """
INSERT INTO {name}_pages VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (path, tags) DO UPDATE
    SET version = excluded.version, mark = excluded.mark, passages = excluded.passages
"""
_WANTED = """
    FROM {name} AS passage WHERE starts_with(path, %(path)s) AND tags @> %(tags)s::text[]
        AND EXISTS (SELECT FROM {name}_pages AS page WHERE page.version = passage.version
            AND page.path = passage.path AND page.tags = passage.tags)"""
"""The passages that a search may find: those of the page version named in its record."""
_NEAREST = f"""
SELECT key, 1 - (vector <=> %(vector)s::vector) AS score {_WANTED}
    AND vector IS NOT NULL ORDER BY vector <=> %(vector)s::vector LIMIT %(count)s
"""
_BEST_WORDS = BEST_WORDS.format(
    texts=f"SELECT key, words {_WANTED}",
    total="SELECT coalesce(sum(passages), 0) FROM {name}_pages",
    found="SELECT key, score / max(score) OVER () AS score FROM best",
)
_SHOWN = "SELECT key, title, path, place, body FROM {name} WHERE key = ANY (%s)"
_BESIDE = """
SELECT passage.* FROM {name} AS passage, {name} AS middle WHERE middle.key = %s
    AND passage.version = middle.version AND abs(passage.number - middle.number) = 1
ORDER BY passage.number
"""
_DROP = "DELETE FROM {name}_pages WHERE path = %s AND tags = %s"
_DELETE = "DELETE FROM {name} WHERE version = ANY (%s)"
_TIDY = """
DELETE FROM {name} AS passage
WHERE NOT EXISTS (SELECT FROM {name}_pages AS page WHERE page.version = passage.version)
"""


class PostgresPassages(SharedPassages):
    """The passages of a corpus in two tables of a database, searched by words and with pgvector.

    Only one builder at a time can fill the corpus; any other waits.

    Args:
        url: `postgresql://user@host:5432/database/name`; the password is read from PGPASSWORD or
            ~/.pgpass. The tables are named `stepcraft_name` and `stepcraft_name_pages`.
        embeddings: As for `open_memory`.
        tags: The tags of the pages to store.
        create: Whether to create missing tables, so that they can be filled.

    Raises:
        BadInput: The URL is malformed, or there are no such tables.
        MemoryFailure: The database cannot be used, or its vectors were made with other embeddings.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        tags: Mapping[str, str] | None = None,
        create: bool = False,
    ) -> None:
        super().__init__(url, tags or {})
        self._database, name = parts_of(url)
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
            raise BadInput(
                f"{url} names no corpus; write postgresql://host:5432/database/name, with a name "
                "of small letters, digits and _"
            )
        self._table = f"stepcraft_{name}"
        self._lock: _Some = None
        with self._failures():
            connected(self._database).close()
        self._pool = pool_of(self._database)
        self._release = finalize(self, self._pool.close)
        try:
            self._open(embeddings, create=create)
        except BaseException:
            self.close()
            raise

    def search(
        self, query: str, k: int, *, alpha: float | None, where: Mapping[str, str]
    ) -> list[Hit]:
        """Return the k best-matching passages, weighted as for a corpus in a file."""
        weight = ALPHA if alpha is None else alpha
        check_search(k, weight)
        path, tags = as_filters(where)
        values: dict[str, Any] = {"path": path, "tags": tags, "count": max(k, CANDIDATES)}
        vector = query_vector(self.embedder, clean(query)) if weight and self.embedder else None
        near: dict[str, float] = {}
        words: dict[str, float] = {}
        # A single view of the tables, so that each page is in one state.
        with self._connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if vector is None:
                weight = 0
            else:
                values["vector"] = _literal(vector)
                near = _scores(self._run(connection, _NEAREST, values))
                if len(near) < k:
                    # pgvector stops early in an HNSW index, perhaps before any match of a filter.
                    connection.execute("SET LOCAL enable_indexscan = off")
                    near = _scores(self._run(connection, _NEAREST, values))
            if weight < 1:
                [row] = self._run(connection, QUERY_WORDS, [" ".join(query_words(query))])
                if row["words"]:
                    words = _scores(self._run(connection, _BEST_WORDS, {**values, **row}))
            ranked = fused(near, words, weight)[:k]
            shown = self._run(connection, _SHOWN, [[key for key, _ in ranked]])
            rows = {row["key"]: row for row in shown}
        return [_hit(rows[key], score) for key, score in ranked]

    def beside(self, key: str) -> list[Hit]:
        """Return the passages directly before and after the one with this id, in the same page."""
        return [_hit(row, 0.0) for row in self._rows(_BESIDE, [key])]

    def close(self) -> None:
        """Close the connections. This can safely be called twice."""
        self._release()

    @contextmanager
    def building(self) -> Generator[None]:
        """Let one builder at a time fill the corpus."""
        with self._failures():
            connection = connected(self._database)
        with connection:
            with self._failures():
                connection.execute("SET statement_timeout = 0; SET lock_timeout = 0")
                connection.execute(LOCK, (self._table,))
            self._lock = connection
            yield

    def tidy(self) -> bool:
        """Delete leftovers from killed builders."""
        with self._writing() as connection:
            self._run(connection, _TIDY)
        return False

    def is_empty(self) -> bool:
        """Return whether nothing is stored."""
        return not self._rows("SELECT FROM {name} LIMIT 1")

    def records(self) -> Iterator[PageRecord]:
        """Return the records of all pages."""
        return (PageRecord(**row) for row in self._rows("SELECT * FROM {name}_pages"))

    def _vectors(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        rows = self._rows(
            "SELECT DISTINCT ON (digest) digest, vector::text AS vector FROM {name}"
            " WHERE digest = ANY (%s) AND vector IS NOT NULL",
            [digests],
        )
        return {
            row["digest"]: np.array(json.loads(row["vector"]), np.float32).tobytes() for row in rows
        }

    def _store(
        self, items: Sequence[Item], records: Sequence[PageRecord], replaced: Sequence[str]
    ) -> None:
        entries = [entry for entry, _ in items]
        values: dict[str, Any] = {
            "tags": self.tags,
            "key": [each.id for each in entries],
            "version": [version_in(each.id) for each in entries],
            "digest": [digest_in(each.id) for each in entries],
            "body": [each.text for each in entries],
            **words_of(each.text for each in entries),
            "vector": [
                _literal(np.frombuffer(vector, np.float32)) if vector else None
                for _, vector in items
            ],
        }
        for name in ("number", "path", "title", "place"):
            values[name] = [each.payload[name] for each in entries]
        with self._writing() as connection:
            self._run(connection, _STORE, values)
            connection.cursor().executemany(_PUBLISH.format(name=self._table), records)
            self._run(connection, _DELETE, [replaced])

    def _drop(self, records: Sequence[PageRecord]) -> None:
        with self._writing() as connection:
            connection.cursor().executemany(
                _DROP.format(name=self._table),
                [(each.path, each.tags) for each in records],
            )
            self._run(connection, _DELETE, [[each.version for each in records]])

    def _open(self, embeddings: "str | Embeddings | None", *, create: bool) -> None:
        made_with = self._made_with()
        if not (made_with or create):
            raise BadInput(f"{self.name} has no such corpus; check the name, or {FILL}")
        if not made_with and self._table in {"stepcraft_words", "stepcraft_memories"}:
            raise BadInput(
                f"{self.name} names a table of a memory; name the corpus other than words and "
                "memories"
            )
        self.embedder = recorded_embedder(self.name, embeddings, made_with)
        name = self.embedder.name if self.embedder else "none"
        if not made_with:
            with self.building():
                made_with = self._made_with() or self._make(name)
        self._check(made_with, create=create)

    def _made_with(self) -> str | None:
        [row] = self._rows(_RECORDED, [self._table])
        embeddings: str | None = row["embeddings"]
        return embeddings

    def _make(self, embeddings: str) -> str:
        length = len(self.embedder.embed_query("dimensions")) if self.embedder else 1
        with self._connection() as connection, connection.transaction():
            if not connection.execute("SELECT FROM pg_extension WHERE extname = 'vector'").rowcount:
                connection.execute("CREATE EXTENSION vector")
            connection.execute(_MAKE.format(name=self._table, dimensions=length), prepare=False)
            if length <= _MOST_INDEXED:
                self._run(connection, _INDEX)
            comment = sql.SQL("COMMENT ON TABLE {} IS {}").format(
                sql.Identifier(self._table), embeddings
            )
            connection.execute(comment)
        return embeddings

    @contextmanager
    def _writing(self) -> Generator[Any]:
        """Provide a transaction for a builder, which fails if it is no longer the only one."""
        with self._connection() as connection, connection.transaction():
            self._lock.execute("SELECT 1")  # its connection may be lost, and the lock with it
            connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    def _rows(self, query: str, values: _Some = None) -> list[dict[str, Any]]:
        with self._connection() as connection:
            return [*self._run(connection, query, values)]

    def _run(self, connection: _Some, query: str, values: _Some = None) -> Iterable[dict[str, Any]]:
        """Run a query on the table, unprepared so that it is planned for these values."""
        cursor: Iterable[dict[str, Any]] = connection.execute(
            query.replace("{name}", self._table), values, prepare=False
        )
        return cursor

    @contextmanager
    def _connection(self) -> Generator[Any]:
        with self._failures(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def _failures(self) -> Generator[None]:
        """Raise a MemoryFailure for database errors in the block."""
        try:
            yield
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0][:300]
            raise MemoryFailure(f"{self.name} failed: {reason}") from error


def _scores(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    return {row["key"]: float(row["score"]) for row in rows}


def _literal(vector: Matrix) -> str:
    return str(vector.tolist())


def _hit(row: Mapping[str, Any], score: float) -> Hit:
    return Hit(Entry(row["key"], row["body"], row), score)
