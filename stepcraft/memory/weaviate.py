"""A memory in Weaviate: in a server, embedded, or in its cloud."""

import asyncio
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stepcraft.errors import MemoryFailure
from stepcraft.index import Matrix, aquery_vector, query_vector
from stepcraft.memory import _weaviate_embedded as embedded_servers
from stepcraft.memory._weaviate_async_link import AsyncLink
from stepcraft.memory._weaviate_client import objects_of
from stepcraft.memory._weaviate_link import Link
from stepcraft.memory._weaviate_objects import (
    BATCH,
    Objects,
    batches,
    forget,
    is_uuid,
    page_after,
    procedure_of,
    put,
    stored,
)
from stepcraft.memory._weaviate_open import opened
from stepcraft.memory._weaviate_search import Search, search_for, weight_of
from stepcraft.memory._weaviate_url import Place, place_of
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.store import AddReport, Found, ProcedureMemory
from stepcraft.text import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_Result = TypeVar("_Result")


class WeaviateMemory(ProcedureMemory):
    """Procedures in a collection of Weaviate; many threads, processes and machines may use it at once.

    The server may go away and come back: the next call connects anew. A call to one that is gone fails within
    5 seconds. `asearch` has a client of its own for each event loop; the other methods are called from a thread
    where a loop runs (`asyncio.to_thread`).

    Args:
        url: `weaviate://host:port/Collection`, with `?grpc=` (port, 50051), `tls=true`, `tenant=`, and for a
            new collection `replicas=` and `quantizer=` (rq, pq, bq, sq);
            `weaviate+embedded:///folder/Collection`; `weaviate+cloud://cluster/Collection`.
        embeddings: as in `open_memory`.
        template: as in `open_memory`.
        create: whether a missing collection or tenant is made.

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
    ) -> None:
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

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Keep procedures in batches, two of them under way at a time; memory use does not grow with their number."""
        self._check_embeddings()
        report, done = AddReport(), 0
        with ThreadPoolExecutor(2, thread_name_prefix="stepcraft-add") as pool:
            for size, under_way in self._under_way(pool, procedures):
                try:
                    report.include(under_way.result())
                except MemoryFailure as error:
                    raise type(error)(
                        f"{error}; the first {done:,} procedures were dealt with, those after them may be missing: "
                        "add again to do the rest"
                    ) from error
                done += size
                if progress:
                    progress(done)
        return report

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
        return self._on(lambda objects: next((kept for kept, _ in stored(objects, [id]).values()), None))

    def delete(self, ids: Iterable[str]) -> int:
        """Forget procedures; how many of them there were."""
        wanted = list(ids)
        return self._on(lambda objects: forget(objects, wanted))

    def count(self) -> int:
        """How many procedures there are."""
        return self._on(lambda objects: objects.aggregate.over_all(total_count=True).total_count or 0)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures in the order of their ids, a page at a time: each as it is when its page is read."""
        last: str | None = None
        while True:
            page = self._on(partial(page_after, after=last))
            for item in page:
                if procedure := procedure_of(str(item.uuid), item.properties):
                    yield procedure
            if len(page) < BATCH:
                return
            last = str(page[-1].uuid)

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

    def _check_embeddings(self) -> None:
        if not self._embedder and self._made_with.embeddings != "none":
            raise MemoryFailure(
                f"{self.name} was made with embeddings {self._made_with.embeddings!r}: open it with them to add"
            )

    def _under_way(
        self, pool: ThreadPoolExecutor, procedures: Iterable[Procedure]
    ) -> Iterator[tuple[int, Future[AddReport]]]:
        """Each batch in order, once one more was sent behind it; never two at a time that share an id."""
        before: tuple[set[str], int, Future[AddReport]] | None = None
        for batch in batches(procedures):
            ids = {procedure.id for procedure in batch}
            if before and before[0] & ids:
                before[2].exception()
            after = (ids, len(batch), pool.submit(self._put, batch))
            if before:
                yield before[1:]
            before = after
        if before:
            yield before[1:]

    def _put(self, batch: list[Procedure]) -> AddReport:
        return self._on(lambda objects: put(objects, batch, self._embedder, self._made_with))


def _borrowed(place: Place) -> Place:
    if place.folder:
        embedded_servers.borrow(place.folder, place.binary)
    return place


def _let_go(links: tuple[Link, AsyncLink], place: Place) -> None:
    for link in links:
        link.close()
    if place.folder:
        embedded_servers.give_back(place.folder)
