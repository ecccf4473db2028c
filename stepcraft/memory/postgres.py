"""A memory in the LangGraph store of a Postgres database, opened by URL."""

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
from langgraph.store.postgres import PostgresStore
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.index import COPY, check_recorded, embedded
from stepcraft.memory.history import same_text
from stepcraft.memory.local import recorded_embedder
from stepcraft.memory.procedure import Found, Procedure
from stepcraft.memory.store import CANDIDATES, StoreMemory, checked_namespace, stored_procedure
from stepcraft.text.words import PARTS_WEIGHT, VERSION, query_words, stored_words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_REFUSED = (
    "a password does not belong into a URL; set PGPASSWORD to it, or use ~/.pgpass; a port is a "
    "number"
)
_CONNECT_S = 5
_OPTIONS: Any = {
    "autocommit": True,
    "connect_timeout": _CONNECT_S,
    # Firewalls drop connections that are idle for a few minutes, as while texts are embedded.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
}
_PAGE = 1000

_EXISTING = """
SELECT to_regclass('store') IS NOT NULL,
    (SELECT atttypmod FROM pg_attribute
        WHERE attrelid = to_regclass('store_vectors') AND attname = 'embedding'),
    to_regclass('stepcraft_memories') IS NOT NULL
"""
"""Selects whether the store exists, the dimensions of its vectors, and whether our tables exist."""

_SETUP = """
SELECT pg_advisory_xact_lock(hashtextextended('stepcraft words', 0));
CREATE TABLE IF NOT EXISTS stepcraft_words (
    prefix text NOT NULL, key text NOT NULL, updated_at timestamptz, words tsvector NOT NULL,
    version int NOT NULL, PRIMARY KEY (prefix, key));
CREATE INDEX IF NOT EXISTS stepcraft_words_index ON stepcraft_words USING gin (words);
CREATE TABLE IF NOT EXISTS stepcraft_memories (prefix text PRIMARY KEY, embeddings text NOT NULL)
"""
"""Creates our own tables: the words of each text, and the embedding model of each memory. The
store's tables stay as LangGraph created them.
"""
_RECORDED = "SELECT embeddings FROM stepcraft_memories WHERE prefix = %s"
_RECORD = "INSERT INTO stepcraft_memories VALUES (%s, %s) ON CONFLICT DO NOTHING"

WORDS = "setweight(to_tsvector('english', words), 'A') || to_tsvector('english', parts)"
"""The SQL expression that makes a tsvector of the two columns that `words_of` fills."""

_WITHOUT_WORDS = f"""
SELECT key, stored.updated_at, coalesce(value->>'text', '') AS text
FROM store AS stored LEFT JOIN stepcraft_words AS known USING (prefix, key)
WHERE prefix = %(prefix)s AND (%(keys)s::text[] IS NULL OR key = ANY (%(keys)s))
    AND (stored.updated_at IS DISTINCT FROM known.updated_at OR known.version <> {VERSION})
    AND key > %(last)s
ORDER BY key LIMIT {_PAGE}
"""  # noqa: S608 - our own constants
_ADD_WORDS = f"""
INSERT INTO stepcraft_words (prefix, key, updated_at, words, version)
SELECT %(prefix)s, key, updated_at, {WORDS}, {VERSION}
FROM unnest(%(keys)s::text[], %(times)s::timestamptz[], %(words)s::text[], %(parts)s::text[])
    AS new (key, updated_at, words, parts)
ON CONFLICT (prefix, key) DO UPDATE
    SET words = excluded.words, updated_at = excluded.updated_at, version = excluded.version
"""  # noqa: S608 - our own constants
_MOST_CHARACTERS = 100_000
"""The maximum number of characters stored as words for each text, since a tsvector must not exceed
a megabyte.
"""
_REMOVE_WORDS = """
DELETE FROM stepcraft_words AS known WHERE prefix = %(prefix)s
    AND NOT EXISTS (SELECT FROM store WHERE prefix = known.prefix AND key = known.key)
"""
_STATE = (
    "SELECT (count(*), sum(extract(epoch FROM updated_at)))::text FROM {} WHERE prefix = %(prefix)s"
)
_IS_CURRENT = (
    f"SELECT ({_STATE.format('store')}) = ({_STATE.format('stepcraft_words')}"
    f" AND version = {VERSION}) AS is_current"
)
"""Selects whether our words are up to date with the store, to which other programs may write."""

# BM25 with the constants of SQLite's FTS5, k1 = 1.2 and b = 0.75; Postgres' own ts_rank ignores how
# rare a word is. The length of a text is its number of distinct words.
BEST_WORDS = f"""
WITH hits AS MATERIALIZED (
    SELECT key, lexeme, length(texts.words) AS size, cardinality(positions)
        - {1 - PARTS_WEIGHT} * cardinality(array_positions(weights, 'D')) AS times
    FROM ({{texts}}) AS texts, unnest(texts.words)
    WHERE texts.words @@ %(query)s::tsquery AND lexeme = ANY (%(words)s)
), rarity AS (
    SELECT jsonb_object_agg(lexeme, ln(1 + (total - texts + 0.5) / (texts + 0.5))) AS weights
    FROM (SELECT lexeme, count(*) AS texts FROM hits GROUP BY lexeme) AS counted,
        ({{total}}) AS everything(total)
), best AS (
    SELECT key, sum(((SELECT weights FROM rarity)->>lexeme)::float8 * times * 2.2
        / (times + 1.2 * (0.25 + 0.75 * size / (SELECT avg(size)::float8 FROM hits)))) AS score
    FROM hits GROUP BY key ORDER BY score DESC, key LIMIT %(count)s
)
{{found}}
"""  # noqa: S608 - our own constants
"""The query that ranks texts by words, with three parts to fill in: `texts` selects the keys and
words of all texts, `total` counts them, and `found` selects from `best`, which has keys and scores.
"""
_BEST_WORDS = BEST_WORDS.format(
    texts="""SELECT key, words FROM stepcraft_words WHERE prefix = %(prefix)s
        AND (%(tags)s::jsonb = '{}' OR key IN (SELECT key FROM store
            WHERE prefix = %(prefix)s AND value->'tags' @> %(tags)s::jsonb))""",
    total="SELECT count(*) FROM stepcraft_words WHERE prefix = %(prefix)s",
    found="""SELECT value, score / max(score) OVER () AS score
        FROM best JOIN store USING (key) WHERE prefix = %(prefix)s""",
)
QUERY_WORDS = """
SELECT words, (SELECT string_agg(quote_literal(word), ' | ') FROM unnest(words) AS word) AS query
FROM tsvector_to_array(to_tsvector('english', %s)) AS words
"""
"""Selects the parameters `words` and `query` of `BEST_WORDS` for a search query."""

LOCK = "SELECT pg_advisory_lock(hashtextextended('stepcraft ' || %s, 0))"
"""A session-level lock on a name; closing the connection releases it."""


class PostgresMemory(StoreMemory):
    """Procedures in a namespace of a LangGraph store in a Postgres database.

    The tables are those of `langgraph.store.postgres.PostgresStore`, so that a graph compiled with
    such a store finds the same procedures under `store:name/space`. LangGraph's tables are not
    altered: the words of each text and the embedding model of each memory are kept in separate
    tables. All namespaces in a database share one vector dimension. Vector search is exact, unless
    the table has an approximate index.

    Args:
        url: `store+postgresql://user@host:5432/database/name/space`; the password is read from
            PGPASSWORD or ~/.pgpass.
        embeddings: As for `open_memory`. None means the default, or no vectors if the store was
            created without them. With "none", a store with vectors can still be read and searched
            by words.
        create: Whether to call `setup` if tables are missing.

    Raises:
        BadInput: The URL is malformed.
        MemoryFailure: The database is unreachable or has no store, or its vectors were made with
            other embeddings.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        create: bool = True,
    ) -> None:
        self._database, namespace = parts_of(url)
        self._prefix = ".".join(checked_namespace(namespace))
        self.name = url
        try:
            with connected(self._database) as connection:
                [row] = connection.execute(_EXISTING)
                exists, dimensions, self._has_tables = row
                recorded = (
                    connection.execute(_RECORDED, [self._prefix]).fetchone()
                    if self._has_tables
                    else None
                )
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0]
            raise MemoryFailure(f"{url} cannot be opened: {reason}") from error
        self._embeddings = recorded[0] if recorded else None
        if not exists and not create:
            raise MemoryFailure(
                f"{url} has no store yet; fill it with `stepcraft memory copy FROM {url}`"
            )
        index = self._index(embeddings, exists=exists, dimensions=dimensions)
        self._has_unread_vectors = dimensions is not None and index is None
        self._pool = pool_of(self._database)
        try:
            store = PostgresStore(self._pool, index=index)
            super().__init__(store, namespace)
            self.name = url
            if not exists:  # an existing one is migrated by its owner
                with self._plain_failures():
                    store.setup()
            if create and not self._has_tables:
                self.setup()
        except BaseException:
            self._pool.close()
            raise

    def setup(self) -> None:
        """Create our own tables.

        If the database user lacks permission to create them, keyword search works as in any other
        store.
        """
        with self._plain_failures():
            try:
                with self._pool.connection() as connection:
                    connection.execute(_SETUP, prepare=False)
            except psycopg.errors.InsufficientPrivilege:
                return
        self._has_tables = True
        self._add_words(None)

    def count(self) -> int:
        """Return the number of procedures."""
        [row] = self._rows(
            "SELECT count(*) FROM store WHERE prefix = %s"
            " AND value ?& ARRAY['input', 'output', 'steps']",
            (self._prefix,),
        )
        return int(row["count"])

    def __iter__(self) -> Iterator[Procedure]:
        """Iterate over all procedures in the order of their ids, one page at a time.

        A single query stays open during the iteration: without statistics on the table, for example
        after an import, a separate query for each page would be planned as a full scan.
        """
        query = "SELECT value FROM store WHERE prefix = %s ORDER BY key"
        with (
            self._plain_failures(),
            self._pool.connection() as connection,
            connection.transaction(),
            connection.cursor(name="procedures") as cursor,
        ):
            cursor.itersize = _PAGE
            for row in cursor.execute(query, (self._prefix,)):
                if procedure := stored_procedure(row["value"]):
                    yield procedure

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _write(
        self, procedures: Mapping[str, Procedure], stored: Mapping[str, Procedure]
    ) -> list[Failed]:
        if self._has_unread_vectors and not all(
            id_ in stored and same_text(stored[id_], item) for id_, item in procedures.items()
        ):
            raise MemoryFailure(
                f"{self.name} has vectors: open it with the embeddings that it was made with to "
                "add or change a text"
            )
        if self._has_tables and self._embedder and not self._embeddings:
            with self._plain_failures(), self._pool.connection() as connection:
                connection.execute(_RECORD, [self._prefix, self._embedder.name])
            self._check_embeddings()
        failed = super()._write(procedures, stored)
        if self._has_tables:
            self._add_words(list(procedures))
        return failed

    def _add_words(self, keys: Sequence[str] | None) -> None:
        """Update the words of the given procedures, or of all procedures in the namespace."""
        values: dict[str, Any] = {"prefix": self._prefix, "keys": keys, "last": ""}
        with self._plain_failures(), self._pool.connection() as connection:
            while rows := connection.execute(_WITHOUT_WORDS, values, prepare=False).fetchall():
                new = {
                    "prefix": self._prefix,
                    "keys": [row["key"] for row in rows],
                    "times": [row["updated_at"] for row in rows],
                    **words_of(row["text"] for row in rows),
                }
                connection.execute(_ADD_WORDS, new, prepare=False)
                values["last"] = rows[-1]["key"]
            if keys is None:
                connection.execute(_REMOVE_WORDS, {"prefix": self._prefix}, prepare=False)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the given ids existed."""
        deleted = super().delete(ids)
        if deleted and self._has_tables:
            self._add_words(None)
        return deleted

    def _check_embeddings(self) -> None:
        """Reject other embeddings than those recorded, perhaps after this memory was opened."""
        if self._has_tables and not self._embeddings:
            for row in self._rows(_RECORDED, (self._prefix,)):
                check_recorded(self.name, self._embedder, row["embeddings"], COPY)
                self._embeddings = row["embeddings"]

    def _nearest(self, query: str, count: int, tags: Mapping[str, str]) -> list[Found] | None:
        self._check_embeddings()
        return super()._nearest(query, count, tags)

    def _best_words(self, query: str, count: int, tags: Mapping[str, str]) -> list[Found]:
        if not self._has_tables:
            return super()._best_words(query, count, tags)
        [state] = self._rows(_IS_CURRENT, {"prefix": self._prefix})
        try:
            if not state["is_current"]:
                self._add_words(None)
        except MemoryFailure as failure:
            if not isinstance(failure.__cause__, psycopg.errors.InsufficientPrivilege):
                raise
            return super()._best_words(query, count, tags)
        [words] = self._rows(QUERY_WORDS, (" ".join(query_words(query)),))
        values = {**words, "prefix": self._prefix, "count": count, "tags": json.dumps(tags)}
        return [
            Found(procedure, row["score"])
            for row in self._rows(_BEST_WORDS, values)
            if (procedure := stored_procedure(row["value"]))
        ]

    def _rows(self, query: str, values: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of psycopg
        with self._plain_failures(), self._pool.connection() as connection:
            # Not prepared, since a generic plan would compare each word with all others.
            rows: list[dict[str, Any]] = connection.execute(query, values, prepare=False).fetchall()
        return rows

    @contextmanager
    def _exclusively(self) -> Generator[None]:
        """Prevent concurrent changes by other threads, and by processes that use this class."""
        # Not from the pool: threads waiting for the lock could use up the pool its holder needs.
        with super()._exclusively():
            with self._plain_failures():
                connection = connected(self._database)
            with connection:
                with self._plain_failures():
                    connection.execute("SET lock_timeout = '60s'")
                    connection.execute(LOCK, (self._prefix,))
                yield

    def _index(
        self, embeddings: "str | Embeddings | None", *, exists: bool, dimensions: int | None
    ) -> Any:  # noqa: ANN401 - a TypedDict of an optional package
        """Return the vector index configuration for the store, or None to use no vectors."""
        if exists and dimensions is None and embeddings is None:
            embeddings = "none"
        embedder = recorded_embedder(self.name, embeddings, self._embeddings)
        self._embedder = embedder
        if embedder is None:
            return None
        if self._embeddings:
            check_recorded(self.name, embedder, self._embeddings, COPY)
        length = len(embedder.embed_query("dimensions"))
        if exists and dimensions != length:
            raise MemoryFailure(
                f"{self.name} has vectors of {dimensions or 'no'} dimensions, and {embedder.name} "
                f"gives {length}: name the embeddings that it was made with, 'none' for no "
                "vectors, or copy it into another database"
            )

        def embed(texts: list[str]) -> list[list[float]]:
            result = embedded(embedder, texts)
            for reason in result.refused.values():
                raise MemoryFailure(reason)
            return [np.frombuffer(result.vectors[text], np.float32).tolist() for text in texts]

        flat = {"kind": "flat"}
        return {"dims": length, "embed": embed, "fields": ["text"], "ann_index_config": flat}


def connected(database: str) -> psycopg.Connection:
    """Return a new connection to a database."""
    return psycopg.connect(database, **_OPTIONS)


def pool_of(database: str) -> Any:  # noqa: ANN401 - generic
    """Return a connection pool that yields rows as mappings and replaces lost connections."""
    return ConnectionPool(
        database,
        min_size=1,
        max_size=8,
        timeout=_CONNECT_S,
        reconnect_timeout=_CONNECT_S,
        check=ConnectionPool.check_connection,
        configure=_search_until_enough,
        kwargs={**_OPTIONS, "prepare_threshold": 0, "row_factory": dict_row},
        open=True,
    )


def words_of(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the values for the columns that `WORDS` reads."""
    stored = [stored_words(text) for text in texts]
    return {
        "words": [each.words[:_MOST_CHARACTERS] for each in stored],
        "parts": [each.parts[:_MOST_CHARACTERS] for each in stored],
    }


def _search_until_enough(connection: Any) -> None:  # noqa: ANN401 - of an optional package
    """Make pgvector continue reading an HNSW index until it has enough matching rows.

    Older versions of pgvector ignore these settings.
    """
    connection.execute("SET hnsw.iterative_scan = strict_order")
    connection.execute(f"SET hnsw.ef_search = {CANDIDATES}")


def parts_of(url: str) -> tuple[str, str]:
    """Return the libpq connection string for the database, and the path after its name.

    Raises:
        BadInput: The URL is malformed, names no database, or contains a password.
    """
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    try:
        info: Any = conninfo_to_dict(f"{scheme.removeprefix('store+')}{colon}{rest}")
    except psycopg.ProgrammingError as error:
        if re.search(r"//[^@]*:[^@]*@|password", rest):
            raise BadInput(_REFUSED) from None  # the error shows the password
        raise BadInput(f"{url} is no URL of a database: {error}".strip()) from error
    # A password with a slash is read as a port.
    if "password" in info or not info.get("port", "0").replace(",", "").isdigit():
        raise BadInput(_REFUSED)
    database, _, namespace = info.pop("dbname", "").partition("/")
    if not database:
        raise BadInput(f"{url} names no database; write {scheme}://host:5432/database/name")
    return make_conninfo(**info, dbname=database), namespace
