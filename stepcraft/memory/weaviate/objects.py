"""Procedures as objects of Weaviate: looked up, read page by page, and deleted."""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from weaviate.classes.query import Filter
from weaviate.collections import Collection

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.weaviate.schema import CONTENT

Objects = Collection[Any, Any]

BATCH = 1000
"""How many procedures go into one message at most."""


@dataclass(frozen=True)
class Kept:
    """What is kept under an id: the procedure, None if it is none, and when it was made."""

    procedure: Procedure | None
    created: datetime | None


def stored(objects: Objects, ids: Iterable[str]) -> dict[str, Kept]:
    """What is kept under these ids, of those that there are."""
    wanted = list(ids)
    found = objects.query.fetch_objects_by_ids(wanted, limit=len(wanted)).objects if wanted else []
    return {
        str(item.uuid): Kept(procedure_of(str(item.uuid), item.properties), item.properties.get("created"))
        for item in found
    }


def searched(objects: Objects, ids: Iterable[str], dimensions: int) -> set[str]:
    """Those of the ids whose objects are found by their vectors: they are whole."""
    wanted = list(ids)
    if not wanted or not dimensions:
        return set()
    anywhere = [1.0] + [0.0] * (dimensions - 1)
    found = objects.query.near_vector(
        anywhere, filters=Filter.by_id().contains_any(wanted), limit=len(wanted), return_properties=[]
    )
    return {str(item.uuid) for item in found.objects}


def half_in(objects: Objects, ids: Iterable[str], dimensions: int) -> list[str]:
    """Those of the ids whose vector is kept and yet not searched: the server was killed before it came so far.

    Sending such an object again does not mend it, for it is the same; it must be deleted first.
    """
    wanted = set(ids)
    left = sorted(wanted - searched(objects, wanted, dimensions)) if dimensions else []
    if not left:
        return []
    found = objects.query.fetch_objects_by_ids(
        left, limit=len(left), return_properties=[], include_vector=True
    )
    return [str(item.uuid) for item in found.objects if vector_of(item).size]


def page_after(objects: Objects, after: str | None, *, vectors: bool = False) -> list[Any]:
    """The objects that follow an id, in the order of ids, `BATCH` at most; the first ones for None."""
    return list(
        objects.query.fetch_objects(
            limit=BATCH, after=after, return_properties=list(CONTENT), include_vector=vectors
        ).objects
    )


def vector_of(item: Any) -> NDArray[np.float32]:  # noqa: ANN401 - the client's class for it is generic
    """The vector of an object, of length 0 where it has none."""
    return np.asarray(item.vector.get("default", ()), np.float32)


def forget(objects: Objects, ids: Iterable[str]) -> int:
    """Delete objects; how many of the ids there were.

    Raises:
        MemoryFailure: the server kept some of them, of which its client says nothing.
    """
    wanted, deleted = [name for name in dict.fromkeys(ids) if is_uuid(name)], 0
    for start in range(0, len(wanted), BATCH):
        reply = objects.data.delete_many(where=Filter.by_id().contains_any(wanted[start : start + BATCH]))
        deleted += reply.successful
        if reply.successful < reply.matches:
            raise MemoryFailure(
                f"{deleted} procedures were deleted, and Weaviate keeps the others in {objects.name}; "
                "it is read-only then, by an order or for want of disk space: see the server's log"
            )
    return deleted


def procedure_of(name: str, properties: Mapping[str, Any]) -> Procedure | None:
    """The procedure that an object holds, or None."""
    try:
        return Procedure.of_kept(
            id=name,
            input=properties["input"],
            output=properties["output"],
            steps=tuple(properties["steps"]),
            source=properties.get("source") or "",
            metadata=_metadata(properties.get("metadata")),
        )
    except (BadInput, LookupError, ValueError, TypeError):
        return None


def _metadata(kept: str | None) -> dict[str, Any]:
    """Most procedures have none, and a search reads many."""
    return {} if not kept or kept == "{}" else json.loads(kept)


def is_uuid(name: str) -> bool:
    """Whether an id can be one of Weaviate's."""
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True
