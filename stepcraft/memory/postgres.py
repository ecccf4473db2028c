"""A memory in the LangGraph store of a Postgres database, opened by its URL."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stepcraft.errors import AddReport, BadInput, MemoryFailure
from stepcraft.memory.base_store import StoreMemory
from stepcraft.memory.postgres_url import parse_postgres_url
from stepcraft.memory.procedure import Procedure
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.secrets import without_secrets

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_CONNECT_S = 5
_POOL = 8
_DIMENSIONS = """
SELECT to_regclass('store') IS NOT NULL AS made, (
    SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass('store_vectors') AND attname = 'embedding'
) AS dimensions
"""


class PostgresMemory(StoreMemory):
    """Procedures in a namespace of the LangGraph store that a Postgres database holds.

    The tables are those of `langgraph.store.postgres.PostgresStore`, so that a graph which is compiled with such a store
    finds the same procedures under `store:name/space`. A database has one vector index for all namespaces. Its number of
    dimensions is checked; which embedding model it was made with is not recorded.

    Args:
        url: `store+postgresql://user@host:5432/database/name/space`; the password comes from PGPASSWORD or ~/.pgpass.
        embeddings: as `open_memory` takes them. None means no vectors in a store that was made without, else the default.
            A store that has vectors can be read, and searched by words, with "none".
        template: how a procedure is written as one text.
        create: whether the tables are created where they are missing.

    Raises:
        BadInput: the URL is malformed, or the package langgraph-checkpoint-postgres is missing.
        MemoryFailure: the database is out of reach or has no store, or its vectors do not fit the embeddings.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        template: str | None = None,
        create: bool = True,
    ) -> None:
        parsed = parse_postgres_url(url)
        self._url = parsed.name
        try:
            from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 - optional
            from psycopg.rows import dict_row  # noqa: PLC0415 - optional
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - optional
        except ImportError as error:
            raise BadInput(f"{url} needs Postgres' packages ({error}): pip install 'stepcraft[postgres]'") from error
        self._pool: Any = ConnectionPool(
            parsed.database,
            min_size=1,
            max_size=_POOL,
            timeout=_CONNECT_S,
            reconnect_timeout=_CONNECT_S,
            check=ConnectionPool.check_connection,
            kwargs={
                "autocommit": True,
                "prepare_threshold": 0,
                "row_factory": dict_row,
                "connect_timeout": _CONNECT_S,
            },
            open=False,
        )
        try:
            made, dimensions = self._found()
            index = self._index(embeddings, made=made, dimensions=dimensions)
            store = PostgresStore(self._pool, index=index)
            super().__init__(store, parsed.namespace, template=template)
            self._has_unread_vectors = dimensions is not None and index is None
            if not made and not create:
                raise MemoryFailure(f"{url} has no store yet; fill it with `stepcraft memory copy FROM {url}`")
            if create:
                with self._plain_failures():
                    store.setup()
        except BaseException:
            self._pool.close()
            raise

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return self._url

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures, a hundred at a time.

        Raises:
            MemoryFailure: the store has vectors and was opened without embeddings, or it cannot be written.
        """
        if self._has_unread_vectors:
            raise MemoryFailure(f"{self.name} has vectors: open it with the embeddings that it was made with to add")
        return super().add(procedures, progress=progress)

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._pool.close()

    def _found(self) -> tuple[bool, int | None]:
        """Whether there is a store, and the dimensions of its vectors; None if it has none."""
        try:
            self._pool.open(wait=True, timeout=_CONNECT_S)
            with self._pool.connection() as connection:
                row = connection.execute(_DIMENSIONS).fetchone()
        except Exception as error:
            reason = self._refusal() or str(error)
            raise MemoryFailure(f"{self._url} cannot be opened: {reason}") from error
        return bool(row["made"]), row["dimensions"]

    def _refusal(self) -> str:
        """Why no connection is made; the pool says only that it took too long."""
        import psycopg  # noqa: PLC0415 - optional

        try:
            with suppress(Exception):
                self._pool.close()
            psycopg.connect(self._pool.conninfo, connect_timeout=_CONNECT_S).close()
        except psycopg.Error as error:
            return without_secrets(str(error)).strip().partition("\n")[0]
        return ""

    def _index(self, embeddings: "str | Embeddings | None", *, made: bool, dimensions: int | None) -> Any:  # noqa: ANN401 - a TypedDict of an optional package
        """The vector index of the store; None without one."""
        if made and dimensions is None and embeddings in (None, "none"):
            return None
        embedder = resolve_embeddings(embeddings)
        if embedder is None:
            return None
        if made and dimensions is None:
            raise MemoryFailure(
                f"{self._url} was made without vectors: open it with embeddings 'none', or copy it into another database"
            )
        given = len(embedder.embed_query("dimensions"))
        if dimensions not in (None, given):
            raise MemoryFailure(
                f"{self._url} has vectors of {dimensions} dimensions, and {embedder.name} gives {given}: name the "
                "embeddings that it was made with, or copy it into another database"
            )

        def embed(texts: "Iterable[str]") -> list[list[float]]:
            return embedder.embed_documents(list(texts)).tolist()

        return {"dims": given, "embed": embed, "fields": ["text"]}
