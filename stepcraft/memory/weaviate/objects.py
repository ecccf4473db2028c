"""Procedures as objects of a collection: searched, looked up, read page by page and deleted.

The functions run on the background loop, on the collection of a session (`Connection.call`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

# Whole before its parts: two threads that enter it by different parts would wait for each other.
import weaviate  # noqa: F401 # pyright: ignore[reportUnusedImport]
from numpy.typing import NDArray
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.procedure import Found, Procedure, is_uuid
from stepcraft.memory.weaviate.connection import Objects
from stepcraft.memory.weaviate.schema import CONTENT, SEARCHED

BATCH = 1000
"""How many objects one message holds at most."""

ALPHA = 0.5
"""The weight of vectors in a hybrid search by default.

Weaviate stretches the scores of the nearest 100 vectors over 0 to 1, as it does those of words. The cosines of a local
memory lie closer together, so that they take a larger weight to count as much.
"""

_WORDS_LIMIT = 100
"""How many a search by words alone looks for at least: Weaviate 1.39 misses better ones, and gives other scores, with less."""

_DISTANCE, _SCORE = MetadataQuery(distance=True), MetadataQuery(score=True)


@dataclass(frozen=True)
class Stored:
    """An object: its procedure, None if it is none, and when it was created."""

    procedure: Procedure | None
    created: datetime | None


async def search(
    objects: Objects, words: str, vector: Sequence[float] | None, k: int, alpha: float
) -> list[Found]:
    """Find the k procedures that fit best: by vector, by words (BM25), or by both, weighted by alpha.

    Args:
        objects: the collection.
        words: the words of the query; "" for none.
        vector: the vector of the query; None for none. One of the two must be given.
        k: how many to find.
        alpha: the weight of the vector where both are given.

    Returns:
        The procedures, best first: scores are cosines by vector alone, relative to the best by words alone.
    """
    content = list(CONTENT)
    if vector is not None and not words:
        near = await objects.query.near_vector(
            vector, limit=k, return_properties=content, return_metadata=_DISTANCE
        )
        return [
            Found(procedure, 1 - (hit.metadata.distance or 0))
            for hit in near.objects
            if (procedure := procedure_of(str(hit.uuid), hit.properties))
        ]
    shared: dict[str, Any] = {
        "query": words,
        "limit": k,
        "query_properties": list(SEARCHED),
        "return_properties": content,
        "return_metadata": _SCORE,
    }
    if vector is not None:
        found = await objects.query.hybrid(
            vector=vector, alpha=alpha, fusion_type=HybridFusion.RELATIVE_SCORE, **shared
        )
        scale = 1.0
    else:
        shared["limit"] = max(k, _WORDS_LIMIT)
        found = await objects.query.bm25(**shared)
        scale = max((hit.metadata.score or 0 for hit in found.objects), default=0) or 1
    return [
        Found(procedure, (hit.metadata.score or 0) / scale)
        for hit in found.objects[:k]
        if (procedure := procedure_of(str(hit.uuid), hit.properties))
    ]


async def stored(objects: Objects, ids: Iterable[str]) -> dict[str, Stored]:
    """Look up ids, and return what is stored under those that exist."""
    wanted = list(ids)
    if not wanted:
        return {}
    found = await objects.query.fetch_objects_by_ids(wanted, limit=len(wanted))
    return {
        str(item.uuid): Stored(
            procedure_of(str(item.uuid), item.properties), item.properties.get("created")
        )
        for item in found.objects
    }


async def stored_with_vector(
    objects: Objects, name: str
) -> tuple[Stored, NDArray[np.float32]] | None:
    """Look up an id, and return what is stored under it with its vector; None if nothing is."""
    item = await objects.query.fetch_object_by_id(
        name, return_properties=[*CONTENT, "created"], include_vector=True
    )
    if item is None:  # pyright: ignore[reportUnnecessaryComparison] - the client's type leaves it out
        return None
    return Stored(procedure_of(name, item.properties), item.properties.get("created")), vector_of(
        item
    )


async def indexed(objects: Objects, ids: Iterable[str], dimensions: int) -> set[str]:
    """Return those of the ids that a search by vector finds: they are stored completely."""
    wanted = list(ids)
    if not wanted or not dimensions:
        return set()
    any_vector = [1.0] + [0.0] * (dimensions - 1)
    found = await objects.query.near_vector(
        any_vector,
        filters=Filter.by_id().contains_any(wanted),
        limit=len(wanted),
        return_properties=[],
    )
    return {str(item.uuid) for item in found.objects}


async def half_stored(objects: Objects, ids: Iterable[str], dimensions: int) -> list[str]:
    """Return those of the ids whose vector is stored but not indexed, because the server was killed in between.

    Sending such an object again does not help, since it has not changed; it must be deleted first.
    """
    wanted = set(ids)
    left = sorted(wanted - await indexed(objects, wanted, dimensions)) if dimensions else []
    if not left:
        return []
    found = await objects.query.fetch_objects_by_ids(
        left, limit=len(left), return_properties=[], include_vector=True
    )
    return [str(item.uuid) for item in found.objects if vector_of(item).size]


async def page_after(objects: Objects, after: str | None, *, vectors: bool = False) -> list[Any]:
    """Return the next `BATCH` objects in the order of their ids, from the first one for None."""
    found = await objects.query.fetch_objects(
        limit=BATCH, after=after, return_properties=list(CONTENT), include_vector=vectors
    )
    return list(found.objects)


async def count(objects: Objects) -> int:
    """Return the number of objects."""
    return (await objects.aggregate.over_all(total_count=True)).total_count or 0


async def is_empty(objects: Objects) -> bool:
    """Return whether there is no object; reads one at most."""
    return not (await objects.query.fetch_objects(limit=1, return_properties=[])).objects


async def delete(objects: Objects, ids: Iterable[str]) -> int:
    """Delete objects, and return how many of the ids existed.

    Raises:
        MemoryFailure: the server kept some of them, which its client does not report.
    """
    wanted, deleted = [name for name in dict.fromkeys(ids) if is_uuid(name)], 0
    for start in range(0, len(wanted), BATCH):
        reply = await objects.data.delete_many(
            where=Filter.by_id().contains_any(wanted[start : start + BATCH])
        )
        deleted += reply.successful
        if reply.successful < reply.matches:
            raise MemoryFailure(
                f"{deleted} procedures were deleted, and Weaviate keeps the others in {objects.name}; "
                "it is read-only then, by an order or for want of disk space: see the server's log"
            )
    return deleted


def vector_of(item: Any) -> NDArray[np.float32]:  # noqa: ANN401 - the client's class for it is generic
    """The vector of an object, of length 0 where it has none."""
    return np.asarray(item.vector.get("default", ()), np.float32)


def procedure_of(name: str, properties: Mapping[str, Any]) -> Procedure | None:
    """The procedure that an object holds, None if it holds none."""
    try:
        metadata = properties.get("metadata")
        return Procedure.of_kept(
            id=name,
            input=properties["input"],
            output=properties["output"],
            steps=tuple(properties["steps"]),
            source=properties.get("source") or "",
            # Most procedures have none, and a search reads many.
            metadata={} if not metadata or metadata == "{}" else json.loads(metadata),
        )
    except (BadInput, LookupError, ValueError, TypeError):
        return None
