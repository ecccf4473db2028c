"""Shared code for our collections in Weaviate: opening, searching, fetching, storing."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID
from weakref import finalize

import numpy as np
from langchain_core.utils.iter import batch_iterate
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.concurrency import results
from stepcraft.errors import BadInput, Failed, MemoryFailure, ReadOnlyMemory
from stepcraft.index import MOST_RESULTS, Matrix, check_recorded, check_search, query_vector
from stepcraft.memory.local import recorded_embedder
from stepcraft.memory.procedure import is_uuid
from stepcraft.memory.weaviate.connection import Connection, Objects, T
from stepcraft.memory.weaviate.schema import (
    WORDS,
    Layout,
    add_tenant,
    create_collection,
    recorded,
)
from stepcraft.memory.weaviate.url import parse_url
from stepcraft.secrets import masked_line
from stepcraft.text.clean import clean
from stepcraft.text.words import PARTS_WEIGHT, query_words, stored_words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

BATCH = 1000
"""The maximum number of objects in a request."""

AT_ONCE = 2
"""The number of requests sent at once, as in the client's own batching."""

_LEAST_BY_WORDS = 100
"""The minimum number of results to request in a keyword search; with fewer, Weaviate 1.39 misses
better objects and returns different scores.
"""

Item = DataObject[dict[str, Any], None]
Condition: TypeAlias = Any
"""A filter of the Weaviate client, which has only a private type for filters."""


Hits: TypeAlias = Sequence[tuple[Any, float]]
"""Objects that were found, with their scores."""


class OpenCollection:
    """A collection in Weaviate, with the embedding model that it was made with.

    Args:
        url: The URL, as for `parse_url`.
        layout: The layout of the objects in it.
        embeddings: As for `open_memory`.
        create: Whether to create a missing collection.
        fill: How to fill a missing collection, as advice for error messages.
        again: How to fill another collection with other embeddings, as advice for error messages.

    Raises:
        BadInput: The URL is malformed, or there is no such collection.
        MemoryFailure: The server cannot be used, or the collection has another layout or other
            embeddings.
    """

    def __init__(
        self,
        url: str,
        layout: Layout,
        *,
        embeddings: "str | Embeddings | None",
        create: bool,
        fill: str,
        again: str,
    ) -> None:
        address = parse_url(url)
        self.layout = layout
        self.connection = Connection(address)
        self._release = finalize(self, self.connection.close)
        look = partial(recorded, layout=layout)
        made_with = self.connection.call(look)
        if not made_with and not create:
            raise BadInput(
                f"{url}: there is no collection {address.collection}; check the name, or {fill}"
            )
        self.embedder = recorded_embedder(url, embeddings, made_with)
        name = self.embedder.name if self.embedder else "none"
        if not made_with:
            try:
                self.connection.call(
                    partial(create_collection, self.connection, name, address, layout)
                )
            except MemoryFailure:
                if not (made_with := self.connection.call(look)):  # nobody else created it
                    raise
        self.connection.call(partial(add_tenant, tenant=address.tenant))
        self.embeddings = made_with or name
        check_recorded(url, self.embedder, self.embeddings, again)

    def search(
        self,
        query: str,
        k: int,
        *,
        alpha: float,
        filters: Condition = None,
        refine: Callable[[Objects, Hits], Hits] = lambda _, hits: hits,
    ) -> Hits:
        """Return the k objects that fit best, with their scores.

        In a vector-only search, scores are cosines; otherwise, they are relative to the best
        score.

        Args:
            query: The query.
            k: The maximum number of results.
            alpha: The weight of vectors, which is 0 without an embedder.
            filters: A client filter that limits which objects are searched.
            refine: Selects among the results, and may make further calls within the same time
                limit.
        """
        check_search(k, alpha)
        vector = query_vector(self.embedder, clean(query)) if alpha and self.embedder else None
        if vector is None:
            alpha = 0
        words = " ".join(query_words(query)) if alpha < 1 else ""
        if vector is None and not words:
            return []
        numbers = None if vector is None else vector.tolist()
        shared: dict[str, Any] = {
            "return_properties": [*self.layout.shown],
            "return_metadata": MetadataQuery(distance=True, score=True),
            "filters": filters,
        }

        def found(objects: Objects) -> Hits:
            if not words:
                near = objects.query.near_vector(numbers or [], limit=k, **shared)
                hits = [(item, 1 - (item.metadata.distance or 0)) for item in near.objects]
                return refine(objects, hits)[:k]
            mixed: Any = objects.query.hybrid(
                words,
                vector=numbers,
                alpha=alpha,
                query_properties=["words", f"parts^{PARTS_WEIGHT}"],
                fusion_type=HybridFusion.RELATIVE_SCORE,
                limit=max(k, _LEAST_BY_WORDS),
                **shared,
            )
            return refine(objects, [(item, item.metadata.score) for item in mixed.objects])[:k]

        return self.connection.search(found)

    def count(self, filters: Condition = None) -> int:
        """Return the number of objects, optionally only of those that match a client filter."""
        reply = self.connection.call(
            lambda objects: objects.aggregate.over_all(total_count=True, filters=filters)
        )
        return reply.total_count or 0

    def fetch(self, ids: Iterable[str], *, vectors: bool = False) -> Sequence[Any]:
        """Return the objects with the given ids, omitting any that do not exist."""
        possible = [*filter(is_uuid, ids)]
        if not possible:
            return []
        return self.matching(Filter.by_id().contains_any(possible), len(possible), vectors=vectors)

    def matching(
        self,
        filters: Condition,
        limit: int,
        *,
        after: UUID | None = None,
        vectors: bool = False,
    ) -> Sequence[Any]:
        """Return at most `limit` objects that match a client filter, in the order of their ids.

        With `after`, results start after the object with this id, and `filters` must be None.
        """
        return self.connection.call(
            lambda objects: (
                objects.query.fetch_objects(
                    filters=filters,
                    limit=limit,
                    after=after,
                    return_properties=[*self.layout.content],
                    include_vector=vectors,
                ).objects
            )
        )

    def __iter__(self) -> Iterator[Any]:
        """Iterate over all objects in the order of their ids, one page at a time."""
        last = None
        while page := self.matching(None, BATCH, after=last):
            yield from page
            last = page[-1].uuid

    def insert(self, values: Sequence[T], as_object: Callable[[T], Item]) -> list[Failed]:
        """Store values as objects, replacing those with the same ids; return those refused.

        Requests are prepared while the server answers others.
        """

        def insert(objects: Objects) -> list[Failed]:
            def send(part: Sequence[T]) -> list[Failed]:
                return _insert(objects, [*map(as_object, part)])

            inserts = [partial(send, part) for part in batch_iterate(BATCH, values)]
            return [*chain.from_iterable(results(inserts, AT_ONCE))]

        return self.connection.call(insert)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete objects, and return how many of the given ids existed."""
        parts = batch_iterate(BATCH, filter(is_uuid, dict.fromkeys(ids)))
        return sum(self.delete_matching(Filter.by_id().contains_any(part)) for part in parts)

    def delete_matching(self, filters: Condition) -> int:
        """Delete the objects that match a client filter, and return how many were deleted."""

        def delete(objects: Objects) -> int:
            deleted = 0
            while (reply := objects.data.delete_many(where=filters)).matches:  # 10,000 at once
                deleted += reply.successful
                if reply.successful < reply.matches:  # the client reports it nowhere else
                    raise MemoryFailure(
                        f"{deleted} {self.layout.holds} were deleted, and Weaviate keeps the "
                        f"others in {objects.name}, which is read-only: see the server's log"
                    )
                if reply.matches < MOST_RESULTS:
                    break
            return deleted

        return self.connection.call(delete)

    def close(self) -> None:
        """Close the connection; closing it again does nothing."""
        self._release()


def vector_of(item: Any) -> Matrix:  # noqa: ANN401 - of the client
    """Return the vector of an object, or an empty one if it has none."""
    return np.asarray(item.vector.get("default", ()), np.float32)


def words_of(text: str) -> dict[str, str]:
    """Return the properties that make an object searchable by words."""
    return dict(zip(WORDS, stored_words(text), strict=True))


def as_texts(tags: Mapping[str, str]) -> list[str]:
    """Return tags in the form in which Weaviate stores them."""
    return [f"{name}={value}" for name, value in tags.items()]


def _insert(objects: Objects, items: Sequence[Item]) -> list[Failed]:
    """Send objects, and return those that the server refused, with the reasons.

    Raises:
        ReadOnlyMemory: The collection is read-only.
    """
    try:
        errors = objects.data.insert_many(items).errors
    except WeaviateInsertManyAllFailedError as error:
        if "read-only" in str(error):
            raise ReadOnlyMemory(
                f"the collection {objects.name} takes nothing more ({str(error)[:200]}); make room "
                "on the disk of the server, and set its shards READY again"
            ) from error
        raise
    except WeaviateQueryError as error:
        if "larger than max" not in str(error):
            raise
        if half := len(items) // 2:
            return _insert(objects, items[:half]) + _insert(objects, items[half:])
        reason = "it is larger than a message to Weaviate may be; shorten it"
        return [Failed(str(items[0].uuid), reason)]
    return [
        Failed(str(items[place].uuid), masked_line(error.message))
        for place, error in errors.items()
    ]
