"""A memory in Weaviate: in a server, embedded, or in its cloud."""

import asyncio
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from stepcraft.errors import AddReport, MemoryFailure
from stepcraft.index import Matrix, aquery_vector, query_vector
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import Found
from stepcraft.memory.vectors import MadeWith, VectorMemory, WithVector
from stepcraft.memory.weaviate import embedded as embedded_servers
from stepcraft.memory.weaviate.async_link import AsyncLink
from stepcraft.memory.weaviate.client import objects_of
from stepcraft.memory.weaviate.importer import Import
from stepcraft.memory.weaviate.link import Link
from stepcraft.memory.weaviate.objects import (
    BATCH,
    Objects,
    forget,
    is_uuid,
    page_after,
    procedure_of,
    stored,
    vector_of,
)
from stepcraft.memory.weaviate.open import opened
from stepcraft.memory.weaviate.search import Search, search_for, weight_of
from stepcraft.memory.weaviate.url import Place, place_of
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_Result = TypeVar("_Result")


class WeaviateMemory(VectorMemory):
    """Procedures in a collection of Weaviate; many threads, processes and machines may use it at once.

    The server may go away and come back: the next call connects anew, and an import on its way waits for it. Any
    other call to one that is gone fails within 5 seconds. `asearch` has a client of its own for each event loop; the
    other methods are called from a thread where a loop runs (`asyncio.to_thread`).

    Args:
        url: `weaviate://host:port/Collection`, with `?grpc=` (port, 50051), `tls=true`, `tenant=`, and for a
            new collection `replicas=` and `quantizer=` (rq, pq, bq, sq);
            `weaviate+embedded:///folder/Collection`; `weaviate+cloud://cluster/Collection`.
        embeddings: as in `open_memory`.
        template: as in `open_memory`.
        create: whether a missing collection or tenant is made.
        patience_s: how long an import waits for a server that went away on the way, in seconds.

    Raises:
        BadInput: the URL is not understood, or there is no such collection or tenant.
        MemoryFailure: the server cannot be used, or the collection has another shape, embeddings or template.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        template: str | None = None,
        create: bool = True,
        patience_s: float = 60,
    ) -> None:
        self._patience_s = patience_s
        self._place = place_of(url)
        parts = (
            self._place.name,
            embedded_servers.server_of(self._place),
            partial(objects_of, place=self._place),
        )
        self._link, self._async_link = Link(*parts), AsyncLink(*parts)
        links = (self._link, self._async_link)
        self._close = weakref.finalize(self, _let_go, links, _borrowed(self._place))
        try:
            self._embedder, self._made_with = self._link.call(
                lambda held: opened(held.client, self._place, embeddings, template, create=create)
            )
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return self._place.name

    @property
    def template(self) -> str:
        """How a procedure reads as one text."""
        return self._made_with.template

    @property
    def made_with(self) -> MadeWith:
        """What the collection was made with."""
        return self._made_with

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Keep procedures in batches; memory use does not grow with their number.

        A server that goes away on the way is waited for.

        Raises:
            AddStopped: it did not come back, or takes nothing any more: with an exact account.
            MemoryFailure: it failed before anything was sent.
        """
        return self.add_with_vectors(((procedure, None) for procedure in procedures), progress=progress)

    def add_with_vectors(
        self, items: Iterable[WithVector], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """As `add`; only vectors that are None are made."""
        return Import(self._on, self._embedder, self._made_with, self._patience_s).run(items, progress)

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """The k procedures that fit best, by Weaviate's vectors and BM25."""
        weight = weight_of(k, alpha)
        vector = query_vector(self._embedder, clean(query)) if weight and self._embedder else None
        search = self._search_for(query, vector, k, weight)
        return search.found(self._on(search.of)) if search else []

    async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """As `search`, by an async client: one for each event loop, closed with it."""
        weight = weight_of(k, alpha)
        vector = await aquery_vector(self._embedder, clean(query)) if weight and self._embedder else None
        search = self._search_for(query, vector, k, weight)
        if not search:
            return []
        return search.found(await self._async_link.call(lambda held: search.of(held.objects)))

    def get(self, id: str) -> Procedure | None:  # noqa: A002 - the field is called id
        """The procedure with this id, or None."""
        if not is_uuid(id):
            return None
        return self._on(
            lambda objects: next((kept.procedure for kept in stored(objects, [id]).values()), None)
        )

    def delete(self, ids: Iterable[str]) -> int:
        """Forget procedures; how many of them there were."""
        wanted = list(ids)
        return self._on(lambda objects: forget(objects, wanted))

    def count(self) -> int:
        """How many procedures there are."""
        return self._on(lambda objects: objects.aggregate.over_all(total_count=True).total_count or 0)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures in the order of their ids, a page at a time: each as it is when its page is read."""
        return (procedure for procedure, _ in self._read(vectors=False))

    def with_vectors(self) -> Iterator[WithVector]:
        """All procedures with their vectors, as `__iter__`."""
        return ((procedure, vector_of(item)) for procedure, item in self._read(vectors=True))

    def close(self) -> None:
        """Close the connection, and an embedded server that nobody else uses; it may be called twice."""
        self._close()

    async def aclose(self) -> None:
        """As `close`, without blocking the event loop; the loop's own client is closed when this returns."""
        await self._async_link.aclose()
        await asyncio.to_thread(self._close)

    def _on(self, action: Callable[[Objects], _Result]) -> _Result:
        return self._link.call(lambda held: action(held.objects))

    def _search_for(self, query: str, vector: Matrix | None, k: int, weight: float) -> Search | None:
        numbers: list[float] | None = None if vector is None else vector.tolist()
        if numbers is not None and len(numbers) != self._made_with.dimensions:
            raise MemoryFailure(
                f"{self.name} holds vectors of {self._made_with.dimensions} dimensions, and the embedding model "
                f"gives {len(numbers)}: open it with the model that it was made with"
            )
        return search_for(query, numbers, k, weight)

    def _read(self, *, vectors: bool) -> Iterator[tuple[Procedure, Any]]:
        """Each procedure with its object."""
        last: str | None = None
        while True:
            page = self._on(partial(page_after, after=last, vectors=vectors))
            for item in page:
                if procedure := procedure_of(str(item.uuid), item.properties):
                    yield procedure, item
            if len(page) < BATCH:
                return
            last = str(page[-1].uuid)


def _borrowed(place: Place) -> Place:
    if place.folder:
        embedded_servers.borrow(place.folder, place.binary)
    return place


def _let_go(links: tuple[Link, AsyncLink], place: Place) -> None:
    for link in links:
        link.close()
    if place.folder:
        embedded_servers.give_back(place.folder)
