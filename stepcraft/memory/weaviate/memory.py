"""A memory in Weaviate: in a server, embedded, or in its cloud."""

import asyncio
import json
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.concurrency import shared_lock
from stepcraft.errors import AddReport, BadInput, Failed, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Matrix, cjk_words, embedded, query_vector, query_words
from stepcraft.memory.batches import add_in_batches, merged, outcome, same_text, to_write
from stepcraft.memory.procedure import Found, Procedure, is_uuid
from stepcraft.memory.protocol import ProcedureMemory, changed, check_search
from stepcraft.memory.weaviate.connection import Connection, Objects, start_embedded
from stepcraft.memory.weaviate.schema import SEARCHED, open_collection
from stepcraft.memory.weaviate.url import parse_url
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

ALPHA = 0.5
"""The weight of vectors in a hybrid search by default.

Weaviate stretches the scores of the nearest 100 vectors over 0 to 1, as it does those of words. The
cosines of a local memory lie closer together, so that they take a larger weight to count as much.
"""

_BATCH = 1000
_AT_ONCE = 2
"""How many messages of so many objects are sent at once, as by the client's own batch."""

_LEAST_BY_WORDS = 100
"""Weaviate 1.39 misses better procedures, and gives other scores, if it looks for fewer."""

_CONTENT = ["input", "output", "steps", "source", "metadata"]

Stored = Mapping[str, tuple[Procedure, Matrix]]
"""Procedures with their vectors, of length 0 where they have none, by id."""


class WeaviateMemory(ProcedureMemory):
    """Procedures in a collection of Weaviate, for many threads, event loops and machines at once.

    A call to a server that is gone fails within 5 seconds, and the next call after its return
    succeeds.

    Args:
        url: `weaviate://host:port/Collection`, with `?grpc=` (port, 50051) and `tls=true`;
            `weaviate+embedded:///folder/Collection`, with `?binary=` (folder of the program); or
            `weaviate+cloud://cluster/Collection`. Each takes `tenant=`, and for a new collection
            `replicas=` (not embedded), `quantizer=` (rq, pq, bq, sq) and the settings of its HNSW
            index, `ef=` (1024), `ef_construction=` (256) and `max_connections=` (64). `ef` is
            changed in an existing collection too.
        embeddings: As in `open_memory`.
        template: As in `open_memory`.
        create: Whether a missing collection or tenant is created.

    Raises:
        BadInput: The URL is malformed, or there is no such collection or tenant.
        MemoryFailure: The server cannot be used, or the collection has another shape, index,
            embeddings or template.
    """

    def __init__(
        self,
        url: str,
        *,
        embeddings: "str | Embeddings | None" = None,
        template: str | None = None,
        create: bool = True,
    ) -> None:
        address = parse_url(url)
        if address.folder:
            start_embedded(address.folder, address.options.binary)
        self._url = url
        self._changing = shared_lock(("changing", url))
        self._connection = Connection(address)
        self._release = weakref.finalize(self, self._connection.close)
        try:
            self._embedder, self._made_with = open_collection(
                self._connection, address, embeddings, template, create=create
            )
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The URL that opens it."""
        return self._url

    @property
    def template(self) -> str:
        """How a procedure is written as one text."""
        return self._made_with.template

    def add(
        self, procedures: Iterable[Procedure], *, progress: Callable[[int], None] | None = None
    ) -> AddReport:
        """Add procedures in batches; memory use does not grow with their number.

        Raises:
            AddStopped: The server went away, or became read-only. Adding again does the rest, also
                what a server that was killed has lost of what it had taken.
            MemoryFailure: It failed before anything was sent.
        """
        return add_in_batches(procedures, _BATCH * _AT_ONCE, self._put, progress)

    def update(self, id: str, change: Callable[[Procedure], Procedure]) -> Procedure:
        """Read a procedure, change it and write it; of two processes the last one wins."""
        with self._changing:
            stored = self._connection.call(partial(_stored, ids=[id]))
            before = next((procedure for procedure, _ in stored.values()), None)
            procedure = changed(self, before, id, change)
            for refused in self._write({procedure.id: procedure}, stored):
                raise MemoryFailure(f"{id} was not changed: {refused.reason}")
        return procedure

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        """Return the k procedures that fit best, by Weaviate's vector index and BM25."""
        weight = ALPHA if alpha is None else alpha
        check_search(k, weight)
        vector = query_vector(self._embedder, clean(query)) if weight and self._embedder else None
        self._check_length(vector)
        words = "" if weight == 1 and vector is not None else " ".join(query_words(query))
        if vector is None and not words:
            return []
        numbers = None if vector is None else vector.tolist()
        search = partial(_search, words=words, vector=numbers, k=k, alpha=weight)
        return self._connection.call(search)

    def get(self, id: str) -> Procedure | None:
        """Return the procedure with this id, or None."""
        stored = self._connection.call(partial(_stored, ids=[id]))
        return next((procedure for procedure, _ in stored.values()), None)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete procedures, and return how many of the ids existed."""
        return self._connection.call(partial(_delete, ids=list(ids)))

    def count(self) -> int:
        """Return the number of procedures."""
        return self._connection.call(_count)

    def __iter__(self) -> Iterator[Procedure]:
        """All procedures in the order of their ids, a page at a time."""
        last: uuid.UUID | None = None
        while page := self._connection.call(partial(_page, after=last)):
            yield from (item for each in page if (item := _procedure(each)))
            last = page[-1].uuid

    def close(self) -> None:
        """Close the connection; it may be called twice."""
        self._release.detach()
        self._connection.close().result()

    def _check_length(self, vector: Matrix | None) -> None:
        dimensions = self._made_with.dimensions
        if vector is not None and len(vector) not in (0, dimensions):
            raise MemoryFailure(
                f"{self.name} holds vectors of {dimensions} dimensions, and the embedding model "
                f"gives {len(vector)}: open it with the model that it was made with"
            )

    def _put(self, procedures: list[Procedure]) -> AddReport:
        added = {procedure.id: procedure for procedure in procedures}
        if not self._connection.call(partial(_stored, ids=added)):
            return outcome(len(procedures), added, {}, self._write(added, {}))
        with self._changing:  # what is replaced may have changed since it was read
            stored = self._connection.call(partial(_stored, ids=added))
            before = {id_: procedure for id_, (procedure, _) in stored.items()}
            new = to_write(added, before)
            for id_ in self._connection.call(partial(self._delete_broken, stored=stored)):
                new[id_] = merged(before[id_], added[id_])
            return outcome(len(procedures), new, before, self._write(new, stored))

    def _write(self, procedures: Mapping[str, Procedure], stored: Stored) -> list[Failed]:
        """Send procedures, several messages at once; return those that were refused."""
        vectors = self._vectors(procedures.values(), stored)
        items = [
            _object(procedure, vector)
            for id_, procedure in procedures.items()
            if (vector := vectors[id_]) is not None
        ]

        async def write(objects: Objects) -> list[Failed]:
            starts = range(0, len(items), _BATCH)
            parts = [_insert(objects, items[first : first + _BATCH]) for first in starts]
            return [failure for refused in await asyncio.gather(*parts) for failure in refused]

        reason = (
            f"the embedding model {self._made_with.embeddings} gave a vector that is not finite"
        )
        unusable = [Failed(id_, reason) for id_, vector in vectors.items() if vector is None]
        return unusable + self._connection.call(write)

    def _vectors(self, procedures: Iterable[Procedure], stored: Stored) -> dict[str, Matrix | None]:
        """Return the vector of each procedure; None if it is not finite, of length 0 without one.

        The vector of a text that is stored is not made anew.
        """
        vectors: dict[str, Matrix | None] = {}
        texts: dict[str, str] = {}
        for item in procedures:
            if item.id in stored and same_text(stored[item.id][0], item):
                vectors[item.id] = stored[item.id][1]
            else:
                texts[item.id] = item.text(self.template)
        if not self._embedder and texts and self._made_with.embeddings != "none":
            raise MemoryFailure(
                f"{self.name} was made with embeddings {self._made_with.embeddings!r}: open it "
                "with them to add"
            )
        rows = embedded(self._embedder, list(texts.values())) if self._embedder else {}
        for id_, text in texts.items():
            row = rows.get(text, b"")
            vectors[id_] = None if row is None else np.frombuffer(row, np.float32)
            self._check_length(vectors[id_])
        return vectors

    async def _delete_broken(self, objects: Objects, stored: Stored) -> set[str]:
        """Delete what a server that was killed has stored without its place in the index.

        Sending the object again would not help, since it has not changed.
        """
        vectors = {id_ for id_, (_, vector) in stored.items() if vector.size}
        if not vectors:
            return vectors
        near = await objects.query.near_vector(
            [1.0] + [0.0] * (self._made_with.dimensions - 1),
            filters=Filter.by_id().contains_any(list(vectors)),
            limit=len(vectors),
            return_properties=[],
        )
        broken = vectors - {str(item.uuid) for item in near.objects}
        await _delete(objects, list(broken))
        return broken


async def _search(
    objects: Objects, words: str, vector: list[float] | None, k: int, alpha: float
) -> list[Found]:
    """Search by vector, by words (BM25), or by both, weighted by alpha.

    Scores are cosines by vector alone, and else relative to the best.
    """
    shared: dict[str, Any] = {"limit": k, "return_properties": _CONTENT}
    if not words:
        reply: Any = await objects.query.near_vector(
            vector or [], return_metadata=MetadataQuery(distance=True), **shared
        )
        scores = [(item, 1 - item.metadata.distance) for item in reply.objects]
    else:
        shared["limit"] = max(k, _LEAST_BY_WORDS)
        reply = await objects.query.hybrid(
            words,
            vector=vector,
            alpha=0 if vector is None else alpha,
            query_properties=list(SEARCHED),
            fusion_type=HybridFusion.RELATIVE_SCORE,
            return_metadata=MetadataQuery(score=True),
            **shared,
        )
        scores = [(item, item.metadata.score) for item in reply.objects[:k]]
    return [Found(item, score) for each, score in scores if (item := _procedure(each))]


async def _stored(objects: Objects, ids: Iterable[str]) -> Stored:
    possible = [id_ for id_ in ids if is_uuid(id_)]
    if not possible:
        return {}
    reply = await objects.query.fetch_objects_by_ids(
        possible, limit=len(possible), return_properties=_CONTENT, include_vector=True
    )
    return {
        procedure.id: (procedure, np.asarray(item.vector.get("default", ()), np.float32))
        for item in reply.objects
        if (procedure := _procedure(item))
    }


async def _page(objects: Objects, after: uuid.UUID | None) -> Sequence[Any]:
    reply = await objects.query.fetch_objects(limit=_BATCH, after=after, return_properties=_CONTENT)
    return reply.objects


async def _count(objects: Objects) -> int:
    return (await objects.aggregate.over_all(total_count=True)).total_count or 0


async def _delete(objects: Objects, ids: list[str]) -> int:
    possible = [id_ for id_ in dict.fromkeys(ids) if is_uuid(id_)]
    deleted = 0
    for first in range(0, len(possible), _BATCH):
        reply = await objects.data.delete_many(
            where=Filter.by_id().contains_any(possible[first : first + _BATCH])
        )
        deleted += reply.successful
        if reply.successful < reply.matches:  # which the client reports nowhere else
            raise MemoryFailure(
                f"{deleted} procedures were deleted, and Weaviate keeps the others in "
                f"{objects.name}; it is read-only then, by an order or for want of disk space: see "
                "the server's log"
            )
    return deleted


async def _insert(
    objects: Objects,
    items: Sequence[DataObject[dict[str, Any], None]],
) -> list[Failed]:
    """Send objects, and return those that the server refused, with its reasons.

    Raises:
        ReadOnlyMemory: The collection is read-only.
    """
    if not items:
        return []
    try:
        errors = (await objects.data.insert_many(items)).errors
        reasons = {place: error.message for place, error in errors.items()}
    except WeaviateInsertManyAllFailedError as error:
        reasons = dict.fromkeys(range(len(items)), str(error).rpartition("set of all errors: ")[2])
    except WeaviateQueryError as error:
        if "larger than max" not in str(error):
            raise
        if len(items) > 1:
            half = len(items) // 2
            first = await _insert(objects, items[:half])
            return first + await _insert(objects, items[half:])
        reasons = {0: "it is larger than a message to Weaviate may be; shorten it"}
    for reason in reasons.values():
        if "read-only" in reason:
            raise ReadOnlyMemory(
                f"the collection {objects.name} takes nothing more ({reason[:200]}); make room on "
                "the disk of the server, and set its shards READY again"
            )
    return [
        Failed(str(items[place].uuid), " ".join(without_secrets(reason).split())[:300])
        for place, reason in reasons.items()
    ]


def _object(procedure: Procedure, vector: Matrix) -> DataObject[dict[str, Any], None]:
    """Return an object; empty properties are left out, and zero vectors, which have no angle."""
    texts = [procedure.input, procedure.output, *procedure.steps]
    optional = {
        "source": procedure.source,
        "metadata": json.dumps(dict(procedure.metadata), ensure_ascii=False)
        if procedure.metadata
        else "",
        # Weaviate takes a run of such characters for one word.
        "cjk": cjk_words("\n".join(texts)),
    }
    properties: dict[str, Any] = {
        "input": procedure.input,
        "output": procedure.output,
        "steps": list(procedure.steps),
        **{name: text for name, text in optional.items() if text},
    }
    numbers = vector.tolist() if vector.any() else None
    return DataObject(properties=properties, uuid=procedure.id, vector=numbers)


def _procedure(item: Any) -> Procedure | None:  # noqa: ANN401 - the client's class is generic
    values: Any = item.properties
    try:
        metadata = json.loads(values.get("metadata") or "{}")
        fields = {name: values.get(name) for name in _CONTENT}
        fields |= {"id": str(item.uuid), "source": values.get("source") or "", "metadata": metadata}
        return Procedure.of_kept(**fields)
    except (BadInput, ValueError):
        return None
