"""A memory in Weaviate: in a server, or in its cloud."""

import json
import logging
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.concurrency import outcomes
from stepcraft.errors import BadInput, Failed, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Matrix, check_search, embedded, query_vector
from stepcraft.memory.batches import ServedMemory
from stepcraft.memory.history import same_text
from stepcraft.memory.local import recorded_embedder
from stepcraft.memory.procedure import Found, Procedure, checked_tags, is_uuid
from stepcraft.memory.weaviate.connection import Connection, Objects
from stepcraft.memory.weaviate.schema import (
    CONTENT,
    WORDS,
    add_tenant,
    create_collection,
    recorded,
)
from stepcraft.memory.weaviate.url import parse_url
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import clean
from stepcraft.text.words import PARTS_WEIGHT, VERSION, query_words, stored_words

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_log = logging.getLogger(__name__)

ALPHA = 0.5
"""The weight of vectors in a hybrid search by default.

Weaviate stretches the scores of the nearest 100 vectors over 0 to 1, as it does those of words. The
cosines of a local memory lie closer together, so that they take a larger weight to count as much.
"""

_BATCH = 1000
_AT_ONCE = 2
"""How many messages of so many objects are sent at once, as by the client's own batch."""

_CHANGED_AT_ONCE = 8

_JSON = ("metadata", "outcomes", "versions")
"""The properties that hold JSON."""

_LONGER = np.float32(1.001)

_LEAST_BY_WORDS = 100
"""Weaviate 1.39 misses better procedures, and gives other scores, if it looks for fewer."""


class WeaviateMemory(ServedMemory):
    """Procedures in a collection of Weaviate, for many threads, event loops and machines at once.

    A search in a server that is gone fails within 5 seconds, and the next one after its return
    succeeds.

    Args:
        url: `weaviate://host:port/Collection`, with `?grpc=` (port, 50051) and `tls=true`; or
            `weaviate+cloud://cluster/Collection`. With `tenant=` the procedures are those of one
            tenant, which is made. `replicas=` and `quantization=` (rq, bq, pq or sq) hold for a
            collection that is made.
        embeddings: As in `open_memory`.
        create: Whether a missing collection is created.

    Raises:
        BadInput: The URL is malformed, or there is no such collection.
        MemoryFailure: The server cannot be used, or the collection has another shape or other
            embeddings.
    """

    batch = _BATCH * _AT_ONCE

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        create: bool = True,
    ) -> None:
        address = parse_url(url)
        self.name = url
        self._connection = Connection(address)
        self._release = weakref.finalize(self, self._connection.close)
        recorded_name = self._connection.call(recorded)
        if not recorded_name and not create:
            raise BadInput(
                f"{url}: there is no collection {address.collection}; check the name, or import "
                "procedures first"
            )
        self._embedder = recorded_embedder(url, embeddings, recorded_name)
        name = self._embedder.name if self._embedder else "none"
        if not recorded_name:
            making = partial(create_collection, self._connection, name, address)
            self._connection.call(making)
        self._connection.call(partial(add_tenant, tenant=address.tenant))
        self._embeddings = recorded_name or name
        if self._embedder and self._embeddings != name:
            raise MemoryFailure(
                f"{url} was made with embeddings {self._embeddings!r}, not {name!r}: open it with "
                "the former, or fill a new collection with the latter, as `stepcraft memory copy "
                "OLD NEW --embeddings NAME` does"
            )
        if recorded_name:
            self._renew_words()

    def search(
        self,
        query: str,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Found]:
        """Return the k procedures that fit best, by Weaviate's vector index and BM25."""
        weight = ALPHA if alpha is None else alpha
        check_search(k, weight)
        vector = query_vector(self._embedder, clean(query)) if weight and self._embedder else None
        if vector is None:
            weight = 0
        words = " ".join(query_words(query)) if weight < 1 else ""
        if vector is None and not words:
            return []
        tags = _as_texts(checked_tags(where or {}))
        search = partial(_search, words=words, vector=vector, k=k, alpha=weight, tags=tags)
        return self._connection.search(search)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        return self._connection.call(partial(_delete, ids=list(ids)))

    def count(self) -> int:
        """Return the number of procedures."""
        reply = self._connection.call(lambda objects: objects.aggregate.over_all(total_count=True))
        return reply.total_count or 0

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures in the order of their ids, a page at a time."""
        last = None
        while page := self._connection.call(partial(_page, after=last)):
            yield from filter(None, map(_procedure, page))
            last = page[-1].uuid

    def close(self) -> None:
        """Close the connection; it may be called twice."""
        self._release.detach()
        self._connection.close()

    def _renew_words(self) -> None:
        """Make the words anew of what another version has stored, unless all are of this one."""
        if not (count := self._connection.call(_outdated)):
            return
        _log.warning("%s: the words of %d procedures are indexed anew, once", self.name, count)
        last = None
        while page := self._connection.call(partial(_page, after=last)):
            old = [item for item in page if item.properties.get("words_version") != str(VERSION)]
            self._connection.call(partial(_set_words, items=old))
            last = page[-1].uuid

    def _stored(self, ids: Iterable[str]) -> dict[str, Procedure]:
        items = self._connection.call(partial(_fetch, ids=list(ids)))
        return {procedure.id: procedure for procedure in filter(None, map(_procedure, items))}

    def _damaged(self, stored: Mapping[str, Procedure]) -> Collection[str]:
        """Return what a server that was killed has stored without its place in the index."""
        if not (stored and self._embedder):
            return ()
        vector = self._embedder.embed_query("procedure").tolist()
        return self._connection.call(partial(_not_indexed, ids=set(stored), vector=vector))

    def _write(
        self, procedures: Mapping[str, Procedure], stored: Mapping[str, Procedure]
    ) -> list[Failed]:
        """Send procedures, several messages at once; return those that were refused.

        The vector of a text that is stored is not made anew. Weaviate puts into its index only what
        has changed, so that an unchanged procedure, whose place there was lost, is sent with a
        longer vector of the same direction.
        """
        same = [
            id_
            for id_, procedure in procedures.items()
            if id_ in stored and same_text(stored[id_], procedure)
        ]
        vectors = {
            str(item.uuid): _vector(item)
            for item in self._connection.call(partial(_fetch, ids=same, vectors=True))
        }
        texts = {
            id_: procedure.text() for id_, procedure in procedures.items() if id_ not in vectors
        }
        if texts and not self._embedder and self._embeddings != "none":
            raise MemoryFailure(
                f"{self.name} was made with embeddings {self._embeddings!r}: open it with them "
                "to add"
            )
        for id_ in same:
            if id_ in vectors and stored[id_] == procedures[id_]:
                vectors[id_] = vectors[id_] * _LONGER
        refused: dict[str, str] = {}
        if self._embedder:
            new, refused = embedded(self._embedder, list(texts.values()))
            for id_, text in texts.items():
                if text in new:
                    vectors[id_] = np.frombuffer(new[text], np.float32)
        else:
            vectors |= dict.fromkeys(texts, np.empty(0, np.float32))
        failed = [Failed(id_, refused[text]) for id_, text in texts.items() if text in refused]
        items = [_object(procedures[id_], vector) for id_, vector in vectors.items()]
        return failed + self._connection.call(partial(_insert_all, items=items))


Item = DataObject[dict[str, Any], None]


def _search(
    objects: Objects,
    *,
    words: str,
    vector: Matrix | None,
    k: int,
    alpha: float,
    tags: Sequence[str],
) -> list[Found]:
    """Search by vector, by words (BM25), or by both, weighted by alpha, among those with the tags.

    Scores are cosines by vector alone, and else relative to the best.
    """
    numbers = None if vector is None else vector.tolist()
    shared: dict[str, Any] = {
        "return_properties": CONTENT,
        "return_metadata": MetadataQuery(distance=True, score=True),
        "filters": Filter.by_property("tags").contains_all([*tags]) if tags else None,
    }
    if words:
        reply: Any = objects.query.hybrid(
            words,
            vector=numbers,
            alpha=alpha,
            query_properties=["words", f"parts^{PARTS_WEIGHT}"],
            fusion_type=HybridFusion.RELATIVE_SCORE,
            limit=max(k, _LEAST_BY_WORDS),
            **shared,
        )
    else:
        reply = objects.query.near_vector(numbers or [], limit=k, **shared)
    return [
        Found(procedure, item.metadata.score if words else 1 - item.metadata.distance)
        for item in reply.objects[:k]
        if (procedure := _procedure(item))
    ]


def _fetch(objects: Objects, ids: Iterable[str], *, vectors: bool = False) -> Sequence[Any]:
    possible = [id_ for id_ in ids if is_uuid(id_)]
    if not possible:
        return []
    reply = objects.query.fetch_objects_by_ids(
        possible, limit=len(possible), return_properties=CONTENT, include_vector=vectors
    )
    return reply.objects


def _vector(item: Any) -> Matrix:  # noqa: ANN401 - of the client
    """Return the vector of an object; an empty one if it has none."""
    return np.asarray(item.vector.get("default", ()), np.float32)


def _page(objects: Objects, after: Any) -> Sequence[Any]:  # noqa: ANN401 - of the client
    properties = [*CONTENT, "words_version"]
    reply = objects.query.fetch_objects(limit=_BATCH, after=after, return_properties=properties)
    return reply.objects


def _outdated(objects: Objects) -> int:
    """Return how many objects have no words of this version."""
    is_current = Filter.by_property("words_version").equal(str(VERSION))
    current = objects.aggregate.over_all(total_count=True, filters=is_current).total_count or 0
    return (objects.aggregate.over_all(total_count=True).total_count or 0) - current


def _set_words(objects: Objects, items: Sequence[Any]) -> None:
    """Change the words of objects, and nothing else of them."""
    changes = [partial(objects.data.update, item.uuid, _words(_procedure(item))) for item in items]
    for outcome in outcomes(changes, None, _CHANGED_AT_ONCE):
        if isinstance(outcome, Exception):
            raise outcome


def _not_indexed(objects: Objects, ids: set[str], vector: list[float]) -> set[str]:
    """Return which of some objects have a vector and are not found by vectors."""
    near = objects.query.near_vector(
        vector,
        filters=Filter.by_id().contains_any(list(ids)),
        limit=len(ids),
        return_properties=[],
    )
    missing = ids - {str(item.uuid) for item in near.objects}
    items = _fetch(objects, missing, vectors=True)
    return {str(item.uuid) for item in items if _vector(item).any()}


def _delete(objects: Objects, ids: Iterable[str]) -> int:
    possible = [id_ for id_ in dict.fromkeys(ids) if is_uuid(id_)]
    deleted = 0
    for first in range(0, len(possible), _BATCH):
        reply = objects.data.delete_many(
            where=Filter.by_id().contains_any(possible[first : first + _BATCH])
        )
        deleted += reply.successful
        if reply.successful < reply.matches:  # which the client reports nowhere else
            raise MemoryFailure(
                f"{deleted} procedures were deleted, and Weaviate keeps the others in "
                f"{objects.name}, which is read-only: see the server's log"
            )
    return deleted


def _insert_all(objects: Objects, items: Sequence[Item]) -> list[Failed]:
    parts = [
        partial(_insert, objects, items[first : first + _BATCH])
        for first in range(0, len(items), _BATCH)
    ]
    failed: list[Failed] = []
    for outcome in outcomes(parts, None, _AT_ONCE):
        if isinstance(outcome, Exception):
            raise outcome
        failed += outcome
    return failed


def _insert(objects: Objects, items: Sequence[Item]) -> list[Failed]:
    """Send objects, and return those that the server refused, with its reasons.

    Raises:
        ReadOnlyMemory: The collection is read-only.
    """
    try:
        errors = (objects.data.insert_many(items)).errors
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
        Failed(str(items[place].uuid), " ".join(without_secrets(error.message).split())[:300])
        for place, error in errors.items()
    ]


def _object(procedure: Procedure, vector: Matrix) -> Item:
    """Return an object; without a vector if it is empty or zero, which has no angle."""
    fields = procedure.to_dict()
    return DataObject(
        properties={name: fields.get(name) for name in CONTENT}
        | {
            **{name: json.dumps(fields.get(name) or {}, ensure_ascii=False) for name in _JSON},
            "tags": _as_texts(procedure.tags),
            **_words(procedure),
        },
        uuid=procedure.id,
        vector=vector.tolist() if vector.any() else None,
    )


def _words(procedure: Procedure | None) -> dict[str, str]:
    """Return the properties that are searched by words; empty ones for what is no procedure."""
    texts = (procedure.input, procedure.output, *procedure.steps) if procedure else ()
    found = stored_words("\n".join(texts))
    return dict(zip(WORDS, (*found, str(VERSION)), strict=True))


def _as_texts(tags: Mapping[str, str]) -> list[str]:
    """Return tags as Weaviate stores them."""
    return [f"{name}={value}" for name, value in tags.items()]


def _procedure(item: Any) -> Procedure | None:  # noqa: ANN401 - the client's class is generic
    values = {**item.properties, "id": str(item.uuid)}
    try:
        values |= {name: json.loads(values.get(name) or "{}") for name in _JSON}
        values["tags"] = dict(each.split("=", 1) for each in values.get("tags") or ())
        return Procedure.of_kept(values)
    except (BadInput, ValueError):
        return None
