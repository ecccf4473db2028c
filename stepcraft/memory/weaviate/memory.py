"""A memory in Weaviate: in a server, embedded, or in its cloud."""

import asyncio
import uuid
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from stepcraft.concurrency import shared_lock
from stepcraft.errors import AddReport, BadInput, MemoryFailure
from stepcraft.index import Matrix, aquery_vector, query_vector, query_words
from stepcraft.memory.history import revised
from stepcraft.memory.procedure import Procedure, is_uuid
from stepcraft.memory.protocol import Found, MadeWith, VectorMemory, WithVector, unknown_id
from stepcraft.memory.weaviate import objects
from stepcraft.memory.weaviate.connection import Connection, Objects
from stepcraft.memory.weaviate.embedded import acquire_server, locator, release_server
from stepcraft.memory.weaviate.importer import Import, send, vectors_of
from stepcraft.memory.weaviate.schema import open_collection
from stepcraft.memory.weaviate.url import Address, parse_url
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_Result = TypeVar("_Result")


class WeaviateMemory(VectorMemory):
    """Procedures in a collection of Weaviate; many threads, event loops, processes and machines may use it at once.

    The server may go away and come back: the next call reconnects, and an import under way waits for it. Any other
    call to a server that is gone fails within 5 seconds. `asearch` and `aclose` await on any event loop; the other
    methods block the calling thread.

    Args:
        url: `weaviate://host:port/Collection`, with `?grpc=` (port, 50051) and `tls=true`;
            `weaviate+embedded:///folder/Collection`, with `?binary=` (folder of the program); or
            `weaviate+cloud://cluster/Collection`. Each takes `tenant=`, and for a new collection `replicas=` (not
            embedded), `quantizer=` (rq, pq, bq, sq) and the settings of its HNSW index, `ef=` (1024),
            `ef_construction=` (256) and `max_connections=` (64). `ef` is changed in an existing collection too.
        embeddings: as in `open_memory`.
        template: as in `open_memory`.
        create: whether a missing collection or tenant is created.
        reconnect_timeout_s: how long an import waits for a server that went away, in seconds.

    Raises:
        BadInput: the URL is malformed, or there is no such collection or tenant.
        MemoryFailure: the server cannot be used, or the collection has another shape, index, embeddings or template.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        template: str | None = None,
        create: bool = True,
        reconnect_timeout_s: float = 60,
    ) -> None:
        self._reconnect_timeout_s = reconnect_timeout_s
        self._address = parse_url(url)
        self._changing = shared_lock(("changing", self._address.name))
        acquire_server(self._address)
        self._connection = Connection(self._address, locator(self._address))
        self._release = weakref.finalize(self, _release, self._connection, self._address)
        try:
            self._embedder, self._made_with = open_collection(
                self._connection, self._address, embeddings, template, create=create
            )
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return self._address.name

    @property
    def template(self) -> str:
        """How a procedure is written as one text."""
        return self._made_with.template

    @property
    def made_with(self) -> MadeWith:
        """What the collection was made with."""
        return self._made_with

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures in batches; memory use does not grow with their number.

        A server that goes away meanwhile is waited for.

        Raises:
            AddStopped: it did not come back, or the collection became read-only; with an exact account.
            MemoryFailure: it failed before anything was sent.
        """
        return self.add_with_vectors(
            ((procedure, None) for procedure in procedures), progress=progress
        )

    def add_with_vectors(
        self, items: Iterable[WithVector], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """As `add`; only vectors that are None are made."""
        importing = Import(
            self._connection,
            self._embedder,
            self._made_with,
            self._reconnect_timeout_s,
            self._changing,
        )
        return importing.run(items, progress)

    def update(self, id: str, change: Callable[[Procedure], Procedure]) -> Procedure:  # noqa: A002 - the field is called id
        """Read a procedure, change it and write it; of two processes that do so at the same moment, the last one wins."""
        if not is_uuid(id):
            raise unknown_id(self, id)
        with self._changing:
            found = self._call(partial(objects.stored_with_vector, name=str(uuid.UUID(id))))
            if found is None or found[0].procedure is None:
                raise unknown_id(self, id)
            kept, vector, created = found[0].procedure, found[1], found[0].created
            changed = revised(kept, change(kept))
            if changed == kept:
                return kept
            made: Matrix | None = vector
            if changed.text(self.template) != kept.text(self.template):
                made = vectors_of([changed], self._embedder, self._made_with)[changed.id]
            if made is None:
                raise MemoryFailure(
                    f"{id} was not changed: the embedding model {self._made_with.embeddings} gave a vector that is not finite"
                )
            item = (changed, made, created or datetime.now(UTC))
            for refused in self._call(partial(send, items=[item])):
                raise MemoryFailure(f"{id} was not changed: {refused.reason}")
        return changed

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """Find the k procedures that fit best, by Weaviate's approximate vector index and BM25."""
        weight = _weight(k, alpha)
        vector = query_vector(self._embedder, clean(query)) if weight and self._embedder else None
        search = self._search(query, vector, k, weight)
        return self._call(search) if search else []

    async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """As `search`, without blocking the event loop."""
        weight = _weight(k, alpha)
        vector = (
            await aquery_vector(self._embedder, clean(query)) if weight and self._embedder else None
        )
        search = self._search(query, vector, k, weight)
        return (
            await self._connection.acall(lambda session: search(session.objects)) if search else []
        )

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """Return the procedure with this id, or None."""
        if not is_uuid(id):
            return None
        found = self._call(partial(objects.stored, ids=[id]))
        return next((item.procedure for item in found.values()), None)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        return self._call(partial(objects.delete, ids=list(ids)))

    def count(self) -> int:
        """Return the number of procedures."""
        return self._call(objects.count)

    def is_empty(self) -> bool:
        """Whether there is no procedure; reads one at most."""
        return self._call(objects.is_empty)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures in the order of their ids, a page at a time: each as it is when its page is read."""
        return (procedure for procedure, _ in self._read(vectors=False))

    def with_vectors(self) -> Iterator[WithVector]:
        """All procedures with their vectors, as `__iter__`."""
        return (
            (procedure, objects.vector_of(item)) for procedure, item in self._read(vectors=True)
        )

    def close(self) -> None:
        """Close the connection, and an embedded server that nobody else uses; it may be called twice."""
        self._connection.close()
        self._release()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def _call(self, action: Callable[[Objects], Awaitable[_Result]]) -> _Result:
        return self._connection.call(lambda session: action(session.objects))

    def _search(
        self, query: str, vector: Matrix | None, k: int, weight: float
    ) -> Callable[[Objects], Awaitable[list[Found]]] | None:
        """The search to make, or None where there is nothing to search for."""
        if vector is not None and len(vector) != self._made_with.dimensions:
            raise MemoryFailure(
                f"{self.name} holds vectors of {self._made_with.dimensions} dimensions, and the embedding model "
                f"gives {len(vector)}: open it with the model that it was made with"
            )
        words = "" if weight == 1 and vector is not None else " ".join(query_words(query))
        if vector is None and not words:
            return None
        numbers: list[float] | None = None if vector is None else vector.tolist()
        return partial(objects.search, words=words, vector=numbers, k=k, alpha=weight)

    def _read(self, *, vectors: bool) -> Iterator[tuple[Procedure, Any]]:
        """Each procedure with its object."""
        last: str | None = None
        while True:
            page = self._call(partial(objects.page_after, after=last, vectors=vectors))
            for item in page:
                if procedure := objects.procedure_of(str(item.uuid), item.properties):
                    yield procedure, item
            if len(page) < objects.BATCH:
                return
            last = str(page[-1].uuid)


def _weight(k: int, alpha: float | None) -> float:
    weight = objects.ALPHA if alpha is None else alpha
    if k < 1 or not 0 <= weight <= 1:
        raise BadInput(f"k must be at least 1 and alpha between 0 and 1, not {k} and {alpha}")
    return weight


def _release(connection: Connection, address: Address) -> None:
    connection.release()
    release_server(address)
