"""Imports into Weaviate: batches sent side by side, through outages of the server, with an exact account."""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from weaviate.classes.data import DataObject
from weaviate.exceptions import WeaviateInsertManyAllFailedError, WeaviateQueryError

from stepcraft.errors import AddReport, AddStopped, Failed, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Embedder, cjk_words, embedded
from stepcraft.memory.history import changes, latest, merged
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import MadeWith, WithVector
from stepcraft.memory.weaviate.connection import Connection, Objects, ServerUnavailable
from stepcraft.memory.weaviate.loop import BackgroundLoop
from stepcraft.memory.weaviate.objects import BATCH, Stored, delete, half_stored, indexed, stored
from stepcraft.secrets import without_secrets

BATCH_CHARACTERS = 5_000_000
"""How many characters one message holds at most, unless a single procedure has more."""

_BATCHES_UNDER_WAY = 2
_RETRY_PAUSE_S = 0.5
_SILENCE_S = 2.0
"""A longer time without a reply may have been a restart of the server: a small one takes less than four seconds."""

_RECENT_BATCHES = 4
"""How many of the last batches are verified after a silence."""

_Result = TypeVar("_Result")
_Vector = NDArray[np.float32]
_Item = tuple[Procedure, _Vector, datetime]
"""A procedure, its vector, and when it was created."""

_sending = ContextVar("sending", default=False)
# The client logs whole objects that were refused; they are in the report.
logging.getLogger("weaviate-client").addFilter(lambda _: not _sending.get())


@dataclass
class _Batch:
    """The content of one message, and what is known before it is sent."""

    given: int
    """How many procedures were given for it."""
    items: dict[str, _Item]
    """By id."""
    replaced: dict[str, Procedure]
    """What was given under ids under which something else is stored; `items` has it with the versions of both."""
    broken: dict[str, Procedure]
    """What was given under ids that are stored without their vector, by a server that was killed; it counts as added."""
    unusable: list[Failed]
    present: int
    silences: int = 0
    """How many silences of the server there had been when the batch was sent or last verified."""

    def report(self, written: Collection[str], refused: Iterable[Failed] = ()) -> AddReport:
        """Return what became of the batch, given the ids that were written."""
        updated = sum(name in self.replaced for name in written)
        return AddReport(len(written) - updated, self.present, updated, [*self.unusable, *refused])


class Import:
    """One `add`: two batches are sent while the next is prepared, so that memory use does not grow with their number.

    A server that answered once may go away: the batches wait for it and are sent again. Ids derive from the content,
    so that nothing is stored twice. A server that is killed loses some of what it acknowledged last, and keeps some
    without its vector; after a silence the last batches are therefore verified.

    Args:
        connection: the connection to the collection.
        embedder: makes missing vectors.
        made_with: what the collection was made with.
        reconnect_timeout_s: how long to wait for the server.
        changing: held while something that is stored is replaced, so that no other thread changes it meanwhile.
    """

    def __init__(
        self,
        connection: Connection,
        embedder: Embedder | None,
        made_with: MadeWith,
        reconnect_timeout_s: float,
        changing: Lock,
    ) -> None:
        self._connection = connection
        self._embedder = embedder
        self._made_with = made_with
        self._reconnect_timeout_s = reconnect_timeout_s
        self._changing = changing
        self._report = AddReport()
        self._done = 0
        self._under_way: deque[tuple[_Batch, Future[AddReport]]] = deque()
        self._recent: deque[_Batch] = deque(maxlen=_RECENT_BATCHES)
        self._last_reply = 0.0
        self._silences = 0
        self._ended = False

    def run(self, items: Iterable[WithVector], progress: Callable[[int], None] | None) -> AddReport:
        """Send everything, and return what became of it.

        Raises:
            AddStopped: it failed after something was sent.
            MemoryFailure: it failed before anything was sent.
        """
        try:
            for group in _groups(items):
                batch = self._prepare(group)
                self._collect(progress, _BATCHES_UNDER_WAY - 1)
                if batch.replaced or batch.broken:
                    with self._changing:
                        self._merge(batch)
                        self._start(
                            batch
                        ).exception()  # wait; `progress` may use the memory, so it is told later
                else:
                    self._start(batch)
            self._collect(progress, 0)
        except MemoryFailure as error:
            self._account(error)
            if isinstance(error, ServerUnavailable):
                raise MemoryFailure(str(error)) from error.__cause__
            raise
        finally:
            self._ended = True
            for _, sending in self._under_way:
                sending.cancel()
        return self._report

    def _prepare(self, group: Sequence[WithVector]) -> _Batch:
        """Make a batch of what is not stored already, with its vectors.

        Raises:
            MemoryFailure: the embedding model is missing, failed, or gives vectors of another length.
        """
        unique = latest(procedure for procedure, _ in group)
        known = {procedure.id: vector for procedure, vector in group}
        for batch, sending in self._under_way:
            if not unique.keys().isdisjoint(batch.items):
                sending.exception()  # wait: what is stored under a shared id is known only then
        kept = self._wait(partial(stored, ids=unique))
        broken = self._wait(partial(half_stored, ids=kept, dimensions=self._made_with.dimensions))
        changed = {name: unique[name] for name in broken} | changes(
            _procedures(kept), unique.values()
        )
        made = vectors_of(
            [item for item in changed.values() if known[item.id] is None],
            self._embedder,
            self._made_with,
        )
        now, batch = (
            datetime.now(UTC),
            _Batch(len(group), {}, {}, {}, [], len(group) - len(changed)),
        )
        for name, procedure in changed.items():
            given = known[name]
            vector = made[name] if given is None else given
            if vector is None:
                reason = f"the embedding model {self._made_with.embeddings} gave a vector that is not finite"
                batch.unusable.append(Failed(name, reason))
                continue
            before = kept.get(name)
            batch.items[name] = (procedure, vector, (before and before.created) or now)
            if name in broken:
                batch.broken[name] = unique[name]
            elif before:
                batch.replaced[name] = unique[name]
        return batch

    def _merge(self, batch: _Batch) -> None:
        """Merge what is replaced with what is stored now: it may have changed since the batch was prepared.

        What is still without its vector is deleted first, since sending it again would not index it.
        """
        given_again = batch.replaced | batch.broken
        kept = _procedures(self._wait(partial(stored, ids=given_again)))
        self._wait(partial(_lookup, ids=batch.broken, dimensions=self._made_with.dimensions))
        for name, given in given_again.items():
            if name in kept:
                _, vector, created = batch.items[name]
                batch.items[name] = (merged(kept[name], given), vector, created)

    def _start(self, batch: _Batch) -> Future[AddReport]:
        sending = BackgroundLoop.current().start(self._send(batch))
        self._under_way.append((batch, sending))
        return sending

    async def _send(self, batch: _Batch) -> AddReport:
        batch.silences = self._silences
        refused = await self._perform(partial(send, items=list(batch.items.values())))
        return batch.report(batch.items.keys() - {failed.where for failed in refused}, refused)

    def _collect(self, progress: Callable[[int], None] | None, left: int) -> None:
        """Wait until so many batches are left under way, and include the others in the report, in order."""
        while len(self._under_way) > left:
            batch, sending = self._under_way[0]
            self._report.include(sending.result())
            self._under_way.popleft()
            self._done += batch.given
            self._recent.append(batch)
            for place, recent in enumerate(self._recent):
                if recent.silences < self._silences:
                    self._verify(place)
            if progress:
                progress(self._done)

    def _verify(self, place: int) -> None:
        """Send again what a restarted server lost of a recent batch; later batches decide about shared ids."""
        batch, *later = [*self._recent, *(batch for batch, _ in self._under_way)][place:]
        batch.silences = self._silences
        others = {failed.where for failed in self._report.failed}.union(
            *(other.items for other in later)
        )
        refused = self._wait(
            partial(_mend, batch=batch, others=others, dimensions=self._made_with.dimensions)
        )
        updates = sum(failed.where in batch.replaced for failed in refused)
        self._report.include(AddReport(updates - len(refused), updated=-updates, failed=refused))

    def _wait(self, action: Callable[[Objects], Awaitable[_Result]]) -> _Result:
        return BackgroundLoop.current().call(self._perform(action))

    async def _perform(self, action: Callable[[Objects], Awaitable[_Result]]) -> _Result:
        """Return what the action gives; once the server went away, failures are retried until the time-out."""
        until = 0.0
        while True:
            try:
                result = await self._connection.perform(lambda session: action(session.objects))
            except MemoryFailure as error:
                now = time.monotonic()
                away = isinstance(error, ServerUnavailable) or now - self._last_reply > _SILENCE_S
                if not until and away and self._last_reply:
                    until = now + self._reconnect_timeout_s
                if isinstance(error, ReadOnlyMemory) or now >= until or self._ended:
                    raise
                await asyncio.sleep(_RETRY_PAUSE_S)
            else:
                now = time.monotonic()
                silent = bool(self._last_reply) and now - self._last_reply > _SILENCE_S
                self._silences += silent or bool(until)
                self._last_reply = now
                return result

    def _account(self, error: MemoryFailure) -> None:
        """Raise AddStopped if anything was sent; the server is asked about batches without a reply."""
        gap, unanswered = False, list[_Batch]()
        for batch, sending in self._under_way:
            if sending.exception():
                gap = True
                unanswered.append(batch)
            else:
                self._report.include(sending.result())
                self._done += 0 if gap else batch.given
        in_doubt = self._ask_about(unanswered)
        if self._report != AddReport() or in_doubt:
            raise AddStopped(str(error), self._report, self._done, in_doubt) from error

    def _ask_about(self, unanswered: Sequence[_Batch]) -> list[str]:
        """Include in the report what is stored of batches without a reply; return the ids if nobody answers."""
        wanted = {name: item[0] for batch in unanswered for name, item in batch.items.items()}
        if not wanted:
            return []
        lookup = partial(_lookup, ids=wanted, dimensions=self._made_with.dimensions)
        try:
            kept = self._connection.call(lambda session: lookup(session.objects))
        except MemoryFailure:
            return list(wanted)
        for batch in unanswered:
            written = {
                name
                for name in batch.items
                if name in kept and kept[name].procedure == wanted[name]
            }
            if written:
                self._report.include(batch.report(written))
        return []


def _groups(items: Iterable[WithVector]) -> Iterator[list[WithVector]]:
    """Group procedures so that each group fits into a message."""
    group: list[WithVector] = []
    room = BATCH_CHARACTERS
    for item in items:
        procedure = item[0]
        size = len(procedure.input) + len(procedure.output) + sum(map(len, procedure.steps))
        if group and (len(group) == BATCH or size > room):
            yield group
            group, room = [], BATCH_CHARACTERS
        group.append(item)
        room -= size
    if group:
        yield group


def _procedures(kept: Mapping[str, Stored]) -> dict[str, Procedure]:
    return {name: item.procedure for name, item in kept.items() if item.procedure}


def vectors_of(
    procedures: Sequence[Procedure], embedder: Embedder | None, made_with: MadeWith
) -> dict[str, _Vector | None]:
    """The vector of each procedure: of length 0 without embeddings, None where it is not finite."""
    if not procedures:
        return {}
    if not embedder:
        if made_with.embeddings != "none":
            raise MemoryFailure(
                f"the collection was made with embeddings {made_with.embeddings!r}: open it with them to add"
            )
        return {item.id: np.empty(0, np.float32) for item in procedures}
    texts = {item.id: item.text(made_with.template) for item in procedures}
    made = embedded(embedder, list(texts.values()))
    lengths = {len(vector) // 4 for vector in made.values() if vector} - {made_with.dimensions}
    if lengths:
        raise MemoryFailure(
            f"the collection holds vectors of {made_with.dimensions} dimensions, and the embedding model "
            f"{embedder.name} gives {lengths.pop()}: open it with the model that it was made with"
        )
    return {
        name: None if (vector := made[text]) is None else np.frombuffer(vector, np.float32)
        for name, text in texts.items()
    }


async def _lookup(objects: Objects, ids: Collection[str], dimensions: int) -> dict[str, Stored]:
    """Return what is stored under ids; what is stored without its vector is deleted, so that it is added as new."""
    kept = await stored(objects, ids)
    broken = await half_stored(objects, kept, dimensions)
    await delete(objects, broken)
    return {name: item for name, item in kept.items() if name not in broken}


async def _mend(objects: Objects, batch: _Batch, others: Set[str], dimensions: int) -> list[Failed]:
    """Send again what is missing, incomplete or outdated, except some ids; return those that were refused."""
    sure = await indexed(objects, batch.items, dimensions) - batch.replaced.keys()
    items = {name: item for name, item in batch.items.items() if name not in sure | others}
    kept = await _lookup(objects, items.keys(), dimensions)
    return await send(
        objects,
        [
            item
            for name, item in items.items()
            if name not in kept or kept[name].procedure != item[0]
        ],
    )


async def send(objects: Objects, items: Sequence[_Item]) -> list[Failed]:
    """Send objects, and return those that the server refused, with its reasons.

    Raises:
        ReadOnlyMemory: the server refused some of them because the collection is read-only.
    """
    if not items:
        return []
    token = _sending.set(True)
    try:
        errors = (await objects.data.insert_many([_object(*item) for item in items])).errors
        refused = [
            Failed(items[place][0].id, without_secrets(error.message))
            for place, error in errors.items()
        ]
    except WeaviateInsertManyAllFailedError as error:
        reason = " ".join(without_secrets(str(error)).rpartition("set of all errors: ")[2].split())[
            :300
        ]
        refused = [Failed(item[0].id, reason) for item in items]
    except WeaviateQueryError as error:
        if "larger than max" not in str(error):
            raise
        if len(items) == 1:
            return [
                Failed(items[0][0].id, "it is larger than a message to Weaviate may be; shorten it")
            ]
        half = len(items) // 2
        return await send(objects, items[:half]) + await send(objects, items[half:])
    finally:
        _sending.reset(token)
    for failed in refused:
        if "read-only" in failed.reason:
            raise ReadOnlyMemory(
                f"the collection {objects.name} takes nothing more ({failed.reason}); make room on the disk of the "
                "server, and set its shards READY again"
            )
    return refused


def _object(
    item: Procedure, vector: _Vector, created: datetime
) -> DataObject[dict[str, Any], None]:
    """Make an object; empty properties are left out, which is quicker, and zero vectors, which have no angle."""
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
