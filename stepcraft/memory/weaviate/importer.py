"""An import into Weaviate: batches on their way, a server that goes away and comes back, an exact account."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

from stepcraft.errors import AddReport, AddStopped, MemoryFailure, ReadOnlyMemory
from stepcraft.index import Embedder
from stepcraft.memory.vectors import MadeWith, WithVector
from stepcraft.memory.weaviate.batch import Batch, batches, lookup, mend, prepared, send
from stepcraft.memory.weaviate.client import Away
from stepcraft.memory.weaviate.objects import Objects

_UNDER_WAY = 2
_PAUSE_S = 0.5
_SILENCE_S = 2.0
"""A longer time without a reply may have been a death of the server: a small one serves again in less than four."""

_SUSPECT = 4
"""So many of the last batches are looked at again after a silence."""

_Result = TypeVar("_Result")


class On(Protocol):
    """Does something on the objects of a collection."""

    def __call__(self, action: Callable[[Objects], _Result], /) -> _Result:
        """What the action gives."""
        ...


class Import:
    """One `add`: two batches are sent while the next is made ready, so that memory use does not grow.

    A server that was there when the import began may go away: the batches wait for it, and are sent again. The ids
    are the same, so that nothing is doubled; the last batches before it went are looked at again.

    Args:
        on: does something on the objects of the collection.
        embedder: makes vectors where there are none.
        made_with: what the collection was made with.
        patience_s: how long to wait for the server.
    """

    def __init__(self, on: On, embedder: Embedder | None, made_with: MadeWith, patience_s: float) -> None:
        self._on = on
        self._embedder = embedder
        self._made_with = made_with
        self._patience_s = patience_s
        self._report = AddReport()
        self._done = 0
        self._out: deque[tuple[Batch, Future[AddReport]]] = deque()
        self._recent: deque[Batch] = deque(maxlen=_SUSPECT)
        self._heard = 0.0
        self._silences = 0
        self._ended = threading.Event()

    def run(self, items: Iterable[WithVector], progress: Callable[[int], None] | None) -> AddReport:
        """Send everything; what became of it.

        Raises:
            AddStopped: it failed on the way.
            MemoryFailure: it failed before anything was sent.
        """
        with ThreadPoolExecutor(_UNDER_WAY, thread_name_prefix="stepcraft-add") as pool:
            try:
                for group in batches(items):
                    batch = self._prepared(group)
                    self._take(progress, _UNDER_WAY - 1)
                    self._out.append((batch, pool.submit(self._sent, batch)))
                self._take(progress, 0)
            except MemoryFailure as error:
                self._account(error)
                raise
            finally:
                self._ended.set()
        return self._report

    def _prepared(self, group: Sequence[WithVector]) -> Batch:
        """What is there already is asked once no batch is under way that shares an id."""
        ids = {procedure.id for procedure, _ in group}
        for batch, sending in self._out:
            if not ids.isdisjoint(batch.items):
                sending.exception()
        kept = self._patiently(partial(lookup, ids=ids, dimensions=self._made_with.dimensions))
        return prepared(group, kept, self._embedder, self._made_with)

    def _sent(self, batch: Batch) -> AddReport:
        batch.silences = self._silences
        refused = self._patiently(partial(send, items=list(batch.items.values())))
        return batch.outcome(batch.items.keys() - {failed.where for failed in refused}, refused)

    def _take(self, progress: Callable[[int], None] | None, left: int) -> None:
        """Wait until so many batches are left under way, and count in the others, in their order.

        A server that is killed loses some of what it acknowledged last, and keeps some by halves: after a silence
        the last batches are looked at again.
        """
        while len(self._out) > left:
            batch, sending = self._out[0]
            self._report.include(sending.result())
            self._out.popleft()
            self._done += batch.given
            self._recent.append(batch)
            for place, recent in enumerate(self._recent):
                if recent.silences < self._silences:
                    self._mend(place)
            if progress:
                progress(self._done)

    def _mend(self, place: int) -> None:
        """An id that a later batch has too is left to that one."""
        batch, *later = [*self._recent, *(batch for batch, _ in self._out)][place:]
        batch.silences = self._silences
        others = {failed.where for failed in self._report.failed}.union(*(other.items for other in later))
        refused = self._patiently(
            partial(mend, batch=batch, others=others, dimensions=self._made_with.dimensions)
        )
        updates = sum(failed.where in batch.replaced for failed in refused)
        self._report.include(AddReport(updates - len(refused), updated=-updates, failed=refused))

    def _patiently(self, action: Callable[[Objects], _Result]) -> _Result:
        """What the action gives; once the server went away, what fails is tried again as long as patience lasts."""
        until = 0.0
        while True:
            try:
                result = self._on(action)
            except MemoryFailure as error:
                silent = time.monotonic() - self._heard > _SILENCE_S
                away = isinstance(error, Away) or silent
                if not until and away and self._heard:
                    until = time.monotonic() + self._patience_s
                if isinstance(error, ReadOnlyMemory) or time.monotonic() >= until:
                    raise
                if self._ended.wait(_PAUSE_S):
                    raise
            else:
                now = time.monotonic()
                silent = bool(self._heard) and now - self._heard > _SILENCE_S
                self._silences += silent or bool(until)
                self._heard = now
                return result

    def _account(self, error: MemoryFailure) -> None:
        """Raise AddStopped if anything was dealt with; of a batch without an answer the server is asked what is in."""
        gap, unanswered = False, list[Batch]()
        for batch, sending in self._out:
            if sending.exception():
                gap = True
                unanswered.append(batch)
            else:
                self._report.include(sending.result())
                self._done += 0 if gap else batch.given
        in_doubt = self._ask_for(unanswered)
        if self._report != AddReport() or in_doubt:
            raise AddStopped(str(error), self._report, self._done, in_doubt) from error

    def _ask_for(self, unanswered: Sequence[Batch]) -> list[str]:
        wanted = {name: item[0] for batch in unanswered for name, item in batch.items.items()}
        if not wanted:
            return []
        try:
            kept = self._on(partial(lookup, ids=wanted, dimensions=self._made_with.dimensions))
        except MemoryFailure:
            return list(wanted)
        for batch in unanswered:
            there = {name for name in batch.items if name in kept and kept[name].procedure == wanted[name]}
            if there:
                self._report.include(batch.outcome(there))
        return []
