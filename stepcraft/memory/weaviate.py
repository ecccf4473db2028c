"""A memory in Weaviate: in a server, embedded, or in its cloud."""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import weaviate
from weaviate.classes.query import HybridFusion

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder, match_expression, query_vector
from stepcraft.memory import _weaviate_embedded as embedded_servers
from stepcraft.memory._weaviate_link import Link
from stepcraft.memory._weaviate_objects import (
    BATCH,
    SCORE,
    Objects,
    batches,
    forget,
    is_uuid,
    page_after,
    procedure_of,
    put,
    stored,
)
from stepcraft.memory._weaviate_schema import SEARCHED, MadeWith, check_tenant, made_with, make
from stepcraft.memory._weaviate_url import Place, Server, place_of
from stepcraft.memory.procedure import TEMPLATE, Procedure, checked_template
from stepcraft.memory.store import ALPHA, AddReport, Found, ProcedureMemory
from stepcraft.models.embeddings import VARIABLE, resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_Result = TypeVar("_Result")


class WeaviateMemory(ProcedureMemory):
    """Procedures in a collection of Weaviate; many threads, processes and machines may use it at once.

    The server may go away and come back: the next call connects anew. A call to one that is gone fails within
    5 seconds.

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
        self._link = Link(self._place.name, _server_of(self._place))
        self._close = weakref.finalize(self, _let_go, self._link, _borrowed(self._place))
        try:
            self._embedder, self._made_with = self._link.call(
                lambda client: _opened(client, self._place, embeddings, template, create=create)
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
    def read_only(self) -> bool:
        """Always false: a collection can be written, unless the server refuses."""
        return False

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
        weight = ALPHA if alpha is None else alpha
        if k < 1 or not 0 <= weight <= 1:
            raise BadInput(f"k must be at least 1 and alpha between 0 and 1, not {k} and {alpha}")
        vector = query_vector(self._embedder, query) if weight and self._embedder else None
        numbers: list[float] | None = None if vector is None else vector.tolist()
        if numbers is not None and len(numbers) != self._made_with.dimensions:
            raise MemoryFailure(
                f"{self.name} holds vectors of {self._made_with.dimensions} dimensions, and the embedding model "
                f"gives {len(numbers)}: open it with the model that it was made with"
            )
        return self._on(lambda objects: _search(objects, query, numbers, k, weight))

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

    def _on(self, action: Callable[[Objects], _Result]) -> _Result:
        return self._link.call(lambda client: action(_objects(client, self._place)))

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


def _objects(client: weaviate.WeaviateClient, place: Place) -> Objects:
    objects = client.collections.use(place.collection)
    return objects.with_tenant(place.tenant) if place.tenant else objects


def _server_of(place: Place) -> Callable[[], Server]:
    if place.server:
        server = place.server
        return lambda: server
    folder, binary = place.folder, place.binary
    assert folder  # noqa: S101 - a place has one or the other
    return lambda: embedded_servers.server_in(folder, binary)


def _borrowed(place: Place) -> Place:
    if place.folder:
        embedded_servers.borrow(place.folder, place.binary)
    return place


def _let_go(link: Link, place: Place) -> None:
    link.close()
    if place.folder:
        embedded_servers.give_back(place.folder)


def _opened(
    client: weaviate.WeaviateClient,
    place: Place,
    embeddings: "str | Embeddings | None",
    template: str | None,
    *,
    create: bool,
) -> tuple[Embedder | None, MadeWith]:
    """The embedder and what the collection was made with; makes the collection if so told."""
    found = made_with(client, place)
    asked = embeddings if embeddings is not None else os.environ.get(VARIABLE) or None
    if found is None:
        if not create:
            raise BadInput(
                f"{place.name}: there is no collection {place.collection}; check the name, or import procedures first"
            )
        embedder = resolve_embeddings(asked)
        dimensions = len(embedder.embed_query("procedure")) if embedder else 0
        name = embedder.name if embedder else "none"
        found = MadeWith(name, dimensions, checked_template(template or TEMPLATE))
        make(client, place, found)
    else:
        embedder = _agreed(place, found, asked, template)
    check_tenant(client, place, create=create)
    return embedder, found


def _agreed(
    place: Place, found: MadeWith, asked: "str | Embeddings | None", template: str | None
) -> Embedder | None:
    if template is not None and checked_template(template) != found.template:
        raise MemoryFailure(
            f"{place.name} was made with template {found.template!r}, not {template!r}: leave it out, or fill a new one"
        )
    if asked is None:
        try:
            return resolve_embeddings(found.embeddings)
        except BadInput as error:
            raise MemoryFailure(
                f"{place.name} was made with embeddings {found.embeddings!r} ({error}); give them as embeddings=, "
                "or 'none' to search by words alone"
            ) from error
    embedder = resolve_embeddings(asked)
    if embedder and embedder.name != found.embeddings:
        raise MemoryFailure(
            f"{place.name} was made with embeddings {found.embeddings!r}, not {embedder.name!r}: "
            f"open it with {found.embeddings!r}, or fill a new collection"
        )
    return embedder


def _search(objects: Objects, query: str, vector: list[float] | None, k: int, alpha: float) -> list[Found]:
    words = bool(match_expression(query))
    if vector is not None and (alpha == 1 or not words):
        hits = objects.query.near_vector(vector, limit=k, return_metadata=SCORE).objects
        scored = [(hit, 1 - (hit.metadata.distance or 0)) for hit in hits]
    elif vector is not None:
        hits = objects.query.hybrid(
            query,
            vector=vector,
            alpha=alpha,
            limit=k,
            query_properties=list(SEARCHED),
            fusion_type=HybridFusion.RELATIVE_SCORE,
            return_metadata=SCORE,
        ).objects
        scored = [(hit, hit.metadata.score or 0.0) for hit in hits]
    elif words:
        hits = objects.query.bm25(
            query, query_properties=list(SEARCHED), limit=k, return_metadata=SCORE
        ).objects
        best = max((hit.metadata.score or 0 for hit in hits), default=0) or 1
        scored = [(hit, (hit.metadata.score or 0) / best) for hit in hits]
    else:
        scored = []
    found = ((procedure_of(str(hit.uuid), hit.properties), score) for hit, score in scored)
    return [Found(procedure, score) for procedure, score in found if procedure]
