"""Batches of procedures on their way into Weaviate: cut, made ready, and sent."""

import json
import logging
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from weaviate.classes.data import DataObject
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.errors import AddReport, Failed, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Embedder, cjk_words, embedded
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.vectors import MadeWith, WithVector
from stepcraft.memory.weaviate.objects import BATCH, Kept, Objects, forget, half_in, searched, stored

BATCH_CHARACTERS = 5_000_000
"""How many characters go into one message at most, unless one procedure alone has more."""

_Vector = NDArray[np.float32]
_sending = ContextVar("sending", default=False)
logging.getLogger("weaviate-client").addFilter(lambda _: not _sending.get())

Item = tuple[Procedure, _Vector, datetime]
"""A procedure, its vector, and when it was made."""


def batches(items: Iterable[WithVector]) -> Iterator[list[WithVector]]:
    """The procedures in batches that fit into a message."""
    batch: list[WithVector] = []
    room = BATCH_CHARACTERS
    for item in items:
        procedure = item[0]
        size = len(procedure.input) + len(procedure.output) + sum(map(len, procedure.steps))
        if batch and (len(batch) == BATCH or size > room):
            yield batch
            batch, room = [], BATCH_CHARACTERS
        batch.append(item)
        room -= size
    if batch:
        yield batch


@dataclass
class Batch:
    """What one message takes to the server, and what is known before it goes."""

    given: int
    """How many procedures were given for it."""
    items: dict[str, Item]
    """By id."""
    replaced: set[str]
    """The ids of those that take the place of another one."""
    unusable: list[Failed]
    present: int
    silences: int = 0
    """How often the server had been silent before the batch was sent, or seen to be whole."""

    def outcome(self, stored: Collection[str], refused: Iterable[Failed] = ()) -> AddReport:
        """What became of the batch, once it is known which ids went in."""
        updated = sum(name in self.replaced for name in stored)
        return AddReport(len(stored) - updated, self.present, updated, [*self.unusable, *refused])


def prepared(
    items: Sequence[WithVector], kept: Mapping[str, Kept], embedder: Embedder | None, made_with: MadeWith
) -> Batch:
    """A batch of what is not kept already; vectors that are None are made.

    Raises:
        MemoryFailure: the embedding model is missing, failed, or gives vectors of another length.
    """
    unique = {item[0].id: item for item in items}
    changed = [item for name, item in unique.items() if name not in kept or kept[name].procedure != item[0]]
    made = _vectors([procedure for procedure, vector in changed if vector is None], embedder, made_with)
    now, batch = datetime.now(UTC), Batch(len(items), {}, set(), [], len(items) - len(changed))
    for procedure, given in changed:
        name = procedure.id
        vector = made[name] if given is None else given
        if vector is None:
            reason = f"the embedding model {made_with.embeddings} gave a vector that is not finite"
            batch.unusable.append(Failed(name, reason))
            continue
        before = kept.get(name)
        batch.items[name] = (procedure, vector, (before and before.created) or now)
        if before:
            batch.replaced.add(name)
    return batch


def send(objects: Objects, items: Sequence[Item]) -> list[Failed]:
    """Send objects; those that the server refused, with its reasons.

    Raises:
        ReadOnlyMemory: it refused all of them, for it takes nothing any more.
    """
    if not items:
        return []
    try:
        with _unlogged():
            errors = objects.data.insert_many([_object(*item) for item in items]).errors
    except WeaviateInsertManyAllFailedError as error:
        reason = " ".join(str(error).rpartition("set of all errors: ")[2].split())[:300]
        if "read-only" in reason:
            raise ReadOnlyMemory(
                f"the collection {objects.name} takes nothing more ({reason}); make room on the disk of the server, "
                "and set its shards READY again"
            ) from error
        return [Failed(item[0].id, reason) for item in items]
    except WeaviateQueryError as error:
        if "larger than max" not in str(error):
            raise
        if len(items) == 1:
            return [Failed(items[0][0].id, "it is larger than a message to Weaviate may be; shorten it")]
        half = len(items) // 2
        return send(objects, items[:half]) + send(objects, items[half:])
    return [Failed(items[place][0].id, error.message) for place, error in errors.items()]


@contextmanager
def _unlogged() -> Generator[None]:
    """The client logs whole objects that were refused; they are in the report."""
    token = _sending.set(True)
    try:
        yield
    finally:
        _sending.reset(token)


def lookup(objects: Objects, ids: Collection[str], dimensions: int) -> dict[str, Kept]:
    """What is kept under these ids; what is only half in is deleted, so that it goes in as new."""
    kept = stored(objects, ids)
    broken = half_in(objects, kept, dimensions)
    forget(objects, broken)
    return {name: item for name, item in kept.items() if name not in broken}


def mend(objects: Objects, batch: Batch, others: Set[str], dimensions: int) -> list[Failed]:
    """Send again what is not in, only half, or as it was before, but for some others; those that were refused."""
    sure = searched(objects, batch.items, dimensions) - batch.replaced
    items = {name: item for name, item in batch.items.items() if name not in sure | others}
    kept = lookup(objects, items.keys(), dimensions)
    lost = [item for name, item in items.items() if name not in kept or kept[name].procedure != item[0]]
    return send(objects, lost)


def _vectors(
    procedures: Sequence[Procedure], embedder: Embedder | None, made_with: MadeWith
) -> dict[str, _Vector | None]:
    """The vector of each procedure, of length 0 where it has none, None where it is not finite."""
    if procedures and not embedder and made_with.embeddings != "none":
        raise MemoryFailure(
            f"the collection was made with embeddings {made_with.embeddings!r}: open it with them to add"
        )
    if not embedder:
        return {item.id: np.empty(0, np.float32) for item in procedures}
    texts = {item.id: item.text(made_with.template) for item in procedures}
    made = embedded(embedder, list(texts.values()))
    lengths = {len(vector) // 4 for vector in made.values() if vector} - {made_with.dimensions}
    if lengths:
        raise MemoryFailure(
            f"the collection holds vectors of {made_with.dimensions} dimensions, and the embedding model "
            f"{embedder.name} gives {lengths.pop()}: open it with the model that it was made with"
        )
    return {name: _numbers(made[text]) for name, text in texts.items()}


def _numbers(vector: bytes | None) -> _Vector | None:
    return None if vector is None else np.frombuffer(vector, np.float32)


def _object(item: Procedure, vector: _Vector, created: datetime) -> DataObject[dict[str, Any], None]:
    """Zeros go in as no vector: there is no angle to them. What is empty is left out: the server is quicker without."""
    properties: dict[str, Any] = {
        "input": item.input,
        "output": item.output,
        "steps": list(item.steps),
        "created": created,
    }
    if item.source:
        properties["source"] = item.source
    if item.metadata:
        properties["metadata"] = json.dumps(dict(item.metadata), ensure_ascii=False)
    # Weaviate takes a run of such characters for one word.
    if words := cjk_words("\n".join((item.input, item.output, *item.steps))):
        properties["cjk"] = words
    numbers: list[float] | None = vector.tolist() if vector.any() else None
    return DataObject(properties=properties, uuid=item.id, vector=numbers)
