"""Procedures as objects of Weaviate, and batches of them."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from weaviate.classes.data import DataObject
from weaviate.classes.query import Filter
from weaviate.collections import Collection
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder, cjk_words, embedded
from stepcraft.memory._weaviate_schema import CONTENT, MadeWith
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.store import AddReport, Failed

Objects = Collection[Any, Any]

BATCH = 1000
"""How many procedures go into one message at most."""

BATCH_CHARACTERS = 5_000_000
"""How many characters go into one message at most, unless one procedure alone has more."""


def batches(procedures: Iterable[Procedure]) -> Iterator[list[Procedure]]:
    """The procedures in batches that fit into a message."""
    batch: list[Procedure] = []
    room = BATCH_CHARACTERS
    for procedure in procedures:
        size = len(procedure.input) + len(procedure.output) + sum(map(len, procedure.steps))
        if batch and (len(batch) == BATCH or size > room):
            yield batch
            batch, room = [], BATCH_CHARACTERS
        batch.append(procedure)
        room -= size
    if batch:
        yield batch


def put(
    objects: Objects, procedures: Sequence[Procedure], embedder: Embedder | None, made_with: MadeWith
) -> AddReport:
    """Keep a batch: what is there unchanged is left alone, what failed is in the report with the reason.

    Raises:
        MemoryFailure: the embedding model failed, or gives vectors of another length.
    """
    unique = {procedure.id: procedure for procedure in procedures}
    kept = stored(objects, unique)
    changed = [item for item in unique.values() if item.id not in kept or kept[item.id][0] != item]
    vectors = _vectors(changed, embedder, made_with)
    failed = [
        Failed(item.id, f"the embedding model {made_with.embeddings} gave a vector that is not finite")
        for item in changed
        if vectors[item.id] is None
    ]
    now = datetime.now(UTC)
    sendable = [item for item in changed if vectors[item.id] is not None]
    failed += _sent(
        objects,
        [_object(item, vectors[item.id], kept.get(item.id, (None, now))[1] or now) for item in sendable],
    )
    missing = {failure.where for failure in failed}
    done = [item.id for item in changed if item.id not in missing]
    updated = sum(name in kept for name in done)
    return AddReport(len(done) - updated, len(procedures) - len(changed), updated, failed)


def stored(objects: Objects, ids: Iterable[str]) -> dict[str, tuple[Procedure | None, Any]]:
    """What is kept under these ids: the procedure, None if it is none, and when it was made."""
    wanted = list(ids)
    found = objects.query.fetch_objects_by_ids(wanted, limit=len(wanted)).objects if wanted else []
    return {
        str(item.uuid): (procedure_of(str(item.uuid), item.properties), item.properties.get("created"))
        for item in found
    }


def page_after(objects: Objects, after: str | None) -> list[Any]:
    """The objects that follow an id, in the order of ids, `BATCH` at most; the first ones for None."""
    return list(
        objects.query.fetch_objects(limit=BATCH, after=after, return_properties=list(CONTENT)).objects
    )


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


def _vectors(
    procedures: Sequence[Procedure], embedder: Embedder | None, made_with: MadeWith
) -> dict[str, list[float] | None]:
    """The vector of each procedure, [] where it has none, None where it is not finite."""
    if not embedder:
        return {item.id: [] for item in procedures}
    texts = {item.id: item.text(made_with.template) for item in procedures}
    made = embedded(embedder, list(texts.values()))
    lengths = {len(vector) // 4 for vector in made.values() if vector} - {made_with.dimensions}
    if lengths:
        raise MemoryFailure(
            f"the collection holds vectors of {made_with.dimensions} dimensions, and the embedding model "
            f"{embedder.name} gives {lengths.pop()}: open it with the model that it was made with"
        )
    return {name: _numbers(made[text]) for name, text in texts.items()}


def _numbers(vector: bytes | None) -> list[float] | None:
    if vector is None:
        return None
    values = np.frombuffer(vector, np.float32)
    return values.tolist() if values.any() else []


def _object(
    item: Procedure, vector: list[float] | None, created: datetime
) -> DataObject[dict[str, Any], None]:
    properties: dict[str, Any] = {
        "input": item.input,
        "output": item.output,
        "steps": list(item.steps),
        "source": item.source,
        "metadata": json.dumps(dict(item.metadata), ensure_ascii=False),
        "created": created,
        # Weaviate takes a run of such characters for one word.
        "cjk": cjk_words("\n".join((item.input, item.output, *item.steps))),
    }
    return DataObject(properties=properties, uuid=item.id, vector=vector or None)


def _sent(objects: Objects, items: Sequence[DataObject[dict[str, Any], None]]) -> list[Failed]:
    """Send objects; those that the server refused, with its reasons."""
    if not items:
        return []
    try:
        errors = objects.data.insert_many(items).errors
    except WeaviateInsertManyAllFailedError as error:
        reason = " ".join(str(error).split())[:300]
        return [Failed(str(item.uuid), reason) for item in items]
    except WeaviateQueryError as error:
        if "larger than max" not in str(error):
            raise
        if len(items) == 1:
            return [Failed(str(items[0].uuid), "it is larger than a message to Weaviate may be; shorten it")]
        half = len(items) // 2
        return _sent(objects, items[:half]) + _sent(objects, items[half:])
    return [Failed(str(items[place].uuid), error.message) for place, error in errors.items()]
