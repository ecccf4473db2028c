"""A memory in a Weaviate server or in Weaviate Cloud."""

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.utils.iter import batch_iterate
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter

from stepcraft.concurrency import results
from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.index import COPY, Matrix, embedded
from stepcraft.memory.batches import ServedMemory
from stepcraft.memory.history import same_text
from stepcraft.memory.procedure import FIELDS, Found, Procedure, checked_tags, standard_id
from stepcraft.memory.weaviate.collection import (
    AT_ONCE,
    BATCH,
    Item,
    OpenCollection,
    as_texts,
    vector_of,
    words_of,
)
from stepcraft.memory.weaviate.connection import Objects
from stepcraft.memory.weaviate.schema import Layout
from stepcraft.text.words import VERSION

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_log = logging.getLogger(__name__)

ALPHA = 0.5
"""The default weight of vectors in a hybrid search.

Weaviate rescales the scores of the nearest 100 vectors to the range from 0 to 1, as it does with
keyword scores. The cosines in a local memory are closer together and need a larger weight to
count as much.
"""

_CONTENT = tuple(name for name in FIELDS if name != "id")
_LAYOUT = Layout(
    holds="procedures",
    content=(*_CONTENT, "words_version"),
    shown=_CONTENT,
    exact=("source", "tags", "key", "words_version"),
    lists=("steps", "tags"),
)

_CHANGED_AT_ONCE = 8

_JSON = ("metadata", "outcomes", "versions")
"""The properties that hold JSON."""

_LONGER = np.float32(1.001)


class WeaviateMemory(ServedMemory):
    """Procedures in a Weaviate collection, for many threads, event loops and machines at once.

    If the server is down, a search fails within 5 seconds; once it is up again, the next search
    succeeds.

    Args:
        url: `weaviate://host:port/Collection`, optionally with `?grpc=` (the gRPC port, by default
            50051) and `tls=true`, or `weaviate+cloud://cluster/Collection`. With `tenant=`, the
            memory holds the procedures of one tenant, which is created if missing. `replicas=` and
            `quantization=` (rq, bq, pq or sq) apply when a collection is created.
        embeddings: As for `open_memory`.
        create: Whether to create a missing collection.

    Raises:
        BadInput: The URL is malformed, or there is no such collection.
        MemoryFailure: The server cannot be used, or the collection has another layout or other
            embeddings.
    """

    batch = 2 * BATCH * AT_ONCE  # so that requests are prepared while others are answered

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        create: bool = True,
    ) -> None:
        self.name = url
        self._objects = OpenCollection(
            url,
            _LAYOUT,
            embeddings=embeddings,
            create=create,
            fill="import procedures first",
            again=COPY,
        )
        self._embedder = self._objects.embedder
        self._renew_words()

    def search(
        self,
        query: str,
        k: int = 3,
        *,
        alpha: float | None = None,
        where: Mapping[str, str] | None = None,
    ) -> list[Found]:
        """Return the k best-matching procedures, using Weaviate's vector index and BM25."""
        tags = as_texts(checked_tags(where or {}))
        hits = self._objects.search(
            query,
            k,
            alpha=ALPHA if alpha is None else alpha,
            filters=Filter.by_property("tags").contains_all(tags) if tags else None,
        )
        return [Found(procedure, score) for item, score in hits if (procedure := _procedure(item))]

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the given ids existed."""
        return self._objects.delete(map(standard_id, ids))

    def count(self) -> int:
        """Return the number of procedures."""
        return self._objects.count()

    def __iter__(self) -> Iterator[Procedure]:
        """Iterate over all procedures in the order of their ids, one page at a time."""
        return filter(None, map(_procedure, self._objects))

    def close(self) -> None:
        """Close the connection; closing it again does nothing."""
        self._objects.close()

    def _renew_words(self) -> None:
        """Recompute the words of all procedures that another version stored."""
        is_current = Filter.by_property("words_version").equal(str(VERSION))
        count = self._objects.count() - self._objects.count(is_current)
        if count <= 0:  # others can add procedures between the two counts
            return
        _log.warning("%s: the words of %d procedures are indexed anew, once", self.name, count)
        old = (
            item for item in self._objects if item.properties.get("words_version") != str(VERSION)
        )
        for items in batch_iterate(BATCH, old):
            self._objects.connection.call(partial(_set_words, items=items))

    def _stored(self, ids: Iterable[str]) -> dict[str, Procedure]:
        items = self._objects.fetch(ids)
        return {procedure.id: procedure for procedure in filter(None, map(_procedure, items))}

    def _damaged(self, stored: Mapping[str, Procedure]) -> Collection[str]:
        """Return the ids of procedures that a killed server left out of its vector index."""
        if not (stored and self._embedder):
            return ()
        vector = self._embedder.embed_query("procedure").tolist()
        near = self._objects.connection.call(
            lambda objects: objects.query.near_vector(
                vector,
                filters=Filter.by_id().contains_any([*stored]),
                limit=len(stored),
                return_properties=[],
            )
        )
        unindexed = stored.keys() - {str(item.uuid) for item in near.objects}
        items = self._objects.fetch(unindexed, vectors=True)
        return {str(item.uuid) for item in items if vector_of(item).any()}

    def _write(
        self, procedures: Mapping[str, Procedure], stored: Mapping[str, Procedure]
    ) -> list[Failed]:
        """Send procedures in concurrent requests, and return those that were refused.

        Texts that are already stored are not embedded again. Weaviate indexes only what has
        changed, so the vector of an unchanged procedure that was lost from the index is scaled to
        make it count as changed.
        """
        same = [
            id_
            for id_, procedure in procedures.items()
            if id_ in stored and same_text(stored[id_], procedure)
        ]
        vectors = {
            str(item.uuid): vector_of(item) for item in self._objects.fetch(same, vectors=True)
        }
        texts = {
            id_: procedure.text() for id_, procedure in procedures.items() if id_ not in vectors
        }
        if texts and not self._embedder and self._objects.embeddings != "none":
            raise MemoryFailure(
                f"{self.name} was made with embeddings {self._objects.embeddings!r}: open it with "
                "them to add"
            )
        vectors |= {
            id_: vector * _LONGER
            for id_, vector in vectors.items()
            if stored[id_] == procedures[id_]
        }
        new, refused = embedded(self._embedder, [*texts.values()]) if self._embedder else ({}, {})
        failed = [Failed(id_, refused[text]) for id_, text in texts.items() if text in refused]
        vectors |= {
            id_: np.frombuffer(new.get(text, b""), np.float32)
            for id_, text in texts.items()
            if text not in refused
        }
        items = [(procedures[id_], vector) for id_, vector in vectors.items()]
        return failed + self._objects.insert(items, _object)


def _set_words(objects: Objects, items: Sequence[Any]) -> None:
    """Update only the word properties of objects."""
    changes = [partial(objects.data.update, item.uuid, _words(_procedure(item))) for item in items]
    results(changes, _CHANGED_AT_ONCE)


def _object(item: tuple[Procedure, Matrix]) -> Item:
    """Return an object; a vector that is empty or zero is left out, since it has no direction."""
    procedure, vector = item
    fields = procedure.to_dict()
    return DataObject(
        properties={name: fields.get(name) for name in _LAYOUT.content}
        | {
            **{name: json.dumps(fields.get(name) or {}, ensure_ascii=False) for name in _JSON},
            "tags": as_texts(procedure.tags),
            **_words(procedure),
        },
        uuid=procedure.id,
        vector=vector.tolist() if vector.any() else None,
    )


def _words(procedure: Procedure | None) -> dict[str, str]:
    """Return the properties searched by words, with empty values if there is no procedure."""
    texts = (procedure.input, procedure.output, *procedure.steps) if procedure else ()
    return {**words_of("\n".join(texts)), "words_version": str(VERSION)}


def _procedure(item: Any) -> Procedure | None:  # noqa: ANN401 - the client's class is generic
    values = {**item.properties, "id": str(item.uuid)}
    try:
        values |= {name: json.loads(values.get(name) or "{}") for name in _JSON}
        values["tags"] = dict(each.split("=", 1) for each in values.get("tags") or ())
        return Procedure.of_kept(values)
    except (BadInput, ValueError):
        return None
