"""A memory in the LangGraph store of a Postgres database, opened by its URL."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stepcraft.errors import AddReport, BadInput, MemoryFailure
from stepcraft.memory.base_store import StoreMemory, checked_namespace
from stepcraft.memory.postgres_url import parse_postgres_url
from stepcraft.memory.procedure import Procedure
from stepcraft.models.embeddings import resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_CONNECT_S = 5
_POOL = 8
_WAIT_S = 60
"""How long a change waits for other processes that change the same namespace."""
_DIMENSIONS = """
SELECT to_regclass('store') IS NOT NULL, (
    SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass('store_vectors') AND attname = 'embedding'
)
"""

_LOCK = "SELECT pg_advisory_lock(hashtextextended('stepcraft ' || %s, 0))"
"""A lock of the session on a namespace; closing the connection releases it."""


class PostgresMemory(StoreMemory):
    """Procedures in a namespace of the LangGraph store that a Postgres database holds.

    The tables are those of `langgraph.store.postgres.PostgresStore`, so that a graph which is compiled with such a store
    finds the same procedures under `store:name/space`. A database has vectors of one length for all namespaces: the length
    is checked, but not which embedding model they were made with. Search by vectors is exact, unless the table
    has an approximate index.

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
        checked_namespace(parsed.namespace)
        try:
            import psycopg  # noqa: PLC0415 - optional
            from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 - optional
            from psycopg.rows import dict_row  # noqa: PLC0415 - optional
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - optional
        except ImportError as error:
            raise BadInput(
                f"{url} needs the packages of Postgres ({error}): pip install 'stepcraft[postgres]'"
            ) from error
        options: dict[str, Any] = {"autocommit": True, "connect_timeout": _CONNECT_S}
        try:
            with psycopg.connect(parsed.database, **options) as connection:
                made, dimensions = connection.execute(_DIMENSIONS).fetchone() or (False, None)
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0]
            raise MemoryFailure(f"{url} cannot be opened: {reason}") from error
        index = self._index(embeddings, made=made, dimensions=dimensions)
        if not made and not create:
            raise MemoryFailure(
                f"{url} has no store yet; fill it with `stepcraft memory copy FROM {url}`"
            )
        self._has_unread_vectors = dimensions is not None and index is None
        self._connect: Callable[[], Any] = lambda: psycopg.connect(parsed.database, **options)
        self._pool: Any = ConnectionPool(
            parsed.database,
            min_size=1,
            max_size=_POOL,
            timeout=_CONNECT_S,
            reconnect_timeout=_CONNECT_S,
            check=ConnectionPool.check_connection,
            configure=_search_until_enough,
            kwargs={**options, "prepare_threshold": 0, "row_factory": dict_row},
            open=True,
        )
        try:
            store = PostgresStore(self._pool, index=index)
            super().__init__(store, parsed.namespace, template=template)
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
            raise MemoryFailure(
                f"{self.name} has vectors: open it with the embeddings that it was made with to add"
            )
        return super().add(procedures, progress=progress)

    def update(self, id: str, change: Callable[[Procedure], Procedure]) -> Procedure:  # noqa: A002 - the field is called id
        """Read a procedure, change it and write it; no version or vote of another process is lost.

        Raises:
            MemoryFailure: the text changes, and the store has vectors and was opened without embeddings.
        """

        def checked(kept: Procedure) -> Procedure:
            changed = change(kept)
            if self._has_unread_vectors and changed.text(self.template) != kept.text(self.template):
                raise MemoryFailure(
                    f"{self.name} has vectors: open it with the embeddings that it was made with to change a text"
                )
            return changed

        return super().update(id, checked)

    @contextmanager
    def _exclusively(self) -> Generator[None]:
        """Keep others from changing what is stored, also other processes that use this class."""
        # A connection of its own: those of the pool might all wait for one that none of them gives back.
        with super()._exclusively():
            with self._plain_failures():
                connection = self._connect()
            with connection:
                with self._plain_failures():
                    connection.execute(f"SET lock_timeout = '{_WAIT_S}s'")
                    connection.execute(_LOCK, (super().name,))
                yield

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._pool.close()

    def _index(
        self, embeddings: "str | Embeddings | None", *, made: bool, dimensions: int | None
    ) -> Any:  # noqa: ANN401 - a TypedDict of an optional package
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

        def embed(texts: Iterable[str]) -> list[list[float]]:
            vectors: list[list[float]] = embedder.embed_documents(list(texts)).tolist()
            return vectors

        return {
            "dims": given,
            "embed": embed,
            "fields": ["text"],
            "ann_index_config": {"kind": "flat"},
        }


def _search_until_enough(connection: Any) -> None:  # noqa: ANN401 - of an optional package
    """Have pgvector read on in an HNSW index until enough rows of the namespace are found; older ones ignore it."""
    connection.execute("SET hnsw.iterative_scan = strict_order")
